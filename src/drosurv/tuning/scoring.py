"""Scores of settings on patients that they were not trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from drosurv.estimators.baseline import Baseline
from drosurv.estimators.grid import fit_grids
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.evaluation.attributes import (
    EVERYONE,
    Count,
    parse_attributes,
    rows_by_group,
    warn_of_small_groups,
)
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.data import EvaluationData, Subset
from drosurv.evaluation.evaluator import Evaluator, Key
from drosurv.evaluation.predictions import Predictions, predict_curves
from drosurv.metrics import FollowUp
from drosurv.metrics.disparities import Convention
from drosurv.metrics.inference import Draws
from drosurv.metrics.survival_curves import CurveType, SurvivalCurves
from drosurv.solvers.neighborhoods import standardise
from drosurv.tables.encoder import encode_features
from drosurv.target import FloatArray, Target, parse_target
from drosurv.tuning.folds import Fold

# A log hazard ratio of this size is no prediction any more.
_LARGEST = 1e6
#: Where a row keeps the replicates of what settings are compared by, until pairs have been made.
DRAWS = "draws"


def known_metrics() -> tuple[str, ...]:
    """What a search measures: every number of all patients, or between groups, that needs no reference."""
    return tuple(
        metric.name
        for metric in CATALOGUE.values()
        if metric.of != "groups" and "reference" not in metric.needs
    )


def attribute_metrics() -> tuple[str, ...]:
    """Those that every attribute has one of."""
    return tuple(metric.name for metric in CATALOGUE.values() if metric.of == "attribute")


@dataclass(frozen=True, eq=False)
class BreslowCurves:
    """Survival of n patients from their scores and a baseline hazard, fast at one time per patient."""

    baseline: Baseline
    risk: FloatArray
    curve_type: CurveType = "step"

    @property
    def jumps(self) -> FloatArray:
        """Times of the baseline."""
        return self.baseline.times

    def __len__(self) -> int:
        return len(self.risk)

    def at(self, times: FloatArray) -> FloatArray:
        """Survival of every patient at each of k times, (n, k)."""
        return np.exp(-self.baseline.cumulative_hazard(self.risk, times))

    def at_patient_times(self, times: FloatArray) -> FloatArray:
        """Survival of each patient at that patient's time, (n,) -> (n,)."""
        # The patient of mean score has the baseline itself, whose log is added to.
        with np.errstate(over="ignore", divide="ignore"):
            log_baseline = np.log(self.baseline.cumulative_hazard(np.zeros(1), times)[0])
            survival: FloatArray = np.exp(-np.exp(log_baseline + self.risk))
        return survival

    def take(self, rows: slice) -> BreslowCurves:
        """Curves of some patients."""
        return BreslowCurves(self.baseline, self.risk[rows])


class HeldOut:
    """Held-out patients with everything that scoring them needs of the training patients.

    Features are standardised by the training patients' mean and deviation. Without labels, disparities between
    groups have no value. Groups that are too small to be compared, by attribute and label, are left out of them.
    """

    def __init__(
        self,
        y_train: Any,
        X: Any,
        y: Any,
        sensitive_features: Any = None,
        *,
        small: Collection[tuple[str, str]] = (),
        convention: Convention = "paper",
    ) -> None:
        self.train_target = parse_target(y_train, name="y_train")
        self.follow_up = FollowUp.parse(self.train_target)
        self.X = np.asarray(X, dtype=np.float64)
        self.target = parse_target(y, require_event=False)
        self.convention = convention
        # A fold may have lost all but one group of an attribute.
        parsed = parse_attributes(sensitive_features, len(self.target), at_least=1)
        large = (attribute.without(small) for attribute in parsed)
        self.attributes = [attribute for attribute in large if attribute.labels]

    def measure(
        self,
        risk: FloatArray,
        curves: SurvivalCurves | None = None,
        *,
        metrics: Collection[str] | None = None,
        replicates: int = 0,
    ) -> dict[Key, Draws]:
        """Score one setting with the engine behind :func:`~drosurv.evaluation.evaluate`: its `Evaluator.numbers`.

        Metrics of curves have no value without curves. The same patients are drawn for every setting, so that
        settings compare paired.
        """
        how: dict[str, Any] = {"convention": self.convention, "features": self.X}
        scoring = EvaluationData(Predictions(risk, curves), None, self.target, self.follow_up, **how)
        evaluator = Evaluator(Subset(scoring), self.attributes, metrics, inside_groups=False)
        # One thread: settings and folds are what runs in parallel.
        return evaluator.numbers(evaluator.draw(replicates, random_state=0, threads=1))

    def breslow(self, risk: FloatArray, train_risk: FloatArray) -> SurvivalCurves:
        """Return curves from Breslow's baseline hazard, for scores without a model, such as shrunken ones."""
        return BreslowCurves(Baseline.breslow(self.train_target, train_risk), risk)


def interval_columns(metric: str, number: Draws) -> dict[str, float]:
    """Standard error and 95 % interval of a bootstrapped number, under the metric's name."""
    found = number.interval(0.95)
    return {f"{metric}_se": found.standard_error, f"{metric}_low": found.low, f"{metric}_high": found.high}


