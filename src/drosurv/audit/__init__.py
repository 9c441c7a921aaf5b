"""The audit report: data first, pages second."""

from drosurv.audit.alpha_path import ALPHAS, train_alpha_path
from drosurv.audit.audit import audit
from drosurv.audit.demonstration import audit_flc
from drosurv.audit.foreign import audit_predictions
from drosurv.audit.report import AuditReport, ModelAudit

__all__ = [
    "ALPHAS",
    "AuditReport",
    "ModelAudit",
    "audit",
    "audit_flc",
    "audit_predictions",
    "train_alpha_path",
]
