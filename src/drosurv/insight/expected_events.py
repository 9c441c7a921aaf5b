"""How many events a model expected of each patient by his own time, and how it ranked the patients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from drosurv.errors import Argument, ArgumentError
from drosurv.insight.curves import LARGEST_HAZARD, PredictionGrid, log_mean_hazard, predicted_curves
from drosurv.metrics.survival_curves import FunctionCurves, SurvivalCurves
from drosurv.target import FloatArray, IntArray, Target

# Expected events of one patient are held to [this, log n + 3] where one outlier must not decide.
SMALLEST_EXPECTED = 1e-4
QUARTILES = (0.25, 0.5, 0.75)
# Steps of a curve that are read, and values of curves that are held at once.
_MOST_STEPS, _VALUES = 1_000, 2_000_000


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
    return np.quantile(target.time[target.event], QUARTILES)


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
    curves = predicted_curves(model, X, len(target))
    if curves.jumps is None:
        raise ArgumentError(
            f"{Argument('model')}: the curves of {type(model).__name__} must be step functions with x and y: pass a "
            "pair (times, survival) instead."
        )
    ends = curves.ends if isinstance(curves, FunctionCurves) else curves.jumps[-1]
    seen = target.event & (target.time <= ends)
    hazard = _summed_steps(curves, curves.jumps, target.time)
    return Expected(seen.astype(np.float64), hazard, log_risk(curves, times))


def _summed_steps(curves: SurvivalCurves, steps: FloatArray, until: FloatArray) -> FloatArray:
    """Sum of the hazards of the steps of each patient's curve up to a time of his own, (n,).

    Where steps are very many, each interval of m is read at its ends, and its cumulative hazard x is taken to be
    spread evenly over them: m (1 - exp(-x / m)). That is exact for one step, and hardly depends on how x is spread
    where steps are many and small.
    """
    width = -(-len(steps) // _MOST_STEPS)
    ends = steps[width - 1 :: width]
    hazard = np.empty(len(until))
    for rows in gen_batches(len(until), _VALUES // len(ends)):
        survival = curves.take(rows).at(ends)
        before = np.column_stack([np.ones(len(survival)), survival[:, :-1]])
        passed = ends <= until[rows, None]
        hazard[rows] = np.where(passed, _of_steps(survival, before, width), 0.0).sum(axis=1)
    if width == 1:
        return hazard
    # What lies between the last end that was passed and the patient's own time.
    place = np.searchsorted(ends, until, side="right")
    more = np.searchsorted(steps, until, side="right") - width * place
    at_end = np.where(place > 0, curves.at_own(np.concatenate([[0.0], ends])[place]), 1.0)
    rest = _of_steps(curves.at_own(until), at_end, np.maximum(more, 1))
    return hazard + np.where(more > 0, rest, 0.0)


def _of_steps(survival: FloatArray, before: FloatArray, number: Any) -> FloatArray:
    """Hazard of so many equal steps from one survival down to another; none where nobody was left."""
    left = np.divide(survival, before, out=np.ones_like(survival), where=before > 0)
    hazard: FloatArray = -number * np.expm1(-_hazard(np.minimum(left, 1.0)) / number)
    return hazard


def _expected_on_grid(grid: PredictionGrid, target: Target, times: FloatArray) -> Expected:
    followed = np.minimum(target.time, grid.times[-1])
    hazard = grid.at_own(followed)
    # Beyond the grid, and beyond certain death, the model says nothing: its patients are censored there.
    seen = target.event & (target.time <= grid.times[-1]) & (hazard < LARGEST_HAZARD)
    return Expected(seen.astype(np.float64), hazard, grid.log_risk(times))
