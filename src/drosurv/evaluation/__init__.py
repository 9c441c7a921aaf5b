"""Evaluation: every metric of a fitted model, overall and by group, with intervals, in one call."""

from drosurv.evaluation.evaluate import evaluate
from drosurv.evaluation.predictions import Predictions
from drosurv.evaluation.result import EvaluationResult

__all__ = ["EvaluationResult", "Predictions", "evaluate"]
