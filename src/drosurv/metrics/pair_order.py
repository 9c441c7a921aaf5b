"""The order in which patients meet in the sweep over all comparable pairs, and what is counted there."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from drosurv.metrics.pair_sweep import SortedPatients, add_between, add_counts, add_pairs
from drosurv.radix import stable_order
from drosurv.target import BoolArray, FloatArray, IntArray, Target

#: Scores this close are tied in Harrell's c-index, as in scikit-survival.
HARRELL_TOLERANCE = 1e-8


class PairCounts(NamedTuple):
    """What each patient's comparable pairs add up to, (n,): concordant ones, ties counted by the rule in use, and all.

    Every grouping of the patients only sums them.
    """

    numerator: FloatArray
    denominator: FloatArray


class PairOrder(SortedPatients):
    """Patients sorted for the sweep: everything about their pairs that does not change with their weights."""

    @classmethod
    def for_imparity(cls, target: Target, risk: FloatArray) -> PairOrder:
        """Order for Algorithm B.1: only equal scores are tied."""
        return cls(*_lay_out(target.time, target.event, risk, 0.0, False))

    @classmethod
    def for_harrell(cls, target: Target, risk: FloatArray) -> PairOrder:
        """Order for Harrell's rule: scores within `HARRELL_TOLERANCE` are tied, which is not transitive."""
        return cls(*_lay_out(target.time, target.event, risk, HARRELL_TOLERANCE, True))

    def imparity_counts(self, weight: FloatArray, partner_weight: FloatArray | None = None) -> PairCounts:
        """Counts of Algorithm B.1 (of an order for it) in the caller's row order.

        A pair weighs w_i * w_j for both its patients, or `weight` of the one it is counted for times
        `partner_weight` of the other.
        """
        return self._counts(weight, weight if partner_weight is None else partner_weight, simultaneous=True)

    def harrell_counts(self, weight: FloatArray) -> PairCounts:
        """Counts by Harrell's rule (of an order for it), each pair counted for both its patients."""
        return self._counts(weight, weight, simultaneous=False)

    def harrell_sums(
        self,
        weight: FloatArray,
        event_weight: FloatArray | None = None,
        *,
        partner_weight: FloatArray | None = None,
    ) -> tuple[float, float]:
        """Concordant and comparable pairs by Harrell's rule, each pair once.

        A pair weighs w_i * w_j, times the `event_weight` of the patient i whose event came first (Uno's inverse
        probability of censoring weights). With a `partner_weight`, w_j is that.
        """
        sorted_weight = weight[self.rows]
        partner = sorted_weight if partner_weight is None else partner_weight[self.rows]
        numerator, denominator = np.zeros((2, len(self.rows)))
        add_pairs(self, sorted_weight, partner, True, numerator, denominator)
        if event_weight is not None:
            sorted_weight = sorted_weight * event_weight[self.rows]
        return float(sorted_weight @ numerator), float(sorted_weight @ denominator)

    def concordance(self, weight: FloatArray, event_weight: FloatArray | None = None) -> float:
        """Share of right pairs among those of `harrell_sums`; NaN if no pair is comparable."""
        right, pairs = self.harrell_sums(weight, event_weight)
        return right / pairs if pairs != 0 else float("nan")

    def harrell_between(self, codes: IntArray, n_groups: int, weight: FloatArray) -> PairCounts:
        """Harrell's sums, (n_groups, n_groups): row the group of the earlier event, column the other's."""
        sums = PairCounts(*np.zeros((2, n_groups, n_groups)))
        add_between(self, weight[self.rows], codes[self.rows], sums.numerator, sums.denominator)
        return sums

    def _counts(self, own: FloatArray, weight: FloatArray, *, simultaneous: bool) -> PairCounts:
        counts = PairCounts(*np.zeros((2, len(self.rows))))
        add_counts(self, own, weight, simultaneous, counts.numerator, counts.denominator)
        return counts


