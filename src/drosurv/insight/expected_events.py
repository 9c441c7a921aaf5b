"""How many events a model expected of each patient by his own time, and how it ranked the patients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drosurv.evaluation.predictions import take
from drosurv.insight.curves import (
    LARGEST_HAZARD,
    PredictionGrid,
    log_mean_hazard,
    predicted_curves,
    survival_steps,
)
from drosurv.metrics.survival_curves import SurvivalCurves
from drosurv.target import FloatArray, IntArray, Target

# Expected events of one patient are held to [this, log n + 3] where one outlier must not decide.
SMALLEST_EXPECTED = 1e-4
# Rows whose whole curves are held at once.
CHUNK = 250


@dataclass(frozen=True, eq=False)
class Expected:
    """What a model said of n patients, beside what happened.

    `events` (n,) are 1 where the event was seen while the model was followed, `hazard` (n,) the cumulative hazard
    until then: the expected number of events. `log_risk` (n,) is the log of the mean cumulative hazard at the
    quartiles of the event times: under proportional hazards the log risk, up to a constant.
    """

    events: FloatArray
    hazard: FloatArray
    log_risk: FloatArray

    @staticmethod
    def joined(parts: Sequence[Expected], folds: IntArray) -> Expected:
        """What each fold's model said, put back in the order of the patients."""
        places = np.argsort(np.argsort(folds, kind="stable"), kind="stable")
        fields = ([getattr(part, name) for part in parts] for name in ("events", "hazard", "log_risk"))
        return Expected(*(np.concatenate(field)[places] for field in fields))

    def held(self, low: float, high: float) -> Expected:
        """The same with cumulative hazards held to [low, high]."""
        return Expected(self.events, np.clip(self.hazard, low, high), self.log_risk)


def reference_times(target: Target) -> FloatArray:
    """Quartiles of the event times, where the risk of a patient is read."""
    return np.quantile(target.time[target.event], [0.25, 0.5, 0.75])


def log_risk(curves: SurvivalCurves, times: FloatArray) -> FloatArray:
    """Log of each patient's mean cumulative hazard at the times, (n,)."""
    return log_mean_hazard(_hazard(curves.at(times)))


def _hazard(survival: FloatArray) -> FloatArray:
    return -np.log(np.maximum(survival, np.exp(-LARGEST_HAZARD)))


def expected_of_fitted(curves: SurvivalCurves, target: Target, times: FloatArray) -> Expected:
    """What curves of a model fitted on other patients of the same data expect; the log risk is read at the times."""
    hazard = _hazard(curves.at_own(target.time))
    return Expected(target.event.astype(np.float64), hazard, log_risk(curves, times))


def expected_of_frozen(model: Any, X: Any, target: Target, times: FloatArray) -> Expected:
    """What a frozen model expects, read so that the likelihood ratios of a right model have mean 1.

    Curves given at a grid of times are continuous: the cumulative hazard runs straight from one time to the next. A
    model's own curves are steps: the hazard of a step is 1 - S(t) / S(t-), not the larger -log of that ratio. Where a
    model's curves end, its patients count as censored. The log risk is read at the times (k,).
    """
    if isinstance(model, tuple):
        return _expected_on_grid(PredictionGrid.parse(model, len(target)), target, times)
    n = len(target)
    hazard, seen = np.empty(n), np.empty(n)
    for start in range(0, n, CHUNK):
        rows = np.arange(start, min(start + CHUNK, n))
        for row, (x, survival) in zip(rows, survival_steps(model, take(X, rows)), strict=True):
            time = target.time[row]
            reached = survival[: np.searchsorted(x, time, side="right")]
            before = np.concatenate([[1.0], reached[:-1]])
            alive = before > 0
            hazard[row] = (1 - np.minimum(reached[alive] / before[alive], 1.0)).sum()
            seen[row] = target.event[row] and time <= x[-1]
    return Expected(seen, hazard, log_risk(predicted_curves(model, X, n), times))


def _expected_on_grid(grid: PredictionGrid, target: Target, times: FloatArray) -> Expected:
    followed = np.minimum(target.time, grid.times[-1])
    hazard = grid.at_own(followed)
    # Beyond the grid, and beyond certain death, the model says nothing: its patients are censored there.
    seen = target.event & (target.time <= grid.times[-1]) & (hazard < LARGEST_HAZARD)
    return Expected(seen.astype(np.float64), hazard, grid.log_risk(times))
