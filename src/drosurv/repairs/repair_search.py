"""A search for repairs on some of the patients: the next group, and all versions of its correction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, Protocol

import numpy as np

from drosurv.judging.rules import Atom, CodedTable
from drosurv.patients.arrays import batches
from drosurv.patients.target import BoolArray, FloatArray, IntArray
from drosurv.repairs.bayes_factors import (
    TOGETHER,
    Block,
    Limits,
    Residuals,
    fit_above,
    likelihood_gains_of,
    propose,
)
from drosurv.repairs.periods import FoundPeriods, Version, after_periods, find_periods

Kind = Literal["everyone", "effects", "level", "timing"]

# A single repair multiplies no hazard by more than exp(2.5) = 12, nor by less than 1/12.
LARGEST_REPAIR = 2.5
# Effects with a smaller posterior probability of differing are not changed.
LEAST_INCLUSION = 0.02
VERSIONS: dict[Kind, tuple[Version, ...]] = {
    "everyone": ("own", "level"),
    "effects": ("full", "own", "level"),
    "level": ("level",),
}
STRENGTHS = (1.0, 0.5)


class AtTimes(Protocol):
    """Predictions at few times: :class:`drosurv.repairs.at_few_times.AtFewTimes`."""

    def events_after(self, r: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return events and hazards (n,) by the last predicted time, after hazards are multiplied by exp(r).

        They are divided by the number of patients in the cluster.
        """

    def fit(self, r: FloatArray, rows: IntArray, z: FloatArray, penalty: FloatArray) -> FloatArray | None:
        """Return effects (p,) of columns z (m, p) of some rows, with which events by the last predicted time agree."""

    def gains(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return gains (v, n) in log score, of log hazard ratios `after` (v, n) over those `before` (n,)."""

    def log_ratios(self, before: FloatArray, after: FloatArray, rows: BoolArray) -> FloatArray:
        """Return log likelihood ratios (v,) of some rows."""


@dataclass(frozen=True, eq=False)
class Correction:
    """Log hazard ratios r = clip(z @ everywhere + inside * (z @ own)).

    `everywhere` (p,) are changes of effects for everyone, `own` (p,) further changes inside of the group.
    """

    everywhere: FloatArray
    own: FloatArray

    def of(self, z: FloatArray, inside: BoolArray) -> FloatArray:
        """Return the log hazard ratios (n,) of patients with columns z (n, p)."""
        r: FloatArray = z @ self.everywhere + inside * (z @ self.own)
        return np.clip(r, -LARGEST_REPAIR, LARGEST_REPAIR)


@dataclass(frozen=True, eq=False)
class Found:
    """A group that was found, and each version of its repair.

    `atoms` are the conditions of its rule, none for all patients; `inside` (n,) says which patients meet it; `log_odds`
    are the log posterior odds. A correction of the timing of events (`periods`) changes no log hazard ratios that hold
    at all times.
    """

    atoms: tuple[Atom, ...]
    inside: BoolArray
    corrections: Mapping[Version, Correction]
    log_odds: float = 0.0
    periods: FoundPeriods | None = None

    @property
    def choices(self) -> list[tuple[Version, float]]:
        """Every version and strength."""
        strengths = STRENGTHS if self.periods is None else (1.0,)
        return [(version, strength) for version in self.corrections for strength in strengths]


class RepairSearch:
    """A search that finds one repair after the other, and fits them, on the counted patients (n,) only.

    A `frozen` model was fitted on other patients. The residuals are those of all n patients under the model without
    repairs, but for a correction of the timing of events; r (n,) holds their log hazard ratios of all other repairs so
    far, and `slope` how much these change the effect of the log risk for everyone.
    """

    def __init__(
        self,
        table: CodedTable,
        residuals: Residuals,
        counted: BoolArray,
        max_conditions: int,
        at_times: AtTimes | None = None,
        *,
        frozen: bool = False,
    ) -> None:
        self.table, self.residuals, self.counted = table, residuals, counted
        self.max_conditions, self.at_times, self.frozen = max_conditions, at_times, frozen
        self.r, self.slope = np.zeros(len(counted), residuals.columns.dtype), 0.0
        # What was found since the last repair.
        self._found: dict[tuple[Kind, Limits], Found | None] = {}

    def find(self, kind: Kind, limits: Limits) -> Found | None:
        """Return the next group and all versions of its repair; None if no rule has posterior odds above 1."""
        if (kind, limits) not in self._found:
            self._found[kind, limits] = self._find(kind, limits)
        return self._found[kind, limits]

    def _find(self, kind: Kind, limits: Limits) -> Found | None:
        if kind == "timing":
            return self._find_periods(self.now)
        now = self.now
        if kind == "everyone":
            atoms: tuple[Atom, ...] = ()
            log_odds = 0.0
            inclusion = (np.arange(now.n_effects + 1) <= 1).astype(np.float64)
        else:
            proposal = propose(self.table, now, self.counted, limits, self.max_conditions)
            if proposal is None or proposal.log_odds <= 0:
                return None
            atoms, inclusion, log_odds = proposal.atoms, proposal.group.inclusion, proposal.log_odds
        inside = self.table.covers(atoms)
        limits = replace(limits, least_slope=limits.least_slope - self.slope)
        fit = None if self.at_times is None else partial(self.at_times.fit, self.r)
        corrections = {
            version: fit_version(version, now, inside, self.counted, inclusion, limits, fit)
            for version in VERSIONS[kind]
        }
        return Found(atoms, inside, corrections, log_odds)

    def ratios(
        self, found: Found, rows: BoolArray | slice = slice(None), choice: int | None = None
    ) -> FloatArray:
        """Return the log hazard ratios (v, m) of some rows with every choice of version and strength, or with one."""
        choices = found.choices if choice is None else [found.choices[choice]]
        chosen = np.arange(len(self.counted))[rows]
        out = np.empty((len(choices), len(chosen)))
        for part in batches(len(chosen), TOGETHER):
            z, inside = self.residuals.columns_of(chosen[part]), found.inside[chosen[part]]
            whole = {version: found.corrections[version].of(z, inside) for version, _ in choices}
            for row, (version, strength) in zip(out, choices, strict=True):
                row[part] = strength * whole[version]
        return out

    @property
    def now(self) -> Residuals:
        """The residuals after the repairs so far."""
        if self.at_times is None:
            return self.residuals.after(self.r)
        events, expected = self.at_times.events_after(self.r)
        return replace(self.residuals, events=events, expected=expected)

    def _find_periods(self, now: Residuals) -> Found | None:
        found = find_periods(now, self.score, self.counted, frozen=self.frozen)
        if found is None:
            return None
        n, p = now.columns.shape
        unchanged: dict[Version, Correction] = dict.fromkeys(found.versions, Correction(*np.zeros((2, p))))
        return Found((), np.ones(n, dtype=np.bool_), unchanged, found.log_odds, found)

    @property
    def score(self) -> FloatArray:
        """Log risk (n,) of all patients with the repairs so far: centred, and clipped before repairs."""
        assert self.residuals.over_time is not None
        return self.residuals.over_time.scale * self.residuals.risk + self.r

    def gains(self, found: Found | None, rows: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return gains in log likelihood of m rows: of each choice (v, m), and of one slope for all times (m,).

        The latter are 0 unless the timing of events is corrected; all are if nothing was found.
        """
        now, none = self.now, np.zeros(int(rows.sum()))
        if found is None:
            return none[None], none
        if found.periods is not None:
            *gains, common = found.periods.gains(now, self.score, rows)
            return np.stack(gains), common
        return likelihood_gains_of(self.ratios(found, rows), now.events[rows], now.expected[rows]), none

    def keep(self, found: Found | None, choice: int) -> None:
        """Apply a repair, if one was found; the next search starts from the repaired model."""
        if found is None:
            return
        self._found.clear()
        version, strength = found.choices[choice]
        if found.periods is not None:
            self.residuals = after_periods(self.residuals, found.periods.versions[version], self.score)
        correction = found.corrections[version]
        self.r = (self.r + self.ratios(found, choice=choice)[0]).astype(self.r.dtype)
        # Without conditions, effects of the group are those of everyone.
        self.slope += strength * float(correction.everywhere[1] + (not found.atoms) * correction.own[1])


def fit_version(
    version: Version,
    residuals: Residuals,
    inside: BoolArray,
    counted: BoolArray,
    inclusion: FloatArray,
    limits: Limits,
    fit: Callable[[IntArray, FloatArray, FloatArray], FloatArray | None] | None = None,
) -> Correction:
    """Fit a correction by Poisson ridge regression; effects that more probably differ have a smaller penalty.

    `fit`, of rows, columns and penalties, takes its place where it finds effects: of probabilities at few times.
    The version "full" has effects for everyone and for the group, "own" for the group only, "level" one number for
    the group.
    """
    p = residuals.n_effects + 1
    columns = np.flatnonzero(inclusion > LEAST_INCLUSION) if version != "level" else np.array([0])
    columns = np.union1d([0], columns).astype(np.intp)
    penalty = 1 / (limits.tau**2 * np.where(columns == 0, 1.0, inclusion[columns]))
    # Versions that change only the group are fitted there only.
    rows = np.flatnonzero(counted if version == "full" else counted & inside)
    design = np.empty((len(columns), len(rows)))
    for values, column in zip(design, columns, strict=True):
        values[:] = residuals.column(column)[rows]
    events, expected = residuals.events[rows], residuals.expected[rows]

    def blocks() -> Iterator[Block]:
        for part in batches(len(rows), TOGETHER):
            z = design[:, part]
            z = np.concatenate([z, z * inside[rows[part]]]) if version == "full" else z
            yield z, events[part], expected[part]

    for_everyone = version == "full" or bool(inside.all())
    penalty = np.tile(penalty, 2 if version == "full" else 1)
    theta = None
    if fit is not None:
        theta = fit(rows, np.concatenate([z for z, _, _ in blocks()], axis=1).T, penalty)
    if theta is None:
        bounded = int(np.flatnonzero(columns == 1)[0]) if for_everyone and 1 in columns else None
        theta = fit_above(blocks, penalty, bounded, limits.least_slope)
    everywhere, own = np.zeros(p), np.zeros(p)
    own[columns] = theta[-len(columns) :]
    if version == "full":
        everywhere[columns] = theta[: len(columns)]
    return Correction(everywhere, own)
