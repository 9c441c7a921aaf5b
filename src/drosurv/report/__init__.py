"""The audit report on a survival model, as data and as a page."""

from drosurv.report.alpha_path import ALPHAS, train_alpha_path
from drosurv.report.audit import audit
from drosurv.report.predictions import PredictionColumns, audit_predictions, prediction_columns
from drosurv.report.report import AuditReport, ModelAudit

__all__ = [
    "ALPHAS",
    "AuditReport",
    "ModelAudit",
    "PredictionColumns",
    "audit",
    "audit_predictions",
    "prediction_columns",
    "train_alpha_path",
]
