"""Weighted counts of all comparable pairs of patients, in one pass over time.

Patients are added to a Fenwick tree over score ranks in order of time. Two prefix sums then count the pairs of a
patient with everybody already in the tree, in O(n log n) for all n(n-1) ordered pairs. Counts are exact with any ties:
with integer weights every count is a multiple of 1/2, which float64 represents exactly up to 2**52.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np

from drosurv.target import BoolArray, FloatArray, IntArray, Target, stable_order

#: Scores this close are tied in Harrell's c-index, as in scikit-survival.
HARRELL_TOLERANCE = 1e-8
_FEW = 1_500


class PairCounts(NamedTuple):
    """Concordant pairs of each patient, with ties counted by the rule in use, and comparable pairs, each (n,).

    Their sums over a group are the counts of the group.
    """

    numerator: FloatArray
    denominator: FloatArray


class PairOrder(NamedTuple):
    """Patients sorted by time and score for the counting of pairs, whatever their weights.

    Patients are in blocks by time, and a patient with an event is comparable with everybody in a later block. In
    Algorithm B.1 a block is all patients of one time. In Harrell's rule the events and the censored patients of one
    time are two blocks, because a patient censored at the time of an event counts as observed longer.

    `rows` (n,) are the caller's row numbers, sorted by block and then by score; block b is
    ``rows[blocks[b] : blocks[b + 1]]``. The other arrays (n,) are in the order of `rows`: `rank` is the rank of the
    score among the `n_ranks` distinct scores, and the scores of ranks ``low <= r < high`` are tied with it.
    `simultaneous` says whether patients of the same block are pairs too, as in Algorithm B.1.
    """

    rows: IntArray
    blocks: IntArray
    event: BoolArray
    rank: IntArray
    low: IntArray
    high: IntArray
    n_ranks: int
    simultaneous: bool

    @staticmethod
    def for_imparity(target: Target, risk: FloatArray) -> PairOrder:
        """Order for Algorithm B.1: only equal scores are tied."""
        return _lay_out(target, risk, 0.0)

    @staticmethod
    def for_harrell(target: Target, risk: FloatArray) -> PairOrder:
        """Order for Harrell's rule: scores within `HARRELL_TOLERANCE` are tied, which is not transitive."""
        return _lay_out(target, risk, HARRELL_TOLERANCE)

    def counts(self, weight: FloatArray, partner_weight: FloatArray | None = None) -> PairCounts:
        """Counts of each patient in the caller's row order; each pair is counted for both its patients.

        The weight of a pair is the `weight` of the patient it is counted for times the `partner_weight`, by default
        the `weight`, of the other.
        """
        patient, partner = (
            weight[self.rows],
            (weight if partner_weight is None else partner_weight)[self.rows],
        )
        sums = self._add_pairs(_later, patient, partner, np.zeros((2, len(weight))))
        self._add_pairs(_earlier, patient, partner, sums)
        if self.simultaneous and len(self.blocks) <= len(self.rows):
            _add_simultaneous(self.blocks, self.event, self.rank, partner, *sums)
        counts = np.empty_like(sums)
        # Row by row, which is twice as fast as both at once.
        for found, of_patient in zip(counts, sums, strict=True):
            found[self.rows] = patient * of_patient
        return PairCounts(*counts)

    def harrell_sums(
        self,
        weight: FloatArray,
        event_weight: FloatArray | None = None,
        *,
        partner_weight: FloatArray | None = None,
    ) -> tuple[float, float]:
        """Summed weights of the concordant and of the comparable pairs by Harrell's rule, each pair counted once.

        The weight of a pair is the product of the `weight` and the `event_weight` (Uno's inverse probability of
        censoring weights) of the patient whose event came first, and the `partner_weight`, by default the `weight`, of
        the other.
        """
        patient = weight[self.rows]
        partner = patient if partner_weight is None else partner_weight[self.rows]
        patient = patient if event_weight is None else patient * event_weight[self.rows]
        concordant, comparable = (
            self._add_pairs(_later, patient, partner, np.zeros((2, len(weight)))) @ patient
        )
        return float(concordant), float(comparable)

    def concordance(self, weight: FloatArray, event_weight: FloatArray | None = None) -> float:
        """Concordance index from `harrell_sums`; NaN if no pair is comparable."""
        concordant, comparable = self.harrell_sums(weight, event_weight)
        return concordant / comparable if comparable != 0 else float("nan")

    def harrell_between(self, codes: IntArray, n_groups: int, weight: FloatArray) -> PairCounts:
        """Sums of pairs by Harrell's rule, (n_groups, n_groups): by the group of the earlier event and of the other."""
        sums = PairCounts(*np.zeros((2, n_groups, n_groups)))
        patient, code = weight[self.rows], codes[self.rows]
        for other in range(n_groups):
            partner = np.where(code == other, patient, 0.0)
            pairs = self._add_pairs(_later, patient, partner, np.zeros((2, len(weight))))
            for found, of_patient in zip(sums, pairs, strict=True):
                found[:, other] = np.bincount(code, patient * of_patient, n_groups)
        return sums

    def _add_pairs(
        self, pairs: Callable[..., None], patient_weight: FloatArray, weight: FloatArray, sums: FloatArray
    ) -> FloatArray:
        """Add to `sums` (2, n) the weights of each patient's concordant and comparable partners, and return them.

        Weights and sums are in the order of `rows`.
        """
        pairs(*self[1:6], patient_weight, weight, *np.zeros((2, self.n_ranks + 1)), *sums)
        return sums


