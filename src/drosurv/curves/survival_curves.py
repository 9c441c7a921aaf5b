"""Predicted survival curves of n patients: steps, smooth functions of time, or a table of probabilities.

Whatever predicts them (a model, an array, step functions), curves answer the same questions
(:class:`SurvivalCurves`): the survival and the cumulative hazard, and the expected events of each patient with their
variance. Times are common to all patients, (k,), or each patient's own, (n, k); what is returned is (n, k). The
classes differ in what curves are between their times:

* :class:`StepCurves` jump at their times and are constant in between. The hazard of a jump is the model's own
  increment d, as of Breslow's baseline with S = exp(-sum d), or that of a table of probabilities, 1 - S(t) / S(t-).
* :class:`SmoothCurves` change at any time; the cumulative hazard is -log S. Between the times of a table it is linear.
* :class:`PointCurves` are smooth curves of a table, of which nothing is known between the times.

Values are computed when asked for, a batch of patients at a time (:mod:`drosurv.curves.values`). Curves of some
patients, such as a group, share them. Curves that are given as arrays or functions are checked and parsed here too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from drosurv.curves.values import (
    NEARLY_ZERO,
    ROUNDING,
    CurveValues,
    FunctionValues,
    ModelValues,
    RowIndex,
    SummedHazard,
    TableValues,
    checked_survival,
    columns_of,
    minus_log,
    rounding_unit,
    since_entry,
    wrong_incidence,
)
from drosurv.errors import ArgumentError, arg, require, row_number
from drosurv.patients.arrays import batches
from drosurv.patients.target import FloatArray, IntArray
from drosurv.presentation import cause_title, counted

# "step": curves change only at their times. "smooth": they change at any time. "points": a table at some times.
CurveType = Literal["step", "smooth", "points"]
# Number of values of curves in memory at the same time, and of patients that a model predicts at once.
_VALUES, _ROWS = 2_000_000, 32_768

# A step between times of a table is short if it has at most this share of the time, and its share of the predicted risk
# times that of the time is small. Squares of the shares of risk of other steps may sum to this: with an uneven hazard
# inside of a step, the error of the expected events is in proportion to the square.
_SHORT, _SMALL_PRODUCT, _LARGEST_SQUARES = 0.05, 0.01, 0.05
# Without every second time of a table, expected events may change by this share. Between the times of the whole table
# they are then wrong by a sixth of it: the error grows with the square of the step, and is largest in its middle.
_LARGEST_CHANGE = 0.1
_ROUNDING = 1e-6
# Probabilities with at most so many decimals are known at their times only, since hazards of rounded ones are not.
_ROUNDED = 1e-4

# Hazards are summed over 100 to 1,000 jumps, in that range over so few that all patients have 20,000,000 values.
_MOST_JUMPS, _FEWEST_JUMPS, _MOST_VALUES = 1_000, 100, 20_000_000


@dataclass(frozen=True, eq=False)
class SurvivalCurves(ABC):
    """Predicted survival of n patients: the given `rows` (n,) of the values, by default all.

    `times` (K,) are ascending: the curves jump there, or are known there, or, if smooth, are read there by default;
    None if there are none. Curves are known until the time `known_until`, a number or (n,).
    """

    values: CurveValues
    times: FloatArray | None = None
    known_until: Any = np.inf
    rows: IntArray | None = None

    curve_type: ClassVar[CurveType]

    def __post_init__(self) -> None:
        """Let a table be read between its times as curves of this class are."""
        in_steps = self.curve_type == "step"
        if isinstance(self.values, TableValues) and self.values.in_steps != in_steps:
            object.__setattr__(self, "values", replace(self.values, in_steps=in_steps))

    def __len__(self) -> int:
        return len(self.values) if self.rows is None else len(self.rows)

    @property
    def known_throughout(self) -> bool:
        """Whether curves are known throughout the follow-up, as those of models are, and not only at few times."""
        return self.few_times is None

    @cached_property
    def few_times(self) -> FloatArray | None:
        """The times of curves that are known at few times only; None for others."""
        return None

    def take(self, rows: RowIndex) -> Self:
        """Return the curves of some patients: a slice, indices or a mask."""
        until = self.known_until if np.ndim(self.known_until) == 0 else self.known_until[rows]
        chosen = np.arange(len(self.values))[rows] if self.rows is None else self.rows[rows]
        return replace(self, rows=chosen, known_until=until)

    def survival(self, times: FloatArray) -> FloatArray:
        """Return the survival (n, k) at common times (k,), or at each patient's own (n, k)."""
        return self._in_batches(self.values.survival, times)

    def cumulative_hazard(self, times: FloatArray) -> FloatArray:
        """Return the cumulative hazard (n, k) at times as in `survival`: the sum of its increments."""
        return self._in_batches(self.values.hazard, times)

    @abstractmethod
    def summed_hazard(self, times: FloatArray) -> SummedHazard:
        """Return the cumulative hazard (n, k) at times as in `survival`, with a variance.

        If the curves are right, it is the expected number of events until then, and its variance that of the events
        around it.
        """

    def expected_events(
        self, until: FloatArray, since: FloatArray | None = None, cuts: FloatArray | None = None
    ) -> SummedHazard:
        """Return the expected events of each patient in (since, until], and their variance, both (n,).

        With k ascending times `cuts`, those in each of the k + 1 periods between the cuts, (n, k + 1).
        """
        until = np.asarray(until, dtype=np.float64)
        ends = until[:, None] if cuts is None else np.column_stack([np.minimum.outer(until, cuts), until])
        if since is None:
            parts = [np.diff(part, axis=1, prepend=0.0) for part in self.summed_hazard(ends)]
        else:
            start = np.minimum(np.asarray(since, dtype=np.float64), until)[:, None]
            found = self.summed_hazard(np.column_stack([start, np.maximum(ends, start)]))
            parts = [np.diff(part, axis=1) for part in found]
        return SummedHazard(*(part[:, 0] if cuts is None else part for part in parts))

    def computed(self, times: FloatArray, patient_times: FloatArray) -> Self:
        """Return the same curves with survival computed once at common times (k,) and one time of each patient (n,)."""
        grid, own = np.unique(times), np.asarray(patient_times, dtype=np.float64)[:, None]
        return replace(
            self,
            values=ComputedValues(self, grid, self.survival(grid), own, self.survival(own)),
            rows=None,
        )

    def after(self, entry: FloatArray) -> SmoothCurves:
        """Return curves that start when each patient entered, (n,), given no event before: S(entry + t) / S(entry)."""
        return SmoothCurves(ConditionalValues(self, entry))

    def _index(self, batch: slice) -> RowIndex:
        return batch if self.rows is None else self.rows[batch]

    def _in_batches(
        self, read: Callable[[RowIndex, FloatArray], FloatArray], times: FloatArray
    ) -> FloatArray:
        """Return what `read(rows, times)` returns for all patients, (n, k)."""
        times = np.asarray(times, dtype=np.float64)
        found = np.empty((len(self), times.shape[-1]))
        for batch in self._batches(times.shape[-1]):
            found[batch] = read(self._index(batch), times if times.ndim == 1 else times[batch])
        return found

    def _batches(self, k: int) -> Iterator[slice]:
        return batches(len(self), int(np.clip(_VALUES // max(k, 1), 1, _ROWS)))


@dataclass(frozen=True, eq=False)
class ComputedValues(CurveValues):
    """Survival computed in advance at common times (k,) and at one time of each patient (n, 1), else when needed.

    Groups of patients share one array of values (n, k).
    """

    source: SurvivalCurves
    times: FloatArray
    values: FloatArray
    own_times: FloatArray
    values_at_own: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def survival(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.survival`."""
        if times.ndim == 1:
            columns = np.minimum(np.searchsorted(self.times, times), len(self.times) - 1)
            if len(self.times) and np.array_equal(self.times[columns], times):
                return columns_of(self.values, rows, columns)
        elif np.array_equal(self.own_times[rows], times):
            return self.values_at_own[rows]
        return self.source.take(rows).survival(times)

    def summed_hazard(self, rows: RowIndex, times: FloatArray) -> SummedHazard | None:
        """See :meth:`CurveValues.summed_hazard`."""
        source = self.source.take(rows)
        return source.values.summed_hazard(source.rows, times)


@dataclass(frozen=True, eq=False)
class ConditionalValues(CurveValues):
    """Survival of curves at times after entry (n,), given no event before; 0 where survival at entry is 0."""

    curves: SurvivalCurves
    entry: FloatArray

    def __len__(self) -> int:
        return len(self.entry)

    def survival(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.survival`."""
        curves, entry = self.curves.take(rows), self.entry[rows]
        ends = np.column_stack([entry, since_entry(entry, times)])
        found = np.empty(ends.shape)
        # A model that is asked for times of each patient's own takes long: its steps are read once.
        jumps = (
            curves.times
            if isinstance(curves, StepCurves) and isinstance(curves.values, ModelValues)
            else None
        )
        for batch in curves._batches(ends.shape[1] if jumps is None else len(jumps)):
            some = curves.take(batch)
            if jumps is not None:
                some = replace(some, values=TableValues(jumps, some.survival(jumps)), rows=None)
            found[batch] = some.survival(ends[batch])
        return np.divide(found[:, 1:], found[:, :1], out=np.zeros_like(found[:, 1:]), where=found[:, :1] > 0)


@dataclass(frozen=True, eq=False)
class JoinedValues(CurveValues):
    """Values of curves of several models: patient i is number `position[i]` of the curves number `part[i]`."""

    parts: Sequence[SurvivalCurves]
    part: IntArray
    position: IntArray

    def __len__(self) -> int:
        return len(self.part)

    def survival(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.survival`."""
        return self._joined(rows, times, lambda curves, at: curves.survival(at))

    def hazard(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.hazard`."""
        return self._joined(rows, times, lambda curves, at: curves.values.hazard(curves.rows, at))

    def summed_hazard(self, rows: RowIndex, times: FloatArray) -> SummedHazard:
        """See :meth:`CurveValues.summed_hazard`."""
        found = self._joined(rows, times, lambda curves, at: np.stack(curves.summed_hazard(at), axis=2))
        return SummedHazard(found[..., 0], found[..., 1])

    def _joined(
        self,
        rows: RowIndex,
        times: FloatArray,
        read: Callable[[SurvivalCurves, FloatArray], FloatArray],
    ) -> FloatArray:
        """Return what `read(curves, times)` returns for the curves of each part, in the order of the rows."""
        chosen = np.arange(len(self))[rows]
        found: FloatArray | None = None
        for number, curves in enumerate(self.parts):
            among = np.flatnonzero(self.part[chosen] == number)
            if len(among):
                at = times if times.ndim == 1 else times[among]
                values = read(curves.take(self.position[chosen[among]]), at)
                found = np.empty((len(chosen), *values.shape[1:])) if found is None else found
                found[among] = values
        assert found is not None
        return found


def joined_curves(n: int, parts: Sequence[tuple[IntArray, SurvivalCurves]]) -> SurvivalCurves:
    """Return the curves of n patients from curves of one type, each with the rows of its patients."""
    part, position, until = np.zeros(n, np.intp), np.zeros(n, np.intp), np.full(n, np.inf)
    for number, (rows, curves) in enumerate(parts):
        part[rows], position[rows], until[rows] = number, np.arange(len(rows)), curves.known_until
    times = [curves.times for _, curves in parts if curves.times is not None]
    return replace(
        parts[0][1],
        values=JoinedValues([curves for _, curves in parts], part, position),
        times=np.unique(np.concatenate(times)) if times else None,
        known_until=until,
        rows=None,
    )


@dataclass(frozen=True, eq=False)
class StepCurves(SurvivalCurves):
    """Curves that change at their times only.

    With `own_hazard` the hazard of a jump is the model's own increment, -log S(t) + log S(t-); otherwise it is the
    conditional probability 1 - S(t) / S(t-).
    """

    own_hazard: bool = False

    curve_type = "step"

    def cumulative_hazard(self, times: FloatArray) -> FloatArray:
        """See :meth:`SurvivalCurves.cumulative_hazard`."""
        return super().cumulative_hazard(times) if self.own_hazard else self.summed_hazard(times).hazard

    def summed_hazard(self, times: FloatArray) -> SummedHazard:
        """See :meth:`SurvivalCurves.summed_hazard`."""
        times = np.asarray(times, dtype=np.float64)
        found = self.values.summed_hazard(self._index(slice(None)), times) if self.own_hazard else None
        return self._summed(np.broadcast_to(times, (len(self), times.shape[-1]))) if found is None else found

    def _summed(self, ends: FloatArray) -> SummedHazard:
        """Sum the hazards of the jumps of each patient until k ends each, (n, k).

        With very many jumps, curves are read only at every m-th jump, and the hazard x in between is spread evenly over
        m jumps. This is exact for m = 1, and a close approximation for many small jumps.
        """
        assert self.times is not None
        most = int(np.clip(_MOST_VALUES // max(len(self), 1), _FEWEST_JUMPS, _MOST_JUMPS))
        width = -(-len(self.times) // most)
        read = self.times[width - 1 :: width]
        passed = np.searchsorted(read, ends, side="right")
        sums = SummedHazard(np.empty(ends.shape), np.empty(ends.shape))
        for batch in self._batches(len(read)):
            survival = self.values.survival(self._index(batch), read)
            before = np.column_stack([np.ones(len(survival)), survival[:, :-1]])
            for total, part in zip(sums, self._hazards(survival, before, width), strict=True):
                np.cumsum(part, axis=1, out=part)
                last = np.take_along_axis(part, np.maximum(passed[batch] - 1, 0), axis=1)
                total[batch] = np.where(passed[batch] > 0, last, 0.0)
        if width == 1:
            return sums
        # Add the jumps between the last time that was read and the end.
        n_jumps = np.searchsorted(self.times, ends, side="right") - width * passed
        last = np.concatenate([[0.0], read])[passed]
        at_last = np.where(passed > 0, self.survival(last), 1.0)
        rest = self._hazards(self.survival(ends), at_last, np.maximum(n_jumps, 1))
        for total, part in zip(sums, rest, strict=True):
            total += np.where(n_jumps > 0, part, 0.0)
        return sums

    def _hazards(
        self, survival: FloatArray, before: FloatArray, n_jumps: Any
    ) -> tuple[FloatArray, FloatArray]:
        """Return the summed hazard of `n_jumps` equal jumps between two survival probabilities, and its variance.

        Both are 0 if the first probability is 0.
        """
        ratio = np.divide(survival, before, out=np.ones_like(survival), where=before > 0)
        ratio = np.minimum(ratio, 1.0, out=ratio)
        if not self.own_hazard and np.all(n_jumps == 1):
            jump = 1.0 - ratio
            return jump, jump * ratio
        jump = minus_log(ratio) / n_jumps
        if not self.own_hazard:
            jump = -np.expm1(-jump)
        return n_jumps * jump, n_jumps * jump * np.maximum(1.0 - jump, 0.0)


@dataclass(frozen=True, eq=False)
class SmoothCurves(SurvivalCurves):
    """Curves that change at any time. Between the times of a table the cumulative hazard is linear."""

    curve_type: ClassVar[CurveType] = "smooth"

    def summed_hazard(self, times: FloatArray) -> SummedHazard:
        """See :meth:`SurvivalCurves.summed_hazard`; the variance is the hazard."""
        hazard = self.cumulative_hazard(times)
        return SummedHazard(hazard, hazard)


@dataclass(frozen=True, eq=False)
class PointCurves(SmoothCurves):
    """Curves of a table of probabilities, such as at whole years or a few horizons.

    They are read as smooth curves, but whoever judges them asks whether the table is known throughout.
    """

    curve_type = "points"

    @cached_property
    def few_times(self) -> FloatArray | None:
        """The times of the table; None if it is known throughout.

        It is if it is not rounded and its steps are small: the squares of their shares of the mean predicted risk at
        its end sum to a twentieth at most, as with twenty equal steps. Short steps, of at most a twentieth of the time,
        do not count. So evenly spaced tables may be known throughout from 20 times on, whichever patients are in them,
        and curves at the event times of other patients although they may jump at the last one. The hazard inside of the
        steps must be known, too: without every second time the table gives nearly the same expected events. Outcomes do
        not matter, and all rows of the table decide, those of other patients too: groups and drawn samples of its
        patients are judged in the same way.
        """
        if self.times is None:
            return None
        survival = replace(self, rows=None, known_until=np.inf).survival(self.times)
        if rounding_unit(survival) >= _ROUNDED:
            return self.times
        of_risk, of_time = (
            np.diff(part, prepend=0.0) / max(float(part[-1]), 1e-300)
            for part in (1 - survival.mean(axis=0), self.times)
        )
        short = (of_time <= _SHORT + _ROUNDING) & (of_risk * of_time <= _SMALL_PRODUCT + _ROUNDING)
        small = (of_risk[~short] ** 2).sum() <= _LARGEST_SQUARES + _ROUNDING
        known = small and _change_without_every_second(self.times, survival) <= _LARGEST_CHANGE
        return None if known else self.times


def _change_without_every_second(times: FloatArray, survival: FloatArray) -> float:
    """Return by which share expected events change if a table (n, m) is read without every second time.

    The last step does not count: curves of a Cox model of few patients may jump there.
    """
    places = np.arange(len(times))
    is_kept = (places - places[-1]) % 2 == 0
    left_out = places[~is_kept & (times > 0) & (places < len(times) - 2)]
    fewer = TableValues(times[is_kept], survival[:, is_kept], in_steps=False)
    changes = np.zeros(len(left_out))
    for rows in batches(len(survival), _ROWS):
        part, read = survival[rows], fewer.survival(rows, times[left_out])
        before = np.where(left_out > 0, part[:, left_out - 1], 1.0)
        # The change of the cumulative hazard at a time counts for patients with the event in the steps around it.
        change = minus_log(read) - minus_log(part[:, left_out])
        change[part[:, left_out] <= NEARLY_ZERO] = 0.0
        changes += ((before - part[:, left_out + 1]) * change).sum(axis=0)
    risk = float((1 - survival[:, -1]).sum())
    return float(np.abs(changes).sum()) / risk if risk > 0 else 0.0


_CLASSES: dict[CurveType, type[SurvivalCurves]] = {
    "step": StepCurves,
    "points": PointCurves,
    "smooth": SmoothCurves,
}


def curves_of_type(
    curve_type: CurveType, values: CurveValues, times: FloatArray | None, known_until: Any = np.inf
) -> SurvivalCurves:
    """Return curves of the given type; without times, curves may change at any time."""
    return _CLASSES["smooth" if times is None else curve_type](values, times, known_until)


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
