"""Hazards of curves that are known throughout the follow-up, and the common times of those that are not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np

from drosurv.curves import StepCurves, SurvivalCurves
from drosurv.errors import ArgumentError, arg
from drosurv.patients.target import FloatArray, Target

# Curves jump at the times of events if this share of the events is at their jumps.
_AT_JUMPS = 0.5
# With more jumps, likelihoods are those of continuous times.
_FEW_JUMPS = 100


class KnownCurves:
    """Curves that are known throughout: summed hazards of patients, and where they jump."""

    def __init__(self, curves: SurvivalCurves, target: Target) -> None:
        self.discrete = _at_jumps(curves, target) > _AT_JUMPS
        self.n_events = int(target.event.sum())
        self.curves = curves
        if self.discrete and not isinstance(curves, StepCurves):
            self.curves = StepCurves(curves.values, curves.times, curves.known_until, curves.rows)
        self.until: Any = curves.known_until

    @property
    def few_jumps(self) -> bool:
        """Whether likelihoods treat events as happening at the jumps: if jumps are few, with several events each."""
        times = self.curves.times
        return self.discrete and times is not None and len(times) <= min(_FEW_JUMPS, self.n_events / 2)

    def accumulated(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return summed hazards until one time each, (n,), or k each, (n, k), and their variances."""
        found = self.curves.summed_hazard(times.reshape(len(times), -1))
        return found.hazard.reshape(times.shape), found.variance.reshape(times.shape)


def _at_jumps(curves: SurvivalCurves, target: Target) -> float:
    """Return the share of events at jumps of the patients' own curves; of other curves, at the times they have."""
    happened = np.flatnonzero(target.event)
    time = target.time[happened]
    if curves.times is None or len(happened) == 0:
        return 0.0
    if not isinstance(curves, StepCurves):
        return float(np.isin(time, curves.times).mean())
    own = curves.take(happened)
    ends = np.column_stack([np.maximum(np.nextafter(time, -np.inf), 0.0), time])
    before, after = own.survival(ends).T
    return float((after < before).mean())


def common_times(models: Mapping[str, FloatArray | None], name: str) -> tuple[FloatArray, str] | None:
    """Return the times at which all models with predictions at few times are known, and a note that says so.

    `models` are their times by name; None for other models. Return None if the times are the same, or there are fewer
    than two such models. Raise an error about the argument `name` if no time is common.
    """
    few = {title: times for title, times in models.items() if times is not None}
    if len({tuple(times) for times in few.values()}) < 2:
        return None
    common = reduce(np.intersect1d, few.values())
    own = "; ".join(f"{title}: {', '.join(f'{time:g}' for time in times)}" for title, times in few.items())
    if not (common > 0).any():
        raise ArgumentError(
            name, f"{arg(name)}: the predictions have no time in common ({own}): give them at the same times."
        )
    at = ", ".join(f"{time:g}" for time in common)
    return common, f"predicted times differ ({own}): predictions are compared at their common times, {at}."
