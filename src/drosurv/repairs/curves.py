"""Survival curves and expected events of any fitted model, or of given predictions (times, survival)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drosurv.curve_values import minus_log
from drosurv.curves import SurvivalCurves
from drosurv.errors import ArgumentError
from drosurv.metrics.expected_events import expected_events
from drosurv.metrics.follow_up import FollowUp
from drosurv.predictions import as_predictions, training_follow_up
from drosurv.presentation import counted
from drosurv.target import FloatArray, IntArray, Target

SMALLEST_HAZARD = 1e-10
_ROUNDING = 1e-6


def predicted_curves(model: Any, X: Any, n: int) -> SurvivalCurves:
    """Return the survival curves of n patients, of any model or predictions with curves."""
    return as_predictions(model, X, n).survival_curves


def follow_up_of(model: Any, y_train: Any, target: Target) -> FollowUp:
    """Return the follow-up of the training patients: as given, as the model keeps it, or else that of the target."""
    if y_train is None:
        y_train = training_follow_up(model)
    return FollowUp.standing_in(target) if y_train is None else FollowUp.parse(y_train)


@dataclass(frozen=True, eq=False)
class PredictionGrid:
    """Cumulative hazards (n, m) of n patients at common times (m,), increasing from 0, and linear between them."""

    times: FloatArray
    hazard: FloatArray

    @staticmethod
    def parse(pair: tuple[Any, ...], n: int) -> PredictionGrid:
        """Check a pair (times, survival) for n patients."""
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
            row, column = map(int, np.argwhere(wrong)[0])
            raise _wrong(
                f" must be survival probabilities from 0 to 1, got {survival[row, column]:g} for row {row} at time "
                f"{times[column]:g}: divide percentages by 100, and turn a cumulative hazard H into the probability "
                "exp(-H)."
            )
        rising = np.diff(survival, axis=1) > _ROUNDING
        if rising.any():
            row, column = map(int, np.argwhere(rising)[0])
            raise _wrong(
                f": survival cannot rise with time, but does for {counted(int(rising.any(axis=1).sum()), 'patient')}, "
                f"the first in row {row} after time {times[column]:g}, from {survival[row, column]:g} to "
                f"{survival[row, column + 1]:g}; check the order of the columns, and subtract risks from 1."
            )
        hazard = np.maximum.accumulate(minus_log(survival), axis=1)
        if times[0] > 0:
            times, hazard = np.concatenate([[0.0], times]), np.column_stack([np.zeros(n), hazard])
        return PredictionGrid(times, hazard)

    def at_patient_times(self, times: FloatArray) -> FloatArray:
        """Return cumulative hazards (n,) at a time of each patient; constant after the last time."""
        last = len(self.times) - 1
        before = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, last)
        after = np.minimum(before + 1, last)
        rows, width = np.arange(len(times)), self.times[after] - self.times[before]
        share = np.where(width > 0, (times - self.times[before]) / np.where(width > 0, width, 1.0), 0.0)
        return (1 - share) * self.hazard[rows, before] + share * self.hazard[rows, after]

    def at(self, times: FloatArray) -> FloatArray:
        """Return cumulative hazards (n, k) at common times."""
        return np.stack([self.at_patient_times(np.full(len(self.hazard), time)) for time in times], axis=1)


def log_mean_hazard(hazard: FloatArray) -> FloatArray:
    """Return the log of each patient's mean (n,) of cumulative hazards (n, k) at k times.

    Under proportional hazards it is the log hazard ratio, up to a constant.
    """
    risk: FloatArray = np.log(np.maximum(hazard.mean(axis=1), SMALLEST_HAZARD))
    return risk


def _pair(predictions: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(predictions) != 2:
        raise _wrong(f" must be a pair (times, survival), got {len(predictions)} items.")
    return predictions


def _wrong(what: str) -> ArgumentError:
    return ArgumentError("predictions", f"predictions{what}")


# Expected events of a patient are clipped to [this, log n + 3], so that one outlier cannot decide a test.
SMALLEST_EXPECTED = 1e-4
QUARTILES = (0.25, 0.5, 0.75)


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
    """Return the log of each patient's mean cumulative hazard at the times, (n,)."""
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
    model: Any, X: Any, target: Target, times: FloatArray, entry: FloatArray | None = None
) -> Expected:
    """Return expected events of a frozen model, counted so that likelihood ratios have mean at most 1 if it is right.

    How they are counted depends on the type of the curves: see :mod:`drosurv.metrics.expected_events`. A patient is
    censored at the end of the curve, and not at risk before entry (n,). The log risk is taken at the times (k,).
    """
    curves = predicted_curves(model, X, len(target))
    if isinstance(model, tuple):
        risk = log_mean_hazard(PredictionGrid.parse(model, len(target)).at(times))
    else:
        risk = log_risk(curves, times)
    return Expected(*expected_events(curves, target, entry), risk)
