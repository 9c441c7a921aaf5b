"""Objectives: combine the losses of all patients into one number. They do not depend on survival data."""

from drosurv.objectives.balls import BALLS, RobustObjective, ball_objective, register_ball, worst_case_weights
from drosurv.objectives.chi_square import ChiSquare, chi_square
from drosurv.objectives.cvar import CVaR, cvar
from drosurv.objectives.objective import Blocks, Curvature, Evaluation, Mean, Objective, uniform_mass

__all__ = [
    "BALLS",
    "Blocks",
    "CVaR",
    "ChiSquare",
    "Curvature",
    "Evaluation",
    "Mean",
    "Objective",
    "RobustObjective",
    "ball_objective",
    "chi_square",
    "cvar",
    "register_ball",
    "uniform_mass",
    "worst_case_weights",
]
