"""Predicted survival curves with several causes of an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drosurv.curves.survival_curves import SmoothCurves, StepCurves, joined_curves
from drosurv.curves.values import (
    CurveValues,
    RowIndex,
    TableValues,
    checked_survival,
    columns_of,
    minus_log,
    since_entry,
)
from drosurv.errors import require
from drosurv.patients.target import FloatArray, IntArray


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

        Times are common to the patients, (k,), or their own, (n, k).

        .. math:: F_k(t_j) = F_k(t_{j-1}) + (S(t_{j-1}) - S(t_j)) dH_kj / dH_j

        with the jumps dH_kj of the cumulative hazards of the causes and dH_j of their sum: events at a time are divided
        among the causes in proportion to their hazards, so that incidences and survival sum to one. With `since` (n,),
        times u count from there, and there was no event before: (F(since + u) - F(since)) / S(since).
        """
        self.of_cause(cause)  # Raises if there is no such cause.
        jumps = self.any_cause.times
        assert jumps is not None
        at = times if since is None else np.column_stack([since, since_entry(since, times)])
        index = np.searchsorted(jumps, at, side="right")
        jumps, found = jumps[: index.max(initial=0)], np.empty((len(self), times.shape[-1]))
        for batch in self.any_cause._batches(len(jumps)):
            survival = self.any_cause.take(batch).survival(jumps)
            left = -np.diff(survival, axis=1, prepend=1.0)
            hazards = [curves.take(batch).cumulative_hazard(jumps) for curves in self.causes]
            parts = [np.diff(hazard, axis=1, prepend=0.0) for hazard in hazards]
            total = sum(parts)
            share = np.divide(parts[cause - 1], total, out=np.zeros_like(left), where=total > 0)
            steps = np.column_stack([np.zeros(len(left)), np.cumsum(left * share, axis=1)])
            own = index if index.ndim == 1 else index[batch]
            passed = columns_of(steps, slice(None), own)
            if since is not None:
                alive = np.column_stack([np.ones(len(survival)), survival])
                alive = np.take_along_axis(alive, own[:, :1], axis=1)
                gained = passed[:, 1:] - passed[:, :1]
                passed = np.divide(gained, alive, out=np.zeros_like(gained), where=alive > 0)
            found[batch] = passed
        return found

    def free_of(self, cause: int, since: FloatArray | None = None) -> SmoothCurves:
        """Return curves of the probability of no event of a cause by times since `since`, as `incidence` has it."""
        self.of_cause(cause)  # Raises if the cause is not known.
        return SmoothCurves(FreeOfCause(self, cause, np.zeros(len(self)) if since is None else since))

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


@dataclass(frozen=True, eq=False)
class FreeOfCause(CurveValues):
    """Probability of no event of one cause of several by times after `since` (n,), given no event until then."""

    curves: CompetingCurves
    cause: int
    since: FloatArray

    def __len__(self) -> int:
        return len(self.since)

    def survival(self, rows: RowIndex, times: FloatArray) -> FloatArray:
        """See :meth:`CurveValues.survival`."""
        return 1 - self.curves.take(rows).incidence(self.cause, times, self.since[rows])
