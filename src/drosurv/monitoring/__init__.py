"""Monitoring of a model in use: alarms and intervals that hold at all dates, overall and by group."""

from drosurv.monitoring.monitoring import Monitoring, monitor

__all__ = ["Monitoring", "monitor"]