def _lay_out(target: Target, risk: FloatArray, tolerance: float) -> PairOrder:
    """Sort for Algorithm B.1 if the tolerance is 0, else for Harrell's rule."""
    n = len(risk)
    # Copies: numba would compile the loop again for arrays that are read-only or not contiguous.
    time, event, risk = np.array(target.time), np.array(target.event), np.array(risk)
    # Both orders need not be stable; for few patients a sort that is takes longer.
    by_risk, rows = (np.argsort(risk), np.argsort(time)) if n < _FEW else (stable_order(risk), target.order)
    in_order = time[rows]
    differs = in_order[1:] != in_order[:-1]
    if not differs.all():
        # Equal times: by score and, in Harrell's rule, events first. Sorting integers is faster than a stable sort.
        key, position = np.append(0, np.cumsum(differs)), np.empty(n, np.intp)
        position[by_risk] = np.arange(n)
        key = 2 * key + ~event[rows] if tolerance > 0.0 else key
        rows = by_risk[np.sort(key * n + position[rows]) % n]
    rank, low, high, rank_of, first, last = np.empty((6, n), np.intp)
    blocks, sorted_event, distinct = np.empty(n + 1, np.intp), np.empty(n, np.bool_), np.empty(n)
    n_ranks, n_blocks = _fill(
        time,
        event,
        risk,
        by_risk,
        rows,
        tolerance,
        rank,
        low,
        high,
        rank_of,
        first,
        last,
        blocks,
        sorted_event,
        distinct,
    )
    return PairOrder(rows, blocks[: n_blocks + 1], sorted_event, rank, low, high, n_ranks, tolerance == 0.0)


@numba.njit(cache=True, nogil=True)
def _fill(
    time: FloatArray,
    event: BoolArray,
    risk: FloatArray,
    by_risk: IntArray,
    rows: IntArray,
    tolerance: float,
    rank: IntArray,
    low: IntArray,
    high: IntArray,
    rank_of: IntArray,
    first: IntArray,
    last: IntArray,
    blocks: IntArray,
    sorted_event: BoolArray,
    distinct: FloatArray,
) -> tuple[int, int]:
    """Write the arrays of :class:`PairOrder` and return the numbers of ranks and blocks."""
    n, n_ranks, n_blocks = risk.shape[0], 0, 0
    for k in range(n):
        value = risk[by_risk[k]]
        if n_ranks == 0 or value != distinct[n_ranks - 1]:
            distinct[n_ranks] = value
            n_ranks += 1
        rank_of[by_risk[k]] = n_ranks - 1
    # The scores of ranks first <= r < last are tied with each rank. Rounded differences are monotone in either score,
    # so both ends only increase.
    start, stop = 0, 0
    for r in range(n_ranks):
        while distinct[r] - distinct[start] > tolerance:
            start += 1
        while stop < n_ranks and distinct[stop] - distinct[r] <= tolerance:
            stop += 1
        first[r], last[r] = start, stop
    for k in range(n):
        row, before = rows[k], rows[k - 1 if k > 0 else 0]
        r = rank_of[row]
        rank[k], low[k], high[k], sorted_event[k] = r, first[r], last[r], event[row]
        if k == 0 or time[row] != time[before] or (tolerance > 0.0 and event[row] != event[before]):
            blocks[n_blocks] = k
            n_blocks += 1
    blocks[n_blocks] = n
    return n_ranks, n_blocks


