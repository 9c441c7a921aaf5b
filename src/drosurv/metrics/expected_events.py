"""Events that survival curves predict until each patient's time, beside the events observed.

Curves have one of three types. "step": the curve changes at its jumps only, so that the hazard of a jump is the
conditional probability 1 - S(t) / S(t-). "smooth": the curve may change at any time, and the hazard until t is
-log S(t). "points": the curve is known at some times only. Then each interval between two such times has the hazard
that the predictions give it, and when inside of it events occur is learned from the patients themselves. Predictions
for whole years, or at a few horizons, are of this type.

If the curves are right and censoring is independent given the features, observed minus expected events have mean 0 in
every group that features define.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from drosurv.metrics.survival_curves import CurveType, FunctionCurves, SurvivalCurves
from drosurv.target import FloatArray, IntArray, Target

# A patient counts as censored when the predicted cumulative hazard reaches this: the event is then certain.
LARGEST_HAZARD = 23.0
# At most so many jumps of a curve are read one by one, and about so many values of curves in all.
_MOST_JUMPS, _FEWEST_JUMPS, _MOST_VALUES = 1_000, 100, 20_000_000
# Values of curves in memory at once.
_VALUES = 2_000_000


class ExpectedEvents(NamedTuple):
    """Observed events (n,), 0 after the end of a patient's curve, and expected events (n,) until then."""

    events: FloatArray
    expected: FloatArray


def expected_events(
    curves: SurvivalCurves, target: Target, entry: FloatArray | None = None
) -> ExpectedEvents:
    """Observed and expected events of n patients until the end of their follow-up, or of their curve if it is earlier.

    Patients with entry times (n,) count from there on.

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
    seen, until = target.event & (target.time <= ends), np.minimum(target.time, ends)
    if curves.curve_type == "step" and curves.jumps is not None:
        return ExpectedEvents(seen.astype(np.float64), _summed_jumps(curves, curves.jumps, until))
    hazard = cumulative_hazard(curves.at_patient_times(until))
    seen &= hazard < LARGEST_HAZARD
    return ExpectedEvents(seen.astype(np.float64), hazard)


def cumulative_hazard(survival: FloatArray) -> FloatArray:
    """-log of survival probabilities, at most ``LARGEST_HAZARD``."""
    hazard: FloatArray = -np.log(np.clip(survival, np.exp(-LARGEST_HAZARD), 1.0))
    return hazard


def curve_ends(curves: SurvivalCurves) -> Any:
    """Last time of each patient's curve, (n,) or one number; infinity where a curve has no end."""
    if isinstance(curves, FunctionCurves) and curves.jumps is not None:
        return curves.ends
    return np.inf if curves.jumps is None else float(curves.jumps[-1])


def known_everywhere(
    curves: SurvivalCurves,
    target: Target,
    weight: FloatArray | None = None,
    entry: FloatArray | None = None,
) -> SurvivalCurves:
    """Curves that can be read at any time: those of type "points" are completed, others are returned as they are.

    Within each interval between two points all patients share the times at which hazard accrues: jumps at the
    observed event times s of the interval, of size events(s) / sum of the interval's hazards over those at risk at s,
    scaled to sum to 1 (Breslow's estimate within the interval). An interval without events has its jump at its end.
    Patients count by their weights (n,), and are at risk after their entry times (n,).
    """
    if curves.curve_type != "points" or curves.jumps is None:
        return curves
    points = curves.jumps
    hazard = np.column_stack([np.zeros(len(target)), cumulative_hazard(curves.at(points))])
    order = np.argsort(target.time, kind="stable")
    mass = (np.ones(len(target)) if weight is None else weight)[order]
    times, events = target.time[order], target.event[order] * mass
    # The first interval begins before 0, so that events at time 0 are inside of it.
    starts = np.searchsorted(times, np.append(-np.inf, points), side="right")
    jumps, interval, share = [], [], []
    for k, point in enumerate(points):
        first, last = starts[k], starts[k + 1]
        rows = order[first:]
        accrued = mass[first:] * (hazard[rows, k + 1] - hazard[rows, k])
        distinct, begins = np.unique(times[first:last], return_index=True)
        at_risk = np.cumsum(accrued[::-1])[::-1][begins]
        if entry is not None:
            late = np.argsort(entry[rows])
            later = np.append(np.cumsum(accrued[late][::-1])[::-1], 0.0)
            at_risk = at_risk - later[np.searchsorted(entry[rows][late], distinct, side="left")]
        died = np.add.reduceat(events[first:last], begins) if len(distinct) else distinct
        seen = died > 0
        sizes = died[seen] / np.maximum(at_risk[seen], np.finfo(float).tiny)
        at = distinct[seen] if seen.any() else np.array([point])
        jumps.append(at)
        interval.append(np.full(len(at), k))
        share.append(np.cumsum(sizes) / sizes.sum() if seen.any() else np.ones(1))
    return CompletedCurves(hazard, np.concatenate(jumps), np.concatenate(interval), np.concatenate(share))


@dataclass(frozen=True, eq=False)
class CompletedCurves:
    """Step curves between points at which cumulative hazards (n, m + 1) are known, the first of them 0.

    At jump j (K,), in interval number `interval` (K,), the share `share` (K,) of the interval's hazard has accrued.
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
    """Sum of the conditional event probabilities at the jumps of each patient's curve up to a time of its own, (n,).

    Where jumps are very many, intervals of m jumps are read at their ends, and the cumulative hazard x of an interval
    is spread evenly over its jumps: m (1 - exp(-x / m)). That is exact for one jump, and hardly depends on how x is
    spread where jumps are many and small.
    """
    most = int(np.clip(_MOST_VALUES // len(until), _FEWEST_JUMPS, _MOST_JUMPS))
    width = -(-len(jumps) // most)
    ends = jumps[width - 1 :: width]
    hazard = np.empty(len(until))
    for rows in gen_batches(len(until), max(1, _VALUES // len(ends))):
        survival = curves.take(rows).at(ends)
        before = np.column_stack([np.ones(len(survival)), survival[:, :-1]])
        passed = ends <= until[rows, None]
        hazard[rows] = np.where(passed, _of_jumps(survival, before, width), 0.0).sum(axis=1)
    if width == 1:
        return hazard
    # Jumps between the last end that was passed and the patient's time.
    place = np.searchsorted(ends, until, side="right")
    more = np.searchsorted(jumps, until, side="right") - width * place
    at_end = np.where(place > 0, curves.at_patient_times(np.concatenate([[0.0], ends])[place]), 1.0)
    rest = _of_jumps(curves.at_patient_times(until), at_end, np.maximum(more, 1))
    return hazard + np.where(more > 0, rest, 0.0)


def _of_jumps(survival: FloatArray, before: FloatArray, number: Any) -> FloatArray:
    """Hazard of so many equal jumps from one survival probability to a smaller one; 0 where it was 0 before."""
    left = np.divide(survival, before, out=np.ones_like(survival), where=before > 0)
    hazard: FloatArray = -number * np.expm1(-cumulative_hazard(np.minimum(left, 1.0)) / number)
    return hazard
