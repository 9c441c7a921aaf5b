"""Objectives: a vector of losses in, a scalar out. They know nothing of survival."""

from drosurv.objectives.balls import BALLS, ball_objective, worst_case_weights
from drosurv.objectives.blocks import Blocks
from drosurv.objectives.chi_square import ChiSquare, chi_square
from drosurv.objectives.cvar import CVaR, cvar
from drosurv.objectives.mean import Mean
from drosurv.objectives.objective import Curvature, Evaluation, Objective, uniform_mass
from drosurv.objectives.power import power

__all__ = [
    "BALLS",
    "Blocks",
    "CVaR",
    "ChiSquare",
    "Curvature",
    "Evaluation",
    "Mean",
    "Objective",
    "ball_objective",
    "chi_square",
    "cvar",
    "power",
    "uniform_mass",
    "worst_case_weights",
]
