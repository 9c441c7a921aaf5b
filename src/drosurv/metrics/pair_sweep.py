"""Weighted counts over all comparable pairs of patients, in one sweep over time.

Patients enter a Fenwick tree over score ranks in order of time; a patient's pairs with everybody already in
the tree are then two prefix sums. That is O(n log n) for n(n-1) ordered pairs, and exact under every kind
of tie: with unit or whole-number weights every count is a multiple of 1/2, which float64 holds up to 2**52.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from drosurv.metrics.radix import stable_order
from drosurv.target import BoolArray, FloatArray, IntArray, Target

#: Scores this close are tied in Harrell's c-index, as in scikit-survival.
HARRELL_TOLERANCE = 1e-8


class PairCounts(NamedTuple):
    """What each patient's comparable pairs add up to; every grouping of the patients only sums them.

    Parameters
    ----------
    numerator : (n,) float64
        Concordant pairs of each patient, ties counted by the rule in use.
    denominator : (n,) float64
        Comparable pairs of each patient.
    """

    numerator: FloatArray
    denominator: FloatArray


class PairOrder(NamedTuple):
    """Patients sorted for the sweep: everything about their pairs that does not change with their weights.

    A patient with an event is comparable with everybody in a later block. Which patients share a block is the
    difference between the rules: those of one time (Algorithm B.1), or, because Harrell counts a patient
    censored at the time of an event as observed longer, first the events and then the censored of one time.

    Parameters
    ----------
    rows : (n,) intp
        Rows of the caller by block, then score.
    blocks : (n_blocks + 1,) intp
        Where each block starts among the sorted patients, and n.
    event : (n,) bool
        Event flags, sorted.
    rank : (n,) intp
        Rank of the sorted patient's score among the distinct scores.
    low, high : (n,) intp
        The scores of ranks ``low <= r < high`` are tied with the sorted patient's.
    n_ranks : int
        Number of distinct scores.
    """

    rows: IntArray
    blocks: IntArray
    event: BoolArray
    rank: IntArray
    low: IntArray
    high: IntArray
    n_ranks: int

    @classmethod
    def for_imparity(cls, target: Target, risk: FloatArray) -> PairOrder:
        """Order for Algorithm B.1: only equal scores are tied."""
        return cls._build(target, risk, tolerance=0.0, events_first=False)

    @classmethod
    def for_harrell(cls, target: Target, risk: FloatArray) -> PairOrder:
        """Order for Harrell's rule: scores within `HARRELL_TOLERANCE` are tied, which is not transitive."""
        return cls._build(target, risk, tolerance=HARRELL_TOLERANCE, events_first=True)

    @classmethod
    def _build(cls, target: Target, risk: FloatArray, *, tolerance: float, events_first: bool) -> PairOrder:
        by_score = stable_order(risk)
        by_time = stable_order(target.time[by_score])
        return cls(*_lay_out(by_score, by_time, target.time, target.event, risk, tolerance, events_first))

    def imparity_counts(self, weight: FloatArray) -> PairCounts:
        """Counts of Algorithm B.1 (of an order for it) in the caller's row order; a pair weighs w_i * w_j."""
        return self._counts(weight, simultaneous=True)

    def harrell_counts(self, weight: FloatArray) -> PairCounts:
        """Counts by Harrell's rule (of an order for it), each pair counted for both its patients."""
        return self._counts(weight, simultaneous=False)

    def harrell_sums(self, weight: FloatArray, event_weight: FloatArray | None = None) -> tuple[float, float]:
        """Concordant and comparable pairs by Harrell's rule, each pair once.

        A pair weighs w_i * w_j, times the `event_weight` of the patient whose event came first (Uno's inverse
        probability of censoring weights).
        """
        sorted_weight = weight[self.rows]
        numerator, denominator = np.zeros((2, len(self.rows)))
        _add_later(self, sorted_weight, numerator, denominator)
        if event_weight is not None:
            sorted_weight = sorted_weight * event_weight[self.rows]
        return float(sorted_weight @ numerator), float(sorted_weight @ denominator)

    def harrell_between(self, codes: IntArray, n_groups: int, weight: FloatArray) -> PairCounts:
        """Harrell's sums, (n_groups, n_groups): row the group of the earlier event, column the other's."""
        sums = PairCounts(*np.zeros((2, n_groups, n_groups)))
        _add_between(self, weight[self.rows], codes[self.rows], sums.numerator, sums.denominator)
        return sums

    def _counts(self, weight: FloatArray, *, simultaneous: bool) -> PairCounts:
        counts = PairCounts(*np.zeros((2, len(self.rows))))
        _add_counts(self, weight, simultaneous, counts.numerator, counts.denominator)
        return counts


def _compiled(function: Any) -> Any:
    return numba.njit(cache=True, nogil=True)(function)


@_compiled
def _lay_out(
    by_score: IntArray, by_time: IntArray, time: FloatArray, event: BoolArray, risk: FloatArray,
    tolerance: float, events_first: bool,
) -> tuple[IntArray, IntArray, BoolArray, IntArray, IntArray, IntArray, int]:  # fmt: skip
    """Fields of a `PairOrder`; `by_time` sorts the rows `by_score` by time and is stable."""
    n = len(risk)
    distinct = np.empty(n)
    rank_by_score = np.empty(n, dtype=np.intp)
    n_ranks = 0
    for k in range(n):
        score = risk[by_score[k]]
        if k == 0 or score != distinct[n_ranks - 1]:
            distinct[n_ranks] = score
            n_ranks += 1
        rank_by_score[k] = n_ranks - 1
    rows = np.empty(n, dtype=np.intp)
    rank = np.empty(n, dtype=np.intp)
    blocks = np.empty(n + 1, dtype=np.intp)
    n_blocks = 0
    start = 0
    while start < n:
        stop = start + 1
        now = time[by_score[by_time[start]]]
        while stop < n and time[by_score[by_time[stop]]] == now:
            stop += 1
        place = start
        for turn in range(2 if events_first else 1):
            first = place
            for k in range(start, stop):
                row = by_score[by_time[k]]
                if not events_first or event[row] == (turn == 0):
                    rows[place] = row
                    rank[place] = rank_by_score[by_time[k]]
                    place += 1
            if place > first:
                blocks[n_blocks] = first
                n_blocks += 1
        start = stop
    blocks[n_blocks] = n
    low_of, high_of = _tied_ranks(distinct[:n_ranks], tolerance)
    return rows, blocks[: n_blocks + 1].copy(), event[rows], rank, low_of[rank], high_of[rank], n_ranks


