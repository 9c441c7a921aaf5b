"""Predicted survival curves of n patients: steps, values known at some times only, or smooth functions of time.

Whatever predicts them (a model, an array, step functions), curves answer the same questions
(:class:`SurvivalCurves`): the survival and the cumulative hazard at common times, the survival of each patient at a
time of that patient, and the expected events of each patient with their variance. The three classes differ in what
curves are between their times:

* :class:`StepCurves` jump at their times and are constant in between. The hazard of a jump is the model's own
  increment d, as of Breslow's baseline with S = exp(-sum d), or that of a table of probabilities, 1 - S(t) / S(t-).
* :class:`PointCurves` are known at their times only.
* :class:`SmoothCurves` change at any time; the cumulative hazard is -log S. Between the times of a table it is linear.

Values are computed when asked for, a batch of patients at a time (:mod:`drosurv.curve_values`). Curves of some
patients, such as a group, share them. :class:`CompetingCurves` hold the curves of several causes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from drosurv.curve_values import (
    Accumulated,
    CurveValues,
    InterpolatedValues,
    RowIndex,
    TableValues,
    checked_survival,
    columns_of,
    interpolate,
    minus_log,
)
from drosurv.errors import InputError, require
from drosurv.target import FloatArray, IntArray, batches

# "step": curves change only at their times. "smooth": they change at any time. "points": known only at their times.
CurveType = Literal["step", "smooth", "points"]
# Number of values of curves in memory at the same time, and of patients that a model predicts at once.
_VALUES, _ROWS = 2_000_000, 32_768

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

    def __len__(self) -> int:
        return len(self.values) if self.rows is None else len(self.rows)

    def take(self, rows: RowIndex) -> Self:
        """Return the curves of some patients: a slice, indices or a mask."""
        until = self.known_until if np.ndim(self.known_until) == 0 else self.known_until[rows]
        chosen = np.arange(len(self.values))[rows] if self.rows is None else self.rows[rows]
        return replace(self, rows=chosen, known_until=until)

    def survival(self, times: FloatArray) -> FloatArray:
        """Return the survival of every patient at each of k times, (n, k)."""
        return self._in_batches(self.values.survival, times)

    def at_patient_times(self, times: FloatArray) -> FloatArray:
        """Return the survival of each patient at one time each, (n,) -> (n,)."""
        return self.values.at_patient_times(self._index(slice(None)), np.asarray(times, dtype=np.float64))

    def cumulative_hazard(self, times: FloatArray) -> FloatArray:
        """Return the cumulative hazard of every patient at each of k times, (n, k): the sum of its increments."""
        return self._in_batches(self.values.hazard, times)

    @abstractmethod
    def accumulated(self, times: FloatArray) -> Accumulated:
        """Return the cumulative hazard of each patient at one time each, (n,) -> (n,), or at k each, (n, k) -> (n, k).

        If the curves are right, it is the expected number of events until then, and its variance that of the events
        around it.
        """

    def expected_events(
        self, until: FloatArray, since: FloatArray | None = None, cuts: FloatArray | None = None
    ) -> Accumulated:
        """Return the expected events of each patient in (since, until], and their variance, both (n,).

        With k ascending times `cuts`, those in each of the k + 1 periods between the cuts, (n, k + 1).
        """
        until = np.asarray(until, dtype=np.float64)
        ends = until[:, None] if cuts is None else np.column_stack([np.minimum.outer(until, cuts), until])
        if since is None:
            parts = [np.diff(part, axis=1, prepend=0.0) for part in self.accumulated(ends)]
        else:
            start = np.minimum(np.asarray(since, dtype=np.float64), until)[:, None]
            found = self.accumulated(np.column_stack([start, np.maximum(ends, start)]))
            parts = [np.diff(part, axis=1) for part in found]
        return Accumulated(*(part[:, 0] if cuts is None else part for part in parts))

    def computed(self, times: FloatArray, patient_times: FloatArray) -> Self:
        """Return the same curves with values computed once at common times (k,) and at patients' times (n,)."""
        grid, own = np.unique(times), np.asarray(patient_times, dtype=np.float64)
        values = ComputedValues(self, grid, self.survival(grid), own, self.at_patient_times(own))
        return replace(self, values=values, rows=None)

    def _index(self, batch: slice) -> RowIndex:
        return batch if self.rows is None else self.rows[batch]

    def _in_batches(self, read: Any, times: FloatArray) -> FloatArray:
        """Return what `read(rows, times)` returns for all patients, (n, k)."""
        times, found = np.asarray(times, dtype=np.float64), np.empty((len(self), len(times)))
        for batch in self._batches(len(times)):
            found[batch] = read(self._index(batch), times)
        return found

    def _batches(self, k: int) -> Any:
        return batches(len(self), int(np.clip(_VALUES // max(k, 1), 1, _ROWS)))


@dataclass(frozen=True, eq=False)
class ComputedValues(CurveValues):
    """Values computed in advance at common times (k,) and at each patient's time (n,); others are computed when needed.

    Groups of patients share one array of values (n, k).
    """

    source: SurvivalCurves
    times: FloatArray
    values: FloatArray
    patient_times: FloatArray
    values_at_patient_times: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def survival(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.survival`."""
        columns = np.minimum(np.searchsorted(self.times, times), len(self.times) - 1)
        if len(self.times) and np.array_equal(self.times[columns], times):
            return columns_of(self.values, rows, columns)
        return self.source.take(rows).survival(times)

    def at_patient_times(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.at_patient_times`."""
        if np.array_equal(self.patient_times[rows], times):
            return self.values_at_patient_times[rows]
        return self.source.take(rows).at_patient_times(times)

    def accumulated(self, rows: RowIndex, times: FloatArray) -> Accumulated | None:
        """See :meth:`CurveValues.accumulated`."""
        source = self.source.take(rows)
        return source.values.accumulated(source.rows, times)


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
        return self._joined(rows, lambda curves, among: curves.survival(times))

    def hazard(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.hazard`."""
        return self._joined(rows, lambda curves, among: curves.values.hazard(curves.rows, times))

    def at_patient_times(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.at_patient_times`."""
        return self._joined(rows, lambda curves, among: curves.at_patient_times(times[among]))

    def hazard_at_patient_times(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.hazard_at_patient_times`."""
        return self._joined(
            rows, lambda curves, among: curves.values.hazard_at_patient_times(curves.rows, times[among])
        )

    def accumulated(self, rows: RowIndex, times: FloatArray) -> Accumulated:
        """See :meth:`CurveValues.accumulated`."""
        found = self._joined(rows, lambda curves, among: np.column_stack(curves.accumulated(times[among])))
        return Accumulated(found[:, 0], found[:, 1])

    def _joined(self, rows: RowIndex, read: Callable[[SurvivalCurves, IntArray], FloatArray]) -> FloatArray:
        """Return what `read` returns for the curves of each part, with the numbers of their rows among those chosen."""
        chosen = np.arange(len(self))[rows]
        found: FloatArray | None = None
        for number, curves in enumerate(self.parts):
            among = np.flatnonzero(self.part[chosen] == number)
            if len(among):
                values = read(curves.take(self.position[chosen[among]]), among)
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
        if self.own_hazard:
            return super().cumulative_hazard(times)
        return self._summed(
            np.broadcast_to(np.asarray(times, dtype=np.float64), (len(self), len(times)))
        ).hazard

    def accumulated(self, times: FloatArray) -> Accumulated:
        """See :meth:`SurvivalCurves.accumulated`."""
        times = np.asarray(times, dtype=np.float64)
        ends = times if times.ndim == 2 else times[:, None]
        index = self._index(slice(None))
        known = [self.values.accumulated(index, end) for end in ends.T] if self.own_hazard else [None]
        if all(part is not None for part in known):
            found = Accumulated(*(np.column_stack(part) for part in zip(*known, strict=True)))
        else:
            found = self._summed(ends)
        return found if times.ndim == 2 else Accumulated(*(part[:, 0] for part in found))

    def _summed(self, ends: FloatArray) -> Accumulated:
        """Sum the hazards of the jumps of each patient until k ends each, (n, k).

        With very many jumps, curves are read only at every m-th jump, and the hazard x in between is spread evenly over
        m jumps. This is exact for m = 1, and a close approximation for many small jumps.
        """
        assert self.times is not None
        most = int(np.clip(_MOST_VALUES // max(len(self), 1), _FEWEST_JUMPS, _MOST_JUMPS))
        width = -(-len(self.times) // most)
        read = self.times[width - 1 :: width]
        passed = np.searchsorted(read, ends, side="right")
        sums = Accumulated(np.empty(ends.shape), np.empty(ends.shape))
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
        for column in np.flatnonzero((n_jumps > 0).any(axis=0)):
            some = n_jumps[:, column] > 0
            at_end, at_last = (self.at_patient_times(part[:, column]) for part in (ends, last))
            at_last = np.where(passed[:, column] > 0, at_last, 1.0)
            rest = self._hazards(at_end, at_last, np.maximum(n_jumps[:, column], 1))
            for total, part in zip(sums, rest, strict=True):
                total[:, column] += np.where(some, part, 0.0)
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
class PointCurves(SurvivalCurves):
    """Curves that are known at their times only, such as whole years or a few horizons.

    At other times `survival` and `cumulative_hazard` return the last known value, 1 and 0 before the first.
    """

    curve_type = "points"

    def accumulated(self, times: FloatArray) -> Accumulated:
        """Raise: events between the times are not predicted."""
        raise InputError(
            "these curves are known at some times only, so that expected events until other times are not known: use "
            "as_steps() if there are many times."
        )

    def interpolated_hazard(self, times: FloatArray) -> FloatArray:
        """Return cumulative hazards (n, k) that are linear from 0 and between the known times, and constant after.

        The times are common (k,), or each patient's own (n, k).
        """
        return interpolate(self._between.knots, self._between.cumulative, times)

    @cached_property
    def _between(self) -> InterpolatedValues:
        assert self.times is not None
        return InterpolatedValues.through(self.times, self.cumulative_hazard)

    def as_steps(self) -> StepCurves:
        """Return curves that jump at the known times; use it if the times are many and close to each other."""
        return StepCurves(self.values, self.times, self.known_until, self.rows)


@dataclass(frozen=True, eq=False)
class SmoothCurves(SurvivalCurves):
    """Curves that change at any time."""

    curve_type = "smooth"

    def accumulated(self, times: FloatArray) -> Accumulated:
        """See :meth:`SurvivalCurves.accumulated`; the variance is the hazard."""
        times, index = np.asarray(times, dtype=np.float64), self._index(slice(None))
        if times.ndim == 1:
            hazard = self.values.hazard_at_patient_times(index, times)
        else:
            hazard = np.column_stack([self.values.hazard_at_patient_times(index, end) for end in times.T])
        return Accumulated(hazard, hazard)


_CLASSES: dict[CurveType, type[SurvivalCurves]] = {
    "step": StepCurves,
    "points": PointCurves,
    "smooth": SmoothCurves,
}


def curves_of_type(
    curve_type: CurveType, values: CurveValues, times: FloatArray | None, known_until: Any = np.inf
) -> SurvivalCurves:
    """Return curves of the given type; without times, curves may change at any time.

    The cumulative hazard of a smooth table is linear between its times.
    """
    if curve_type == "smooth" and isinstance(values, TableValues):
        values = values.smooth()
    return _CLASSES["smooth" if times is None else curve_type](values, times, known_until)


@dataclass(frozen=True, eq=False)
class CompetingCurves:
    """Curves of n patients with several causes of an event.

    `causes` are the curves of each cause, whose cumulative hazard is that of the cause; `any_cause` those of no event.
    """

    causes: tuple[StepCurves, ...]
    any_cause: StepCurves

    def __len__(self) -> int:
        return len(self.any_cause)

    def take(self, rows: RowIndex) -> CompetingCurves:
        """Return the curves of some patients."""
        return CompetingCurves(tuple(cause.take(rows) for cause in self.causes), self.any_cause.take(rows))

    def of_cause(self, cause: int) -> StepCurves:
        """Return the curves of one cause, from 1; expected events of the cause come from its hazard."""
        known = range(1, len(self.causes) + 1)
        require(cause in known, "cause", f"be one of 1 to {len(self.causes)}", cause)
        return self.causes[cause - 1]

    def incidence(self, cause: int, times: FloatArray, since: FloatArray | None = None) -> FloatArray:
        """Return the probability of an event of a cause by each of k times, (n, k).

        .. math:: F_k(t_j) = F_k(t_{j-1}) + (S(t_{j-1}) - S(t_j)) dH_kj / dH_j

        with the jumps dH_kj of the cumulative hazards of the causes and dH_j of their sum: events at a time are divided
        among the causes in proportion to their hazards, so that incidences and survival sum to one. With `since` (n,),
        times u count from there, and there was no event before: (F(since + u) - F(since)) / S(since).
        """
        self.of_cause(cause)  # Raises if there is no such cause.
        jumps = self.any_cause.times
        assert jumps is not None
        at = times if since is None else since[:, None] + np.append(0.0, times)
        index = np.searchsorted(jumps, at, side="right")
        jumps, found = jumps[: index.max(initial=0)], np.empty((len(self), len(times)))
        for batch in self.any_cause._batches(len(jumps)):
            survival = self.any_cause.take(batch).survival(jumps)
            left = -np.diff(survival, axis=1, prepend=1.0)
            hazards = [curves.take(batch).cumulative_hazard(jumps) for curves in self.causes]
            parts = [np.diff(hazard, axis=1, prepend=0.0) for hazard in hazards]
            total = sum(parts)
            share = np.divide(parts[cause - 1], total, out=np.zeros_like(left), where=total > 0)
            steps = np.column_stack([np.zeros(len(left)), np.cumsum(left * share, axis=1)])
            if since is None:
                found[batch] = steps[:, index]
                continue
            passed = np.take_along_axis(steps, index[batch], axis=1)
            alive = np.column_stack([np.ones(len(survival)), survival])
            alive = np.take_along_axis(alive, index[batch, :1], axis=1)
            gained = passed[:, 1:] - passed[:, :1]
            found[batch] = np.divide(gained, alive, out=np.zeros_like(gained), where=alive > 0)
        return found

    @staticmethod
    def joined(n: int, parts: Sequence[tuple[IntArray, CompetingCurves]]) -> CompetingCurves:
        """Return the curves of n patients from curves of the same causes, each with the rows of its patients."""

        def together(found: Sequence[StepCurves]) -> StepCurves:
            curves = joined_curves(n, [(rows, own) for (rows, _), own in zip(parts, found, strict=True)])
            assert isinstance(curves, StepCurves), "curves of causes are in steps"
            return curves

        of_causes = zip(*(curves.causes for _, curves in parts), strict=True)
        return CompetingCurves(
            tuple(map(together, of_causes)), together([curves.any_cause for _, curves in parts])
        )

    @staticmethod
    def of_incidences(times: Any, incidence: Mapping[int, Any], *, between: bool = False) -> CompetingCurves:
        """From incidences (n, K) of causes 1, 2, ... at K times; the hazard of a jump of a cause is dF / S(t-).

        If events happen `between` the times, the hazard -log S(t) + log S(t-) of all causes is divided among them in
        proportion to dF.
        """
        times = np.asarray(times, dtype=np.float64)
        tables = [np.asarray(incidence[cause], dtype=np.float64) for cause in sorted(incidence)]
        survival = checked_survival(1.0 - sum(tables, np.zeros(1)))
        before = np.column_stack([np.ones(len(survival)), survival[:, :-1]])
        left = before - survival
        divisor = before
        if between:
            with np.errstate(divide="ignore", invalid="ignore"):
                divisor = np.where(left > 0, left / minus_log(survival / before), before)
        causes = []
        for table in tables:
            jump = np.diff(table, axis=1, prepend=0.0)
            hazard = np.divide(jump, divisor, out=np.zeros_like(jump), where=divisor > 0)
            values = TableValues(times, np.exp(-np.cumsum(hazard, axis=1)))
            causes.append(StepCurves(values, times, times[-1], own_hazard=True))
        return CompetingCurves(tuple(causes), StepCurves(TableValues(times, survival), times, times[-1]))
