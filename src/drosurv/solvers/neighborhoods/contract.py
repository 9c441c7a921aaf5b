"""What every neighbourhood is: a row-stochastic average of patients' values, and its adjoint."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

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


class MatrixAverages:
    """Averages W r with a stored row-stochastic matrix (n, n), an array or a sparse one."""

    def __init__(self, matrix: Any) -> None:
        self._matrix, self._transpose = matrix, matrix.T

    @classmethod
    def checked(cls, matrix: Any, n: int) -> MatrixAverages:
        """From a user's matrix: (n, n), entries finite and >= 0, rows summing to 1."""
        from scipy import sparse

        if sparse.issparse(matrix):
            matrix = sparse.csr_array(matrix, dtype=np.float64)
            entries = matrix.data
        else:
            try:
                matrix = np.asarray(matrix, dtype=np.float64)
            except (TypeError, ValueError):
                raise ValueError(
                    "the kernel must return an object with average and adjoint, or a row-stochastic matrix; "
                    f"got {type(matrix).__name__}."
                ) from None
            entries = matrix
        if matrix.shape != (n, n):
            raise ValueError(
                f"the kernel's matrix must be ({n}, {n}), one row per patient, got {matrix.shape}."
            )
        if not np.isfinite(entries).all() or (entries < 0).any():
            raise ValueError(
                "the kernel's matrix holds negative, NaN or infinite weights; averages need >= 0."
            )
        sums = np.asarray(matrix.sum(axis=1)).ravel()
        if not np.allclose(sums, 1):
            row = int(np.argmax(abs(sums - 1)))
            raise ValueError(
                f"the rows of the kernel's matrix must sum to 1; row {row} sums to {sums[row]:.6g}. "
                "Divide each row by its sum."
            )
        return cls(matrix)

    def average(self, values: FloatArray) -> FloatArray:
        """Neighbourhood averages W values, (..., n) -> (..., n)."""
        return _apply(self._matrix, values)

    def adjoint(self, weights: FloatArray) -> FloatArray:
        """Weights of patients W' weights, (..., n) -> (..., n)."""
        return _apply(self._transpose, weights)


def _apply(matrix: Any, values: FloatArray) -> FloatArray:
    rows = values.reshape(-1, values.shape[-1])
    product: FloatArray = np.asarray(matrix @ rows.T)
    return np.ascontiguousarray(product.T).reshape(values.shape)


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
