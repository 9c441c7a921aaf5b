"""Solvers: find the parameters that minimise the objective of a problem."""

from drosurv.solvers.convex import LinearProblem, minimise
from drosurv.solvers.criterion import Criterion
from drosurv.solvers.problem import Options, Problem, Result, TrainingData
from drosurv.solvers.solver import solve, solve_together
from drosurv.solvers.torch_criterion import TorchCriterion

__all__ = [
    "Criterion",
    "LinearProblem",
    "Options",
    "Problem",
    "Result",
    "TorchCriterion",
    "TrainingData",
    "minimise",
    "solve",
    "solve_together",
]
