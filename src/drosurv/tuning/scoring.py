"""Metrics of settings on held-out patients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from drosurv.curves import SurvivalCurves
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
from drosurv.metrics import FollowUp
from drosurv.metrics.disparities import Convention
from drosurv.metrics.inference import Draws
from drosurv.observation import Inference
from drosurv.predictions import Predictions, as_predictions
from drosurv.solvers.neighborhoods import standardise
from drosurv.tables.encoder import encode_features
from drosurv.target import FloatArray, Target, parse_target
from drosurv.tuning.folds import Fold

# Training has diverged if a log hazard ratio is larger.
_LARGEST = 1e6
#: Column of bootstrap replicates, which is dropped after settings have been compared.
DRAWS = "draws"


def known_metrics() -> tuple[str, ...]:
    """Return the metrics that a search can compute: those of all patients or between groups, without a reference."""
    return tuple(
        metric.name
        for metric in CATALOGUE.values()
        if metric.of != "groups" and "reference" not in metric.needs
    )


def attribute_metrics() -> tuple[str, ...]:
    """Return the metrics with one value per attribute."""
    return tuple(metric.name for metric in CATALOGUE.values() if metric.of == "attribute")


class HeldOut:
    """Held-out patients, and the follow-up of the training patients that metrics need.

    Features `X` are standardised by the training patients' mean and standard deviation. Disparities need
    `sensitive_features`; groups in `small`, pairs of attribute and label, are left out of them.
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
        # In a fold an attribute may have only one group.
        parsed = parse_attributes(sensitive_features, len(self.target), at_least=1)
        large = (attribute.without(small) for attribute in parsed)
        self.attributes = [attribute for attribute in large if attribute.labels]
        self._evaluator: Evaluator | None = None

    def measure(
        self,
        risk: FloatArray,
        curves: SurvivalCurves | None = None,
        *,
        metrics: Collection[str] | None = None,
        replicates: int = 0,
    ) -> dict[Key, Draws]:
        """Compute metrics of one setting with the `Evaluator` of :func:`~drosurv.evaluation.evaluate`.

        Metrics of survival curves need `curves`. The same bootstrap replicates are used for every setting, so that
        differences between settings are paired.
        """
        how: dict[str, Any] = {"convention": self.convention, "features": self.X}
        predicted = as_predictions(Predictions(risk, curves), None, len(self.target))
        scoring = EvaluationData(predicted, self.target, self.follow_up, **how)
        patients = Subset(scoring)
        if self._evaluator is None:
            self._evaluator = Evaluator(patients, self.attributes, metrics, inside_groups=False)
        evaluator = self._evaluator.of_scores(patients, metrics)
        # One thread, because settings and folds run in parallel.
        return evaluator.numbers(evaluator.draw(Inference(n_bootstrap=replicates, n_jobs=1)))

    def breslow(self, risk: FloatArray, train_risk: FloatArray) -> SurvivalCurves:
        """Return curves from Breslow's baseline hazard, for scores without a fitted model, such as shrunken scores."""
        return Baseline.breslow(self.train_target, train_risk).of_scores(risk, -np.inf)


def interval_columns(metric: str, number: Draws) -> dict[str, float]:
    """Return the standard error and 95 % interval of a bootstrapped metric, as columns of a table."""
    found = number.interval(0.95)
    return {f"{metric}_se": found.standard_error, f"{metric}_low": found.low, f"{metric}_high": found.high}


def small_groups(
    labels: pd.DataFrame | None, target: Target, min_group: int, min_events: int
) -> tuple[frozenset[tuple[str, str]], bool]:
    """Return the groups that are too small to be compared, with a warning, and whether an attribute has two others."""
    groups = rows_by_group(parse_attributes(labels, len(target)))
    counts = {key: Count.of(target.take(rows)) for key, rows in groups.items()}
    then = "they are left out of the disparities"
    small = warn_of_small_groups(counts, min_group=min_group, min_events=min_events, then=then)
    large = Counter(name for name, label in counts if (name, label) not in small)
    return small, any(number > 1 for number in large.values())


@dataclass(frozen=True, eq=False)
class Trials:
    """The data and metrics of a search.

    `preparation` is None or a transformer of X, which is fitted to the training patients of each fold. Groups in
    `small`, pairs of attribute and label, are used in penalties but left out of disparities. If `replicates` is
    positive, the bootstrap replicates of the metrics in `compared` are kept.
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
        """Train the estimators on one fold, in place; return the metrics and ``error`` by estimator and factor.

        Scores are multiplied by each of the factors. If training failed, metrics are NaN; otherwise the error is empty.
        """
        train, validation = fold
        X, X_held = (_safe_indexing(self.X, rows) for rows in fold)
        if self.preparation is not None:
            prepare = clone(self.preparation).fit(X, self.y[train])
            X, X_held = prepare.transform(X), prepare.transform(X_held)
        groups = [None if self.sensitive_features is None else self.sensitive_features.iloc[r] for r in fold]
        sample = {"X": X, "y": self.y[train], "sensitive_features": groups[0]}
        (errors,) = fit_grids([estimators], [sample])
        # The features as the numbers to which the estimators encode a table with text or missing values.
        entered = [np.asarray(encode_features(estimators[0], part), dtype=np.float64) for part in (X, X_held)]
        _, features = standardise(*entered)
        held_out = HeldOut(self.y[train], features, self.y[validation], groups[1], small=self.small)
        out = []
        for estimator, error in zip(estimators, errors, strict=True):
            problem = str(error or "")
            if not problem:
                risk, train_risk = estimator.predict(X_held), estimator.predict(X)
                problem = _divergence(np.concatenate([risk, train_risk]))
            if problem:
                out.append([{"error": problem, **dict.fromkeys(self.metrics, float("nan"))} for _ in factors])
                continue
            # Subtract the mean, so that disparities of hazards do not depend on the origin of the features.
            risk, train_risk = risk - train_risk.mean(), train_risk - train_risk.mean()
            fitted = as_predictions(estimator, X_held, len(risk)).curves
            rows = []
            for factor in factors:
                # Shrunken scores need a new baseline hazard.
                curves = fitted if factor == 1 else held_out.breslow(factor * risk, factor * train_risk)
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
    """Return the value of all patients; for a disparity between groups, the largest over attributes."""
    if (EVERYONE, metric) in measured:
        return measured[EVERYONE, metric]
    found = (draws for (_, name), draws in measured.items() if name == metric and np.isfinite(draws.estimate))
    return max(found, key=lambda number: number.estimate, default=None)


def _divergence(scores: FloatArray) -> str:
    """Return an error message if scores are implausibly large, else an empty string."""
    largest = float(np.abs(scores).max())
    return "" if largest <= _LARGEST else f"training diverged to scores of {largest:.3g}; lower lr."
