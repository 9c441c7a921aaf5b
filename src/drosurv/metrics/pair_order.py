"""Weighted counts over all comparable pairs of patients, in one sweep over time.

Patients enter a Fenwick tree over score ranks in order of time; a patient's pairs with everybody already in
the tree are then two prefix sums. That is O(n log n) for n(n-1) ordered pairs, and exact under every kind
of tie: with unit or whole-number weights every count is a multiple of 1/2, which float64 holds up to 2**52.

Scores and times are sorted by their bytes (radix sort), without the mispredicted branches of a comparison sort: the
c-index of 100,000 patients takes 40 ms with it and 74 ms with a merge sort. Fits sort once and use NumPy.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from drosurv.target import BoolArray, FloatArray, IntArray, Target

#: Scores this close are tied in Harrell's c-index, as in scikit-survival.
HARRELL_TOLERANCE = 1e-8
# An insertion that moves a number farther than this costs more than sorting by all bytes.
_FAR = 16


class PairCounts(NamedTuple):
    """Concordant pairs of each patient, ties counted by the rule in use, and all comparable pairs, each (n,).

    Every grouping of the patients only sums them.
    """

    numerator: FloatArray
    denominator: FloatArray


class PairOrder(NamedTuple):
    """Patients in the order in which the sweep meets them: what does not change with their weights.

    A patient with an event is comparable with everybody in a later block. Which patients share a block is the
    difference between the rules: those of one time (Algorithm B.1), or, because Harrell counts a patient
    censored at the time of an event as observed longer, first the events and then the censored of one time.

    `rows` (n,) are the caller's, by block, then score; `blocks` (n_blocks + 1,) is where each block starts among them,
    and n; `rank` (n,) is of the score among the `n_ranks` distinct ones. Scores of ranks ``low <= r < high`` (n,) are
    tied with the patient's. `simultaneous` tells whether patients of one block are pairs too, as in Algorithm B.1.
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
        patient_weight = weight[self.rows]
        partner = patient_weight if partner_weight is None else partner_weight[self.rows]
        return later_sums(
            self,
            patient_weight if event_weight is None else patient_weight * event_weight[self.rows],
            partner,
        )

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


@numba.njit(cache=True, nogil=True)
def _enter(tree: FloatArray, at: FloatArray, rank: int, weight: float) -> None:
    at[rank] += weight
    k = rank + 1
    while k < len(tree):
        tree[k] += weight
        k += k & -k


@numba.njit(cache=True, nogil=True)
def _below(tree: FloatArray, rank: int) -> float:
    """Weight of those in the tree whose rank is less."""
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
    """Give each patient, if its `patient_weight` is positive, its pairs with patients of other blocks by their weight.

    Either each event its pairs with everybody in later blocks, or, the mirror image, everybody the pairs with the
    events of earlier ones.
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
    """Give each patient its pairs inside its own block by Algorithm B.1; blocks are sorted by score.

    Every such pair with an event earns 1/2, and another 1/2 when two events share one score or when the event
    has a higher score than the censored patient. No patient is paired with a copy of the same patient.
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
    """Every patient's pairs with everybody, weights and counts in the caller's row order."""
    sorted_patient_weight = patient_weight[order.rows]
    sorted_weight = weight[order.rows]
    above = np.zeros(len(weight))
    below = np.zeros(len(weight))
    # Two calls instead of a loop over the directions: each is compiled separately, which is a quarter faster.
    _add_pairs(order, sorted_patient_weight, sorted_weight, True, above, below)
    _add_pairs(order, sorted_patient_weight, sorted_weight, False, above, below)
    if order.simultaneous:
        _add_simultaneous(order, sorted_weight, above, below)
    for k in range(len(weight)):
        numerator[order.rows[k]] = sorted_patient_weight[k] * above[k]
        denominator[order.rows[k]] = sorted_patient_weight[k] * below[k]


@numba.njit(cache=True, nogil=True)
def later_sums(order: PairOrder, patient_weight: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Concordant and comparable pairs of events with patients of later blocks; weights as sorted."""
    above = np.zeros(len(patient_weight))
    below = np.zeros(len(patient_weight))
    _add_pairs(order, patient_weight, weight, True, above, below)
    return float(patient_weight @ above), float(patient_weight @ below)


@numba.njit(cache=True, nogil=True)
def add_between(
    order: PairOrder, weight: FloatArray, code: IntArray, numerator: FloatArray, denominator: FloatArray
) -> None:
    """Sum the pairs with later blocks by the groups of their two patients; one tree per group, side by side."""
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
def stable_order(values: FloatArray) -> IntArray:
    """Return the positions (n,) of finite values (n,) from smallest to largest, as a stable ``np.argsort`` does.

    Equal values (also 0.0 and -0.0) keep their order.
    """
    # Adding 0.0 turns -0.0 into 0.0, whose bits would otherwise sort apart.
    keys = _ordered_bits((values + 0.0).view(np.uint64))
    # The higher four bytes separate nearly all numbers, unless they are very close together. In a loop, because a
    # call with a constant would be compiled for each constant.
    order = np.empty(0, dtype=np.intp)
    for first in (4, 0):
        order = _by_digits(keys, first)
        if _insert_the_rest(keys, order):
            break
    return order


@numba.njit(cache=True, nogil=True)
def _ordered_bits(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return bits that sort as integers the way the floats do: all flipped if negative, else only the sign."""
    sign = np.uint64(1 << 63)
    keys = np.empty_like(bits)
    for k in range(len(bits)):
        keys[k] = ~bits[k] if bits[k] & sign else bits[k] | sign
    return keys


@numba.njit(cache=True, nogil=True)
def _insert_the_rest(keys: NDArray[np.uint64], order: IntArray) -> bool:
    """Insertion sort of a nearly sorted order, in place; return False, unfinished, if a number is too far away."""
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
    """Return the stable order by the bytes from `first`, counted from the lowest, to the highest."""
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
