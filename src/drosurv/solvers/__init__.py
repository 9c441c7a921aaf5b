"""Solvers: find the parameters that minimise a criterion."""

from drosurv.solvers.adam import adam
from drosurv.solvers.boosting import Watched, boost
from drosurv.solvers.compiled import compiled_adam, compiles
from drosurv.solvers.convex import Solution, minimise
from drosurv.solvers.criterion import Criterion
from drosurv.solvers.linear_problem import LinearProblem
from drosurv.solvers.mini_batches import MiniBatches
from drosurv.solvers.stopping import Stopping, Watch
from drosurv.solvers.torch_criterion import TorchCriterion

__all__ = [
    "Criterion",
    "LinearProblem",
    "MiniBatches",
    "Solution",
    "Stopping",
    "TorchCriterion",
    "Watch",
    "Watched",
    "adam",
    "boost",
    "compiled_adam",
    "compiles",
    "minimise",
]
