"""A repair: its subgroup, what it changes, and its effect on patients who were not used to find or fit it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.judging.rules import Rule, readable_table
from drosurv.metrics import calibration_slope_of_curves
from drosurv.metrics.intervals import observed_over_expected
from drosurv.patients.arrays import batches
from drosurv.patients.observation import in_pandas, take
from drosurv.patients.target import BoolArray, FloatArray, IntArray
from drosurv.repairs.bayes_factors import TOGETHER, Clusters
from drosurv.repairs.checked_search import Trial
from drosurv.repairs.effect_columns import RISK, EffectColumn, EffectColumns
from drosurv.repairs.expected import Expected
from drosurv.repairs.periods import Periods, Version
from drosurv.repairs.repair_search import Correction, Kind

CONFIDENCE = 0.95


@dataclass(frozen=True)
class HeldOutNumber:
    """A number of held-out patients with its interval: a mean (Student's t) or a ratio of events (Poisson)."""

    value: float
    low: float
    high: float

    @classmethod
    def mean(cls, values: FloatArray, level: float, cluster: IntArray | None = None) -> HeldOutNumber:
        """Return the mean of the values; NaN for fewer than two. Its error is that of sums over clusters, if given."""
        n, k = len(values), len(values) if cluster is None else len(np.unique(cluster))
        if k < 2:
            return cls(np.nan, np.nan, np.nan)
        mean = float(values.mean())
        sums = values - mean if cluster is None else np.bincount(cluster, values - mean)
        error = np.sqrt(k / (k - 1) * float((sums**2).sum())) / n
        half_width = float(stats.t.ppf((1 + level) / 2, k - 1) * error)
        return cls(mean, mean - half_width, mean + half_width)

    @classmethod
    def ratio(
        cls, events: FloatArray, expected: FloatArray, cluster: IntArray | None, level: float
    ) -> HeldOutNumber:
        """Return observed over expected events of rows, with an interval from the residuals' sums over clusters.

        The interval is symmetric on the log scale, with Student's t of one degree of freedom less than clusters;
        without clusters it is that of a Poisson count.
        """
        observed, total = float(events.sum()), float(expected.sum())
        k = 0 if cluster is None else len(np.unique(cluster))
        if cluster is None or observed == 0 or total == 0 or k < 2:
            found = observed_over_expected(observed, total, level=level)
            return cls(found.estimate, found.low, found.high)
        value = observed / total
        sums = np.bincount(cluster, events - value * expected)
        error = np.sqrt(k / (k - 1) * float((sums**2).sum())) / observed
        factor = float(np.exp(stats.t.ppf((1 + level) / 2, k - 1) * error))
        return cls(value, value / factor, value * factor)

    def named(self, name: str) -> dict[str, float]:
        """Return value and interval as entries of a row: ``name``, ``name_low`` and ``name_high``."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}

    def __str__(self) -> str:
        return f"{self.value:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


@dataclass(frozen=True)
class EffectChange:
    """Hazard ratio of a column inside of a repaired subgroup and outside, from the repaired model's predictions.

    `contrast` is the difference of the column that it is for, such as "per 10"; empty for a column of two values.
    """

    label: str
    contrast: str
    inside: float
    outside: float


@dataclass(frozen=True, eq=False, repr=False)
class Repair:
    """A correction of a model for the patients of a rule.

    To check a repair, it is found and fitted again without each fold. The *checked* patients are those who are in the
    subgroup that was found without their fold.

    Parameters
    ----------
    rule : Rule or None
        The subgroup; None for everyone.
    kind : {"everyone", "effects", "level", "timing"}
        What was searched for; "timing" is the timing of events over the follow-up.
    version : {"full", "own", "level"}
        What was changed: effects of everyone and of the subgroup, effects in the subgroup only, or its level.
    strength : float
        1, or 1/2 if the gain of the whole correction was smaller or less certain among the checked patients.
    correction : Correction
        Log hazard ratios per scaled column, at strength 1.
    periods : Periods or None
        Log hazard ratios in periods of the follow-up, if the timing of events was corrected.
    patients, events : int, float
        Patients who meet the rule, and their events, counted by weight; for a frozen model, events until its curves
        end.
    checked : int
        Number of checked patients.
    before, after : HeldOutNumber
        Observed over expected events of the checked patients.
    slope_before, slope_after : float
        Calibration slope among the checked patients; 1 is right.
    gain_inside, gain_outside : HeldOutNumber
        Gain in log likelihood per patient, of the checked patients and of all others; in log score at the predicted
        times where these are few.
    e : float
        The e-value.
    overlap : float
        Mean overlap (Jaccard) of this subgroup with those found without a fold.
    predicted, predicted_after : float
        Events of the patients of the rule as predicted without and with the repair, to be compared with `events`. Each
        patient is predicted by a model and a repair that were fitted without the patient's fold.
    changes : tuple of EffectChange
        Hazard ratios that differ in the subgroup.
    by : float or None
        For predictions at few times, the time by which events are counted, weighted for censoring; ratios and slopes
        are those of the predicted times. None where curves are known throughout.
    in_rows : bool
        Whether `patients` and `checked` count rows: where clusters are given, which may be patients or not.
    linear_in : str
        The only column of the rule, if its effect is linear in the base model; else empty.
    """

    rule: Rule | None
    kind: Kind
    version: Version
    strength: float
    correction: Correction
    patients: int
    events: float
    checked: int
    before: HeldOutNumber
    after: HeldOutNumber
    slope_before: float
    slope_after: float
    gain_inside: HeldOutNumber
    gain_outside: HeldOutNumber
    e: float
    overlap: float
    predicted: float = float("nan")
    predicted_after: float = float("nan")
    changes: tuple[EffectChange, ...] = ()
    linear_in: str = ""
    periods: Periods | None = None
    by: float | None = None
    in_rows: bool = False

    @staticmethod
    def of(trial: Trial, expected: Expected, clusters: Clusters) -> Repair:
        """Describe an accepted trial, given observed and expected events of all patients, and their clusters."""
        inside = trial.inside
        events, risk = expected.events[inside], expected.log_risk[inside]
        before, after = (r[inside] for r in (trial.r_before, trial.r_after))
        hazards = [trial.factor * expected.hazard * np.exp(r) for r in (trial.r_before, trial.r_after)]
        if trial.held_out is not None:
            assert expected.by_interval is not None
            for part in batches(len(trial.r_before), TOGETHER):
                by_interval = np.einsum("ij,ij->i", expected.by_interval[part], np.exp(trial.held_out[part]))
                hazards[1][part] = np.exp(trial.r_before[part]) * by_interval
        group = trial.group
        number = clusters.number if clusters.of_several else None
        own, others = (None if number is None else number[rows] for rows in (inside, ~inside))
        # Those of the evidence are divided by the number of patients in the cluster.
        gains = trial.gains / clusters.share
        with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
            slopes = [
                calibration_slope_of_curves(events, hazard[inside], risk + r)
                for hazard, r in zip(hazards, (before, after), strict=True)
            ]
        predicted, predicted_after = (float(hazard[group].sum()) for hazard in hazards)
        return Repair(
            rule=trial.rule,
            kind=trial.kind,
            version=trial.version,
            strength=trial.strength,
            correction=trial.correction,
            patients=clusters.n_patients(group),
            events=float(expected.events[group].sum()),
            checked=clusters.n_patients(inside),
            in_rows=clusters.patient is None and clusters.of_several,
            before=HeldOutNumber.ratio(events, hazards[0][inside], own, CONFIDENCE),
            after=HeldOutNumber.ratio(events, hazards[1][inside], own, CONFIDENCE),
            slope_before=slopes[0],
            slope_after=slopes[1],
            gain_inside=HeldOutNumber.mean(gains[inside], CONFIDENCE, own),
            gain_outside=HeldOutNumber.mean(gains[~inside], CONFIDENCE, others),
            e=trial.e,
            overlap=trial.overlap,
            predicted=predicted,
            predicted_after=predicted_after,
            periods=trial.periods,
        )

    @property
    def helps(self) -> bool:
        """Whether the interval of its gain among the checked patients excludes 0."""
        return self.gain_inside.low > 0

    @property
    def moves_away(self) -> bool:
        """Whether the predicted number of events is further from the observed number with the repair than without."""
        return abs(self.events - self.predicted_after) > abs(self.events - self.predicted)

    @property
    def who(self) -> str:
        """The group in words."""
        if self.periods is not None:
            return "everyone, by period of the follow-up"
        return "everyone" if self.rule is None else str(self.rule)

    def __repr__(self) -> str:
        people = "rows" if self.in_rows else "patients"
        return f"<Repair of {self.who}: {self.patients:,} {people}, gain there {self.gain_inside}>"

    def holds(self, table: pd.DataFrame) -> BoolArray:
        """Return which rows (n,) of a table the repair is for."""
        return np.ones(len(table), dtype=np.bool_) if self.rule is None else self.rule.holds(table)

    def log_hazard_ratios(self, table: pd.DataFrame, columns: FloatArray) -> FloatArray:
        """Return what the repair adds to the log hazards (n,) of patients inside the subgroup and outside."""
        return self.strength * self.correction.of(columns, self.holds(table))


# Effects that differ by less (log hazard ratio per standard deviation) are not mentioned.
LEAST_MENTIONED = 0.1
# At most so many patients are predicted to estimate a hazard ratio.
MOST_COMPARED = 500


def effect_changes(
    repair: Repair,
    predict: Callable[[Any, Any], FloatArray],
    columns: EffectColumns,
    X: Any,
    rules: pd.DataFrame,
    with_features: bool,
) -> list[EffectChange]:
    """Return the hazard ratios of columns whose effect a repair changes, inside of the subgroup and outside.

    They come from predictions of the repaired model: a column is set to two values, for patients of the subgroup and
    for others, and the log risks are subtracted; the median over patients is returned. Columns of the rule are left
    out, because changing them would move patients out of the subgroup. A model fitted `with_features` predicts from the
    table of `rules` too.
    """
    if repair.rule is None or repair.version == "level":
        return []
    inside = repair.holds(rules)
    named = {condition.column for condition in repair.rule.conditions}
    effects = repair.strength * repair.correction.own
    parts = [np.flatnonzero(group)[:MOST_COMPARED] for group in (inside, ~inside)]
    found = []
    for j in np.argsort(-abs(effects)):
        column = columns.columns[j - 1] if j > 0 else None
        if column is None or abs(effects[j]) < LEAST_MENTIONED or column.name == RISK or column.name in named:
            continue
        # All in one prediction, which takes hardly longer than each of them.
        some = [rows for rows in parts if len(rows)]
        tables = [changed_column(take(X, rows), column, which) for rows in some for which in (0, 1)]
        rows = np.concatenate([np.tile(rows, 2) for rows in parts])
        framed = isinstance(tables[0], pd.DataFrame)
        stacked = pd.concat(tables, ignore_index=True) if framed else np.concatenate(tables)
        risk = predict(stacked, rules.iloc[rows] if with_features else None)
        with np.errstate(over="ignore"):
            ratios = [
                # The median, because a repair is constant beyond the quantiles of the risk: the mean is no patient's
                # ratio.
                float(np.exp(np.median(high - low))) if len(low) else float("nan")
                for low, high in (np.split(own_risk, 2) for own_risk in np.split(risk, [2 * len(parts[0])]))
            ]
        found.append(EffectChange(column.label, column.contrast, *ratios))
    return found


def changed_column(X: Any, column: EffectColumn, which: int) -> Any:
    """Return X with one column set to the lower (0) or higher (1) of the two values that are compared."""
    table = readable_table(X, len(X))
    value = column.two_values(table[column.name])[which]
    position = list(table.columns).index(column.name)
    X = in_pandas(X)
    if isinstance(X, pd.DataFrame):
        changed = X.copy()
        is_bool = pd.api.types.is_bool_dtype(X.dtypes.iloc[position])
        changed.isetitem(position, [bool(value) if is_bool else value] * len(X))
        return changed
    numbers = np.array(X, dtype=np.float64)
    numbers[:, position] = value
    return numbers


def only_linear_column(repair: Repair, linear: frozenset[str]) -> str:
    """Return the column of a rule, if it has one, a number whose effect is linear in the base model; else ""."""
    conditions = () if repair.rule is None else repair.rule.conditions
    numbers = {condition.column for condition in conditions if condition.comparison in ("<=", ">")}
    columns = {condition.column for condition in conditions}
    return next(iter(columns)) if len(columns) == 1 and columns == numbers and columns <= linear else ""
