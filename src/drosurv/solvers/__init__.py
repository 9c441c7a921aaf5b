"""Solvers: find the parameters that minimise an objective."""

from drosurv.solvers.adam import adam
from drosurv.solvers.averaged_problem import AveragedCriterion, AveragedProblem, AveragedTrainee
from drosurv.solvers.baseline_loss import BaselineLoss, ConvexBaselineLoss, WithoutBaseline
from drosurv.solvers.compiled import compiled_adam, compiles
from drosurv.solvers.composite import Composite
from drosurv.solvers.convex import Solution, minimise
from drosurv.solvers.device_composite import DeviceComposite
from drosurv.solvers.linear_problem import LinearProblem
from drosurv.solvers.mini_batches import MiniBatches

__all__ = [
    "AveragedCriterion",
    "AveragedProblem",
    "AveragedTrainee",
    "BaselineLoss",
    "Composite",
    "ConvexBaselineLoss",
    "DeviceComposite",
    "LinearProblem",
    "MiniBatches",
    "Solution",
    "WithoutBaseline",
    "adam",
    "compiled_adam",
    "compiles",
    "minimise",
]
