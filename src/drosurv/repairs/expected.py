"""Survival curves and expected events of any fitted model, or of given predictions (times, survival).

Curves have one of three types (:mod:`drosurv.curves`). "step": the curve changes at its jumps only, and the hazard of a
jump is the conditional probability 1 - S(t) / S(t-). "smooth": the curve may change at any time, and the cumulative
hazard until t is -log S(t). "points": the curve is known at some times only, such as whole years or a few horizons.
Then the predictions give the hazard of each interval between two such times, and its distribution within the interval
is estimated from the patients.

If the curves are correct and censoring is independent given the features, observed minus expected events have mean 0
in every group that the features define.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from drosurv.curve_values import LARGEST_HAZARD, CurveValues, RowIndex, minus_log
from drosurv.curves import PointCurves, StepCurves, SurvivalCurves
from drosurv.given_predictions import log_mean_hazard
from drosurv.predictions import as_predictions
from drosurv.target import FloatArray, IntArray, Target, batches

# Expected events of a patient are clipped to [this, log n + 3], so that one outlier cannot decide a test.
SMALLEST_EXPECTED = 1e-4
QUARTILES = (0.25, 0.5, 0.75)
# Number of values of curves in memory at the same time.
_VALUES_IN_MEMORY = 2_000_000


@dataclass(frozen=True, eq=False)
class Expected:
    """Events of n patients, observed and expected by a model.

    `events` (n,) are 1 where the event was observed before the end of the predicted curve, `hazard` (n,) is the
    cumulative hazard from entry until then: the expected number of events. `log_risk` (n,) is the log of the mean
    cumulative hazard at the quartiles of the event times: under proportional hazards the log risk, up to a constant.
    `by_interval` (n, k) are the expected events in intervals of time, whose sum is the hazard.
    """

    events: FloatArray
    hazard: FloatArray
    log_risk: FloatArray
    by_interval: FloatArray | None = None

    @staticmethod
    def joined(parts: Sequence[Expected], folds: IntArray) -> Expected:
        """Join the predictions of the models of all folds, in the order of the patients."""
        positions = np.argsort(np.argsort(folds, kind="stable"), kind="stable")
        names = ["events", "hazard", "log_risk"] + ["by_interval"] * (parts[0].by_interval is not None)
        fields = ([getattr(part, name) for part in parts] for name in names)
        return Expected(*(np.concatenate(field)[positions] for field in fields))

    def clipped(self, low: float, high: float) -> Expected:
        """Return the same with cumulative hazards clipped to [low, high]."""
        hazard = np.clip(self.hazard, low, high)
        intervals = self.by_interval
        if intervals is not None:
            factor = np.divide(hazard, self.hazard, out=np.ones_like(hazard), where=self.hazard > 0)
            intervals = intervals * factor[:, None]
        return Expected(self.events, hazard, self.log_risk, intervals)

    def weighted(self, weight: FloatArray) -> Expected:
        """Return events and hazards multiplied by the patients' weights (n,)."""
        intervals = None if self.by_interval is None else weight[:, None] * self.by_interval
        return Expected(weight * self.events, weight * self.hazard, self.log_risk, intervals)


def reference_times(target: Target) -> FloatArray:
    """Return the quartiles of the event times, at which the log risk of a patient is computed."""
    return np.quantile(target.time[target.event], QUARTILES)


def log_risk(curves: SurvivalCurves, times: FloatArray) -> FloatArray:
    """Return the log of each patient's mean cumulative hazard at the times, (n,); linear between known points."""
    if isinstance(curves, PointCurves):
        return log_mean_hazard(curves.interpolated_hazard(times))
    return log_mean_hazard(minus_log(curves.survival(times)))


def expected_of_fitted(
    curves: SurvivalCurves,
    target: Target,
    times: FloatArray,
    edges: FloatArray | None = None,
    entry: FloatArray | None = None,
) -> Expected:
    """Return the expected events of a model that was fitted on other patients; the log risk is taken at the times.

    Patients are at risk from their entry (n,) on. With k ascending `edges`, the expected events are also counted in the
    k + 1 intervals between them.
    """
    until = minus_log(curves.at_patient_times(target.time))
    begun = np.zeros(len(target)) if entry is None else minus_log(curves.at_patient_times(entry))
    intervals = None
    if edges is not None:
        # Cumulative hazards increase, so clipping them limits an interval to the patient's time at risk.
        at_edges = np.clip(minus_log(curves.survival(edges)), begun[:, None], until[:, None])
        intervals = np.diff(np.column_stack([begun, at_edges, until]), axis=1)
    return Expected(target.event.astype(np.float64), until - begun, log_risk(curves, times), intervals)


def expected_of_frozen(
    model: Any,
    X: Any,
    target: Target,
    times: FloatArray,
    entry: FloatArray | None = None,
    edges: FloatArray | None = None,
    cause: int | None = None,
) -> Expected:
    """Return expected events of a frozen model, counted so that likelihood ratios have mean at most 1 if it is right.

    A patient is censored at the end of the curve, and not at risk before entry (n,). The log risk is taken at the times
    (k,). With ascending `edges` (m,), the expected events are also counted in the m + 1 intervals between them. With a
    `cause`, they are those of its hazard.
    """
    curves = as_predictions(model, X, len(target), cause=cause).survival_curves
    if isinstance(curves, StepCurves):
        curves = replace(curves, own_hazard=False)
    known = known_everywhere(curves, target, entry)
    until = np.minimum(target.time, known.known_until)
    observed = target.event & (target.time <= known.known_until)
    if not isinstance(known, StepCurves):
        observed &= known.accumulated(until).hazard < LARGEST_HAZARD
    hazard = np.maximum(known.expected_events(until, entry).hazard, 0.0)
    intervals = None if edges is None else known.expected_events(until, entry, edges).hazard
    return Expected(observed.astype(np.float64), hazard, log_risk(curves, times), intervals)


def known_everywhere(
    curves: SurvivalCurves, target: Target, entry: FloatArray | None = None
) -> SurvivalCurves:
    """Return curves that can be read at any time: complete those of type "points", return others unchanged.

    Within each interval between two points, the hazard of every patient jumps at the observed event times s of the
    interval. The jumps are proportional to events(s) / sum of the interval's hazards over the patients at risk at s
    (Breslow's estimator within the interval). In an interval without events the hazard jumps at its end. Patients are
    at risk after their entry times (n,).
    """
    if not isinstance(curves, PointCurves) or curves.times is None:
        return curves
    points, order = curves.times, target.order
    hazard = np.column_stack([np.zeros(len(target)), curves.cumulative_hazard(points)])
    distinct, first = np.unique(target.time[order], return_index=True)
    n_events = np.add.reduceat(target.event[order].astype(np.float64), first)
    happened = (n_events > 0) & (distinct <= points[-1])
    times, first, n_events = distinct[happened], first[happened], n_events[happened]
    interval, at_risk = np.searchsorted(points, times), np.empty(len(times))
    since = None if entry is None else entry[order]
    by_entry = None if since is None else np.argsort(since)
    # In batches of intervals, because the hazards of all patients in all intervals may take much memory.
    for columns in batches(len(points), max(1, _VALUES_IN_MEMORY // len(order))):
        inside = slice(*np.searchsorted(interval, [columns.start, columns.stop]))
        column = interval[inside] - columns.start
        of_interval = np.diff(hazard[order, columns.start : columns.stop + 1], axis=1)
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
