"""Sums over patients of the outer products of their features."""

from __future__ import annotations

import numba
import numpy as np

from drosurv.target import FloatArray

# With so few features there is nothing to save by symmetry.
_NARROW = 8


def weighted_gram(X: FloatArray, weights: FloatArray, centre: FloatArray | None = None) -> FloatArray:
    """X' diag(weights) X (d, d), with the features taken from a centre (d,)."""
    n, d = X.shape
    # So many rows at a time, that their numbers stay in a near cache.
    rows, gram = max(1024, 65536 // max(d, 1)), np.zeros((d, d))
    if centre is None and d <= _NARROW:
        for low in range(0, n, rows):
            own = X[low : low + rows]
            gram += own.T @ (weights[low : low + rows, None] * own)
        return gram
    if weights.min(initial=0.0) < 0.0:
        above = weighted_gram(X, np.maximum(weights, 0.0), centre)
        return above - weighted_gram(X, np.maximum(-weights, 0.0), centre)
    centre = np.zeros(d) if centre is None else centre
    held = np.empty((min(rows, n), d))
    for low in range(0, n, rows):
        part = held[: n - low]
        _scale(X, weights, centre, low, part)
        # The product of a matrix with its own transpose is symmetric, and half the work.
        gram += part.T @ part
    return gram


@numba.njit(cache=True, nogil=True)
def _scale(X: FloatArray, weights: FloatArray, centre: FloatArray, low: int, out: FloatArray) -> None:
    """Write the rows of X from low on, times the roots of their weights."""
    for i in range(out.shape[0]):
        root = np.sqrt(weights[low + i])
        for j in range(out.shape[1]):
            out[i, j] = root * (X[low + i, j] - centre[j])
