"""One repair as data: for whom, what was changed, and what it did to patients not used for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from drosurv.repairs.acceptance import Trial
from drosurv.repairs.corrections import Correction, Kind, Version
from drosurv.repairs.curves import Expected
from drosurv.repairs.evidence import poisson_ridge
from drosurv.repairs.findings import Estimate
from drosurv.repairs.rules import Rule
from drosurv.target import BoolArray, FloatArray

CONFIDENCE = 0.95


def calibration_slope(events: FloatArray, expected: FloatArray, log_hazard: FloatArray) -> float:
    """How much log hazards differ for each unit by which they were predicted to, up to a constant: 1 is right."""
    spread = float(log_hazard.std())
    if len(events) < 2 or spread == 0:
        return float("nan")
    Z = np.column_stack([np.ones(len(events)), (log_hazard - log_hazard.mean()) / spread])
    return 1.0 + float(poisson_ridge(Z, events, expected, np.zeros(2))[1]) / spread


@dataclass(frozen=True)
class EffectChange:
    """Hazard ratio of a column inside of a repaired subgroup and outside, from the repaired model's predictions.

    `contrast` says for which difference of the column; empty for two values.
    """

    label: str
    contrast: str
    inside: float
    outside: float


@dataclass(frozen=True, eq=False, repr=False)
class Repair:
    """A correction of a model for the patients of a rule.

    *Checked* patients are those in the subgroups that were found without them: each fold is scored with a repair
    that was found and fitted on the other folds.

    Parameters
    ----------
    rule : Rule or None
        Whom it is for; None for everyone.
    kind : {"everyone", "effects", "level"}
        What was looked for.
    version : {"full", "own", "level"}
        What was changed: effects of everyone and of the group, of the group only, or the group's level.
    strength : float
        1, or 1/2 where half the correction served the checked patients better.
    correction : Correction
        Log hazard ratios per scaled column, at full strength.
    patients, events : int, float
        Patients who meet the rule, and their events, counted by weight; of a frozen model, events until its curve ends.
    checked : int
        Patients in the subgroups that were found without them.
    before, after : Estimate
        Observed over expected events of the checked patients.
    slope_before, slope_after : float
        How much the checked patients' log hazards differ for each unit by which they were predicted to.
    gain_inside, gain_outside : Estimate
        Log likelihood gained per checked patient, inside the group and outside.
    e : float
        The e-value.
    overlap : float
        Mean overlap (Jaccard) of the groups found without a fold with this one.
    predicted, predicted_after : float
        Events of the patients of the rule as predicted without and with the repair, to be compared with `events`. Each
        patient is predicted by a model and a repair that were fitted without them.
    changes : tuple of EffectChange
        Hazard ratios that differ in the subgroup, from the repaired model's predictions.
    linear_in : str
        Column whose effect the base model takes for linear, if it is the only one of the rule; else empty.
    """

    rule: Rule | None
    kind: Kind
    version: Version
    strength: float
    correction: Correction
    patients: int
    events: float
    checked: int
    before: Estimate
    after: Estimate
    slope_before: float
    slope_after: float
    gain_inside: Estimate
    gain_outside: Estimate
    e: float
    overlap: float
    predicted: float = float("nan")
    predicted_after: float = float("nan")
    changes: tuple[EffectChange, ...] = ()
    linear_in: str = ""

    @staticmethod
    def of(trial: Trial, expected: Expected) -> Repair:
        """From an accepted trial on the patients of whom the model expected so much."""
        inside = trial.inside
        events, risk = expected.events[inside], expected.log_risk[inside]
        before, after = (r[inside] for r in (trial.r_before, trial.r_after))
        hazard = expected.hazard[inside]
        seen = float(events.sum())
        group = trial.found.inside
        predicted, predicted_after = (
            float((expected.hazard * np.exp(r))[group].sum()) for r in (trial.r_before, trial.r_after)
        )
        return Repair(
            rule=trial.rule,
            kind=trial.kind,
            version=trial.version,
            strength=trial.strength,
            correction=trial.found.corrections[trial.version],
            patients=int(group.sum()),
            events=float(expected.events[group].sum()),
            checked=int(inside.sum()),
            before=Estimate.ratio(seen, float((hazard * np.exp(before)).sum()), CONFIDENCE),
            after=Estimate.ratio(seen, float((hazard * np.exp(after)).sum()), CONFIDENCE),
            slope_before=calibration_slope(events, hazard * np.exp(before), risk + before),
            slope_after=calibration_slope(events, hazard * np.exp(after), risk + after),
            gain_inside=Estimate.mean(trial.gains[inside], CONFIDENCE),
            gain_outside=Estimate.mean(trial.gains[~inside], CONFIDENCE),
            e=trial.e,
            overlap=trial.overlap,
            predicted=predicted,
            predicted_after=predicted_after,
        )

    @property
    def moves_away(self) -> bool:
        """Whether the repair predicts a number of events further from the observed one than the model does."""
        return abs(self.events - self.predicted_after) > abs(self.events - self.predicted)

    @property
    def who(self) -> str:
        """The group in words."""
        return "everyone" if self.rule is None else str(self.rule)

    def __repr__(self) -> str:
        return f"<Repair of {self.who}: {self.patients:,} patients, gain there {self.gain_inside}>"

    def holds(self, table: pd.DataFrame) -> BoolArray:
        """Which rows (n,) of a table the repair is for."""
        return np.ones(len(table), dtype=np.bool_) if self.rule is None else self.rule.holds(table)

    def log_hazard_ratios(self, table: pd.DataFrame, columns: FloatArray) -> FloatArray:
        """What is added to the log hazards (n,) of patients, inside the group and outside."""
        return self.strength * self.correction.of(columns, self.holds(table))