def _pairs_with(*, later: bool) -> Callable[..., None]:
    """Return a compiled loop that adds the pairs of each patient with patients of other blocks, by their `weight`.

    If `later`, these are the pairs of each event with everybody in later blocks; otherwise, the pairs of everybody with
    the events of earlier blocks. Ties count half. Patients whose `patient_weight` is 0 are skipped. A loop for each
    case is a quarter faster than one for both.
    """

    @numba.njit(cache=True, nogil=True)
    def add(
        blocks: IntArray,
        event: BoolArray,
        rank: IntArray,
        low: IntArray,
        high: IntArray,
        patient_weight: FloatArray,
        weight: FloatArray,
        tree: FloatArray,
        at: FloatArray,
        numerator: FloatArray,
        denominator: FloatArray,
    ) -> None:
        # The Fenwick tree over ranks, and `at`, the weight at each rank, begin with zeros.
        entered, n_blocks = 0.0, len(blocks) - 1
        for step in range(n_blocks):
            block = n_blocks - 1 - step if later else step
            start, stop = blocks[block], blocks[block + 1]
            for k in range(start, stop):
                if (event[k] or not later) and patient_weight[k] > 0.0:
                    lower, j = 0.0, low[k]
                    while j > 0:
                        lower += tree[j]
                        j -= j & -j
                    tied = at[low[k]]
                    if high[k] > low[k] + 1:
                        tied, j = -lower, high[k]
                        while j > 0:
                            tied += tree[j]
                            j -= j & -j
                    lower += 0.5 * tied
                    numerator[k] += lower if later else entered - lower
                    denominator[k] += entered
            for k in range(start, stop):
                if (event[k] or later) and weight[k] > 0.0:
                    at[rank[k]] += weight[k]
                    j = rank[k] + 1
                    while j < len(tree):
                        tree[j] += weight[k]
                        j += j & -j
                    entered += weight[k]

    return add


_later, _earlier = _pairs_with(later=True), _pairs_with(later=False)


@numba.njit(cache=True, nogil=True)
def _add_simultaneous(
    blocks: IntArray,
    event: BoolArray,
    rank: IntArray,
    weight: FloatArray,
    numerator: FloatArray,
    denominator: FloatArray,
) -> None:
    """Add the pairs of each patient within its block by Algorithm B.1; blocks are sorted by score.

    Every such pair with an event counts 1/2, and another 1/2 if two events have the same score or the event has a
    higher score than the censored patient. No patient is paired with a copy of the same patient.
    """
    for block in range(len(blocks) - 1):
        start, stop = blocks[block], blocks[block + 1]
        if stop - start == 1:
            continue
        events = 0.0
        censored = 0.0
        for k in range(start, stop):
            if event[k]:
                events += weight[k]
            else:
                censored += weight[k]
        events_left = events
        censored_passed = 0.0
        k = start
        while k < stop:
            end = k
            events_here = 0.0
            censored_here = 0.0
            while end < stop and rank[end] == rank[k]:
                if event[end]:
                    events_here += weight[end]
                else:
                    censored_here += weight[end]
                end += 1
            events_left -= events_here
            for i in range(k, end):
                if event[i]:
                    others = events - weight[i] + censored
                    better = events_here - weight[i] + censored_passed
                else:
                    others = events
                    better = events_left
                denominator[i] += others
                numerator[i] += 0.5 * (others + better)
            censored_passed += censored_here
            k = end
