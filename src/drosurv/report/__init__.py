"""The audit report on a survival model, as data and as a page."""

from drosurv.report.audit import audit
from drosurv.report.evidence import Page
from drosurv.report.report import AuditReport

__all__ = ["AuditReport", "Page", "audit"]
