"""Where the values of predicted survival curves come from: tables, functions of time, models, scores and a baseline.

The curve of one patient, as a model returns it, is a `StepFunction`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from drosurv.errors import ArgumentError, arg, row_number
from drosurv.target import BoolArray, FloatArray, IntArray, batches, places_in

# Rows of an array: a slice, indices or a mask.
RowIndex = Any
# By rounding, exp(-H) may lie outside of [0, 1] by this much; values further outside are not probabilities.
ROUNDING = 1e-6
# Cumulative hazards of survival probabilities are at most this: the probability is then 1e-10.
LARGEST_HAZARD = 23.0
# Log of the largest cumulative hazard of a model.
_LARGEST_LOG = 700.0
# Patients whose values at a time of their own are computed together, at a cost of m * m for m patients.
_TOGETHER = 256


class Accumulated(NamedTuple):
    """Expected events of patients until a time, which are their summed hazards, and the variance of their events."""

    hazard: FloatArray
    variance: FloatArray


def minus_log(survival: FloatArray) -> FloatArray:
    """Return -log of survival probabilities, at most ``LARGEST_HAZARD``."""
    hazard: FloatArray = -np.log(np.clip(survival, np.exp(-LARGEST_HAZARD), 1.0))
    return hazard


def at_own_times(read: Callable[[IntArray, FloatArray], FloatArray], times: FloatArray) -> FloatArray:
    """Return the values (n,) of n rows, each at one time (n,); `read(rows, times)` returns (m, k) at common times."""
    # Sorted, so that patients with equal times are in one batch.
    order, found = np.argsort(times, kind="stable"), np.empty(len(times))
    for batch in batches(len(times), _TOGETHER):
        part = order[batch]
        distinct, column = np.unique(times[part], return_inverse=True)
        found[part] = read(part, distinct)[np.arange(len(part)), column]
    return found


def interpolate(knots: FloatArray, values: FloatArray, times: FloatArray) -> FloatArray:
    """Interpolate values (n, K) at ascending knots (K,) linearly; constant before the first and after the last knot.

    The times are common (k,), or each patient's own (n, k).
    """
    # A knot is the right end of its interval, so that an infinite value at the next knot does not count there.
    right = np.minimum(np.maximum(np.searchsorted(knots, times), 1), len(knots) - 1)
    left = np.maximum(right - 1, 0)
    width = knots[right] - knots[left]
    share = np.divide(times - knots[left], width, out=np.zeros_like(width), where=width > 0)
    share = np.clip(share, 0.0, 1.0, out=share)
    rows: Any = slice(None) if times.ndim == 1 else np.arange(len(values))[:, None]
    found: FloatArray = (1 - share) * values[rows, left] + share * values[rows, right]
    return found


class CurveValues(ABC):
    """Survival of patients as computed by a model or read from an array; rows select some of the n patients."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of patients."""

    @abstractmethod
    def survival(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """Return the survival (m, k) of m rows at k common times."""

    def at_patient_times(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """Return the survival (m,) of m rows, each at one time (m,)."""
        among = np.arange(len(self))[rows]
        return at_own_times(lambda part, at: self.survival(among[part], at), times)

    def hazard(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """Return -log of the survival (m, k) of m rows at k common times."""
        return minus_log(self.survival(rows, times))

    def hazard_at_patient_times(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """Return -log of the survival (m,) of m rows, each at one time (m,)."""
        return minus_log(self.at_patient_times(rows, times))

    def accumulated(self, rows: RowIndex, times: FloatArray) -> Accumulated | None:
        """Return the summed increments d of the hazard (m,) of m rows, each until one time (m,), and sum d (1 - d).

        None if there is no formula: then the curves add up increments.
        """
        return None


@dataclass(frozen=True, eq=False)
class TableValues(CurveValues):
    """Survival (n, m) at m common times; 1 before the first, and constant between them."""

    times: FloatArray
    values: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def survival(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.survival`."""
        index = np.searchsorted(self.times, times, side="right") - 1
        found = columns_of(self.values, rows, np.maximum(index, 0))
        found[:, index < 0] = 1.0
        return found

    def at_patient_times(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.at_patient_times`."""
        index = np.searchsorted(self.times, times, side="right") - 1
        found = self.values[np.arange(len(self))[rows], np.maximum(index, 0)]
        return np.where(index < 0, 1.0, found)

    def smooth(self) -> InterpolatedValues:
        """Return curves whose cumulative hazard is 0 at time 0, and interpolated linearly between the times."""
        return InterpolatedValues.through(self.times, lambda knots: self.hazard(slice(None), knots))


def columns_of(values: FloatArray, rows: RowIndex, columns: IntArray) -> FloatArray:
    """Return a copy of some rows and columns of an array."""
    return (
        values[rows].take(columns, axis=1)
        if isinstance(rows, slice)
        else values[np.asarray(rows)[:, None], columns]
    )


@dataclass(frozen=True, eq=False)
class FunctionValues(CurveValues):
    """One function per patient: step functions with ``x`` and ``y``, or any callable of an array of times.

    Step functions keep their first value before the first time and their last value after the last time, where
    scikit-survival raises an error.
    """

    functions: Sequence[Callable[[FloatArray], Any]]

    def __len__(self) -> int:
        return len(self.functions)

    def survival(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.survival`."""
        return self._read(rows, times, at_own=False)

    def at_patient_times(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.at_patient_times`."""
        return self._read(rows, times, at_own=True)[:, 0]

    def _read(self, rows: RowIndex, times: FloatArray, *, at_own: bool) -> FloatArray:
        """Evaluate the functions of m rows at all k times, (m, k), or `at_own` times, one for each, (m, 1)."""
        among = np.arange(len(self))[rows].tolist()
        found, grid, indices = np.empty((len(among), 1 if at_own else len(times))), None, None
        factors, terms = [], []
        for row, number in enumerate(among):
            function: Any = self.functions[number]
            x = getattr(function, "x", None)
            if x is None:
                found[row] = function(times[row : row + 1] if at_own else times)
                factors.append(1.0)
                terms.append(0.0)
                continue
            # A model's curves share one array of times, in which the times are looked up only once.
            if indices is None or x is not grid:
                grid, indices = x, np.maximum(np.searchsorted(x, times, side="right") - 1, 0)
            found[row] = np.asarray(function.y)[indices[row] if at_own else indices]
            factors.append(getattr(function, "a", 1.0))
            terms.append(getattr(function, "b", 0.0))
        return checked_survival(np.array(factors)[:, None] * found + np.array(terms)[:, None])


@dataclass(frozen=True, eq=False)
class ModelValues(CurveValues):
    """Survival that a model predicts from features: ``predict(X, times)`` returns (m, k) for m rows of X."""

    predict: Callable[[Any, FloatArray], Any]
    X: Any

    def __len__(self) -> int:
        return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)

    def survival(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.survival`."""
        part = self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]
        return np.asarray(self.predict(part, times), dtype=np.float64)


class HazardValues(CurveValues):
    """Survival exp(-H), where a subclass computes the cumulative hazard H."""

    def survival(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.survival`."""
        found = self.hazard(rows, times)
        # In place, because these arrays are large.
        np.negative(found, out=found)
        return np.exp(found, out=found)

    def at_patient_times(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.at_patient_times`."""
        return np.exp(-self.hazard_at_patient_times(rows, times))

    @abstractmethod
    def hazard(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """Return the cumulative hazard (m, k) of m rows at k common times."""

    def hazard_at_patient_times(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """Return the cumulative hazard (m,) of m rows, each at one time (m,)."""
        among = np.arange(len(self))[rows]
        return at_own_times(lambda part, at: self.hazard(among[part], at), times)


@dataclass(frozen=True, eq=False)
class InterpolatedValues(HazardValues):
    """Survival exp(-H) with cumulative hazards H (n, K) at K knots, linear between them and constant after."""

    knots: FloatArray
    cumulative: FloatArray

    @classmethod
    def through(cls, times: FloatArray, hazard: Callable[[FloatArray], FloatArray]) -> InterpolatedValues:
        """Return values through 0 at time 0 and the cumulative hazards (n, k) that a function returns at k times."""
        knots = times if len(times) and times[0] <= 0 else np.append(0.0, times)
        return cls(knots, np.maximum.accumulate(hazard(knots), axis=1))

    def __len__(self) -> int:
        return len(self.cumulative)

    def hazard(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.hazard`."""
        return interpolate(self.knots, self.cumulative[rows], times)

    def hazard_at_patient_times(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.hazard_at_patient_times`."""
        return interpolate(self.knots, self.cumulative[rows], times[:, None])[:, 0]


@dataclass(frozen=True, eq=False)
class ScoreValues(HazardValues):
    """Survival exp(-H) with the cumulative hazard H a function of each patient's score and of time.

    ``of_scores(scores, times)`` returns H (m, k) for m rows of `scores` (n, ...); ``of_scores_at_own``, if given,
    returns H (m,) of each row at one time (m,).
    """

    scores: FloatArray
    of_scores: Callable[[FloatArray, FloatArray], FloatArray]
    of_scores_at_own: Callable[[FloatArray, FloatArray], FloatArray] | None = None

    def __len__(self) -> int:
        return len(self.scores)

    def hazard(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.hazard`."""
        return self.of_scores(self.scores[rows], times)

    def hazard_at_patient_times(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.hazard_at_patient_times`."""
        if self.of_scores_at_own is None:
            return super().hazard_at_patient_times(rows, times)
        return self.of_scores_at_own(self.scores[rows], times)


@dataclass(frozen=True, eq=False)
class ProportionalValues(HazardValues):
    """Survival exp(-H0(t) exp(score)) with a cumulative baseline hazard H0 that jumps at `times` (K,).

    `log_cumulative` is log H0 at the times, (K,) or (S, K) with one row for each stratum; `stratum` (n,) is the number
    of each patient's stratum.
    """

    times: FloatArray
    log_cumulative: FloatArray
    scores: FloatArray
    stratum: IntArray | None = None

    def __len__(self) -> int:
        return len(self.scores)

    def hazard(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.hazard`."""
        index = np.searchsorted(self.times, times, side="right") - 1
        log_base = np.where(index >= 0, self.log_cumulative[..., np.maximum(index, 0)], -np.inf)
        base = np.exp(log_base - self._largest_log)
        found: FloatArray = self._scale(rows)[:, None] * (
            base if self.stratum is None else base[self.stratum[rows]]
        )
        return found

    def hazard_at_patient_times(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.hazard_at_patient_times`."""
        index = places_in(self.times, times, "right") - 1
        log_base = self._at_index(self.log_cumulative, rows, index, -np.inf)
        return np.exp(log_base - self._largest_log) * self._scale(rows)

    def accumulated(self, rows: RowIndex, times: FloatArray) -> Accumulated:
        """See :meth:`CurveValues.accumulated`; an increment above 1 adds nothing to the variance."""
        base, scale = np.exp(self.log_cumulative - self._largest_log), self._scale(rows)
        jumps = np.diff(base, axis=-1, prepend=0.0)
        squares, largest_jumps = np.cumsum(jumps**2, axis=-1), np.maximum.accumulate(jumps, axis=-1)
        index = places_in(self.times, times, "right") - 1
        at, squared, largest = (
            self._at_index(curve, rows, index, 0.0) for curve in (base, squares, largest_jumps)
        )
        hazard = scale * at
        # Hazards that overflow have increments above 1, whose variance is computed below.
        with np.errstate(over="ignore", invalid="ignore"):
            variance = hazard - scale**2 * squared
        for row in np.flatnonzero(scale * largest > 1.0):
            own = jumps if self.stratum is None else jumps[self.stratum[rows][row]]
            d = scale[row] * own[self.times <= times[row]]
            variance[row] = (d * np.maximum(1.0 - d, 0.0)).sum()
        return Accumulated(hazard, np.maximum(variance, 0.0))

    def _at_index(self, curve: FloatArray, rows: RowIndex, index: IntArray, before: float) -> FloatArray:
        """Return a baseline curve at one index of each row; `before` is its value before the first of the times."""
        stratum = () if self.stratum is None else (self.stratum[rows],)
        return np.where(index >= 0, curve[(*stratum, np.maximum(index, 0))], before)

    @property
    def _largest_log(self) -> float:
        """Largest log H0, 0 if all H0 are 0; baselines are divided by exp of it, so that they do not overflow."""
        largest = float(np.nanmax(self.log_cumulative))
        return largest if np.isfinite(largest) else 0.0

    @property
    def bounded_scores(self) -> FloatArray:
        """The scores, bounded so that hazards are finite and their differences are defined."""
        return np.minimum(self.scores, _LARGEST_LOG - self._largest_log)

    def _scale(self, rows: RowIndex) -> FloatArray:
        """Return the largest H0 times exp(score), bounded."""
        return np.exp(np.minimum(self.scores[rows] + self._largest_log, _LARGEST_LOG))


@dataclass(frozen=True, eq=False)
class SumValues(HazardValues):
    """Survival without an event of any cause: the cumulative hazard is the sum over the `causes`."""

    causes: tuple[CurveValues, ...]

    def __len__(self) -> int:
        return len(self.causes[0])

    def hazard(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.hazard`."""
        total: FloatArray = np.sum([cause.hazard(rows, times) for cause in self.causes], axis=0)
        return total

    def hazard_at_patient_times(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.hazard_at_patient_times`."""
        parts = [cause.hazard_at_patient_times(rows, times) for cause in self.causes]
        total: FloatArray = np.sum(parts, axis=0)
        return total


def checked_survival(values: FloatArray, given: Any = None) -> FloatArray:
    """Return survival probabilities (n, k), cut to [0, 1]; raise for other numbers, with the row as in `given`."""
    # A NaN makes both comparisons False.
    if not (values.min(initial=1.0) >= -ROUNDING and values.max(initial=0.0) <= 1 + ROUNDING):
        wrong = _no_probabilities(values)
        row = row_number(np.argwhere(wrong)[0][0], given)
        if len(absent := np.unique(np.argwhere(np.isnan(values))[:, 0])):
            raise ArgumentError(
                "survival",
                f"{arg('survival')} is missing in {len(absent):,} of {len(values):,} rows (first: row "
                f"{row_number(absent[0], given)}): predict for all patients, or leave those rows out.",
            )
        raise ArgumentError(
            "survival",
            f"{arg('survival')} must hold probabilities between 0 and 1, got {values[wrong][0]} for row {row}; "
            f"pass survival functions, not cumulative hazards or risk scores, and divide percentages by 100.",
        )
    return np.clip(values, 0.0, 1.0)


def _no_probabilities(values: FloatArray) -> BoolArray:
    """Return which values are missing, or do not lie between 0 and 1."""
    return ~((values >= -ROUNDING) & (values <= 1 + ROUNDING))


def wrong_incidence(values: FloatArray) -> tuple[int, int] | None:
    """Return row and column of the first number (n, k) that is no incidence by ascending times; None if all are.

    Incidences are not missing, lie between 0 and 1, and do not fall with time.
    """
    wrong = _no_probabilities(values)
    wrong[:, 1:] |= np.diff(values, axis=1) < -ROUNDING
    if not wrong.any():
        return None
    row, column = np.argwhere(wrong)[0]
    return int(row), int(column)


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
    >>> from drosurv.curve_values import StepFunction
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
