"""Objectives: a vector of losses in, a scalar out. They know nothing of survival."""

from drosurv.objectives.blocks import Blocks
from drosurv.objectives.chi_square import ChiSquare, chi_square
from drosurv.objectives.cvar import CVaR, cvar
from drosurv.objectives.mean import Mean
from drosurv.objectives.objective import Curvature, Evaluation, Objective, uniform_mass
from drosurv.objectives.power import power
from drosurv.objectives.threshold import worst_case_weights

__all__ = [
    "Blocks",
    "CVaR",
    "ChiSquare",
    "Curvature",
    "Evaluation",
    "Mean",
    "Objective",
    "chi_square",
    "cvar",
    "power",
    "uniform_mass",
    "worst_case_weights",
]
