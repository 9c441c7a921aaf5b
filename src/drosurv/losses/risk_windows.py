"""Risk sets of patients who enter late or are compared within strata.

The K event times of all strata, stratum by stratum in order of time, are *slots*. Patient j is at risk in a window of
slots: those of the own stratum with V_j < t_k <= Y_j. Wanted are

    L_k = log sum_{j : k in window j} w_j exp f_j

and the transpose. The textbook way, everybody not yet gone less everybody not yet come, subtracts two large sums where
few are at risk and loses all digits there. Here nothing is subtracted. A window is cut at the one slot m between its
ends that the highest power of two divides, into the part before m and the part from m on. Of all windows cut at the
same m, the parts before m end at the same slot, and the parts after it begin at the same slot, so that one running sum
serves each side: a *run*. There are at most 2 K log2 K steps in all runs together, and every sum is one of positive
numbers. A window that begins with its stratum needs no cut: without entry times there is one run per stratum, the
backward sweep of :mod:`drosurv.losses.risk_sets`.

Scores that span less than 500 share one level: sums are of risks relative to the highest, and a run is two short loops
without branches. Otherwise every sum carries a level of its own: it stands for exp(level) times the number kept.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from drosurv.losses.elementary import exponentials, logarithms
from drosurv.losses.risk_sets import FLAT, RiskSums
from drosurv.losses.slots import Slots
from drosurv.target import BoolArray, FloatArray, IntArray


class Runs(NamedTuple):
    """All runs: their members and the members' slots, where each begins, its last slot and its direction.

    The members of a run stand in the order in which it meets them; it goes on from the last one to its last slot.
    """

    members: IntArray
    at: IntArray
    first: IntArray
    last: IntArray
    step: IntArray

    @classmethod
    def of(cls, slots: Slots) -> Runs:
        """The windows of all patients, cut in two and gathered by where they were cut."""
        starts = np.searchsorted(slots.stratum, slots.stratum, side="left")
        seen = np.flatnonzero(slots.begin <= slots.end)
        begin, end = slots.begin[seen], slots.end[seen]
        whole = begin == starts[end]
        # A window is cut where the highest bit of its ends differs; windows of one slot and whole ones are not cut.
        half = np.frexp((begin ^ end).astype(np.float64))[1].astype(np.intp) - 1
        cut = ~whole & (half >= 0)
        half = np.maximum(half, 0)
        middle = np.where(whole, begin, (end >> half) << half)
        # A run is told by the length of its halves, its last slot and its direction.
        levels = np.where(whole, np.intp(63), half)
        backward = _sorted_runs(seen, end, levels, middle, -1)
        forward = _sorted_runs(seen[cut], begin[cut], levels[cut], middle[cut] - 1, 1)
        members, at, first, last, step = (
            np.concatenate(parts) for parts in zip(backward, forward, strict=True)
        )
        first[len(backward.first) :] += len(backward.members)
        return cls(members, at, np.append(first, len(members)), last, step)


def _sorted_runs(members: IntArray, at: IntArray, level: IntArray, last: IntArray, step: int) -> Runs:
    # One number for run and place sorts several times faster than three keys one after the other.
    size = int(at.max(initial=0)) + 2
    order = np.argsort((level * size + last) * size + (at if step > 0 else size - 1 - at))
    level, last = level[order], last[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (level[1:] != level[:-1]) | (last[1:] != last[:-1])
    first = np.flatnonzero(new)
    return Runs(members[order], at[order], first, last[first], np.full(len(first), step))


class RiskWindows(RiskSums):
    """Those of patients whose windows hold each of K slots, patients weighted if told so."""

    def __init__(self, slots: Slots, weight: FloatArray | None = None) -> None:
        self.weight = np.ones(0) if weight is None else weight
        self._slots, self._patients = len(slots.time), len(slots.begin)
        self._runs = Runs.of(slots)
        self._flat: BoolArray = np.zeros(0, np.bool_)

    def log_sums(self, scores: FloatArray) -> FloatArray:
        """As of every risk sum."""
        risks, heights = np.empty_like(scores), np.empty_like(scores)
        levels, sums = np.empty((len(scores), self._slots)), np.empty((len(scores), self._slots))
        out = np.empty_like(sums)
        self._flat = _log_sums(scores, self._runs, self.weight, risks, heights, levels, sums, out)
        self._saved = risks, heights, levels, sums
        self._scores, self._log_sums, self._means = scores, out, None
        return out

    def pullback(self, cotangent: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """As of every risk sum, added to `out`."""
        risks, heights, levels, sums = self._last
        out = np.zeros_like(risks) if out is None else out
        _pull_back(cotangent, self._runs, self._flat, risks, heights, levels, sums, out)
        return out

    def _find_means(self, X: FloatArray) -> FloatArray:
        risks, heights, levels, sums = (saved[0] for saved in self._last)
        means = np.zeros((self._slots, X.shape[1]))
        _add_features(X, self._runs, risks, heights, levels, means)
        means /= np.where(sums > 0, sums, 1.0)[:, None]
        return means

    def over_windows(self, values: FloatArray) -> FloatArray:
        """Sums (n, p) of values (K, p) of the slots over each patient's window: the transpose of counting."""
        out = np.zeros((self._patients, values.shape[1]))
        _sum_over_windows(np.ascontiguousarray(values), self._runs, out)
        return out


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _log_sums(
    scores: FloatArray,
    runs: Runs,
    weight: FloatArray,
    risks: FloatArray,
    heights: FloatArray,
    levels: FloatArray,
    sums: FloatArray,
    out: FloatArray,
) -> BoolArray:
    """Kernel of :meth:`RiskWindows.log_sums`; also writes what its transpose needs.

    Patient j has risk ``risks[j] exp(heights[j])``, slot k the summed risk ``sums[k] exp(levels[k])``. Returned is
    which rows of the batch have one level for all.
    """
    scratch = np.empty(scores.shape[1], np.int64)
    flat = np.zeros(scores.shape[0], np.bool_)
    for b in range(scores.shape[0]):
        highest, lowest = -np.inf, np.inf
        for j in range(scores.shape[1]):
            highest = max(highest, scores[b, j])
            lowest = min(lowest, scores[b, j])
        flat[b] = highest - lowest < FLAT
        sums[b, :] = 0.0
        if flat[b]:
            heights[b, :] = highest
            levels[b, :] = highest
            np.subtract(scores[b], highest, risks[b])
            exponentials(risks[b], scratch)
        else:
            np.positive(scores[b], heights[b])
            levels[b, :] = -np.inf
            risks[b, :] = 1.0
        if weight.shape[0]:
            np.multiply(risks[b], weight, risks[b])
        if flat[b]:
            _add_flat(runs, risks[b], sums[b])
        else:
            _raise_levels(runs, heights[b], levels[b])
            one = np.ones((scores.shape[1], 1))
            _add_features(one, runs, risks[b], heights[b], levels[b], sums[b].reshape(-1, 1))
        logarithms(sums[b], levels[b], out[b])
    return flat


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_flat(runs: Runs, risk: FloatArray, total: FloatArray) -> None:
    """Add each patient's risk to all slots of the window, where all risks have one level."""
    members, at, first, last, step = runs
    coming = np.zeros(total.shape[0])
    for r in range(last.shape[0]):
        for p in range(first[r], first[r + 1]):
            coming[at[p]] += risk[members[p]]
        held = 0.0
        for k in range(at[first[r]], last[r] + step[r], step[r]):
            held += coming[k]
            coming[k] = 0.0
            total[k] += held


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _raise_levels(runs: Runs, height: FloatArray, level: FloatArray) -> None:
    """Raise each slot's level to the highest of the patients at risk there."""
    members, at, first, last, step = runs
    for r in range(last.shape[0]):
        p, high = first[r], -np.inf
        for k in range(at[first[r]], last[r] + step[r], step[r]):
            while p < first[r + 1] and at[p] == k:
                high = max(high, height[members[p]])
                p += 1
            level[k] = max(level[k], high)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _pull_back(
    cotangent: FloatArray,
    runs: Runs,
    flat: BoolArray,
    risks: FloatArray,
    heights: FloatArray,
    levels: FloatArray,
    sums: FloatArray,
    out: FloatArray,
) -> None:
    """Kernel of :meth:`RiskWindows.pullback`: every run backwards, from its last slot to its first member's."""
    share = np.empty(cotangent.shape[1])
    for b in range(cotangent.shape[0]):
        for k in range(share.shape[0]):
            share[k] = cotangent[b, k] / sums[b, k] if sums[b, k] > 0.0 else 0.0
        if flat[b]:
            _pull_flat(share, runs, risks[b], out[b])
        else:
            _pull_in_levels(share, runs, risks[b], heights[b], levels[b], out[b])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _pull_flat(share: FloatArray, runs: Runs, risk: FloatArray, out: FloatArray) -> None:
    """Add what the shares c_k / S_k in each patient's window pull, where all risks have one level."""
    members, at, first, last, step = runs
    mass_from = np.empty(share.shape[0])
    for r in range(last.shape[0]):
        mass = 0.0
        for k in range(last[r], at[first[r]] - step[r], -step[r]):
            mass += share[k]
            mass_from[k] = mass
        for p in range(first[r], first[r + 1]):
            out[members[p]] += risk[members[p]] * mass_from[at[p]]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _pull_in_levels(
    share: FloatArray, runs: Runs, risk: FloatArray, height: FloatArray, level: FloatArray, out: FloatArray
) -> None:
    """The same where every sum has a level of its own."""
    members, at, first, last, step = runs
    for r in range(last.shape[0]):
        p = first[r + 1] - 1
        # `mass` is sum_k c_k exp(low - L_k). All members of a slot lie at or below its level, and so below `low`.
        mass, low = 0.0, np.inf
        for k in range(last[r], at[first[r]] - step[r], -step[r]):
            if level[k] < low:
                mass = mass * math.exp(level[k] - low) if mass != 0.0 else 0.0
                low = level[k]
            mass += share[k] if level[k] == low else share[k] * math.exp(low - level[k])
            while p >= first[r] and at[p] == k:
                j = members[p]
                size = risk[j] if height[j] == low else risk[j] * math.exp(height[j] - low)
                out[j] += size * mass
                p -= 1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_features(
    X: FloatArray,
    runs: Runs,
    risk: FloatArray,
    height: FloatArray,
    level: FloatArray,
    out: FloatArray,
) -> None:
    """Add each patient's risk times features to all slots of the window, at the level of the slot."""
    members, at, first, last, step = runs
    held = np.empty(X.shape[1])
    for r in range(last.shape[0]):
        p, high = first[r], -np.inf
        held[:] = 0.0
        for k in range(at[first[r]], last[r] + step[r], step[r]):
            while p < first[r + 1] and at[p] == k:
                j = members[p]
                if height[j] > high:
                    held *= math.exp(high - height[j])
                    high = height[j]
                size = risk[j] if height[j] == high else risk[j] * math.exp(height[j] - high)
                features = X[j]
                for i in range(held.shape[0]):
                    held[i] += size * features[i]
                p += 1
            size = 1.0 if high == level[k] else math.exp(high - level[k])
            row = out[k]
            for i in range(held.shape[0]):
                row[i] += size * held[i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sum_over_windows(values: FloatArray, runs: Runs, out: FloatArray) -> None:
    """Kernel of :meth:`RiskWindows.over_windows`."""
    members, at, first, last, step = runs
    held = np.empty(values.shape[1])
    for r in range(last.shape[0]):
        p = first[r + 1] - 1
        held[:] = 0.0
        for k in range(last[r], at[first[r]] - step[r], -step[r]):
            row = values[k]
            for i in range(held.shape[0]):
                held[i] += row[i]
            while p >= first[r] and at[p] == k:
                place = out[members[p]]
                for i in range(held.shape[0]):
                    place[i] += held[i]
                p -= 1
