"""Sums over risk sets for patients with entry times or strata.

The K event times of all strata are numbered stratum by stratum, in order of time. Patient j is at risk in a *window* of
them: the event times of the patient's stratum with V_j < t_k <= Y_j. This module computes

    L_k = log sum_{j : k in window j} w_j exp f_j

and its derivatives. The usual formula subtracts the sum over patients who have not yet entered from the sum over
patients who have not yet left. Where few patients are at risk, this difference of two large sums loses all digits. So
this module only adds. It cuts each window in two, at the event time m of the window whose number is divisible by the
highest power of two: a part before m and a part from m on. Of all windows cut at the same m, the parts before m end at
the same event time, and the parts from m on begin at the same event time, so that one cumulative sum, a *run*, serves
all parts on one side. All runs together have at most 2 K log2 K steps. A window that begins at the first event time of
its stratum is not cut: without entry times there is one run per stratum, the backward pass of
:mod:`drosurv.losses.risk_sets`.

If the scores differ by less than 500, all risks are stored relative to the highest score. Otherwise every sum has a
level: its value is exp(level) times the stored number.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple, Self

import numba
import numpy as np

from drosurv.losses.risk_sets import FLAT, RiskSums, by_rows, exponentials, logarithms
from drosurv.patients.arrays import distinct
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target


@dataclass(frozen=True, eq=False)
class EventTimes:
    """The K event times of all strata, and the window of event times at which each patient is at risk.

    `rows` (E,) are the events by stratum and time, and `block` (E,) is the number of each event's time; `time` and
    `stratum` (K,) describe each event time. `begin` and `end` (n,) are the numbers of the first and last event time of
    each patient's window, with begin > end for a patient who is at risk at no event time.
    """

    rows: IntArray
    block: IntArray
    time: FloatArray
    stratum: IntArray
    begin: IntArray
    end: IntArray

    @classmethod
    def of(cls, target: Target, scored: BoolArray | None = None) -> EventTimes:
        """Number the event times of a target; without strata every patient is in stratum 0.

        With `scored` (n,), only events of the scored patients count, and only the other patients are at risk.
        """
        stratum = np.zeros(len(target), np.intp) if target.stratum is None else target.stratum
        order = _by_stratum(target.order, target.stratum)
        times, rank = distinct(target.time[target.order])
        key = np.empty(len(target), np.intp)
        key[target.order] = rank
        key += stratum * len(times)
        events = target.event if scored is None else target.event & scored
        rows = order[events[order]]
        numbers, block = distinct(key[rows])
        # Searches in ascending order are faster, since successive ones read the same memory.
        begin, end = np.empty(len(target), np.intp), np.empty(len(target), np.intp)
        end[order] = np.searchsorted(numbers, key[order], side="right") - 1
        if target.entry is None:
            begin = np.searchsorted(numbers, np.arange(stratum.max() + 1) * len(times))[stratum]
        else:
            entered = np.argsort(target.entry, kind="stable")
            begin[entered] = np.searchsorted(times, target.entry[entered], side="right")
            begin += stratum * len(times)
            entered = _by_stratum(entered, target.stratum)
            begin[entered] = np.searchsorted(numbers, begin[entered])
        if scored is not None:
            begin[scored], end[scored] = 1, 0
        return cls(rows, block, times[numbers % len(times)], numbers // len(times), begin, end)


def _by_stratum(order: IntArray, stratum: IntArray | None) -> IntArray:
    """Sort an order of the patients by stratum, keeping the order within strata."""
    if stratum is None:
        return order
    # NumPy sorts numbers of two bytes by a radix sort.
    codes = stratum.astype(np.uint16) if stratum.max() < 2**16 else stratum
    by_stratum: IntArray = order[np.argsort(codes[order], kind="stable")]
    return by_stratum


class Runs(NamedTuple):
    """All runs, one after the other.

    `members` are the patients of each run in the order in which the run adds them, `start` the event time at which it
    adds them. `first` is the index of each run's first member, `last` the event time at which the run ends, `step` its
    direction, 1 or -1.
    """

    members: IntArray
    start: IntArray
    first: IntArray
    last: IntArray
    step: IntArray

    @classmethod
    def of(cls, times: EventTimes) -> Runs:
        """Cut the windows of all patients in two and collect the parts by the event time of the cut."""
        starts = np.searchsorted(times.stratum, times.stratum, side="left")
        at_risk = np.flatnonzero(times.begin <= times.end)
        begin, end = times.begin[at_risk], times.end[at_risk]
        whole = begin == starts[end]
        # `half` is the highest bit in which the ends of a window differ. Windows of one event time, and those that
        # begin with their stratum, are not cut.
        half = np.frexp((begin ^ end).astype(np.float64))[1].astype(np.intp) - 1
        cut = ~whole & (half >= 0)
        half = np.maximum(half, 0)
        middle = np.where(whole, begin, (end >> half) << half)
        # A run is identified by `half`, its last event time and its direction.
        levels = np.where(whole, np.intp(63), half)
        backward = _sorted_runs(at_risk, end, levels, middle, -1)
        forward = _sorted_runs(at_risk[cut], begin[cut], levels[cut], middle[cut] - 1, 1)
        members, start, first, last, step = (
            np.concatenate(parts) for parts in zip(backward, forward, strict=True)
        )
        first[len(backward.first) :] += len(backward.members)
        return cls(members, start, np.append(first, len(members)), last, step)


def _sorted_runs(members: IntArray, start: IntArray, level: IntArray, last: IntArray, step: int) -> Runs:
    # Sorting by one combined number is several times faster than by three keys.
    size = int(start.max(initial=0)) + 2
    order = np.argsort((level * size + last) * size + (start if step > 0 else size - 1 - start))
    level, last = level[order], last[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (level[1:] != level[:-1]) | (last[1:] != last[:-1])
    first = np.flatnonzero(new)
    return Runs(members[order], start[order], first, last[first], np.full(len(first), step))


class LateEntryRiskSets(RiskSums):
    """Risk sets at K event times of patients with entry times or strata, and weights (n,) in the sums."""

    def __init__(self, times: EventTimes, weight: FloatArray | None = None) -> None:
        self.weight = np.ones(0) if weight is None else np.array(weight)
        self._n_times, self._patients = len(times.time), len(times.begin)
        self._runs = Runs.of(times)
        self._flat: BoolArray = np.zeros(0, np.bool_)

    def without(self, left_out: BoolArray) -> Self:
        """See :meth:`RiskSums.without`."""
        part, kept = copy(self), (~left_out).astype(np.float64)
        part.weight = kept * self.weight if len(self.weight) else kept
        return part

    def log_sums(self, scores: FloatArray) -> FloatArray:
        """See :meth:`RiskSums.log_sums`."""
        scores = np.ascontiguousarray(scores)
        risks, heights = np.empty_like(scores), np.empty_like(scores)
        levels, sums = np.empty((len(scores), self._n_times)), np.empty((len(scores), self._n_times))
        out = np.empty_like(sums)
        self._flat = _log_sums(scores, self._runs, self.weight, risks, heights, levels, sums, out)
        self._saved = risks, heights, levels, sums
        self._scores, self._log_sums, self._means = scores, out, None
        return out

    def pullback(self, cotangent: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """See :meth:`RiskSums.pullback`; the gradient is added to `out`."""
        risks, heights, levels, sums = self._saved
        out = np.zeros_like(risks) if out is None else out
        _pull_back(cotangent, self._runs, self._flat, risks, heights, levels, sums, out)
        return out

    def means(self, X: FloatArray) -> FloatArray:
        """See :meth:`RiskSums.means`."""
        if self._means is None:
            risks, heights, levels, sums = (saved[0] for saved in self._saved)
            means = np.zeros((self._n_times, X.shape[1]))
            _add_features(by_rows(X), self._runs, risks, heights, levels, means)
            means /= np.where(sums > 0, sums, 1.0)[:, None]
            self._means = means
        return self._means

    def over_windows(self, values: FloatArray) -> FloatArray:
        """Return sums (n, p) of values (K, p) of the event times over each patient's window."""
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
    """Kernel of :meth:`LateEntryRiskSets.log_sums`; also writes what derivatives need.

    Patient j has risk ``risks[j] exp(heights[j])``, event time k the sum ``sums[k] exp(levels[k])``. Return which rows
    of the batch have the same level for all sums.
    """
    (batch, n), times = scores.shape, sums.shape[1]
    flat, one = np.zeros(batch, np.bool_), np.ones((n, 1))
    for b in range(batch):
        highest, lowest = -np.inf, np.inf
        for j in range(n):
            highest = scores[b, j] if scores[b, j] > highest else highest
            lowest = scores[b, j] if scores[b, j] < lowest else lowest
        flat[b] = highest - lowest < FLAT
        for k in range(times):
            levels[b, k] = highest if flat[b] else -np.inf
            sums[b, k] = 0.0
        for j in range(n):
            heights[b, j] = highest if flat[b] else scores[b, j]
            risks[b, j] = scores[b, j] if flat[b] else 1.0
        if flat[b]:
            exponentials(risks[b], highest)
        for j in range(weight.shape[0]):
            risks[b, j] *= weight[j]
        if flat[b]:
            _add_flat(runs, risks[b], sums[b])
        else:
            _raise_levels(runs, heights[b], levels[b])
            _add_features(one, runs, risks[b], heights[b], levels[b], sums[b].reshape(-1, 1))
        logarithms(sums[b], levels[b], out[b])
    return flat


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_flat(runs: Runs, risk: FloatArray, total: FloatArray) -> None:
    """Add each patient's risk to all event times of the window, if all risks have the same level."""
    members, start, first, last, step = runs
    joining = np.zeros(total.shape[0])
    for r in range(last.shape[0]):
        for p in range(first[r], first[r + 1]):
            joining[start[p]] += risk[members[p]]
        running = 0.0
        for k in range(start[first[r]], last[r] + step[r], step[r]):
            running += joining[k]
            joining[k] = 0.0
            total[k] += running


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _raise_levels(runs: Runs, height: FloatArray, level: FloatArray) -> None:
    """Raise each event time's level to the highest score of the patients at risk."""
    members, start, first, last, step = runs
    for r in range(last.shape[0]):
        p, high = first[r], -np.inf
        for k in range(start[first[r]], last[r] + step[r], step[r]):
            while p < first[r + 1] and start[p] == k:
                high = height[members[p]] if height[members[p]] > high else high
                p += 1
            level[k] = high if high > level[k] else level[k]


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
    """Kernel of :meth:`LateEntryRiskSets.pullback`: go through every run backwards."""
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
    """Add risk times the sum of c_k / S_k over each patient's window, if all risks have the same level."""
    members, start, first, last, step = runs
    mass_from = np.empty(share.shape[0])
    for r in range(last.shape[0]):
        mass = 0.0
        for k in range(last[r], start[first[r]] - step[r], -step[r]):
            mass += share[k]
            mass_from[k] = mass
        for p in range(first[r], first[r + 1]):
            out[members[p]] += risk[members[p]] * mass_from[start[p]]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _pull_in_levels(
    share: FloatArray, runs: Runs, risk: FloatArray, height: FloatArray, level: FloatArray, out: FloatArray
) -> None:
    """Add the same as `_pull_flat`, if sums have different levels."""
    members, start, first, last, step = runs
    for r in range(last.shape[0]):
        p = first[r + 1] - 1
        # `mass` is sum_k c_k exp(low - L_k). No patient at risk has a score above the level, and so none above `low`.
        mass, low = 0.0, np.inf
        for k in range(last[r], start[first[r]] - step[r], -step[r]):
            if level[k] < low:
                mass = mass * math.exp(level[k] - low) if mass != 0.0 else 0.0
                low = level[k]
            mass += share[k] if level[k] == low else share[k] * math.exp(low - level[k])
            while p >= first[r] and start[p] == k:
                j = members[p]
                size = risk[j] if height[j] == low else risk[j] * math.exp(height[j] - low)
                out[j] += size * mass
                p -= 1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_features(
    X: FloatArray, runs: Runs, risk: FloatArray, height: FloatArray, level: FloatArray, out: FloatArray
) -> None:
    """Add each patient's risk times features to all event times of the window, relative to the level of each time."""
    members, start, first, last, step = runs
    running = np.empty(X.shape[1])
    for r in range(last.shape[0]):
        p, high = first[r], -np.inf
        running[:] = 0.0
        for k in range(start[first[r]], last[r] + step[r], step[r]):
            while p < first[r + 1] and start[p] == k:
                j = members[p]
                if height[j] > high:
                    running *= math.exp(high - height[j])
                    high = height[j]
                size = risk[j] if height[j] == high else risk[j] * math.exp(height[j] - high)
                features = X[j]
                for i in range(running.shape[0]):
                    running[i] += size * features[i]
                p += 1
            size = 1.0 if high == level[k] else math.exp(high - level[k])
            row = out[k]
            for i in range(running.shape[0]):
                row[i] += size * running[i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sum_over_windows(values: FloatArray, runs: Runs, out: FloatArray) -> None:
    """Kernel of :meth:`LateEntryRiskSets.over_windows`."""
    members, start, first, last, step = runs
    running = np.empty(values.shape[1])
    for r in range(last.shape[0]):
        p = first[r + 1] - 1
        running[:] = 0.0
        for k in range(last[r], start[first[r]] - step[r], -step[r]):
            row = values[k]
            for i in range(running.shape[0]):
                running[i] += row[i]
            while p >= first[r] and start[p] == k:
                row_out = out[members[p]]
                for i in range(running.shape[0]):
                    row_out[i] += running[i]
                p -= 1
