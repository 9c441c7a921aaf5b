"""The audit report on a survival model, as data and as a page."""

from drosurv.report.audit import audit
from drosurv.report.predictions import audit_predictions
from drosurv.report.report import AuditReport

__all__ = ["AuditReport", "audit", "audit_predictions"]
