"""Evaluation: every metric of a fitted model, overall and by group, with intervals, in one call."""

from drosurv.evaluation.by_cause import evaluate_by_cause
from drosurv.evaluation.compare import compare
from drosurv.evaluation.evaluate import evaluate
from drosurv.evaluation.evaluator import SmallGroupWarning
from drosurv.evaluation.result import EvaluationResult
from drosurv.evaluation.scorers import get_scorer, make_scorers
from drosurv.predictions import Predictions

__all__ = [
    "EvaluationResult",
    "Predictions",
    "SmallGroupWarning",
    "compare",
    "evaluate",
    "evaluate_by_cause",
    "get_scorer",
    "make_scorers",
]