@_compiled
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


@_compiled
def _enter(tree: FloatArray, at: FloatArray, rank: int, weight: float) -> None:
    at[rank] += weight
    k = rank + 1
    while k < len(tree):
        tree[k] += weight
        k += k & -k


@_compiled
def _below(tree: FloatArray, rank: int) -> float:
    """Weight of those in the tree whose rank is less."""
    total = 0.0
    k = rank
    while k > 0:
        total += tree[k]
        k -= k & -k
    return total


@_compiled
def _add_later(order: PairOrder, weight: FloatArray, numerator: FloatArray, denominator: FloatArray) -> None:
    """Give each patient with an event its pairs with everybody in later blocks."""
    tree = np.zeros(order.n_ranks + 1)
    at = np.zeros(order.n_ranks)
    total = 0.0
    for block in range(len(order.blocks) - 2, -1, -1):
        start, stop = order.blocks[block], order.blocks[block + 1]
        for k in range(start, stop):
            if order.event[k] and weight[k] > 0.0:
                low, high = order.low[k], order.high[k]
                lower = _below(tree, low)
                tied = at[low] if high == low + 1 else _below(tree, high) - lower
                numerator[k] += lower + 0.5 * tied
                denominator[k] += total
        for k in range(start, stop):
            if weight[k] > 0.0:
                _enter(tree, at, order.rank[k], weight[k])
                total += weight[k]


@_compiled
def _add_earlier(
    order: PairOrder, weight: FloatArray, numerator: FloatArray, denominator: FloatArray
) -> None:
    """Give each patient its pairs with the events of earlier blocks: the mirror image of `_add_later`."""
    tree = np.zeros(order.n_ranks + 1)
    at = np.zeros(order.n_ranks)
    total = 0.0
    for block in range(len(order.blocks) - 1):
        start, stop = order.blocks[block], order.blocks[block + 1]
        for k in range(start, stop):
            if weight[k] > 0.0:
                low, high = order.low[k], order.high[k]
                lower = _below(tree, low)
                tied = at[low] if high == low + 1 else _below(tree, high) - lower
                numerator[k] += total - lower - 0.5 * tied
                denominator[k] += total
        for k in range(start, stop):
            if order.event[k] and weight[k] > 0.0:
                _enter(tree, at, order.rank[k], weight[k])
                total += weight[k]


@_compiled
def _add_simultaneous(
    order: PairOrder, weight: FloatArray, numerator: FloatArray, denominator: FloatArray
) -> None:
    """Give each patient its pairs inside its own block by Algorithm B.1; blocks are sorted by score.

    Every such pair with an event earns 1/2, and another 1/2 when two events share one score or when the event
    has a higher score than the censored patient. Nobody is paired with a copy of himself.
    """
    event, rank = order.event, order.rank
    for block in range(len(order.blocks) - 1):
        start, stop = order.blocks[block], order.blocks[block + 1]
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


@_compiled
def _add_counts(
    order: PairOrder, weight: FloatArray, simultaneous: bool, numerator: FloatArray, denominator: FloatArray
) -> None:
    """Every patient's pairs with everybody, weights and counts in the caller's row order."""
    sorted_weight = weight[order.rows]
    above = np.zeros(len(weight))
    below = np.zeros(len(weight))
    _add_later(order, sorted_weight, above, below)
    _add_earlier(order, sorted_weight, above, below)
    if simultaneous:
        _add_simultaneous(order, sorted_weight, above, below)
    for k in range(len(weight)):
        numerator[order.rows[k]] = sorted_weight[k] * above[k]
        denominator[order.rows[k]] = sorted_weight[k] * below[k]


@_compiled
def _add_between(
    order: PairOrder, weight: FloatArray, code: IntArray, numerator: FloatArray, denominator: FloatArray
) -> None:
    """Sum the pairs of `_add_later` by the groups of their two patients; one tree per group, side by side."""
    n_groups = len(numerator)
    tree = np.zeros((order.n_ranks + 1, n_groups))
    total = np.zeros(n_groups)
    credit = np.empty(n_groups)
    for block in range(len(order.blocks) - 2, -1, -1):
        start, stop = order.blocks[block], order.blocks[block + 1]
        for k in range(start, stop):
            if order.event[k] and weight[k] > 0.0:
                credit[:] = 0.0
                # Half of the weight below the tied scores, half of the weight up to their end.
                for end in (order.low[k], order.high[k]):
                    j = end
                    while j > 0:
                        for g in range(n_groups):
                            credit[g] += 0.5 * tree[j, g]
                        j -= j & -j
                for g in range(n_groups):
                    numerator[code[k], g] += weight[k] * credit[g]
                    denominator[code[k], g] += weight[k] * total[g]
        for k in range(start, stop):
            if weight[k] > 0.0:
                j = order.rank[k] + 1
                while j <= order.n_ranks:
                    tree[j, code[k]] += weight[k]
                    j += j & -j
                total[code[k]] += weight[k]
