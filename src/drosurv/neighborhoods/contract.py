"""What every neighbourhood is: a row-stochastic average of patients' values, and its adjoint."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from drosurv.neighborhoods.matrix import MatrixAverages
from drosurv.target import FloatArray, IntArray


@runtime_checkable
class Neighborhoods(Protocol):
    """Averages W over the n patients: W is row-stochastic and a function of covariates only."""

    def average(self, values: FloatArray) -> FloatArray:
        """Neighbourhood averages W values, (..., n) -> (..., n)."""
        ...

    def adjoint(self, weights: FloatArray) -> FloatArray:
        """What weights on averages mean for the patients in them, W' weights, (..., n) -> (..., n)."""
        ...


@runtime_checkable
class TakesPatients(Neighborhoods, Protocol):
    """Neighbourhoods that can be had for some of the patients alone."""

    def take(self, rows: IntArray) -> Neighborhoods:
        """The averages among fewer patients."""
        ...


def as_neighborhoods(kernel: Any, n: int) -> Neighborhoods:
    """Check what a user's kernel returned for n patients, and turn a row-stochastic matrix into averages.

    >>> as_neighborhoods([[0.5, 0.5], [0.0, 1.0]], n=2).average(np.array([1.0, 3.0]))
    array([2., 3.])
    """
    if not isinstance(kernel, Neighborhoods):
        return MatrixAverages.checked(kernel, n)
    # Random probes tell a wrong operator from a right one without asking for n x n numbers.
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=n), rng.random(n)
    averages, shares = np.asarray(kernel.average(values)), np.asarray(kernel.adjoint(weights))
    if averages.shape != (n,) or shares.shape != (n,):
        raise ValueError(
            f"the kernel's average and adjoint must keep the shape ({n},), "
            f"got {averages.shape} and {shares.shape}."
        )
    if not np.allclose(kernel.average(np.ones(n)), 1):
        raise ValueError("the kernel's averages of a constant must be that constant: its rows must sum to 1.")
    for row in rng.permutation(n)[:8]:
        if np.min(kernel.adjoint(np.eye(1, n, row)[0])) < 0:
            raise ValueError(f"row {row} of the kernel holds negative weights; averages need weights >= 0.")
    if not np.isclose(weights @ averages, shares @ values, rtol=1e-6, atol=1e-9 * n):
        raise ValueError(
            "the kernel's adjoint is not the transpose of its average: sum(q * average(r)) must equal "
            "sum(adjoint(q) * r)."
        )
    return kernel
