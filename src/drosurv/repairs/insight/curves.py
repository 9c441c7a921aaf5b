"""Survival curves of any fitted model, or predictions made elsewhere, and the follow-up of its training patients.

Predictions made elsewhere, at common times, are read in two ways: as steps, which is what metrics take curves for, or
with cumulative hazards that run straight from one time to the next, which is what such a model means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from drosurv.errors import ArgumentError
from drosurv.evaluation.predictions import predict_curves, training_follow_up
from drosurv.metrics.follow_up import FollowUp
from drosurv.metrics.survival_curves import FunctionCurves, SurvivalCurves, parse_survival
from drosurv.presentation import counted
from drosurv.step_function import StepFunction
from drosurv.target import FloatArray, IntArray, Target

# A model that is certain of death is followed until its cumulative hazard reaches this, and no further.
LARGEST_HAZARD = 23.0
SMALLEST_HAZARD = 1e-10
_ROUNDING = 1e-6


def predicted_curves(model: Any, X: Any, n: int) -> SurvivalCurves:
    """Predicted survival of n patients, to be read at any time.

    Of anything with scikit-survival's ``predict_survival_function`` or ``predict_cumulative_hazard_function`` and its
    features; or of predictions made elsewhere: an increasing array of p times and the survival probabilities (n, p)
    at them.
    """
    if isinstance(model, tuple):
        times, survival = _pair(model)
        return parse_survival(survival, n, times)
    if isinstance(model, BaseEstimator) and hasattr(model, "fit"):
        check_is_fitted(model)
    curves = predict_curves(model, X, n)
    if curves is not None:
        return curves
    if not hasattr(model, "predict_cumulative_hazard_function"):
        raise ArgumentError(
            "model",
            f"model: {type(model).__name__} has neither predict_survival_function nor "
            "predict_cumulative_hazard_function: give a fitted survival model with curves, or a pair (times, "
            "survival).",
        )
    return parse_survival([_survival(hazard) for hazard in model.predict_cumulative_hazard_function(X)], n)


def _survival(hazard: Any) -> Any:
    """The survival function of a cumulative hazard, a step function where that is one."""
    if not hasattr(hazard, "x"):
        return lambda times: np.exp(-hazard(times))
    heights = getattr(hazard, "a", 1.0) * np.asarray(hazard.y) + getattr(hazard, "b", 0.0)
    return StepFunction(hazard.x, np.exp(-heights))


def follow_up_of(model: Any, y_train: Any, target: Target) -> FollowUp:
    """The training patients' follow-up: as given, else as the model keeps it, else that of the patients judged."""
    if y_train is None:
        y_train = training_follow_up(model)
    return FollowUp.standing_in(target) if y_train is None else FollowUp.parse(y_train)


@dataclass(frozen=True, eq=False)
class PredictionGrid:
    """Cumulative hazards (n, m) of n patients, straight lines between common times (m,), which increase from 0."""

    times: FloatArray
    hazard: FloatArray

    @staticmethod
    def parse(pair: tuple[Any, ...], n: int) -> PredictionGrid:
        """From a pair (times, survival) for n patients."""
        times, survival = (np.asarray(part, dtype=np.float64) for part in _pair(pair))
        if times.ndim != 1 or survival.shape != (n, len(times)) or len(times) == 0:
            raise _wrong(
                f" must have one row per patient ({n}) and one column for each of the {times.size} times; got shape "
                f"{survival.shape}."
            )
        if not np.isfinite(times).all() or times[0] < 0 or not (np.diff(times) > 0).all():
            raise ArgumentError.must("times", "be finite, not negative and increasing", times.tolist())
        wrong = ~((survival >= -_ROUNDING) & (survival <= 1 + _ROUNDING))
        if wrong.any():
            row, column = (int(place) for place in np.argwhere(wrong)[0])
            raise _wrong(
                f" must be survival probabilities from 0 to 1, got {survival[row, column]:g} for row {row} at time "
                f"{times[column]:g}: percentages are to be divided by 100, and a cumulative hazard H is the "
                "probability exp(-H)."
            )
        rising = np.diff(survival, axis=1) > _ROUNDING
        if rising.any():
            row, column = (int(place) for place in np.argwhere(rising)[0])
            raise _wrong(
                f": survival cannot rise with time, but does for {counted(int(rising.any(axis=1).sum()), 'patient')}, "
                f"the first in row {row} after time {times[column]:g}, from {survival[row, column]:g} to "
                f"{survival[row, column + 1]:g}; check the order of the columns, and subtract risks from 1."
            )
        hazard = -np.log(np.clip(survival, np.exp(-LARGEST_HAZARD), 1.0))
        hazard = np.maximum.accumulate(hazard, axis=1)
        if times[0] > 0:
            times, hazard = np.concatenate([[0.0], times]), np.column_stack([np.zeros(n), hazard])
        return PredictionGrid(times, hazard)

    def at_own(self, times: FloatArray) -> FloatArray:
        """Cumulative hazards (n,) at a time of each patient's own; beyond the last time, that of the last."""
        last = len(self.times) - 1
        before = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, last)
        after = np.minimum(before + 1, last)
        rows, width = np.arange(len(times)), self.times[after] - self.times[before]
        share = np.where(width > 0, (times - self.times[before]) / np.where(width > 0, width, 1.0), 0.0)
        return (1 - share) * self.hazard[rows, before] + share * self.hazard[rows, after]

    def at(self, times: FloatArray) -> FloatArray:
        """Cumulative hazards (n, k) at common times."""
        return np.stack([self.at_own(np.full(len(self.hazard), time)) for time in times], axis=1)


def log_mean_hazard(hazard: FloatArray) -> FloatArray:
    """Log of each patient's mean of cumulative hazards (n, k), (n,).

    Under proportional hazards it differs from the log hazard ratio by a constant, whatever the times.
    """
    risk: FloatArray = np.log(np.maximum(hazard.mean(axis=1), SMALLEST_HAZARD))
    return risk


def _pair(predictions: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(predictions) != 2:
        raise _wrong(f" must be a pair (times, survival), got {len(predictions)} items.")
    return predictions


def _wrong(what: str) -> ArgumentError:
    return ArgumentError("predictions", f"predictions{what}")


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
        grid = PredictionGrid.parse(model, len(target))
        hazard = grid.at_own(np.minimum(target.time, grid.times[-1]))
        # Beyond the grid, and beyond certain death, the model says nothing: its patients are censored there.
        seen = target.event & (target.time <= grid.times[-1]) & (hazard < LARGEST_HAZARD)
        return Expected(seen.astype(np.float64), hazard, log_mean_hazard(grid.at(times)))
    curves = predicted_curves(model, X, len(target))
    if curves.jumps is None:
        raise ArgumentError(
            "model",
            f"model: the curves of {type(model).__name__} must be step functions with x and y: pass a "
            "pair (times, survival) instead.",
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
