"""The audit report: tables first, pages second."""

from drosurv.audit.alpha_path import ALPHAS, train_alpha_path
from drosurv.audit.audit import audit
from drosurv.audit.demonstration import audit_flc
from drosurv.audit.report import AuditReport, ModelAudit, WorstOffAudit
from drosurv.presentation import Column, Statement, Table

__all__ = [
    "ALPHAS",
    "AuditReport",
    "Column",
    "ModelAudit",
    "Statement",
    "Table",
    "WorstOffAudit",
    "audit",
    "audit_flc",
    "train_alpha_path",
]
