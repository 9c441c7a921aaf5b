"""Metrics: accuracy, fairness and their uncertainty, for any survival model."""
