"""Weighted counts of all comparable pairs of patients, in one pass over time.

Patients are added to a Fenwick tree over score ranks in order of time. Two prefix sums then count the pairs of a
patient with everybody already in the tree, in O(n log n) for all n(n-1) ordered pairs. Counts are exact with any ties:
with integer weights every count is a multiple of 1/2, which float64 represents exactly up to 2**52.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numba
import numpy as np

from drosurv.target import BoolArray, FloatArray, IntArray, Target, distinct

#: Scores this close are tied in Harrell's c-index, as in scikit-survival.
HARRELL_TOLERANCE = 1e-8


class PairCounts(NamedTuple):
    """Concordant pairs of each patient, with ties counted by the rule in use, and comparable pairs, each (n,).

    Their sums over a group are the counts of the group.
    """

    numerator: FloatArray
    denominator: FloatArray


@dataclass(frozen=True, eq=False)
class PairOrder:
    """Patients sorted by time and score for the counting of pairs, whatever their weights.

    Patients are in blocks by time, and a patient with an event is comparable with everybody in a later block. In
    Algorithm B.1 a block is all patients of one time. In Harrell's rule the events and the censored patients of one
    time are two blocks, because a patient censored at the time of an event counts as observed longer.

    `rows` (n,) are the caller's row numbers, sorted by block and then by score; block b is
    ``rows[blocks[b] : blocks[b + 1]]``. The other arrays (n,) are in the order of `rows`: `rank` is the rank of the
    score among the distinct scores, and the scores of ranks ``low <= r < high`` are tied with it.
    `simultaneous` says whether patients of the same block are pairs too, as in Algorithm B.1.
    """

    rows: IntArray
    blocks: IntArray
    event: BoolArray
    rank: IntArray
    low: IntArray
    high: IntArray
    simultaneous: bool

    @classmethod
    def for_imparity(cls, target: Target, risk: FloatArray) -> PairOrder:
        """Order for Algorithm B.1: only equal scores are tied."""
        return cls._of(target, risk, 0.0, simultaneous=True)

    @classmethod
    def for_harrell(cls, target: Target, risk: FloatArray) -> PairOrder:
        """Order for Harrell's rule: scores within `HARRELL_TOLERANCE` are tied, which is not transitive."""
        return cls._of(target, risk, HARRELL_TOLERANCE, simultaneous=False)

    @classmethod
    def _of(cls, target: Target, risk: FloatArray, tolerance: float, *, simultaneous: bool) -> PairOrder:
        by_score = np.argsort(risk)
        scores, ranks = distinct(risk[by_score])
        rank = np.empty_like(ranks)
        rank[by_score] = ranks
        rows, starts = target.order, np.arange(len(risk) + 1)
        _, block = distinct(target.time[rows])
        if len(risk) and block[-1] + 1 < len(risk):
            if not simultaneous:
                block = 2 * block + ~target.event[rows]
            # Sort equal times by one integer: the block in its high bits, the position by score in its low bits.
            position, bits = np.empty_like(by_score), len(risk).bit_length()
            position[by_score] = np.arange(len(risk))
            key = (block << bits) + position[rows]
            key.sort()
            rows, block = by_score[key & ((1 << bits) - 1)], key >> bits
            starts = np.flatnonzero(np.diff(block, prepend=-1, append=-1))
        low, high = _tied_ranks(scores, tolerance)
        rank = rank[rows]
        return cls(rows, starts, target.event[rows], rank, low[rank], high[rank], simultaneous)

    def counts(self, weight: FloatArray, partner_weight: FloatArray | None = None) -> PairCounts:
        """Counts of each patient in the caller's row order; each pair is counted for both its patients.

        The weight of a pair is the `weight` of the patient it is counted for times the `partner_weight`, by default
        the `weight`, of the other.
        """
        sorted_weight = weight[self.rows]
        partner = sorted_weight if partner_weight is None else partner_weight[self.rows]
        sums, earlier = np.zeros((2, 2, len(sorted_weight)))
        _add_pairs(*self._arrays, sorted_weight * self.event, partner, *sums)
        # Pairs with the events of earlier blocks, which are later blocks if times and scores are reversed.
        _add_pairs(*self._mirrored, sorted_weight[::-1].copy(), (partner * self.event)[::-1].copy(), *earlier)
        sums += earlier[:, ::-1]
        if self.simultaneous and len(self.blocks) <= len(sorted_weight):
            sums += self._inside_blocks(partner)
        counts = np.empty_like(sums)
        counts[:, self.rows] = sorted_weight * sums
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
        sorted_weight = weight[self.rows]
        partner = sorted_weight if partner_weight is None else partner_weight[self.rows]
        first = (
            sorted_weight * self.event
            if event_weight is None
            else sorted_weight * event_weight[self.rows] * self.event
        )
        concordant, comparable = np.zeros((2, len(sorted_weight)))
        _add_pairs(*self._arrays, first, partner, concordant, comparable)
        return float(first @ concordant), float(first @ comparable)

    def concordance(self, weight: FloatArray, event_weight: FloatArray | None = None) -> float:
        """Concordance index from `harrell_sums`; NaN if no pair is comparable."""
        concordant, comparable = self.harrell_sums(weight, event_weight)
        return concordant / comparable if comparable != 0 else float("nan")

    def harrell_between(self, codes: IntArray, n_groups: int, weight: FloatArray) -> PairCounts:
        """Sums of pairs by Harrell's rule, (n_groups, n_groups): by the group of the earlier event and of the other."""
        sums = PairCounts(*np.zeros((2, n_groups, n_groups)))
        sorted_weight, codes = weight[self.rows], codes[self.rows]
        first = sorted_weight * self.event
        for group in range(n_groups):
            found = np.zeros((2, len(sorted_weight)))
            _add_pairs(*self._arrays, first, sorted_weight * (codes == group), *found)
            for total, part in zip(sums, found, strict=True):
                total[:, group] = np.bincount(codes, first * part, n_groups)
        return sums

    @property
    def _arrays(self) -> tuple[IntArray, IntArray, IntArray, IntArray, int]:
        return self.blocks, self.rank, self.low, self.high, self._n_ranks

    @cached_property
    def _n_ranks(self) -> int:
        return int(self.high.max())

    @cached_property
    def _mirrored(self) -> tuple[IntArray, IntArray, IntArray, IntArray, int]:
        """The arrays with times and scores reversed, which keeps concordant pairs concordant."""
        last, n_ranks = self.blocks[-1], self._n_ranks
        ranks = (n_ranks - 1 - self.rank[::-1], n_ranks - self.high[::-1], n_ranks - self.low[::-1])
        return last - self.blocks[::-1], *ranks, n_ranks

    def _inside_blocks(self, weight: FloatArray) -> FloatArray:
        """Concordant and comparable pairs (2, n) of each patient within its block by Algorithm B.1.

        Every such pair with an event counts 1/2, and another 1/2 if two events have the same score or the event has a
        higher score than the censored patient. No patient is paired with a copy of the same patient.
        """
        block, score = self._ties
        events, censored = weight * self.event, weight * ~self.event
        # Subtract the patient's weight from sums over the block or score; without other patients this gives exactly 0.
        other_events = np.bincount(block, events)[block] - events
        tied_events = np.bincount(score, events)[score] - events
        pairs = other_events + self.event * np.bincount(block, censored)[block]
        before, after = np.append(0.0, np.cumsum(censored)), np.append(np.cumsum(events[::-1])[::-1], 0.0)
        first, stop = np.searchsorted(score, score), np.searchsorted(score, score, side="right")
        lower = before[first] - before[self.blocks[block]]
        higher = after[stop] - after[self.blocks[block + 1]]
        better = np.where(self.event, tied_events + lower, higher)
        return np.stack([0.5 * (pairs + better), pairs])

    @cached_property
    def _ties(self) -> tuple[IntArray, IntArray]:
        """Number (n,) of each patient's block, and number (n,) of each patient's block and score."""
        block = np.repeat(np.arange(len(self.blocks) - 1), np.diff(self.blocks))
        new = (np.diff(block, prepend=-1) != 0) | (np.diff(self.rank, prepend=-1) != 0)
        return block, np.cumsum(new) - 1


