"""Neighbourhood averages given by a row-stochastic matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from drosurv.target import FloatArray


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
