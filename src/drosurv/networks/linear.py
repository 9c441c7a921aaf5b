"""The linear network: scores theta . x, without bias."""

from __future__ import annotations

import numba
import numpy as np

from drosurv.target import FloatArray, IntArray


class Linear:
    """A batch of linear models on n fixed patients.

    Parameters
    ----------
    X : (n, d) float64
        Features.
    theta : (B, d) float64
        Coefficients, updated in place by a solver.
    """

    def __init__(self, X: FloatArray, theta: FloatArray) -> None:
        # One row per feature: sums over patients then run along memory.
        self.columns: FloatArray = np.ascontiguousarray(X.T)
        self.parameters: list[FloatArray] = [theta]

    def scores(self) -> FloatArray:
        """Scores (B, n) at the current coefficients."""
        theta = self.parameters[0]
        if len(theta) > 1:
            return theta @ self.columns
        out = np.empty((1, self.columns.shape[1]))
        combine(self.columns, theta[0], out[0])
        return out

    def pullback(self, gradient: FloatArray) -> list[FloatArray]:
        """Gradient in the coefficients (B, d), given the gradient in the scores (B, n)."""
        if len(gradient) > 1:
            return [gradient @ self.columns.T]
        out = np.empty((1, self.columns.shape[0]))
        project(self.columns, gradient[0], out[0])
        return [out]

    def take(self, rows: IntArray) -> Linear:
        """The same models on fewer patients, sharing the coefficients."""
        return Linear(self.columns[:, rows].T, self.parameters[0])


# For one model these plain loops beat a general matrix-vector product two to three times over.
@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def combine(columns: FloatArray, theta: FloatArray, out: FloatArray) -> None:  # pragma: no cover - compiled
    """Scores (n,) of coefficients (d,): columns' theta."""
    d, n = columns.shape
    odd = d % 2
    first, one = columns[0], theta[0] if odd else 0.0
    for i in range(n):
        out[i] = one * first[i]
    for j in range(odd, d, 2):
        first, second, one, two = columns[j], columns[j + 1], theta[j], theta[j + 1]
        for i in range(n):
            out[i] += one * first[i] + two * second[i]


@numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def project(
    columns: FloatArray, gradient: FloatArray, out: FloatArray
) -> None:  # pragma: no cover - compiled
    """Gradient (d,) in the coefficients, given that in the scores (n,)."""
    for j in range(columns.shape[0]):
        column, total = columns[j], 0.0
        for i in range(column.shape[0]):
            total += column[i] * gradient[i]
        out[j] = total
