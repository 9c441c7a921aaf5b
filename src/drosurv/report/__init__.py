"""The audit report on a survival model, as data and as a page."""

from drosurv.report.audit import audit
from drosurv.report.report import AuditReport
from drosurv.report.section import Page

__all__ = ["AuditReport", "Page", "audit"]
