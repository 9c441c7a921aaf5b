"""Competing risks: models of several causes, and how right they are by cause and group."""

from drosurv.competing.cause_specific_cox import CauseSpecificCox
from drosurv.competing.cumulative_incidence import cumulative_incidence
from drosurv.evaluation.by_cause import evaluate_by_cause

__all__ = ["CauseSpecificCox", "cumulative_incidence", "evaluate_by_cause"]
