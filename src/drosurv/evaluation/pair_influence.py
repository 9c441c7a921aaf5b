r"""How much each patient adds to a disparity that sums over pairs, and bootstrap replicates from that.

A replicate with patient weights w has the value

.. math:: F(w) = F + \sum_i (w_i - 1) \psi_i + O(1/n)

with :math:`\psi_i` the derivative in the weight of patient i. One pass over the pairs gives all of them,
where computing each replicate anew would take a pass each.
"""

from __future__ import annotations

import numba
import numpy as np

from drosurv.disparities.individual import unit_rows
from drosurv.metrics import Groups
from drosurv.metrics.fairness import Convention
from drosurv.target import BoolArray, FloatArray, IntArray, Target


def individual_influence(
    hazard: FloatArray, X: FloatArray, *, scale: float, convention: Convention
) -> FloatArray:
    """Influence of each patient on F_I, (n,), for weights that sum to n.

    Parameters
    ----------
    hazard : (n,) float64
        exp(risk).
    X : (n, d) float64
        Standardised features.
    scale, convention
        As in :func:`~drosurv.metrics.individual_disparity`.
    """
    n = len(hazard)
    if convention == "table":
        return _sums_over_pairs(hazard, unit_rows(X), scale) / (n * (n - 1))
    found: FloatArray = _sums_over_pairs(hazard, np.ascontiguousarray(X), scale)
    return found


def censored_influence(
    target: Target, hazard: FloatArray, X: FloatArray, groups: Groups | None, *, scale: float
) -> FloatArray:
    """Influence of each patient on a censoring-aware disparity, (n,); NaN if nobody was censored or had the event.

    Parameters
    ----------
    target : Target
        Events and times.
    hazard, X, scale
        As in `individual_influence`.
    groups : Groups, optional
        Pairs inside one group only; without it the individual disparity.
    """
    codes = np.zeros(len(target), dtype=np.intp) if groups is None else groups.codes
    sums = _sums_over_censored_pairs(hazard, unit_rows(X), scale, target.event, target.time, codes)
    events, censored = target.n_events, len(target) - target.n_events
    with np.errstate(invalid="ignore", divide="ignore"):
        # The numbers of events and of censored patients in the denominator are resampled too.
        pairs = np.float64(events) * censored
        share = np.where(target.event, np.float64(1.0) / events, np.float64(1.0) / censored)
        influence: FloatArray = (sums - sums.sum() / 2 * share) / pairs
    return influence


@numba.njit(cache=True, nogil=True)
def _sums_over_pairs(hazard: FloatArray, rows: FloatArray, scale: float) -> FloatArray:
    """Each patient's sum over partners of [|h_i - h_j| - scale * distance]_+."""
    n = len(hazard)
    sums = np.zeros(n)
    for i in range(n):
        own = 0.0
        for j in range(i + 1, n):
            excess = _excess(hazard, rows, scale, i, j)
            own += excess
            sums[j] += excess
        sums[i] += own
    return sums


@numba.njit(cache=True, nogil=True)
def _sums_over_censored_pairs(
    hazard: FloatArray, rows: FloatArray, scale: float, event: BoolArray, time: FloatArray, codes: IntArray
) -> FloatArray:
    """The same over pairs of a censored patient and one of the group whose event came no earlier."""
    n = len(hazard)
    sums = np.zeros(n)
    for i in range(n):
        if event[i]:
            continue
        own = 0.0
        for j in range(n):
            if event[j] and time[i] <= time[j] and codes[i] == codes[j]:
                excess = _excess(hazard, rows, scale, i, j)
                own += excess
                sums[j] += excess
        sums[i] += own
    return sums


@numba.njit(cache=True, nogil=True, inline="always")
def _excess(hazard: FloatArray, rows: FloatArray, scale: float, i: int, j: int) -> float:
    gap = abs(hazard[i] - hazard[j])
    squared = 0.0
    for k in range(rows.shape[1]):
        squared += (rows[i, k] - rows[j, k]) ** 2
    return float(max(gap - scale * np.sqrt(squared), 0.0))
