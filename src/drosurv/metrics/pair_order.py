"""Weighted counts of all comparable pairs of patients, in one pass over time.

Patients are added to a Fenwick tree over score ranks in order of time. Two prefix sums then count the pairs of a
patient with everybody already in the tree, in O(n log n) for all n(n-1) ordered pairs. Counts are exact with any ties:
with integer weights every count is a multiple of 1/2, which float64 represents exactly up to 2**52.

Scores and times are sorted by a radix sort: the c-index of 100,000 patients takes 40 ms with it and 74 ms with a merge
sort. Fits sort only once and use NumPy.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from drosurv.target import BoolArray, FloatArray, IntArray, Target

#: Scores this close are tied in Harrell's c-index, as in scikit-survival.
HARRELL_TOLERANCE = 1e-8
# If the insertion sort moves a number farther than this, sorting by all bytes is faster.
_FAR = 16


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
        """Summed weights of the concordant and of the comparable pairs by Harrell's rule, each pair counted once.

        The weight of a pair is the product of the `weight` and the `event_weight` (Uno's inverse probability of
        censoring weights) of the patient whose event came first, and the `partner_weight`, by default the `weight`, of
        the other.
        """
        patient_weight = weight[self.rows]
        partner = patient_weight if partner_weight is None else partner_weight[self.rows]
        return later_sums(
            self,
            patient_weight if event_weight is None else patient_weight * event_weight[self.rows],
            partner,
        )

    def concordance(self, weight: FloatArray, event_weight: FloatArray | None = None) -> float:
        """Concordance index from `harrell_sums`; NaN if no pair is comparable."""
        concordant, comparable = self.harrell_sums(weight, event_weight)
        return concordant / comparable if comparable != 0 else float("nan")

    def harrell_between(self, codes: IntArray, n_groups: int, weight: FloatArray) -> PairCounts:
        """Sums of pairs by Harrell's rule, (n_groups, n_groups): by the group of the earlier event and of the other."""
        sums = PairCounts(*np.zeros((2, n_groups, n_groups)))
        add_between(self, weight[self.rows], codes[self.rows], *sums)
        return sums


def _lay_out(target: Target, risk: FloatArray, tolerance: float) -> PairOrder:
    """Sort for Algorithm B.1 if the tolerance is 0, else for Harrell's rule."""
    n = len(risk)
    work, blocks, event = np.empty((7, n), np.intp), np.empty(n + 1, np.intp), np.empty(n, np.bool_)
    distinct, keys, counts = np.empty(n), np.empty(n, np.uint64), np.empty((8, 256), np.intp)
    # Copies: numba would compile the loop again for arrays that are read-only or not contiguous.
    given = np.array(target.time), np.array(target.event), np.array(risk)
    n_ranks, n_blocks = _fill(*given, tolerance, work, blocks, event, distinct, keys, counts)
    rows, rank, low, high = work[:4]
    return PairOrder(rows, blocks[: n_blocks + 1], event, rank, low, high, n_ranks, tolerance == 0.0)


@numba.njit(cache=True, nogil=True)
def _fill(
    time: FloatArray,
    event: BoolArray,
    risk: FloatArray,
    tolerance: float,
    work: IntArray,
    blocks: IntArray,
    sorted_event: BoolArray,
    distinct: FloatArray,
    keys: NDArray[np.uint64],
    counts: IntArray,
) -> tuple[int, int]:
    """Write the arrays of :class:`PairOrder` and return the numbers of ranks and blocks.

    All steps are in one compiled call: for a few hundred patients several calls would take longer.
    """
    n, n_ranks, n_blocks = risk.shape[0], 0, 0
    rows, rank, low, high, rank_of, first, last = (
        work[0],
        work[1],
        work[2],
        work[3],
        work[4],
        work[5],
        work[6],
    )
    for k in range(n):
        rows[k] = k
    radix_sort(risk, rows, first, keys, counts)
    for k in range(n):
        value = risk[rows[k]]
        if n_ranks == 0 or value != distinct[n_ranks - 1]:
            distinct[n_ranks] = value
            n_ranks += 1
        rank_of[rows[k]] = n_ranks - 1
    if tolerance > 0.0:
        # The stable sort by time keeps this order: at each time the events by score, then the censored by score.
        events, censored = 0, 0
        for k in range(n):
            if event[rows[k]]:
                rows[events] = rows[k]
                events += 1
            else:
                first[censored] = rows[k]
                censored += 1
        for k in range(censored):
            rows[events + k] = first[k]
    radix_sort(time, rows, first, keys, counts)
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


@numba.njit(cache=True, nogil=True)
def _enter(tree: FloatArray, at: FloatArray, rank: int, weight: float) -> None:
    at[rank] += weight
    k = rank + 1
    while k < len(tree):
        tree[k] += weight
        k += k & -k


@numba.njit(cache=True, nogil=True)
def _below(tree: FloatArray, rank: int) -> float:
    """Summed weight of the patients in the tree with a lower rank."""
    total = 0.0
    k = rank
    while k > 0:
        total += tree[k]
        k -= k & -k
    return total


