"""Competing risks: cause-specific models, cumulative incidence and evaluation by cause."""

from drosurv.estimators.competing import CauseSpecificCox, cumulative_incidence
from drosurv.evaluation.by_cause import evaluate_by_cause

__all__ = ["CauseSpecificCox", "cumulative_incidence", "evaluate_by_cause"]
