"""Where the values of predicted survival curves come from: tables, functions of time, models, or a sum over causes.

Times are common to all patients, (k,), or each patient's own, (n, k); values are (n, k).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from drosurv.errors import ArgumentError, arg, row_number
from drosurv.patients.arrays import batches
from drosurv.patients.target import BoolArray, FloatArray, IntArray

# Rows of an array: a slice, indices or a mask.
RowIndex = Any
# By rounding, exp(-H) may lie outside of [0, 1] by this much; values further outside are not probabilities.
ROUNDING = 1e-6
# Cumulative hazards of survival probabilities are at most this: the probability is then 1e-10.
LARGEST_HAZARD = 23.0
# Survival of at most this is nearly 0 if it falls by this factor in one step: some programs write 1e-4 or 1e-9 for 0.
NEARLY_ZERO, _STEEP = 1e-4, 0.1
# Probabilities with so many decimals are taken as rounded.
_MOST_DECIMALS = 5
# Patients whose values at times of their own a model predicts together, at a cost of m * m for m patients.
_TOGETHER = 256


class SummedHazard(NamedTuple):
    """Hazards of patients, summed until a time: their expected events, and the variance of their events."""

    hazard: FloatArray
    variance: FloatArray


def since_entry(entry: FloatArray, times: FloatArray) -> FloatArray:
    """Return the times (n, k) that lie after entry (n,) by times (k,), or each patient's own (n, k).

    They are rounded up a little: entry + (time - entry) may be before the step of a curve at the time.
    """
    found: FloatArray = (entry[:, None] + times) * (1 + 2.0**-50)
    return found


def minus_log(survival: FloatArray) -> FloatArray:
    """Return -log of survival probabilities, at most ``LARGEST_HAZARD``."""
    hazard: FloatArray = -np.log(np.clip(survival, np.exp(-LARGEST_HAZARD), 1.0))
    return hazard


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


def rounding_unit(probability: FloatArray) -> float:
    """Return the last digit to which all probabilities are rounded, such as 0.01; 0 if they are not.

    >>> [rounding_unit(np.array(p)) for p in ([0.12, 0.5, 1.0], [0.123, 0.5], [1 / 3])]
    [0.01, 0.001, 0.0]
    """
    for decimals in range(1, _MOST_DECIMALS + 1):
        # A few rows first: mostly they tell that probabilities are not rounded.
        if all((np.abs(p - np.round(p, decimals)) <= 1e-9).all() for p in (probability[:50], probability)):
            return float(10.0**-decimals)
    return 0.0


class CurveValues(ABC):
    """Values of the curves of n patients. A subclass defines `survival` or `hazard`; each follows from the other.

    `rows` select m of the patients. Times are common to them, (k,), or their own, (m, k); values are (m, k).
    """

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of patients."""

    def survival(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """Return the survival (m, k), by default exp(-hazard)."""
        found = self.hazard(rows, times)
        # In place, because these arrays are large.
        np.negative(found, out=found)
        return np.exp(found, out=found)

    def hazard(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """Return the cumulative hazard (m, k), by default -log of the survival."""
        return minus_log(self.survival(rows, times))

    def summed_hazard(self, rows: RowIndex, times: FloatArray) -> SummedHazard | None:
        """Return the summed increments d of the hazard and sum d (1 - d), each (m, k).

        None if there is no formula: then the curves add up increments.
        """
        return None


@dataclass(frozen=True, eq=False)
class TableValues(CurveValues):
    """Survival (n, m) at m common times; 1 at time 0, unless that is one of them.

    Between the times survival is constant if `in_steps`. Otherwise the cumulative hazard is linear, and where survival
    falls to nearly 0 in one step, so that the hazard has no bound, survival is linear.
    """

    times: FloatArray
    values: FloatArray
    in_steps: bool = True

    def __len__(self) -> int:
        return len(self.values)

    def survival(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.survival`."""
        last = np.searchsorted(self.times, times, side="right") - 1
        found = columns_of(self.values, rows, np.maximum(last, 0))
        found[..., last < 0] = 1.0
        following = np.minimum(last + 1, len(self.times) - 1)
        start = np.where(last < 0, 0.0, self.times[np.maximum(last, 0)])
        width = self.times[following] - start
        passed = np.divide(
            times - start, width, out=np.zeros(times.shape), where=(width > 0) & (times > start)
        )
        if self.in_steps or not passed.any():
            return found
        reached = np.minimum(columns_of(self.values, rows, following), found)
        ratio = np.divide(reached, found, out=np.zeros_like(found), where=found > 0)
        falls_to_zero = (reached <= NEARLY_ZERO) & (ratio < _STEEP)
        return found * np.where(falls_to_zero, 1 - passed * (1 - ratio), ratio**passed)


def columns_of(values: FloatArray, rows: RowIndex, columns: IntArray) -> FloatArray:
    """Return a copy of some rows of an array, and of these the same columns (k,), or each row's own, (m, k)."""
    if isinstance(rows, slice) and columns.ndim == 1:
        return values[rows].take(columns, axis=1)
    return values[np.arange(len(values))[rows][:, None], columns]


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
        among, own = np.arange(len(self))[rows].tolist(), times.ndim == 2
        found, factors, terms = (
            np.empty((len(among), times.shape[-1])),
            np.ones(len(among)),
            np.zeros(len(among)),
        )
        grid, indices = None, None
        for row, number in enumerate(among):
            function: Any = self.functions[number]
            x = getattr(function, "x", None)
            if x is None:
                found[row] = function(times[row] if own else times)
                continue
            # A model's curves share one array of times, in which the times are looked up only once.
            if indices is None or x is not grid:
                grid, indices = x, np.maximum(np.searchsorted(x, times, side="right") - 1, 0)
            found[row] = np.asarray(function.y)[indices[row] if own else indices]
            factors[row], terms[row] = getattr(function, "a", 1.0), getattr(function, "b", 0.0)
        return checked_survival(factors[:, None] * found + terms[:, None])


@dataclass(frozen=True, eq=False)
class ModelValues(CurveValues):
    """Survival that a model predicts from features: ``predict(X, times)`` returns (m, k) for m rows of X."""

    predict: Callable[[Any, FloatArray], Any]
    X: Any

    def __len__(self) -> int:
        return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)

    def survival(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.survival`."""
        if times.ndim == 1:
            part = self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]
            return np.asarray(self.predict(part, times), dtype=np.float64)
        among, found = np.arange(len(self))[rows], np.empty(times.shape)
        for column, at in enumerate(times.T):
            # Sorted, so that patients with equal times are predicted together.
            order = np.argsort(at, kind="stable")
            for batch in batches(len(at), _TOGETHER):
                part = order[batch]
                distinct, place = np.unique(at[part], return_inverse=True)
                found[part, column] = self.survival(among[part], distinct)[np.arange(len(part)), place]
        return found


@dataclass(frozen=True, eq=False)
class SumValues(CurveValues):
    """Survival without an event of any cause: the cumulative hazard is the sum over the `causes`."""

    causes: tuple[CurveValues, ...]

    def __len__(self) -> int:
        return len(self.causes[0])

    def hazard(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.hazard`."""
        total: FloatArray = np.sum([cause.hazard(rows, times) for cause in self.causes], axis=0)
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
