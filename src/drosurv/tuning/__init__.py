"""Choosing a setting: grids, rules such as the accuracy budget, search."""

from drosurv.tuning.candidates import average_folds
from drosurv.tuning.careful_budget import CarefulBudget
from drosurv.tuning.grids import default_grid
from drosurv.tuning.pareto import ParetoPoint, pareto_front
from drosurv.tuning.rules import (
    AccuracyBudget,
    BestScore,
    Choice,
    FixedSetting,
    OneStandardError,
    SelectionRule,
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
