"""What a fitted model keeps of its curves: cumulative hazards as functions of patients' scores.

A :class:`StepFunction` is the curve of one patient, as a model returns it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from drosurv.curves.survival_curves import SmoothCurves, StepCurves, SurvivalCurves
from drosurv.curves.values import CurveValues, RowIndex, SummedHazard
from drosurv.errors import ArgumentError, InputError, arg, require
from drosurv.patients.arrays import as_numbers, places_in
from drosurv.patients.target import FloatArray, IntArray

# Log of the largest cumulative hazard of a model, whose fourth power, the square of a variance, does not overflow.
_LARGEST_LOG = 150.0


class FittedCurves(ABC):
    """The survival curves of a model as functions of the scores; a subclass is a dataclass, so that it can be saved.

    `times` (K,) are the default times of predicted curves, `strata` the labels of strata with separate curves. If
    `in_steps`, curves change only at `times`.
    """

    times: FloatArray
    strata: tuple[Any, ...] = ()
    in_steps: ClassVar[bool] = False

    @abstractmethod
    def cumulative_hazard(self, scores: FloatArray, times: FloatArray | None = None) -> FloatArray:
        """Return cumulative hazards (n, k) of patients with scores (n,), by default at `times`.

        The times are common to all patients, (k,), or each patient's own, (n, k).
        """

    def summed_hazard(self, scores: FloatArray, times: FloatArray) -> SummedHazard | None:
        """Return the hazard with its variance, as :meth:`CurveValues.summed_hazard`; None if there is no formula."""
        return None

    def first_at(self, hazard: FloatArray, scores: FloatArray) -> FloatArray:
        """Return the first times (n,) at which patients reach given cumulative hazards (n,); infinity if never.

        Between `times` the cumulative hazard is interpolated linearly.
        """
        curves = self.cumulative_hazard(scores)
        # The tolerance is for curves that equal the given hazard up to rounding.
        reached = curves >= hazard[:, None] * (1.0 - 1e-12)
        first, rows = reached.argmax(axis=1), np.arange(len(curves))
        before = np.maximum(first - 1, 0)
        low, high = curves[rows, before], curves[rows, first]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.clip(np.nan_to_num((hazard - low) / (high - low), nan=1.0), 0.0, 1.0)
        found = self.times[before] + share * (self.times[first] - self.times[before])
        return np.where(reached.any(axis=1), found, np.inf)

    def take(self, rows: RowIndex) -> Self:
        """Return the curves of some of the patients for whom they are predicted."""
        return self

    def of_patients(self, strata: Any, n: int) -> FittedCurves:
        """Return the curves for n patients in given strata (n,); `strata` is None for a model without strata."""
        if strata is not None:
            raise ArgumentError("strata", f"the model was fitted without strata; leave {arg('strata')} out.")
        return self

    def of_scores(self, scores: FloatArray, known_until: float) -> SurvivalCurves:
        """Return the curves of patients with scores (n,), or network outputs (n, K)."""
        return SmoothCurves(ScoreValues(self, scores), self.times, max(known_until, float(self.times[-1])))

    def at_zero(self) -> FloatArray:
        """Return cumulative hazards (1, K) of a patient of score zero; with strata, (S, K)."""
        return self.cumulative_hazard(np.zeros(1))


@dataclass(frozen=True, eq=False)
class ScoreValues(CurveValues):
    """Survival exp(-H) with the cumulative hazard H of fitted curves at each patient's score, of `scores` (n, ...)."""

    curves: FittedCurves
    scores: FloatArray

    def __len__(self) -> int:
        return len(self.scores)

    def hazard(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.hazard`."""
        return self.curves.take(rows).cumulative_hazard(self.scores[rows], times)

    def summed_hazard(self, rows: RowIndex, times: FloatArray) -> SummedHazard | None:
        """See :meth:`CurveValues.summed_hazard`."""
        return self.curves.take(rows).summed_hazard(self.scores[rows], times)


@dataclass(frozen=True, eq=False)
class Baseline(FittedCurves):
    """Cumulative hazards H0(t) exp(score), with log H0 at the event times; with strata, one H0 for each stratum.

    `times` (K,) are the event times, and zero if no event is at zero. `log_cumulative` (K,), or (S, K) for S `strata`,
    is minus infinity before the first event, and NaN for a stratum without events. `stratum` (n,) is the number of the
    stratum of each patient for whom curves are predicted.
    """

    times: FloatArray
    log_cumulative: FloatArray
    strata: tuple[Any, ...] = ()
    stratum: IntArray | None = None

    in_steps = True

    @staticmethod
    def through(at: FloatArray, log_jumps: FloatArray) -> Baseline:
        """From the logs of the jumps (K,) of the cumulative hazard at event times (K,)."""
        return Baseline.from_zero(at, np.logaddexp.accumulate(log_jumps))

    @staticmethod
    def from_zero(at: FloatArray, log_cumulative: FloatArray) -> Baseline:
        """From the log cumulative hazard (K,) at event times (K,); the cumulative hazard before the first is zero."""
        if at[0] > 0:
            at, log_cumulative = np.append(0.0, at), np.append(-np.inf, log_cumulative)
        return Baseline(at, log_cumulative)

    def cumulative_hazard(self, scores: FloatArray, times: FloatArray | None = None) -> FloatArray:
        """See :meth:`FittedCurves.cumulative_hazard`."""
        times = self.times if times is None else times
        index = self._last_jumps(times)
        if self.stratum is not None and times.ndim == 1:
            log_base = np.where(index >= 0, self.log_cumulative[:, np.maximum(index, 0)], -np.inf)
            base = np.exp(log_base - self._largest_log)[self.stratum]
        else:
            base = np.exp(self._at_jumps(self.log_cumulative, index, -np.inf) - self._largest_log)
        found: FloatArray = self._scale(scores) * base
        return found

    def summed_hazard(self, scores: FloatArray, times: FloatArray) -> SummedHazard:
        """See :meth:`FittedCurves.summed_hazard`; an increment above 1 adds nothing to the variance."""
        base, scale = np.exp(self.log_cumulative - self._largest_log), self._scale(scores)
        jumps = np.diff(base, axis=-1, prepend=0.0)
        squares, largest_jumps = np.cumsum(jumps**2, axis=-1), np.maximum.accumulate(jumps, axis=-1)
        index = self._last_jumps(times)
        at, squared, largest = (self._at_jumps(curve, index, 0.0) for curve in (base, squares, largest_jumps))
        hazard = scale * at
        # Hazards that overflow have increments above 1, whose variance is computed below.
        with np.errstate(over="ignore", invalid="ignore"):
            variance = hazard - scale**2 * squared
        for row, column in np.argwhere(scale * largest > 1.0):
            own = jumps if self.stratum is None else jumps[self.stratum[row]]
            d = scale[row, 0] * own[: np.broadcast_to(index, hazard.shape)[row, column] + 1]
            variance[row, column] = (d * np.maximum(1.0 - d, 0.0)).sum()
        return SummedHazard(hazard, np.maximum(variance, 0.0))

    def _last_jumps(self, times: FloatArray) -> IntArray:
        """Return the index of the last jump until each time; -1 before the first."""
        return places_in(self.times, times.ravel(), "right").reshape(times.shape) - 1

    def _at_jumps(self, curve: FloatArray, index: IntArray, before: float) -> FloatArray:
        """Return a baseline curve at the indices of jumps, (k,) or (n, k); `before` is its value before the first."""
        stratum = () if self.stratum is None else (self.stratum[:, None],)
        return np.where(index >= 0, curve[(*stratum, np.maximum(index, 0))], before)

    @property
    def _largest_log(self) -> float:
        """Largest log H0, 0 if all H0 are 0; baselines are divided by exp of it, so that they do not overflow."""
        largest = float(np.nanmax(self.log_cumulative))
        return largest if np.isfinite(largest) else 0.0

    def _scale(self, scores: FloatArray) -> FloatArray:
        """Return the largest H0 times exp(score), (n, 1), bounded so that differences of hazards are defined."""
        return np.exp(np.minimum(scores + self._largest_log, _LARGEST_LOG))[:, None]

    def first_at(self, hazard: FloatArray, scores: FloatArray) -> FloatArray:
        """See :meth:`FittedCurves.first_at`."""
        # The tolerance is for curves that equal the given hazard up to rounding.
        bounded = np.minimum(scores, _LARGEST_LOG - self._largest_log)
        log_baseline = np.log(hazard) - bounded - 1e-12
        times, found = np.append(self.times, np.inf), np.empty(len(scores))
        for k, curve in enumerate(np.atleast_2d(self.log_cumulative)):
            inside = slice(None) if self.stratum is None else self.stratum == k
            found[inside] = times[np.searchsorted(curve, log_baseline[inside])]
        return found

    def take(self, rows: RowIndex) -> Baseline:
        """See :meth:`FittedCurves.take`."""
        return self if self.stratum is None else replace(self, stratum=self.stratum[rows])

    def of_patients(self, strata: Any, n: int) -> FittedCurves:
        """See :meth:`FittedCurves.of_patients`; raise for a stratum that is unknown or had no events in training."""
        if not self.strata:
            return super().of_patients(strata, n)
        if strata is None:
            raise ArgumentError(
                "strata",
                f"the model was fitted with strata {list(self.strata)}: pass {arg('strata')}, one label per patient.",
            )
        given = np.asarray(strata, dtype=object)
        require(given.shape == (n,), "strata", f"have one label per row, shape ({n},)", given.shape)
        numbers = {label: k for k, label in enumerate(self.strata)}
        stratum = np.array([numbers.get(label, -1) for label in given.tolist()], dtype=np.intp)
        if (stratum < 0).any():
            known, unknown = list(self.strata), given[stratum < 0][0]
            raise ArgumentError(
                "strata", f"{arg('strata')} contains {unknown!r}, but the model was fitted with {known}."
            )
        without_events = np.flatnonzero(np.isnan(self.log_cumulative[stratum]).any(axis=1))
        if len(without_events):
            raise InputError(
                f"no curve can be predicted for stratum {given[without_events[0]]!r}: it had no event in training."
            )
        return replace(self, stratum=stratum)

    def of_scores(self, scores: FloatArray, known_until: float) -> StepCurves:
        """See :meth:`FittedCurves.of_scores`."""
        end = max(known_until, float(self.times[-1]))
        return StepCurves(ScoreValues(self, scores), self.times, end, own_hazard=True)

    def at_zero(self) -> FloatArray:
        """See :meth:`FittedCurves.at_zero`."""
        with np.errstate(over="ignore"):
            return np.exp(np.atleast_2d(self.log_cumulative))


def checked_times(times: ArrayLike) -> FloatArray:
    """Check the times at which curves are predicted."""
    checked = as_numbers(times)
    if checked.ndim != 1 or not np.isfinite(checked).all() or (checked < 0).any():
        raise ArgumentError.must("times", "be a list of finite times >= 0", times)
    return checked


class StepFunction:
    """A right-continuous step function on [0, infinity), constant after its last step.

    It has the attributes of scikit-survival's class of the same name, so that each library's metrics take the other's
    curves. The value at t is ``a * y[k] + b`` for the last ``x[k] <= t``, and ``a * y[0] + b`` before ``x[0]``.

    Parameters
    ----------
    x : (K,) array
        Times of the steps, increasing.
    y : (K,) array
        Values from each time on.
    a, b : float
        Factor and constant of the values.

    Attributes
    ----------
    domain : tuple of float
        ``(0.0, inf)``.

    Examples
    --------
    >>> from drosurv.curves import StepFunction
    >>> survival = StepFunction([1.0, 2.0], [0.9, 0.5])
    >>> survival(1.5), survival([2.0, 9.0]).tolist()
    (0.9, [0.5, 0.5])
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, a: float = 1.0, b: float = 0.0) -> None:
        self.x: FloatArray = np.asarray(x, dtype=np.float64)
        self.y: FloatArray = np.asarray(y, dtype=np.float64)
        if self.x.shape != self.y.shape or self.x.ndim != 1 or not len(self.x):
            raise ArgumentError(
                "y", f"y must have one value per x, got shapes {self.y.shape} and {self.x.shape}."
            )
        self.a, self.b = float(a), float(b)
        self.domain = (0.0, np.inf)

    def __call__(self, x: ArrayLike) -> Any:
        """Return the value at one time, or an array of values at many.

        Parameters
        ----------
        x : float or array
            Times, finite and not negative.
        """
        times = np.asarray(x, dtype=np.float64)
        if not np.isfinite(times).all() or (times < 0).any():
            raise ArgumentError.must("times", "be finite and not negative", x)
        step = np.searchsorted(self.x, np.maximum(times, self.x[0]), side="right") - 1
        value = self.a * self.y[step] + self.b
        return float(value) if times.ndim == 0 else value

    def __repr__(self) -> str:
        """Return the call of the constructor."""
        return f"StepFunction(x={self.x!r}, y={self.y!r}, a={self.a!r}, b={self.b!r})"


def step_functions(times: FloatArray, values: FloatArray) -> NDArray[Any]:
    """Return one step function per row of values (n, K) at the times (K,)."""
    out = np.empty(len(values), dtype=object)
    out[:] = [StepFunction(times, row) for row in values]
    return out
