"""Tuning: grids of settings, grid search, and rules that choose a setting."""

from drosurv.tuning.grids import default_grid
from drosurv.tuning.results import average_folds
from drosurv.tuning.rules import (
    AccuracyBudget,
    BestScore,
    CarefulBudget,
    Choice,
    FixedSetting,
    OneStandardError,
    ParetoPoint,
    SelectionRule,
    pareto_front,
)
from drosurv.tuning.search import GridSearch

__all__ = [
    "AccuracyBudget",
    "BestScore",
    "CarefulBudget",
    "Choice",
    "FixedSetting",
    "GridSearch",
    "OneStandardError",
    "ParetoPoint",
    "SelectionRule",
    "average_folds",
    "default_grid",
    "pareto_front",
]
