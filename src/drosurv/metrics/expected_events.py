"""Observed events, and the events expected under survival curves, up to each patient's time.

Curves have one of three types. "step": the curve changes at its jumps only, and the hazard of a jump is the
conditional probability 1 - S(t) / S(t-). "smooth": the curve may change at any time, and the cumulative hazard until t
is -log S(t). "points": the curve is known at some times only, such as whole years or a few horizons. Then the
predictions give the hazard of each interval between two such times, and its distribution within the interval is
estimated from the patients.

If the curves are correct and censoring is independent given the features, observed minus expected events have mean 0
in every group that the features define.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from drosurv.metrics.survival_curves import CurveType, FunctionCurves, SurvivalCurves
from drosurv.target import FloatArray, IntArray, Target

# A patient is censored when the predicted cumulative hazard reaches this: the predicted survival is then 1e-10.
LARGEST_HAZARD = 23.0
# Curves are read at 100 to 1,000 jumps, in that range at so few that all patients together have 20,000,000 values.
_MOST_JUMPS, _FEWEST_JUMPS, _MOST_VALUES = 1_000, 100, 20_000_000
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

    Examples
    --------
    >>> from drosurv.metrics.expected_events import expected_events
    >>> from drosurv.metrics.survival_curves import parse_survival
    >>> from drosurv.target import Surv, parse_target
    >>> y = parse_target(Surv.from_arrays([True, False], [2.0, 2.0]))
    >>> curves = parse_survival([[0.8, 0.4], [0.9, 0.9]], 2, times=[1.0, 2.0])
    >>> expected_events(curves, y).expected.round(6).tolist()
    [0.7, 0.1]
    """
    curves = known_everywhere(curves, target, entry=entry)
    if entry is not None:
        events, until_end = expected_events(curves, target)
        nobody = np.zeros(len(target), dtype=np.bool_)
        until_entry = expected_events(curves, Target(nobody, np.asarray(entry, dtype=np.float64))).expected
        return ExpectedEvents(events, np.maximum(until_end - until_entry, 0.0))
    ends = curve_ends(curves)
    observed, until = target.event & (target.time <= ends), np.minimum(target.time, ends)
    if curves.curve_type == "step" and curves.jumps is not None:
        return ExpectedEvents(observed.astype(np.float64), _summed_jumps(curves, curves.jumps, until))
    hazard = cumulative_hazard(curves.at_patient_times(until))
    observed &= hazard < LARGEST_HAZARD
    return ExpectedEvents(observed.astype(np.float64), hazard)


def cumulative_hazard(survival: FloatArray) -> FloatArray:
    """-log of survival probabilities, at most ``LARGEST_HAZARD``."""
    hazard: FloatArray = -np.log(np.clip(survival, np.exp(-LARGEST_HAZARD), 1.0))
    return hazard