@numba.njit(cache=True, nogil=True)
def imparity_sums(
    time: FloatArray, event: BoolArray, risk: FloatArray, weight: FloatArray, codes: IntArray, n_groups: int
) -> FloatArray:
    """Numerators and denominators of Algorithm B.1 summed by group, (2, n_groups), in one compiled call."""
    rows, blocks, flags, rank, low, high, n_ranks = _lay_out(time, event, risk, 0.0, False)
    numerator, denominator = np.empty(len(risk)), np.empty(len(risk))
    order = SortedPatients(rows, blocks, flags, rank, low, high, n_ranks)
    add_counts(order, weight, weight, True, numerator, denominator)
    sums = np.zeros((2, n_groups))
    for k in range(len(risk)):
        sums[0, codes[k]] += numerator[k]
        sums[1, codes[k]] += denominator[k]
    return sums


@numba.njit(cache=True, nogil=True)
def _lay_out(
    time: FloatArray, event: BoolArray, risk: FloatArray, tolerance: float, events_first: bool
) -> tuple[IntArray, IntArray, BoolArray, IntArray, IntArray, IntArray, int]:
    """Fields of a `PairOrder`; one compiled call, since a few hundred patients take less than several calls."""
    n = len(risk)
    by_score = stable_order(risk)
    distinct = np.empty(n)
    rank_by_score = np.empty(n, dtype=np.intp)
    n_ranks = 0
    for k in range(n):
        score = risk[by_score[k]]
        if k == 0 or score != distinct[n_ranks - 1]:
            distinct[n_ranks] = score
            n_ranks += 1
        rank_by_score[k] = n_ranks - 1
    by_time = stable_order(time[by_score])
    rows = by_score[by_time]
    rank = rank_by_score[by_time]
    if events_first:
        _put_events_first(rows, rank, time, event)
    blocks = np.empty(n + 1, dtype=np.intp)
    n_blocks = 0
    for k in range(n):
        row, before = rows[k], rows[k - 1]
        if k == 0 or time[row] != time[before] or (events_first and event[row] != event[before]):
            blocks[n_blocks] = k
            n_blocks += 1
    blocks[n_blocks] = n
    low_of, high_of = _tied_ranks(distinct[:n_ranks], tolerance)
    return rows, blocks[: n_blocks + 1].copy(), event[rows], rank, low_of[rank], high_of[rank], n_ranks


@numba.njit(cache=True, nogil=True)
def _put_events_first(rows: IntArray, rank: IntArray, time: FloatArray, event: BoolArray) -> None:
    """Among rows of one time, move the events before the censored; either keep their order."""
    n = len(rows)
    held = np.empty((2, n), dtype=np.intp)
    start = 0
    while start < n:
        stop = start
        place = start
        n_held = 0
        while stop < n and time[rows[stop]] == time[rows[start]]:
            row, score = rows[stop], rank[stop]
            stop += 1
            if event[row]:
                rows[place] = row
                rank[place] = score
                place += 1
            else:
                held[0, n_held] = row
                held[1, n_held] = score
                n_held += 1
        rows[place:stop] = held[0, :n_held]
        rank[place:stop] = held[1, :n_held]
        start = stop


@numba.njit(cache=True, nogil=True)
def _tied_ranks(distinct: FloatArray, tolerance: float) -> tuple[IntArray, IntArray]:
    """For each of the distinct scores, ascending, the range of ranks within `tolerance` of it."""
    n = len(distinct)
    low = np.empty(n, dtype=np.intp)
    high = np.empty(n, dtype=np.intp)
    first = 0
    last = 0
    for k in range(n):
        # A rounded difference is monotone in either score, so both ends only ever move up.
        while distinct[k] - distinct[first] > tolerance:
            first += 1
        while last < n and distinct[last] - distinct[k] <= tolerance:
            last += 1
        low[k] = first
        high[k] = last
    return low, high