def small_groups(
    labels: pd.DataFrame | None, target: Target, min_group: int, min_events: int
) -> tuple[frozenset[tuple[str, str]], bool]:
    """Groups too small to be compared, after a warning, and whether an attribute has two that are not."""
    groups = rows_by_group(parse_attributes(labels, len(target)))
    counts = {key: Count.of(target.take(rows)) for key, rows in groups.items()}
    then = "they are left out of the disparities"
    small = warn_of_small_groups(counts, min_group=min_group, min_events=min_events, then=then)
    large = Counter(name for name, label in counts if (name, label) not in small)
    return small, any(number > 1 for number in large.values())


@dataclass(frozen=True, eq=False)
class Trials:
    """What a search measures, on what data.

    The preparation, if any, makes features of X, and is fitted anew on the training patients of each fold. Small
    groups, by attribute and label, train penalties but are left out of disparities. Where there
    are bootstrap replicates, those of the compared metrics are kept.
    """

    X: Any
    y: Any
    sensitive_features: pd.DataFrame | None
    preparation: Any
    small: Collection[tuple[str, str]]
    metrics: tuple[str, ...]
    compared: tuple[str, ...]
    replicates: int

    def fold(
        self, estimators: Sequence[NetworkEstimator], fold: Fold, factors: Sequence[float] = (1.0,)
    ) -> list[list[dict[str, Any]]]:
        """Train on one fold, in place, and score: per estimator and factor its metrics and ``error``.

        Scores are multiplied by each of the factors. The error is empty unless training failed; metrics are then NaN.
        """
        train, validation = fold
        X, X_held = (_safe_indexing(self.X, rows) for rows in fold)
        if self.preparation is not None:
            prepare = clone(self.preparation).fit(X, self.y[train])
            X, X_held = prepare.transform(X), prepare.transform(X_held)
        groups = [None if self.sensitive_features is None else self.sensitive_features.iloc[r] for r in fold]
        sample = {"X": X, "y": self.y[train], "sensitive_features": groups[0]}
        (errors,) = fit_grids([estimators], [sample])
        # A table of text or gaps as the numbers that the estimators made of it.
        entered = [np.asarray(encode_features(estimators[0], part), dtype=np.float64) for part in (X, X_held)]
        _, features = standardise(*entered)
        held_out = HeldOut(self.y[train], features, self.y[validation], groups[1], small=self.small)
        out = []
        for estimator, error in zip(estimators, errors, strict=True):
            problem = str(error or "")
            if not problem:
                risk, train_risk = estimator.predict(X_held), estimator.predict(X)
                problem = _runaway(np.concatenate([risk, train_risk]))
            if problem:
                out.append([{"error": problem, **dict.fromkeys(self.metrics, float("nan"))} for _ in factors])
                continue
            # Risks are relative: where the features' origin puts their level must not change a disparity.
            risk, train_risk = risk - train_risk.mean(), train_risk - train_risk.mean()
            own = predict_curves(estimator, X_held, len(risk))
            rows = []
            for factor in factors:
                # A shrunken model is no fitted one: its baseline hazard follows from its scores.
                curves = own if factor == 1 else held_out.breslow(factor * risk, factor * train_risk)
                rows.append({"error": "", **self._row(held_out, factor * risk, curves)})
            out.append(rows)
        return out

    def _row(self, held_out: HeldOut, risk: FloatArray, curves: Any) -> dict[str, Any]:
        measured = held_out.measure(risk, curves, metrics=self.metrics)
        found: dict[str, Any] = {metric: _value(_of_all(measured, metric)) for metric in self.metrics}
        if len(held_out.attributes) > 1:
            found |= {
                f"{metric}_{attribute.name}": _value(measured.get((attribute.name, metric)))
                for metric in attribute_metrics()
                if metric in self.metrics
                for attribute in held_out.attributes
            }
        if self.replicates:
            drawn = held_out.measure(risk, curves, metrics=self.compared, replicates=self.replicates)
            found[DRAWS] = {}
            for metric in self.compared:
                if (number := _of_all(drawn, metric)) is not None:
                    found |= interval_columns(metric, number)
                    found[DRAWS][metric] = number.draws
        return found


def _value(number: Draws | None) -> float:
    return float("nan") if number is None else number.estimate


def _of_all(measured: Mapping[Key, Draws], metric: str) -> Draws | None:
    """The number of everybody; of a disparity between groups, that of the attribute where it is largest."""
    if (EVERYONE, metric) in measured:
        return measured[EVERYONE, metric]
    found = (own for (_, name), own in measured.items() if name == metric and np.isfinite(own.estimate))
    return max(found, key=lambda number: number.estimate, default=None)


def _runaway(scores: FloatArray) -> str:
    """Return a warning about implausibly large log hazards; empty if there are none."""
    largest = float(np.abs(scores).max())
    return "" if largest <= _LARGEST else f"training ran away to scores of {largest:.3g}; lower lr."
