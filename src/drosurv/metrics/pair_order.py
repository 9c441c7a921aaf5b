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

from drosurv.patients.arrays import stable_order
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target

#: Scores this close are tied in Harrell's c-index, as in scikit-survival.
HARRELL_TOLERANCE = 1e-8


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
    ``rows[blocks[b] : blocks[b + 1]]``. `event` (n,) and `ranks` (3, n) are in the order of `rows`. The first row of
    `ranks` has the rank r of the score among the `n_ranks` distinct scores; the scores of ranks from the second to
    before the third are tied with it. `places` (n,) are the positions in `rows` of the caller's rows. `simultaneous`
    says whether patients of the same block are pairs too, as in Algorithm B.1.
    """

    rows: IntArray
    blocks: IntArray
    event: BoolArray
    ranks: IntArray
    places: IntArray
    n_ranks: int
    simultaneous: bool

    @staticmethod
    def for_imparity(target: Target, risk: FloatArray) -> PairOrder:
        """Order for Algorithm B.1: two events at the same time are comparable, and only equal scores are tied."""
        return _lay_out(target, risk, 0.0)

    @staticmethod
    def for_harrell(target: Target, risk: FloatArray) -> PairOrder:
        """Order for Harrell's rule: scores within `HARRELL_TOLERANCE` are tied, which is not transitive."""
        return _lay_out(target, risk, HARRELL_TOLERANCE)

    def counts(self, weight: FloatArray) -> PairCounts:
        r"""Counts of each patient in the caller's row order; each pair is counted for both its patients.

        .. math:: N_i = w_i \sum_{j \ne i} w_j c_{ij}, \quad D_i = w_i \sum_{j \ne i} w_j 1[(i, j) \text{ a pair}]

        The concordance of any group of patients against everybody is ``sum N_i / sum D_i`` over its members. Weight 2
        counts a patient twice, but a patient is not compared with a copy of the same patient.
        """
        patient, sums = weight[self.rows], np.zeros((2, len(weight)))
        self._add_pairs(_later, patient, patient, sums)
        self._add_pairs(_earlier, patient, patient, sums)
        if self.simultaneous and len(self.blocks) <= len(self.rows):
            _add_simultaneous(self.blocks, self.event, self.ranks, patient, sums)
        return PairCounts(*sums.take(self.places, axis=1))

    def harrell_sums(self, first: FloatArray, later: FloatArray | None = None) -> tuple[float, float]:
        """Summed weights of the concordant and of the comparable pairs by Harrell's rule, each pair counted once.

        The weight of a pair is the product of the weight `first` (n,) of the patient whose event came first and the
        weight `later` (n,), by default the same, of the other.
        """
        event = first[self.rows]
        other, sums = event if later is None else later[self.rows], np.zeros((2, 1))
        self._add_pairs(_later, event, other, sums)
        return float(sums[0, 0]), float(sums[1, 0])

    def harrell_sides(self, first: FloatArray, later: FloatArray) -> tuple[PairCounts, PairCounts]:
        """Sums of pairs as `harrell_sums`, of each patient as the one with the first event, and as the other."""
        event, other, sums = first[self.rows], later[self.rows], np.zeros((2, 2, len(first)))
        self._add_pairs(_later, event, other, sums[0])
        self._add_pairs(_earlier, other, event, sums[1])
        as_first, as_other = sums.take(self.places, axis=2)
        return PairCounts(*as_first), PairCounts(*as_other)

    def harrell_between(self, codes: IntArray, n_groups: int, weight: FloatArray) -> PairCounts:
        """Sums of pairs by Harrell's rule, (n_groups, n_groups): by the group of the earlier event and of the other."""
        sums, tree = np.zeros((2, n_groups, n_groups)), np.zeros((self.n_ranks + 1, n_groups))
        code, patient = codes[self.rows], weight[self.rows]
        _add_between(self.blocks, self.event, self.ranks, code, patient, tree, sums)
        return PairCounts(*sums)

    def _add_pairs(
        self, pairs: Callable[..., None], patient: FloatArray, partner: FloatArray, sums: FloatArray
    ) -> None:
        """Add the weights of each patient's concordant and comparable pairs to `sums`, (2, n), or of all to (2, 1).

        The weights `patient` and `partner` (n,), and the sums, are in the order of `rows`.
        """
        tree = np.zeros((2, self.n_ranks + 1))
        pairs(self.blocks, self.event, self.ranks, patient, partner, tree, sums)


