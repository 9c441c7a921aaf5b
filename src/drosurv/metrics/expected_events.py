"""Observed events, and the events expected under survival curves, up to each patient's time.

Curves have one of three types (:mod:`drosurv.curves`). "step": the curve changes at its jumps only, and the hazard of a
jump is the model's own increment, or the conditional probability 1 - S(t) / S(t-) of a table. "smooth": the curve may
change at any time, and the cumulative hazard until t is -log S(t). "points": the curve is known at some times only,
such as whole years or a few horizons. Then the predictions give the hazard of each interval between two such times, and
its distribution within the interval is estimated from the patients.

If the curves are correct and censoring is independent given the features, observed minus expected events have mean 0
in every group that the features define.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from drosurv.curve_values import LARGEST_HAZARD, CurveValues, RowIndex
from drosurv.curves import PointCurves, StepCurves, SurvivalCurves
from drosurv.target import FloatArray, IntArray, Target, batches

# Number of values of curves in memory at the same time.
_VALUES_IN_MEMORY = 2_000_000


class ExpectedEvents(NamedTuple):
    """Observed and expected events (n,), each up to the end of the patient's follow-up or curve."""

    events: FloatArray
    expected: FloatArray


def expected_events(
    curves: SurvivalCurves, target: Target, entry: FloatArray | None = None
) -> ExpectedEvents:
    """Observed and expected events of n patients up to the end of their follow-up, or of their curve if it is earlier.

    With entry times (n,), only events after entry are expected.
    """
    curves = known_everywhere(curves, target, entry=entry)
    until = np.minimum(target.time, curves.known_until)
    observed = target.event & (target.time <= curves.known_until)
    if not isinstance(curves, StepCurves):
        observed &= curves.accumulated(until).hazard < LARGEST_HAZARD
    expected = np.maximum(curves.expected_events(until, entry).hazard, 0.0)
    return ExpectedEvents(observed.astype(np.float64), expected)


def known_everywhere(
    curves: SurvivalCurves,
    target: Target,
    weight: FloatArray | None = None,
    entry: FloatArray | None = None,
) -> SurvivalCurves:
    """Return curves that can be read at any time: complete those of type "points", return others unchanged.

    Within each interval between two points, the hazard of every patient jumps at the observed event times s of the
    interval. The jumps are proportional to events(s) / sum of the interval's hazards over the patients at risk at s
    (Breslow's estimator within the interval). In an interval without events the hazard jumps at its end. Patients have
    weights (n,), and are at risk after their entry times (n,).
    """
    if not isinstance(curves, PointCurves) or curves.times is None:
        return curves
    points, order = curves.times, target.order
    hazard = np.column_stack([np.zeros(len(target)), curves.cumulative_hazard(points)])
    mass = (np.ones(len(target)) if weight is None else weight)[order]
    distinct, first = np.unique(target.time[order], return_index=True)
    n_events = np.add.reduceat(target.event[order] * mass, first)
    happened = (n_events > 0) & (distinct <= points[-1])
    times, first, n_events = distinct[happened], first[happened], n_events[happened]
    interval, at_risk = np.searchsorted(points, times), np.empty(len(times))
    since = None if entry is None else entry[order]
    by_entry = None if since is None else np.argsort(since)
    # In batches of intervals, because the hazards of all patients in all intervals may take much memory.
    for columns in batches(len(points), max(1, _VALUES_IN_MEMORY // len(order))):
        inside = slice(*np.searchsorted(interval, [columns.start, columns.stop]))
        column = interval[inside] - columns.start
        of_interval = mass[:, None] * np.diff(hazard[order, columns.start : columns.stop + 1], axis=1)
        at_risk[inside] = np.cumsum(of_interval[::-1], axis=0)[::-1][first[inside], column]
        if since is not None:
            not_entered = np.cumsum(of_interval[by_entry][::-1], axis=0)[::-1]
            later = np.searchsorted(since[by_entry], times[inside])
            at_risk[inside] -= np.vstack([not_entered, np.zeros(len(points[columns]))])[later, column]
    sizes, share = n_events / np.maximum(at_risk, np.finfo(float).tiny), np.ones(len(times))
    begins = np.flatnonzero(np.diff(interval, prepend=-1, append=len(points)))
    for begin, end in pairwise(begins):
        if end > begin + 1:
            share[begin:end] = np.cumsum(sizes[begin:end]) / sizes[begin:end].sum()
    empty = np.setdiff1d(np.arange(len(points)), interval)
    jumps, interval = np.append(times, points[empty]), np.append(interval, empty)
    sort = np.argsort(interval, kind="stable")
    share = np.append(share, np.ones(len(empty)))[sort]
    values = CompletedValues(hazard, jumps[sort], interval[sort], share)
    return StepCurves(values, jumps[sort], float(jumps[sort][-1]))


@dataclass(frozen=True, eq=False)
class CompletedValues(CurveValues):
    """Values of step curves between points at which the cumulative hazards (n, m + 1) are known; the first is 0.

    The K `jumps` lie in the intervals with the numbers `interval` (K,). `share` (K,) is the share of the interval's
    hazard that is reached at each jump.
    """

    cumulative: FloatArray
    jumps: FloatArray
    interval: IntArray
    share: FloatArray

    def __len__(self) -> int:
        return len(self.cumulative)

    def survival(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`~drosurv.curve_values.CurveValues.survival`."""
        jump = np.searchsorted(self.jumps, times, side="right") - 1
        k, share, cumulative = self.interval[jump], self.share[jump], self.cumulative[rows]
        hazard = (1 - share) * cumulative[:, k] + share * cumulative[:, k + 1]
        return np.exp(-np.where(jump < 0, 0.0, hazard))

    def at_patient_times(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`~drosurv.curve_values.CurveValues.at_patient_times`."""
        jump = np.searchsorted(self.jumps, times, side="right") - 1
        k, share, among = self.interval[jump], self.share[jump], np.arange(len(self))[rows]
        hazard = (1 - share) * self.cumulative[among, k] + share * self.cumulative[among, k + 1]
        return np.exp(-np.where(jump < 0, 0.0, hazard))
