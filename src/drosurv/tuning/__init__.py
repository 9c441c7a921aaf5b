"""Choosing a setting: grids, rules such as the accuracy budget, search."""

from drosurv.tuning.candidates import average_folds
from drosurv.tuning.pareto import ParetoPoint, pareto_front
from drosurv.tuning.rules import AccuracyBudget, BestScore, Choice, FixedSetting, OneStandardError, Rule

__all__ = [
    "AccuracyBudget",
    "BestScore",
    "Choice",
    "FixedSetting",
    "OneStandardError",
    "ParetoPoint",
    "Rule",
    "average_folds",
    "pareto_front",
]
