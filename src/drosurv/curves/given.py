"""Survival curves and incidences that are given as arrays or functions, checked and parsed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from drosurv.curves.survival_curves import CurveType, SmoothCurves, StepCurves, SurvivalCurves, curves_of_type
from drosurv.curves.values import ROUNDING, FunctionValues, TableValues, checked_survival, wrong_incidence
from drosurv.errors import ArgumentError, arg, require, row_number
from drosurv.patients.target import FloatArray
from drosurv.presentation import cause_title, counted


def parse_survival(
    survival: Any, n: int, times: Any = None, curve_type: CurveType = "points"
) -> SurvivalCurves:
    """Return the survival predictions of n patients as curves.

    `survival` is a sequence of n functions, an array (n, m) of probabilities at `times` (m,), strictly ascending, or
    `SurvivalCurves`. A function is scikit-survival's ``StepFunction``, any object with ``x`` and ``y`` (and optionally
    a factor ``a`` and offset ``b``), or any callable of an array of times. An array has curves of the type
    `curve_type`; columns of a DataFrame that are numbers must be the times.
    """
    given = survival
    if hasattr(survival, "to_numpy"):
        survival = survival.to_numpy()
    if isinstance(survival, SurvivalCurves):
        curves = survival
    elif len(survival) > 0 and callable(survival[0]):
        curves = curves_of_functions(survival)
    else:
        curves = _parse_array(survival, times, curve_type, given)
    if len(curves) != n:
        raise ArgumentError(
            "survival",
            f"{arg('survival')} holds {len(curves)} curves for {n} patients: give one curve per row.",
        )
    return curves


def curves_of_functions(functions: Any, *, own_hazard: bool = False) -> SurvivalCurves:
    """Return curves of one function per patient: steps if all are step functions, which end at their last time."""
    # A model's curves share one array of times.
    of_functions = [getattr(function, "x", None) for function in functions]
    distinct = dict(zip(map(id, of_functions), of_functions, strict=True))
    if any(x is None for x in distinct.values()):
        return SmoothCurves(FunctionValues(functions))
    steps = {key: np.asarray(x, dtype=np.float64) for key, x in distinct.items()}
    times, last = np.unique(np.concatenate(list(steps.values()))), {key: x[-1] for key, x in steps.items()}
    ends = np.array([last[id(x)] for x in of_functions])
    return StepCurves(FunctionValues(functions), times, ends, own_hazard=own_hazard)


def _parse_array(survival: Any, times: Any, curve_type: CurveType, given: Any) -> SurvivalCurves:
    """Return the curves of an array; messages name rows as the table that was `given` does."""
    values = np.asarray(survival, dtype=np.float64)
    if values.ndim != 2:
        raise ArgumentError(
            "survival",
            f"{arg('survival')} must be one step function per patient or an array of shape (patients, times), "
            f"got shape {values.shape}.",
        )
    grid = times_of_columns(times, values.shape[1], "survival")
    require_columns_at(grid, given)
    survival = checked_survival(values, given)
    survival = _without_rises(survival, grid, given)
    return curves_of_type(curve_type, TableValues(grid, survival), grid, grid.max(initial=0.0))


def require_columns_at(times: Any, table: Any, name: str = "survival") -> None:
    """Raise if names of columns of a DataFrame, the argument `name`, are numbers but not the times, nor 0, 1, ..."""
    try:
        named = np.array([float(column) for column in getattr(table, "columns", ())])
    except (TypeError, ValueError):
        return
    if len(named) != np.size(times) or np.array_equal(named, np.arange(len(named))):
        return
    if not np.allclose(named, times):
        raise ArgumentError(
            "times",
            f"{arg('times')} must be those of the columns of {name}, which are named {named.tolist()}; got "
            f"{np.asarray(times).tolist()}.",
        )


def times_of_columns(times: Any, columns: int, name: str) -> FloatArray:
    """Return the times of the columns of an array, the argument `name`; raise if they do not fit."""
    if times is None:
        raise ArgumentError(
            name, f"{arg(name)} is an array of {columns} columns: pass their times as well, times=..."
        )
    grid = np.asarray(times, dtype=np.float64)
    if grid.shape != (columns,):
        raise ArgumentError(
            "times",
            f"{arg('times')} must hold one time for each of the {columns} columns of {name}, got shape {grid.shape}.",
        )
    fits = len(grid) == 0 or (grid[0] >= 0 and np.isfinite(grid[-1]) and (grid[1:] > grid[:-1]).all())
    wanted = f"be finite, not negative and strictly ascending, as the columns of {name}"
    require(fits, "times", wanted, grid.tolist())
    return grid


def _without_rises(survival: FloatArray, times: FloatArray, given: Any) -> FloatArray:
    """Return survival (n, k) without rises by rounding; raise for others, and name the row as in the table `given`."""
    change = survival[:, 1:] - survival[:, :-1]
    largest = change.max(initial=0.0)
    if largest > ROUNDING:
        rising = change > ROUNDING
        row, column = map(int, np.argwhere(rising)[0])
        raise ArgumentError(
            "survival",
            f"{arg('survival')} cannot rise with time, but does for "
            f"{counted(int(rising.any(axis=1).sum()), 'patient')}, the "
            f"first in row {row_number(row, given)} after time {times[column]:g}, from {survival[row, column]:g} to "
            f"{survival[row, column + 1]:g}; check the order of the columns, and subtract risks from 1.",
        )
    return survival if largest <= 0 else np.minimum.accumulate(survival, axis=1)


def checked_total(incidence: Mapping[Any, Any], times: Any, table: Any = None) -> FloatArray:
    """Return the incidence (n, k) of all causes together; raise if one of them, or their sum, is no incidence.

    Messages number rows as in `table`, by default the incidences of the first cause.
    """
    require(len(incidence) > 0, "incidence", "hold an array for at least one cause", incidence)
    tables = {cause: np.asarray(of_cause, dtype=np.float64) for cause, of_cause in incidence.items()}
    first = next(iter(tables.values()))
    table = next(iter(incidence.values())) if table is None else table
    for cause, values in tables.items():
        if values.ndim != 2 or values.shape != first.shape:
            alike = (
                "one row per patient and one column per time" if values is first else f"shape {first.shape}"
            )
            raise ArgumentError(
                "incidence",
                f"{arg('incidence')} of {cause_title(cause)} must have {alike}, got shape {values.shape}.",
            )
    grid = times_of_columns(times, first.shape[1], "incidence")
    for of_cause in incidence.values():
        require_columns_at(grid, of_cause, "incidence")
    for cause, values in tables.items():
        if (place := wrong_incidence(values)) is not None:
            row, column = place
            before = f" after {values[row, column - 1]:g}" if column else ""
            raise ArgumentError(
                "incidence",
                f"{arg('incidence')} of {cause_title(cause)} must hold probabilities of its event by each time, which "
                f"lie between 0 and 1 and do not fall with time, got {values[row, column]:g}{before} in row "
                f"{row_number(row, table)} at time {grid[column]:g}; divide percentages by 100.",
            )
    total: FloatArray = sum(tables.values(), np.zeros(1))
    if total.max(initial=0.0) > 1 + ROUNDING:
        row = int(np.argmax(total.max(axis=1)))
        raise ArgumentError(
            "incidence",
            f"incidences of all causes sum to {total[row].max():.3g} for row {row_number(row, table)}, above 1: "
            "give probabilities of an event of each cause, not 1 minus Kaplan-Meier's.",
        )
    return total
