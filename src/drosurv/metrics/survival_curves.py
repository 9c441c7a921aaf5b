"""Predicted survival curves, given as step functions, callables or arrays, evaluated at any times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from drosurv.errors import ArgumentError
from drosurv.target import FloatArray

# By rounding, exp(-H) may lie outside of [0, 1] by this much; values further outside are not probabilities.
_ROUNDING = 1e-6


# "step": curves change only at their jumps. "smooth": they change at any time. "points": known only at the jumps.
CurveType = Literal["step", "smooth", "points"]


@runtime_checkable
class SurvivalCurves(Protocol):
    """Predicted survival of n patients."""

    @property
    def curve_type(self) -> CurveType:
        """Whether curves are steps, smooth, or known at some points only."""

    @property
    def jumps(self) -> FloatArray | None:
        """Times at which some curve may change, ascending; None for curves that may change at any time."""

    def __len__(self) -> int:
        """Number of patients."""

    def at(self, times: FloatArray) -> FloatArray:
        """Survival of every patient at each of k times, (n, k)."""

    def at_patient_times(self, times: FloatArray) -> FloatArray:
        """Survival of each patient at one time each, (n,) -> (n,)."""

    def take(self, rows: slice) -> SurvivalCurves:
        """Curves of some patients."""


@dataclass(frozen=True, eq=False)
class FunctionCurves:
    """One function per patient: step functions with ``x`` and ``y``, or any callable of an array of times.

    After their last time, step functions keep their last value, where scikit-survival raises an error.
    """

    functions: Sequence[Callable[[FloatArray], Any]]

    @property
    def curve_type(self) -> CurveType:
        """Return "step" if all are step functions, else "smooth"."""
        return "smooth" if self.jumps is None else "step"

    @property
    def jumps(self) -> FloatArray | None:
        """All times of the step functions; None if one of the functions is not a step function."""
        # A model's curves share one array of times.
        distinct = {id(x): x for x in (getattr(function, "x", None) for function in self.functions)}
        if any(x is None for x in distinct.values()):
            return None
        return np.unique(np.concatenate([np.asarray(x, dtype=np.float64) for x in distinct.values()]))

    @property
    def ends(self) -> FloatArray:
        """Last time of each step function, (n,)."""
        return np.array([function.x[-1] for function in self.functions], dtype=np.float64)  # type: ignore[attr-defined]

    def __len__(self) -> int:
        return len(self.functions)

    def at(self, times: FloatArray) -> FloatArray:
        """Survival of every patient at each of k times, (n, k)."""
        return self._read(times, np.empty((len(self), len(times))), lambda row: slice(None))

    def at_patient_times(self, times: FloatArray) -> FloatArray:
        """Survival of each patient at one time each, (n,) -> (n,)."""
        return self._read(times, np.empty((len(self), 1)), lambda row: slice(row, row + 1))[:, 0]

    def take(self, rows: slice) -> FunctionCurves:
        """Curves of some patients."""
        return FunctionCurves(self.functions[rows])

    def _read(self, times: FloatArray, found: FloatArray, of: Callable[[int], slice]) -> FloatArray:
        """Evaluate the function of each row at the times `times[of(row)]`, and write the values into `found[row]`."""
        grid, indices = None, None
        for row, function in enumerate(self.functions):
            x = getattr(function, "x", None)
            if x is None:
                found[row] = function(times[of(row)])
                continue
            # A model's curves share one array of times, in which the times are looked up only once.
            if indices is None or x is not grid:
                # Before its first time a step function has its first value, as in scikit-survival.
                grid, indices = x, np.maximum(np.searchsorted(x, times, side="right") - 1, 0)
            values = np.asarray(function.y)[indices[of(row)]]  # type: ignore[attr-defined]
            found[row] = getattr(function, "a", 1.0) * values + getattr(function, "b", 0.0)
        return _checked(found)


@dataclass(frozen=True, eq=False)
class ArrayCurves:
    """Survival of n patients at m common times, (n, m); read as step functions that begin at 1."""

    times: FloatArray
    values: FloatArray
    curve_type: CurveType = "points"

    @property
    def jumps(self) -> FloatArray | None:
        """The common times."""
        return self.times

    def __len__(self) -> int:
        return len(self.values)

    def at(self, times: FloatArray) -> FloatArray:
        """Survival of every patient at each of k times, (n, k)."""
        return self._steps()[:, np.searchsorted(self.times, times, side="right")]

    def at_patient_times(self, times: FloatArray) -> FloatArray:
        """Survival of each patient at one time each, (n,) -> (n,)."""
        return self._steps()[np.arange(len(self)), np.searchsorted(self.times, times, side="right")]

    def take(self, rows: slice) -> ArrayCurves:
        """Curves of some patients."""
        return ArrayCurves(self.times, self.values[rows], self.curve_type)

    def _steps(self) -> FloatArray:
        return np.column_stack((np.ones(len(self)), self.values))


def parse_survival(survival: Any, n: int, times: Any = None) -> SurvivalCurves:
    """Return the survival predictions of n patients as curves that can be evaluated at any time.

    `survival` is a sequence of n functions, an array (n, m) of probabilities at `times` (m,), strictly ascending, or
    `SurvivalCurves`. A function is scikit-survival's ``StepFunction``, any object with ``x`` and ``y`` (and optionally
    a factor ``a`` and offset ``b``), or any callable of an array of times.
    """
    curves: SurvivalCurves
    if hasattr(survival, "to_numpy"):
        survival = survival.to_numpy()
    if isinstance(survival, SurvivalCurves):
        curves = survival
    elif len(survival) > 0 and callable(survival[0]):
        curves = FunctionCurves(survival)
    else:
        curves = _parse_array(survival, times)
    if len(curves) != n:
        raise ArgumentError(
            "survival", f"survival holds {len(curves)} curves for {n} patients: give one curve per row."
        )
    return curves


def _parse_array(survival: Any, times: Any) -> ArrayCurves:
    values = np.asarray(survival, dtype=np.float64)
    if values.ndim != 2:
        raise ArgumentError(
            "survival",
            f"survival must be one step function per patient or an array of shape (patients, times), "
            f"got shape {values.shape}.",
        )
    if times is None:
        raise ArgumentError(
            "survival",
            f"survival is an array of {values.shape[1]} columns: pass their times as well, times=...",
        )
    grid = np.asarray(times, dtype=np.float64)
    if grid.shape != (values.shape[1],):
        raise ArgumentError(
            "times",
            f"times must hold one time for each of the {values.shape[1]} columns of survival, got shape "
            f"{grid.shape}.",
        )
    if not (np.diff(grid) > 0).all():
        raise ArgumentError(
            "times", "times must be strictly ascending when survival is an array of columns in that order."
        )
    return ArrayCurves(grid, _checked(values))


def _checked(values: FloatArray) -> FloatArray:
    wrong = ~((values >= -_ROUNDING) & (values <= 1 + _ROUNDING))
    if wrong.any():
        row = int(np.argwhere(wrong)[0][0])
        raise ArgumentError(
            "survival",
            f"survival must hold probabilities between 0 and 1, got {values[wrong][0]} for row {row}; "
            "pass survival functions, not cumulative hazards or risk scores.",
        )
    return np.clip(values, 0.0, 1.0)
