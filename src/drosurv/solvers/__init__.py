"""Solvers: find the parameters that minimise an objective."""

from drosurv.solvers.adam import adam
from drosurv.solvers.composite import Composite
from drosurv.solvers.convex import Solution, minimise
from drosurv.solvers.linear_problem import LinearProblem

__all__ = ["Composite", "LinearProblem", "Solution", "adam", "minimise"]
