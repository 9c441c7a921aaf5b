"""Objectives: combine the losses of all patients into one number. They do not depend on survival data."""

from drosurv.files import import_files
from drosurv.objectives.balls import RobustObjective, register_ball, worst_case_weights
from drosurv.objectives.chi_square import chi_square
from drosurv.objectives.cvar import cvar
from drosurv.objectives.objective import Objective

# Every file of this folder may register a ball.
import_files(__name__)

__all__ = ["Objective", "RobustObjective", "chi_square", "cvar", "register_ball", "worst_case_weights"]