def _lay_out(target: Target, risk: FloatArray, tolerance: float) -> PairOrder:
    """Sort for Algorithm B.1 if the tolerance is 0, else for Harrell's rule."""
    n = len(risk)
    # Copies: numba would compile the loops again for arrays that are read-only or not contiguous.
    numbers, event = np.empty((3, n)), np.array(target.event)
    numbers[0], numbers[1] = target.time, risk
    if target.other is not None:
        # Patients with an event of another cause never have this one: they count as observed longer than all others.
        numbers[0, target.other] = np.nextafter(numbers[0].max(initial=0.0), np.inf)
    orders, blocks, sorted_event = np.empty((8, n), np.intp), np.empty(n + 1, np.intp), np.empty(n, np.bool_)
    by_risk, rows, places = orders[0], orders[1], orders[2]
    by_risk[:] = rows[:] = stable_order(numbers[1])
    if tolerance > 0.0:
        # By Harrell's rule the censored patients of a time come after its events.
        first = event[rows]
        rows[:] = np.concatenate([rows[first], rows[~first]])
    rows[:] = rows[stable_order(numbers[0][rows])]
    n_ranks, n_blocks = _fill(numbers, event, orders, tolerance, blocks, sorted_event)
    return PairOrder(
        rows, blocks[: n_blocks + 1], sorted_event, orders[3:6], places, n_ranks, tolerance == 0.0
    )


@numba.njit(cache=True, nogil=True)
def _fill(
    numbers: FloatArray,
    event: BoolArray,
    orders: IntArray,
    tolerance: float,
    blocks: IntArray,
    sorted_event: BoolArray,
) -> tuple[int, int]:
    """Write the arrays of :class:`PairOrder` and return the numbers of ranks and blocks.

    The rows of `numbers` are times, scores, and memory for the distinct scores. Those of `orders` are the patients
    sorted by score, the patients sorted by block, `places`, the three of `ranks`, and memory for the ends of ties.
    """
    n, n_ranks, n_blocks = numbers.shape[1], 0, 0
    for k in range(n):
        row = orders[0, k]
        value = numbers[1, row]
        if n_ranks == 0 or value != numbers[2, n_ranks - 1]:
            numbers[2, n_ranks] = value
            n_ranks += 1
        orders[2, row] = n_ranks - 1
    # The scores of ranks orders[6, r] <= j < orders[7, r] are tied with rank r. Rounded differences are monotone in
    # either score, so both ends only increase.
    start, stop = 0, 0
    for r in range(n_ranks):
        while numbers[2, r] - numbers[2, start] > tolerance:
            start += 1
        while stop < n_ranks and numbers[2, stop] - numbers[2, r] <= tolerance:
            stop += 1
        orders[6, r], orders[7, r] = start, stop
    time, happened = -np.inf, False
    for k in range(n):
        row = orders[1, k]
        # Until here `places` holds the ranks.
        r = orders[2, row]
        orders[2, row] = k
        orders[3, k], orders[4, k], orders[5, k] = r, orders[6, r], orders[7, r]
        sorted_event[k] = event[row]
        if numbers[0, row] != time or (tolerance > 0.0 and event[row] != happened):
            blocks[n_blocks] = k
            n_blocks += 1
        time, happened = numbers[0, row], event[row]
    blocks[n_blocks] = n
    return n_ranks, n_blocks


