"""One fold of a search: settings trained on its training patients, scored on its validation patients."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from drosurv.estimators.grid import Sample, fit_grids
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.evaluation.attributes import EVERYONE
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.engine import Key
from drosurv.evaluation.predictions import predict_curves
from drosurv.inference import Number
from drosurv.standardise import standardise
from drosurv.tables.encoder import enter
from drosurv.target import FloatArray
from drosurv.tuning.folds import Fold
from drosurv.tuning.held_out import HeldOut, interval_columns

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
        sample = Sample(X, self.y[train], sensitive_features=groups[0])
        (errors,) = fit_grids([estimators], [sample])
        # A table of text or gaps as the numbers that the estimators made of it.
        entered = [np.asarray(enter(estimators[0], part), dtype=np.float64) for part in (X, X_held)]
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
                number = _of_all(drawn, metric)
                if number is not None:
                    found |= interval_columns(metric, number)
                    found[DRAWS][metric] = number.draws
        return found


def _value(number: Number | None) -> float:
    return float("nan") if number is None else number.estimate


def _of_all(measured: Mapping[Key, Number], metric: str) -> Number | None:
    """The number of everybody; of a disparity between groups, that of the attribute where it is largest."""
    if (EVERYONE, metric) in measured:
        return measured[EVERYONE, metric]
    found = [number for (_, name), number in measured.items() if name == metric]
    return max(
        (number for number in found if np.isfinite(number.estimate)),
        key=lambda number: number.estimate,
        default=None,
    )


def _runaway(scores: FloatArray) -> str:
    """What to say of log hazards that no population has; empty for others."""
    largest = float(np.abs(scores).max())
    return "" if largest <= _LARGEST else f"training ran away to scores of {largest:.3g}; lower lr."
