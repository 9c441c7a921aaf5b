"""One repair: its subgroup, what it changes, and its effect on patients who were not used for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from drosurv.evaluation.predictions import take
from drosurv.observation import in_pandas
from drosurv.repairs.curves import Expected
from drosurv.repairs.evidence import RISK, EffectColumn, EffectColumns, poisson_ridge
from drosurv.repairs.findings import Estimate
from drosurv.repairs.repair_search import Correction, Kind, Trial, Version
from drosurv.repairs.rules import Rule, readable_table
from drosurv.target import BoolArray, FloatArray

CONFIDENCE = 0.95


def calibration_slope(events: FloatArray, expected: FloatArray, log_hazard: FloatArray) -> float:
    """Slope of the true log hazard on the predicted one, up to a constant: 1 is right."""
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
        The subgroup; None for everyone.
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
        Slope of the true log hazard on the predicted one among the checked patients.
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
        """From an accepted trial, and the events observed and expected of all patients."""
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
        """Whether the number of events with the repair is further from the observed one than without it."""
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


# Effects that differ by less (log hazard ratio per standard deviation) are not mentioned.
LEAST_MENTIONED = 0.1
# Patients whose predictions are compared for a hazard ratio.
MOST_COMPARED = 500


def effect_changes(
    repair: Repair,
    predict: Callable[[Any, Any], FloatArray],
    columns: EffectColumns,
    X: Any,
    rules: pd.DataFrame,
    with_features: bool,
) -> list[EffectChange]:
    """Hazard ratios of the columns whose effect a repair changes, inside of the subgroup and outside.

    From the predictions of the repaired model: a column is set to two values for some patients of the subgroup, and for
    some others, and the mean difference of the log risk is taken. Columns of the rule are left out: patients in whom
    they change leave the subgroup. A model fitted `with_features` predicts from the table of `rules` too.
    """
    if repair.rule is None or repair.version == "level":
        return []
    inside = repair.holds(rules)
    named = {condition.column for condition in repair.rule.conditions}
    own = repair.strength * repair.correction.own
    parts = [np.flatnonzero(group)[:MOST_COMPARED] for group in (inside, ~inside)]
    found = []
    for j in np.argsort(-abs(own)):
        column = columns.columns[j - 1] if j > 0 else None
        if column is None or abs(own[j]) < LEAST_MENTIONED or column.name == RISK or column.name in named:
            continue
        # All in one prediction, which takes hardly longer than each of them.
        some = [rows for rows in parts if len(rows)]
        tables = [changed_column(take(X, rows), column, which) for rows in some for which in (0, 1)]
        rows = np.concatenate([np.tile(rows, 2) for rows in parts])
        risk = predict(_stacked(tables), rules.iloc[rows] if with_features else None)
        ratios = [
            float(np.exp((high - low).mean())) if len(low) else float("nan")
            for low, high in (np.split(own_risk, 2) for own_risk in np.split(risk, [2 * len(parts[0])]))
        ]
        found.append(EffectChange(column.label, column.contrast, *ratios))
    return found


def _stacked(tables: Sequence[Any]) -> Any:
    """Tables of the same columns, or arrays, one below the other."""
    if isinstance(tables[0], pd.DataFrame):
        return pd.concat(tables, ignore_index=True)
    return np.concatenate(tables)


def changed_column(X: Any, column: EffectColumn, which: int) -> Any:
    """Patients with one column set to the lower (0) or higher (1) of the two values that are compared."""
    table = readable_table(X, len(X))
    value = column.two_values(table[column.name])[which]
    place = list(table.columns).index(column.name)
    X = in_pandas(X)
    if isinstance(X, pd.DataFrame):
        changed = X.copy()
        is_bool = pd.api.types.is_bool_dtype(X.dtypes.iloc[place])
        changed.isetitem(place, [bool(value) if is_bool else value] * len(X))
        return changed
    numbers = np.array(X, dtype=np.float64)
    numbers[:, place] = value
    return numbers


def only_linear_column(repair: Repair, linear: frozenset[str]) -> str:
    """The column of a rule with one condition on a number whose effect is linear in the base model; else empty."""
    conditions = () if repair.rule is None else repair.rule.conditions
    numbers = {condition.column for condition in conditions if condition.comparison in ("<=", ">")}
    columns = {condition.column for condition in conditions}
    return next(iter(columns)) if len(columns) == 1 and columns == numbers and columns <= linear else ""
