"""Sums over patients of the outer products of their features."""

from __future__ import annotations

import numba
import numpy as np

from drosurv.target import FloatArray

# Rows worked through at a time: they stay in the nearest cache.
_CHUNK = 1024


def weighted_gram(X: FloatArray, weights: FloatArray, centre: FloatArray | None = None) -> FloatArray:
    """X' diag(weights) X (d, d), with the features taken from a centre (d,)."""
    centre = np.zeros(X.shape[1]) if centre is None else centre
    if (weights < 0).any():
        above = weighted_gram(X, np.maximum(weights, 0.0), centre)
        return above - weighted_gram(X, np.maximum(-weights, 0.0), centre)
    roots, gram = np.sqrt(weights), np.zeros((X.shape[1], X.shape[1]))
    held = np.empty((_CHUNK, X.shape[1]))
    for low in range(0, len(X), _CHUNK):
        part = held[: len(X) - low]
        _scale(X, roots, centre, low, part)
        # The product of a matrix with its own transpose is symmetric, and half the work.
        gram += part.T @ part
    return gram


@numba.njit(cache=True, nogil=True)
def _scale(X: FloatArray, scale: FloatArray, centre: FloatArray, low: int, out: FloatArray) -> None:
    """Write the scaled rows of X from low on."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = scale[low + i] * (X[low + i, j] - centre[j])
