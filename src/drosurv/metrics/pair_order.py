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
        return _lay_out(target.time, target.event, risk, 0.0)

    @staticmethod
    def for_harrell(target: Target, risk: FloatArray) -> PairOrder:
        """Order for Harrell's rule: scores within `HARRELL_TOLERANCE` are tied, which is not transitive."""
        return _lay_out(target.time, target.event, risk, HARRELL_TOLERANCE)

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


@numba.njit(cache=True, nogil=True)
def _lay_out(time: FloatArray, event: BoolArray, risk: FloatArray, tolerance: float) -> PairOrder:
    """Sort for Algorithm B.1 if the tolerance is 0, else for Harrell's rule.

    All steps are in one compiled call: for a few hundred patients several calls would take longer.
    """
    # Not an argument, because numba would compile this function once for each constant.
    simultaneous = tolerance == 0.0
    n = len(risk)
    by_score = radix_order(risk)
    distinct = np.empty(n)
    rank_of = np.empty(n, dtype=np.intp)
    n_ranks = 0
    for row in by_score:
        if n_ranks == 0 or risk[row] != distinct[n_ranks - 1]:
            distinct[n_ranks] = risk[row]
            n_ranks += 1
        rank_of[row] = n_ranks - 1
    if not simultaneous:
        # The stable sort by time keeps this order: at each time the events by score, then the censored by score.
        happened = event[by_score]
        by_score = np.concatenate((by_score[happened], by_score[~happened]))
    rows = by_score[radix_order(time[by_score])]
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
        # Rounded differences are monotone in either score, so both ends only increase.
        while distinct[k] - distinct[first] > tolerance:
            first += 1
        while last < n and distinct[last] - distinct[k] <= tolerance:
            last += 1
        low[k] = first
        high[k] = last
    return low, high


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
def radix_order(values: FloatArray) -> IntArray:
    """Return the positions (n,) that sort finite values (n,), as ``np.argsort(values, kind="stable")`` does."""
    # Adding 0.0 turns -0.0, which has other bits, into 0.0.
    keys = _ordered_bits((values + 0.0).view(np.uint64))
    # Sort by the higher four bytes first, which separate nearly all numbers unless they are very close together. The
    # loop avoids constant arguments, for each of which numba would compile the function again.
    order = np.empty(0, dtype=np.intp)
    for first in (4, 0):
        order = _by_digits(keys, first)
        if _insert_the_rest(keys, order):
            break
    return order


@numba.njit(cache=True, nogil=True)
def _ordered_bits(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return integers in the order of the floats: all bits flipped if negative, else only the sign bit."""
    sign = np.uint64(1 << 63)
    keys = np.empty_like(bits)
    for k in range(len(bits)):
        keys[k] = ~bits[k] if bits[k] & sign else bits[k] | sign
    return keys


@numba.njit(cache=True, nogil=True)
def _insert_the_rest(keys: NDArray[np.uint64], order: IntArray) -> bool:
    """Sort a nearly sorted order by insertion, in place; stop and return False if a number must move too far."""
    for k in range(1, len(order)):
        row = order[k]
        place = k
        while place > 0 and keys[order[place - 1]] > keys[row]:
            order[place] = order[place - 1]
            place -= 1
            if k - place > _FAR:
                return False
        order[place] = row
    return True


@numba.njit(cache=True, nogil=True)
def _by_digits(keys: NDArray[np.uint64], first: int) -> IntArray:
    """Return the stable order by the bytes `first` to 7, of which 0 is the lowest."""
    n = len(keys)
    byte = np.uint64(255)
    counts = np.zeros((8, 256), dtype=np.intp)
    for k in range(n):
        key = keys[k]
        for digit in range(first, 8):
            counts[digit, (key >> np.uint64(8 * digit)) & byte] += 1
    order = np.arange(n)
    spare = np.empty(n, dtype=np.intp)
    for digit in range(first, 8):
        shift = np.uint64(8 * digit)
        count = counts[digit]
        if count[(keys[0] >> shift) & byte] == n:
            continue
        place = 0
        for value in range(256):
            here = count[value]
            count[value] = place
            place += here
        for k in range(n):
            value = (keys[order[k]] >> shift) & byte
            spare[count[value]] = order[k]
            count[value] += 1
        order, spare = spare, order
    return order
