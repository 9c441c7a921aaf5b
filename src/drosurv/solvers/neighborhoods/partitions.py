"""Averages inside the cells of one or several partitions of the patients."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from drosurv.observation import label_codes
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
        return self._handed_back(values * self._weight)

    def adjoint(self, weights: FloatArray) -> FloatArray:
        """Weights of patients W' weights, (..., n) -> (..., n)."""
        return self._handed_back(np.asarray(weights, dtype=np.float64)) * self._weight

    def _handed_back(self, values: FloatArray) -> FloatArray:
        """Sum of each cell's values times its scale, handed back to the cell's patients: a symmetric operator."""
        rows = values.reshape(-1, values.shape[-1])
        if len(rows) == 1:
            out = _through_cells(np.ascontiguousarray(rows[0]), self.labels, self._scale)
        else:
            out = _columns_through_cells(np.ascontiguousarray(rows.T), self.labels, self._scale).T
        return out.reshape(values.shape)


def known_groups(groups: Any, *, sample_weight: FloatArray | None = None) -> Partitions:
    """Average each patient over the members of its own group, by labels (n,), none missing, and weights (n,).

    >>> known_groups(["a", "b", "a"]).average(np.array([1.0, 5.0, 3.0]))
    array([2., 5., 2.])
    """
    codes, _ = label_codes("groups", groups, len(groups))
    return Partitions(codes[None], sample_weight)


@numba.njit(cache=True, nogil=True)
def _through_cells(values: FloatArray, labels: Labels, scale: FloatArray) -> FloatArray:
    out = np.zeros_like(values)
    for t in range(len(labels)):
        sums = np.zeros(scale.shape[1])
        for i in range(len(values)):
            sums[labels[t, i]] += values[i]
        sums *= scale[t]
        for i in range(len(values)):
            out[i] += sums[labels[t, i]]
    return out


@numba.njit(cache=True, nogil=True)
def _columns_through_cells(values: FloatArray, labels: Labels, scale: FloatArray) -> FloatArray:
    """The same for many values (n, B) of each patient: a label that is looked up serves all of them at once."""
    out = np.zeros_like(values)
    for t in range(len(labels)):
        sums = np.zeros((scale.shape[1], values.shape[1]))
        for i in range(len(values)):
            # A number of its own, or each addition would look it up again.
            cell = labels[t, i]
            for b in range(values.shape[1]):
                sums[cell, b] += values[i, b]
        sums *= scale[t].reshape(-1, 1)
        for i in range(len(values)):
            cell = labels[t, i]
            for b in range(values.shape[1]):
                out[i, b] += sums[cell, b]
    return out