@numba.njit(cache=True, nogil=True)
def _add_pairs(
    order: PairOrder,
    patient_weight: FloatArray,
    weight: FloatArray,
    later: bool,
    numerator: FloatArray,
    denominator: FloatArray,
) -> None:
    """Add the pairs of each patient with patients of other blocks, each counted by the other's `weight`.

    If `later`, these are the pairs of each event with everybody in later blocks; otherwise, the pairs of everybody with
    the events of earlier blocks. Patients whose `patient_weight` is 0 are skipped.
    """
    tree = np.zeros(order.n_ranks + 1)
    at = np.zeros(order.n_ranks)
    total = 0.0
    n_blocks = len(order.blocks) - 1
    for step in range(n_blocks):
        block = n_blocks - 1 - step if later else step
        start, stop = order.blocks[block], order.blocks[block + 1]
        for k in range(start, stop):
            if (not later or order.event[k]) and patient_weight[k] > 0.0:
                low, high = order.low[k], order.high[k]
                lower = _below(tree, low)
                tied = at[low] if high == low + 1 else _below(tree, high) - lower
                lower += 0.5 * tied
                numerator[k] += lower if later else total - lower
                denominator[k] += total
        for k in range(start, stop):
            if (later or order.event[k]) and weight[k] > 0.0:
                _enter(tree, at, order.rank[k], weight[k])
                total += weight[k]


@numba.njit(cache=True, nogil=True)
def _add_simultaneous(
    order: PairOrder, weight: FloatArray, numerator: FloatArray, denominator: FloatArray
) -> None:
    """Add the pairs of each patient within its block by Algorithm B.1; blocks are sorted by score.

    Every such pair with an event counts 1/2, and another 1/2 if two events have the same score or the event has a
    higher score than the censored patient. No patient is paired with a copy of the same patient.
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


@numba.njit(cache=True, nogil=True)
def add_counts(
    order: PairOrder,
    patient_weight: FloatArray,
    weight: FloatArray,
    numerator: FloatArray,
    denominator: FloatArray,
) -> None:
    """Count the pairs of every patient with everybody; weights and counts are in the caller's row order."""
    sorted_patient_weight = patient_weight[order.rows]
    sorted_weight = weight[order.rows]
    above = np.zeros(len(weight))
    below = np.zeros(len(weight))
    # Two calls with constants instead of a loop: numba compiles each separately, which is a quarter faster.
    _add_pairs(order, sorted_patient_weight, sorted_weight, True, above, below)
    _add_pairs(order, sorted_patient_weight, sorted_weight, False, above, below)
    if order.simultaneous:
        _add_simultaneous(order, sorted_weight, above, below)
    for k in range(len(weight)):
        numerator[order.rows[k]] = sorted_patient_weight[k] * above[k]
        denominator[order.rows[k]] = sorted_patient_weight[k] * below[k]


@numba.njit(cache=True, nogil=True)
def later_sums(order: PairOrder, patient_weight: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Summed weights of concordant and comparable pairs of events with later blocks; weights as in `order.rows`."""
    above = np.zeros(len(patient_weight))
    below = np.zeros(len(patient_weight))
    _add_pairs(order, patient_weight, weight, True, above, below)
    return float(patient_weight @ above), float(patient_weight @ below)


@numba.njit(cache=True, nogil=True)
def add_between(
    order: PairOrder, weight: FloatArray, code: IntArray, numerator: FloatArray, denominator: FloatArray
) -> None:
    """Sum the pairs of events with later blocks by the groups of the two patients, with one tree per group."""
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


@numba.njit(cache=True, nogil=True)
def radix_sort(
    values: FloatArray, order: IntArray, spare: IntArray, keys: NDArray[np.uint64], counts: IntArray
) -> None:
    """Sort an order (n,) stably by finite values (n,), in place; the other arrays are memory to write to."""
    n = order.shape[0]
    sign, byte = np.uint64(1 << 63), np.uint64(255)
    for k in range(n):
        # Integers in the order of the floats: all bits flipped if negative, else only the sign bit. Adding 0.0 turns
        # -0.0, which has other bits, into 0.0.
        bits = np.float64(values[k] + 0.0).view(np.uint64)
        keys[k] = ~bits if bits & sign else bits | sign
    # Sort by the higher four bytes first, which separate nearly all numbers unless they are very close together.
    lowest, done = 4, n == 0
    while not done:
        for digit in range(lowest, 8):
            for value in range(256):
                counts[digit, value] = 0
        for k in range(n):
            for digit in range(lowest, 8):
                counts[digit, (keys[k] >> np.uint64(8 * digit)) & byte] += 1
        for digit in range(lowest, 8):
            shift = np.uint64(8 * digit)
            if counts[digit, (keys[0] >> shift) & byte] == n:
                continue
            place = 0
            for value in range(256):
                place += counts[digit, value]
                counts[digit, value] = place - counts[digit, value]
            for k in range(n):
                value = (keys[order[k]] >> shift) & byte
                spare[counts[digit, value]] = order[k]
                counts[digit, value] += 1
            for k in range(n):
                order[k] = spare[k]
        # Sort the rest by insertion, unless a number must move too far.
        done = True
        for k in range(1, n):
            row, place = order[k], k
            while place > 0 and k - place <= _FAR and keys[order[place - 1]] > keys[row]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = row
            if k - place > _FAR and lowest > 0:
                done = False
                break
        lowest = 0
