r"""How much each patient adds to a disparity that sums over pairs, and bootstrap replicates from that.

A replicate with patient weights w has the value

.. math:: F(w) = F + \sum_i (w_i - 1) \psi_i + O(1/n)

with :math:`\psi_i` the derivative in the weight of patient i. One pass over the pairs gives all of them,
where computing each replicate anew would take a pass each.
"""

from __future__ import annotations

import numba
import numpy as np

from drosurv.disparities.hinge_scan import unit_rows
from drosurv.groups import Groups
from drosurv.metrics.sampled_pairs import (
    Pairs,
    enough_for_each,
    excess,
    excess_over_censored_pairs,
    excess_over_pairs,
    sampled_number,
)
from drosurv.target import BoolArray, FloatArray, IntArray, Target


def individual_influence(
    hazard: FloatArray, X: FloatArray, *, scale: float, convention: str, pairs: Pairs = "auto"
) -> FloatArray:
    """Influence of each patient on F_I, (n,), for weights that sum to n."""
    n, number = len(hazard), sampled_number(pairs, len(hazard))
    rows = unit_rows(X) if convention == "table" else np.ascontiguousarray(X)
    if number is None:
        sums = _sums_over_pairs(hazard, rows, scale)
    else:
        sums = (n - 1) * excess_over_pairs(hazard, rows, scale, enough_for_each(number, n)).by_patient
    return sums / (n * (n - 1)) if convention == "table" else sums


def censored_influence(
    target: Target,
    hazard: FloatArray,
    X: FloatArray,
    groups: Groups | None,
    *,
    scale: float,
    pairs: Pairs = "auto",
) -> FloatArray:
    """Influence of each patient on a censoring-aware disparity, (n,); NaN if nobody was censored or had the event.

    With groups it is that of pairs inside one group.
    """
    codes = np.zeros(len(target), dtype=np.intp) if groups is None else groups.codes
    events, censored = target.n_events, len(target) - target.n_events
    scene = (hazard, unit_rows(X), scale, target.event, target.time, codes)
    number = sampled_number(pairs, len(target))
    if number is None or events * censored == 0:
        sums = _sums_over_censored_pairs(*scene)
    else:
        means = excess_over_censored_pairs(*scene, enough_for_each(number, len(target))).by_patient
        sums = means * np.where(target.event, censored, events)
    with np.errstate(invalid="ignore", divide="ignore"):
        # The numbers of events and of censored patients in the denominator are resampled too.
        all_pairs = np.float64(events) * censored
        share = np.where(target.event, np.float64(1.0) / events, np.float64(1.0) / censored)
        influence: FloatArray = (sums - sums.sum() / 2 * share) / all_pairs
    return influence


@numba.njit(cache=True, nogil=True)
def _sums_over_pairs(hazard: FloatArray, rows: FloatArray, scale: float) -> FloatArray:
    """Each patient's sum over partners of [|h_i - h_j| - scale * distance]_+."""
    n = len(hazard)
    sums = np.zeros(n)
    for i in range(n):
        own = 0.0
        for j in range(i + 1, n):
            found = excess(hazard, rows, scale, i, j)
            own += found
            sums[j] += found
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
                found = excess(hazard, rows, scale, i, j)
                own += found
                sums[j] += found
        sums[i] += own
    return sums