def _pairs_with(*, later: bool) -> Callable[..., None]:
    """Return a compiled loop that adds the weights of the pairs of each patient with patients of other blocks.

    If `later`, these are the pairs of each event with everybody in later blocks; otherwise, the pairs of everybody with
    the events of earlier blocks. Ties count half. A loop for each case is a quarter faster than one for both.
    """

    @numba.njit(cache=True, nogil=True)
    def add(
        blocks: IntArray,
        event: BoolArray,
        ranks: IntArray,
        patient: FloatArray,
        partner: FloatArray,
        tree: FloatArray,
        sums: FloatArray,
    ) -> None:
        # The Fenwick tree over ranks, tree[0], and the weight at each rank, tree[1], begin with zeros.
        entered, n_blocks, in_all = 0.0, len(blocks) - 1, sums.shape[1] == 1
        for step in range(n_blocks):
            block = n_blocks - 1 - step if later else step
            start, stop = blocks[block], blocks[block + 1]
            for k in range(start, stop):
                if (event[k] or not later) and patient[k] > 0.0:
                    low, high = ranks[1, k], ranks[2, k]
                    lower, j = 0.0, low
                    while j > 0:
                        lower += tree[0, j]
                        j -= j & -j
                    tied = tree[1, low]
                    if high > low + 1:
                        tied, j = -lower, high
                        while j > 0:
                            tied += tree[0, j]
                            j -= j & -j
                    lower += 0.5 * tied
                    place = 0 if in_all else k
                    sums[0, place] += patient[k] * (lower if later else entered - lower)
                    sums[1, place] += patient[k] * entered
            for k in range(start, stop):
                if (event[k] or later) and partner[k] > 0.0:
                    j = ranks[0, k]
                    tree[1, j] += partner[k]
                    j += 1
                    while j < tree.shape[1]:
                        tree[0, j] += partner[k]
                        j += j & -j
                    entered += partner[k]

    return add


_later, _earlier = _pairs_with(later=True), _pairs_with(later=False)


@numba.njit(cache=True, nogil=True)
def _add_between(
    blocks: IntArray,
    event: BoolArray,
    ranks: IntArray,
    code: IntArray,
    weight: FloatArray,
    tree: FloatArray,
    sums: FloatArray,
) -> None:
    """Add the weights of all pairs of an event and a patient of a later block to `sums`, by the groups of both.

    The Fenwick tree over ranks has one column per group, so that one pass counts the pairs of all groups; tree[0] is
    the total weight of each group.
    """
    for block in range(len(blocks) - 2, -1, -1):
        for k in range(blocks[block], blocks[block + 1]):
            if event[k] and weight[k] > 0.0:
                # A lower score counts 1 and a tied one 1/2: the mean of the sums below the first tied rank and up to
                # the last. Both sums are read in one loop.
                low, high, group = ranks[1, k], ranks[2, k], code[k]
                while high >= 0:
                    share, part = weight[k] if low == high else 0.5 * weight[k], 0 if high > 0 else 1
                    for g in range(sums.shape[2]):
                        sums[part, group, g] += share * tree[high, g]
                    following = high & (high - 1) if high > 0 else -1
                    if low == high:
                        low = following
                    high = following
                    if low > high:
                        low, high = high, low
        for k in range(blocks[block], blocks[block + 1]):
            tree[0, code[k]] += weight[k]
            j = ranks[0, k] + 1
            while j < tree.shape[0]:
                tree[j, code[k]] += weight[k]
                j += j & -j


@numba.njit(cache=True, nogil=True)
def _add_simultaneous(
    blocks: IntArray,
    event: BoolArray,
    ranks: IntArray,
    weight: FloatArray,
    sums: FloatArray,
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
            while end < stop and ranks[0, end] == ranks[0, k]:
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
                sums[1, i] += weight[i] * others
                sums[0, i] += weight[i] * 0.5 * (others + better)
            censored_passed += censored_here
            k = end
