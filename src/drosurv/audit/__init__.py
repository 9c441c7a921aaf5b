"""The audit report: data first, pages second."""

from drosurv.audit.audit import audit
from drosurv.audit.foreign import audit_predictions
from drosurv.audit.prediction_columns import PredictionColumns, prediction_columns
from drosurv.audit.report import AuditReport, ModelAudit
from drosurv.audit.stops import ALPHAS, train_alpha_path

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
