"""Averages inside the cells of one or several partitions of the patients."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from drosurv.target import FloatArray

Labels = NDArray[np.int32]


class Partitions:
    """Mean of the values in a patient's cell, averaged over T partitions.

    .. math:: (W r)_i = 1/T sum_t  sum_{j in cell_t(i)} w_j r_j / sum_{j in cell_t(i)} w_j

    W is never formed: a cell mean is a segment sum, so both directions take O(nT) time and O(n) memory beyond
    the labels. A cell whose patients all have weight 0 averages to 0.

    `labels` (T, n) are the cell of each patient in each partition, `sample_weight` (n,) the weights w_j >= 0.
    """

    def __init__(self, labels: NDArray[Any], sample_weight: FloatArray | None = None) -> None:
        # Cells are renumbered 0, 1, ... so that a table of cells is no longer than it must be.
        compact = [np.unique(row, return_inverse=True)[1] for row in labels]
        self.labels: Labels = np.array(compact, dtype=np.int32)
        self._weight = np.ones(labels.shape[1]) if sample_weight is None else sample_weight
        mass = np.array([np.bincount(row, self._weight, self.labels.max() + 1) for row in self.labels])
        self._scale = np.divide(1 / len(mass), mass, out=np.zeros_like(mass), where=mass > 0)

    def take(self, rows: NDArray[Any]) -> Partitions:
        """The same partitions of fewer patients."""
        return Partitions(self.labels[:, rows], self._weight[rows])

    def average(self, values: FloatArray) -> FloatArray:
        """Cell means W values, (..., n) -> (..., n)."""
        rows = np.reshape(values * self._weight, (-1, values.shape[-1]))
        return _through_cells(rows, self.labels, self._scale).reshape(values.shape)

    def adjoint(self, weights: FloatArray) -> FloatArray:
        """Weights of patients W' weights, (..., n) -> (..., n)."""
        rows = np.ascontiguousarray(weights, dtype=np.float64).reshape(-1, weights.shape[-1])
        spread: FloatArray = _through_cells(rows, self.labels, self._scale) * self._weight
        return spread.reshape(weights.shape)


@numba.njit(cache=True, nogil=True)
def _through_cells(values: FloatArray, labels: Labels, scale: FloatArray) -> FloatArray:
    """Sum of each cell's values times its scale, handed back to the cell's patients: a symmetric operator."""
    out = np.zeros_like(values)
    for b in range(values.shape[0]):
        for t in range(labels.shape[0]):
            sums = np.zeros(scale.shape[1])
            for i in range(values.shape[1]):
                sums[labels[t, i]] += values[b, i]
            sums *= scale[t]
            for i in range(values.shape[1]):
                out[b, i] += sums[labels[t, i]]
    return out