def curve_ends(curves: SurvivalCurves) -> Any:
    """Last time to which each patient's curve is known, (n,) or one number; infinity where a curve has no end.

    It is the last jump or, for the curves of a model, the longest training time: after the last training event they are
    constant.
    """
    if isinstance(curves, FunctionCurves) and curves.jumps is not None:
        return curves.ends
    if curves.jumps is None:
        return np.inf
    return max(float(curves.jumps[-1]), getattr(curves, "known_until", -np.inf))


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
    if curves.curve_type != "points" or curves.jumps is None:
        return curves
    points, order = curves.jumps, target.order
    hazard = np.column_stack([np.zeros(len(target)), cumulative_hazard(curves.at(points))])
    mass = (np.ones(len(target)) if weight is None else weight)[order]
    distinct, first = np.unique(target.time[order], return_index=True)
    n_events = np.add.reduceat(target.event[order] * mass, first)
    happened = (n_events > 0) & (distinct <= points[-1])
    times, first, n_events = distinct[happened], first[happened], n_events[happened]
    interval, at_risk = np.searchsorted(points, times), np.empty(len(times))
    since = None if entry is None else entry[order]
    by_entry = None if since is None else np.argsort(since)
    # In batches of intervals, because the hazards of all patients in all intervals may take much memory.
    for columns in gen_batches(len(points), max(1, _VALUES_IN_MEMORY // len(order))):
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
    return CompletedCurves(hazard, jumps[sort], interval[sort], np.append(share, np.ones(len(empty)))[sort])


@dataclass(frozen=True, eq=False)
class CompletedCurves:
    """Step curves between points at which the cumulative hazards (n, m + 1) are known; the first hazard is 0.

    The K `jumps` lie in the intervals with the numbers `interval` (K,). `share` (K,) is the share of the interval's
    hazard that is reached at each jump.
    """

    hazard: FloatArray
    jumps: FloatArray
    interval: IntArray
    share: FloatArray
    curve_type: CurveType = "step"

    def __len__(self) -> int:
        return len(self.hazard)

    def at(self, times: FloatArray) -> FloatArray:
        """Survival of every patient at each of k times, (n, k)."""
        jump = np.searchsorted(self.jumps, times, side="right") - 1
        k, share = self.interval[jump], self.share[jump]
        hazard = (1 - share) * self.hazard[:, k] + share * self.hazard[:, k + 1]
        return np.exp(-np.where(jump < 0, 0.0, hazard))

    def at_patient_times(self, times: FloatArray) -> FloatArray:
        """Survival of each patient at one time each, (n,) -> (n,)."""
        jump = np.searchsorted(self.jumps, times, side="right") - 1
        k, share, rows = self.interval[jump], self.share[jump], np.arange(len(self))
        hazard = (1 - share) * self.hazard[rows, k] + share * self.hazard[rows, k + 1]
        return np.exp(-np.where(jump < 0, 0.0, hazard))

    def take(self, rows: slice) -> CompletedCurves:
        """Curves of some patients."""
        return replace(self, hazard=self.hazard[rows])


def _summed_jumps(curves: SurvivalCurves, jumps: FloatArray, until: FloatArray) -> FloatArray:
    """Sum of the conditional event probabilities at the jumps of each patient's curve up to one time each, (n,).

    With very many jumps, curves are read only at every m-th jump, and the cumulative hazard x in between is spread
    evenly over m jumps: m (1 - exp(-x / m)). This is exact for m = 1, and a close approximation for many small jumps.
    """
    most = int(np.clip(_MOST_VALUES // len(until), _FEWEST_JUMPS, _MOST_JUMPS))
    width = -(-len(jumps) // most)
    ends = jumps[width - 1 :: width]
    hazard = np.empty(len(until))
    for rows in gen_batches(len(until), max(1, _VALUES_IN_MEMORY // len(ends))):
        survival = curves.take(rows).at(ends)
        before = np.column_stack([np.ones(len(survival)), survival[:, :-1]])
        passed = ends <= until[rows, None]
        hazard[rows] = np.where(passed, _hazard_of_jumps(survival, before, width), 0.0).sum(axis=1)
    if width == 1:
        return hazard
    # Add the jumps between the last end that was passed and the patient's time.
    n_passed = np.searchsorted(ends, until, side="right")
    n_jumps = np.searchsorted(jumps, until, side="right") - width * n_passed
    at_end = np.where(n_passed > 0, curves.at_patient_times(np.concatenate([[0.0], ends])[n_passed]), 1.0)
    rest = _hazard_of_jumps(curves.at_patient_times(until), at_end, np.maximum(n_jumps, 1))
    return hazard + np.where(n_jumps > 0, rest, 0.0)


def _hazard_of_jumps(survival: FloatArray, before: FloatArray, n_jumps: Any) -> FloatArray:
    """Summed hazard of `n_jumps` equal jumps between two survival probabilities; 0 if the first is 0."""
    ratio = np.divide(survival, before, out=np.ones_like(survival), where=before > 0)
    hazard: FloatArray = -n_jumps * np.expm1(-cumulative_hazard(np.minimum(ratio, 1.0)) / n_jumps)
    return hazard
