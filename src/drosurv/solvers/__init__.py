"""Solvers: find the parameters that minimise a criterion."""

from drosurv.solvers.adam import MiniBatches, adam
from drosurv.solvers.boosting import Growth, best_round, boost
from drosurv.solvers.compiled import compiled_adam
from drosurv.solvers.convex import Solution, minimise
from drosurv.solvers.criterion import Criterion, held_out
from drosurv.solvers.linear_problem import LinearProblem
from drosurv.solvers.stopping import Stopping, Watch
from drosurv.solvers.torch_criterion import TorchCriterion

__all__ = [
    "Criterion",
    "Growth",
    "LinearProblem",
    "MiniBatches",
    "Solution",
    "Stopping",
    "TorchCriterion",
    "Watch",
    "adam",
    "best_round",
    "boost",
    "compiled_adam",
    "held_out",
    "minimise",
]
