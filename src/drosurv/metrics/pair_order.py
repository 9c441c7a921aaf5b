"""The order in which patients meet in the sweep over all comparable pairs, and what is counted there."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from drosurv.metrics.pair_sweep import SortedPatients, add_between, add_counts, later_sums
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

    @staticmethod
    def for_imparity(target: Target, risk: FloatArray) -> PairOrder:
        """Order for Algorithm B.1: only equal scores are tied."""
        return _lay_out(target.time, target.event, risk, 0.0)

    @staticmethod
    def for_harrell(target: Target, risk: FloatArray) -> PairOrder:
        """Order for Harrell's rule: scores within `HARRELL_TOLERANCE` are tied, which is not transitive."""
        return _lay_out(target.time, target.event, risk, HARRELL_TOLERANCE)

    def counts(self, weight: FloatArray, partner_weight: FloatArray | None = None) -> PairCounts:
        """Counts by the order's rule, in the caller's row order, each pair counted for both its patients.

        A pair weighs w_i * w_j, or `weight` of the one it is counted for times `partner_weight` of the other.
        """
        counts = PairCounts(*np.empty((2, len(weight))))
        add_counts(self, weight, weight if partner_weight is None else partner_weight, *counts)
        return counts

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
        own = weight[self.rows]
        partner = own if partner_weight is None else partner_weight[self.rows]
        return later_sums(self, own if event_weight is None else own * event_weight[self.rows], partner)

    def concordance(self, weight: FloatArray, event_weight: FloatArray | None = None) -> float:
        """Share of right pairs among those of `harrell_sums`; NaN if no pair is comparable."""
        right, pairs = self.harrell_sums(weight, event_weight)
        return right / pairs if pairs != 0 else float("nan")

    def harrell_between(self, codes: IntArray, n_groups: int, weight: FloatArray) -> PairCounts:
        """Harrell's sums, (n_groups, n_groups): row the group of the earlier event, column the other's."""
        sums = PairCounts(*np.zeros((2, n_groups, n_groups)))
        add_between(self, weight[self.rows], codes[self.rows], *sums)
        return sums


@numba.njit(cache=True, nogil=True)
def imparity_sums(
    time: FloatArray, event: BoolArray, risk: FloatArray, weight: FloatArray, codes: IntArray, n_groups: int
) -> FloatArray:
    """Numerators and denominators of Algorithm B.1 summed by group, (2, n_groups), in one compiled call."""
    numerator, denominator = np.empty(len(risk)), np.empty(len(risk))
    add_counts(_lay_out(time, event, risk, 0.0), weight, weight, numerator, denominator)
    sums = np.zeros((2, n_groups))
    for k in range(len(risk)):
        sums[0, codes[k]] += numerator[k]
        sums[1, codes[k]] += denominator[k]
    return sums


@numba.njit(cache=True, nogil=True)
def _lay_out(time: FloatArray, event: BoolArray, risk: FloatArray, tolerance: float) -> PairOrder:
    """Algorithm B.1's order where only equal scores are tied, else Harrell's.

    One compiled call, since a few hundred patients take less than several calls.
    """
    # Not an argument: a constant True in a compiled call would compile everything here once more.
    simultaneous = tolerance == 0.0
    n = len(risk)
    by_score = stable_order(risk)
    distinct = np.empty(n)
    rank_of = np.empty(n, dtype=np.intp)
    n_ranks = 0
    for row in by_score:
        if n_ranks == 0 or risk[row] != distinct[n_ranks - 1]:
            distinct[n_ranks] = risk[row]
            n_ranks += 1
        rank_of[row] = n_ranks - 1
    if not simultaneous:
        # Sorting by time keeps this order: at each time the events by score, then the censored by score.
        happened = event[by_score]
        by_score = np.concatenate((by_score[happened], by_score[~happened]))
    rows = by_score[stable_order(time[by_score])]
    seen, flags, rank = time[rows], event[rows], rank_of[rows]
    blocks = np.empty(n + 1, dtype=np.intp)
    n_blocks = 0
    for k in range(n):
        if k == 0 or seen[k] != seen[k - 1] or (not simultaneous and flags[k] != flags[k - 1]):
            blocks[n_blocks] = k
            n_blocks += 1
    blocks[n_blocks] = n
    low, high = _tied_ranks(distinct[:n_ranks], tolerance)
    starts = blocks[: n_blocks + 1].copy()
    return PairOrder(rows, starts, flags, rank, low[rank], high[rank], n_ranks, simultaneous)


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