def _tied_ranks(scores: FloatArray, tolerance: float) -> tuple[IntArray, IntArray]:
    """Return for each of the distinct scores (K,), ascending, the range of ranks within `tolerance` of it."""
    low = np.arange(len(scores))
    high = low + 1
    close = np.flatnonzero(scores[1:] - scores[:-1] <= tolerance) + 1
    if len(close):
        first = np.searchsorted(scores, scores[close] - tolerance)
        # Scores are tied if their rounded difference is small; the rounded bound may be off by a rank.
        while (far := scores[close] - scores[first] > tolerance).any():
            first += far
        while (near := (first > 0) & (scores[close] - scores[first - 1] <= tolerance)).any():
            first -= near
        low[close] = first
        high[close - 1] = np.searchsorted(low, close - 1, side="right")
    return low, high


@numba.njit(cache=True, nogil=True)
def _add_pairs(
    blocks: IntArray,
    rank: IntArray,
    low: IntArray,
    high: IntArray,
    n_ranks: int,
    weight: FloatArray,
    partner_weight: FloatArray,
    concordant: FloatArray,
    comparable: FloatArray,
) -> None:
    """Add the pairs of each patient of positive weight with everybody in later blocks, by their partner weight."""
    tree, at, total = np.zeros(n_ranks + 1), np.zeros(n_ranks + 1), 0.0
    for block in range(len(blocks) - 2, -1, -1):
        for k in range(blocks[block], blocks[block + 1]):
            if weight[k] > 0.0:
                lower, tied, node = 0.0, at[low[k]], low[k]
                while node > 0:
                    lower += tree[node]
                    node -= node & -node
                if high[k] != low[k] + 1:
                    tied, node = -lower, high[k]
                    while node > 0:
                        tied += tree[node]
                        node -= node & -node
                concordant[k] += lower + 0.5 * tied
                comparable[k] += total
        for k in range(blocks[block], blocks[block + 1]):
            if partner_weight[k] > 0.0:
                total += partner_weight[k]
                at[rank[k]] += partner_weight[k]
                node = rank[k] + 1
                while node <= n_ranks:
                    tree[node] += partner_weight[k]
                    node += node & -node
