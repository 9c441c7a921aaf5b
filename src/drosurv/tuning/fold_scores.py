"""One fold of a search: settings trained on its training patients, scored on its validation patients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from drosurv.estimators.grid import Sample, fit_grids
from drosurv.target import FloatArray
from drosurv.tuning.folds import Fold
from drosurv.tuning.held_out import ATTRIBUTE_METRICS, OVERALL_METRICS, HeldOut, standardise

if TYPE_CHECKING:
    import pandas as pd

    from drosurv.estimators.network_estimator import NetworkEstimator

# F_A is the mean of these three.
AVERAGED = ("individual_disparity", "group_disparity", "intersectional_disparity")
KNOWN_METRICS = (*OVERALL_METRICS, *ATTRIBUTE_METRICS, "average_disparity")
# A log hazard ratio of this size is no prediction any more.
_LARGEST = 1e6
NEED_GROUPS = (*ATTRIBUTE_METRICS, "intersectional_disparity", "average_disparity")


@dataclass(frozen=True, eq=False)
class Scoring:
    """What a search measures, on what data.

    Hazards exp(f) are those relative to a training patient of mean score, so that disparities do not depend on
    the origin of the features.

    Attributes
    ----------
    X, y, sensitive_features
        All patients of the search; sensitive_features a DataFrame or None.
    preparation : transformer or None
        Makes features of X; fitted anew on the training patients of each fold.
    metrics : tuple of str
        Of ``KNOWN_METRICS``.
    replicates : int
        Bootstrap replicates of the c-index and of concordance imparity on the validation patients; 0 for none.
    """

    X: Any
    y: Any
    sensitive_features: pd.DataFrame | None
    preparation: Any
    metrics: tuple[str, ...]
    replicates: int

    def fold(
        self, estimators: Sequence[NetworkEstimator], fold: Fold, factors: Sequence[float] = (1.0,)
    ) -> list[list[dict[str, Any]]]:
        """Train and score on one fold.

        Parameters
        ----------
        estimators : sequence of estimators
            One per setting; fitted in place.
        fold : (train, validation)
            Row numbers.
        factors : sequence of float
            Scores are multiplied by each of these before they are scored.

        Returns
        -------
        list of lists of dict
            Per estimator and factor the metrics, and ``error``, empty unless training failed; the metrics are
            then NaN.
        """
        from sklearn.base import clone
        from sklearn.utils import _safe_indexing

        train, validation = fold
        X, X_held = (_safe_indexing(self.X, rows) for rows in fold)
        if self.preparation is not None:
            prepare = clone(self.preparation).fit(X, self.y[train])
            X, X_held = prepare.transform(X), prepare.transform(X_held)
        groups = [None if self.sensitive_features is None else self.sensitive_features.iloc[r] for r in fold]
        sample = Sample(X, self.y[train], sensitive_features=groups[0])
        (errors,) = fit_grids([estimators], [sample])
        _, features = standardise(np.asarray(X, dtype=np.float64), np.asarray(X_held, dtype=np.float64))
        held_out = HeldOut(self.y[train], features, self.y[validation], groups[1])
        out = []
        for estimator, error in zip(estimators, errors, strict=True):
            scores = None if error is not None else (estimator.predict(X_held), estimator.predict(X))
            problem = str(error or "") or _runaway(scores)
            if scores is None or problem:
                out.append([{"error": problem, **dict.fromkeys(self.metrics, float("nan"))} for _ in factors])
                continue
            risk, train_risk = scores
            # Risks are relative: where the features' origin puts their level must not change a disparity.
            risk, train_risk = risk - train_risk.mean(), train_risk - train_risk.mean()
            out.append(
                [
                    {"error": "", **self._score(held_out, factor * risk, factor * train_risk)}
                    for factor in factors
                ]
            )
        return out

    def _score(self, held_out: HeldOut, risk: FloatArray, train_risk: FloatArray) -> dict[str, float]:
        wanted = {*self.metrics, *(AVERAGED if "average_disparity" in self.metrics else ())}
        found = held_out.overall(risk, train_risk, wanted)
        by_attribute = held_out.by_attribute(risk, wanted)
        if self.replicates:
            found |= held_out.concordance_interval(risk, replicates=self.replicates)
            if held_out.groups:
                intervals = held_out.imparity_intervals(risk, replicates=self.replicates)
                by_attribute = {name: {**row, **intervals[name]} for name, row in by_attribute.items()}
        found |= _worst(by_attribute, wanted)
        if "average_disparity" in self.metrics:
            found["average_disparity"] = sum(found[name] for name in AVERAGED) / 3
        if len(by_attribute) > 1:
            found |= {
                f"{metric}_{name}": row[metric]
                for name, row in by_attribute.items()
                for metric in ATTRIBUTE_METRICS
                if metric in row
            }
        return found


def _runaway(scores: tuple[FloatArray, FloatArray] | None) -> str:
    """What to say of log hazards that no population has; empty for others."""
    largest = 0.0 if scores is None else max(float(np.abs(part).max()) for part in scores)
    return "" if largest <= _LARGEST else f"training ran away to scores of {largest:.3g}; lower lr."


def _worst(by_attribute: dict[str, dict[str, float]], wanted: set[str]) -> dict[str, float]:
    """The attribute with the largest disparity stands for all, with its own interval."""
    found: dict[str, float] = {}
    for metric in ATTRIBUTE_METRICS:
        if metric not in wanted:
            continue
        rows = [row for row in by_attribute.values() if np.isfinite(row[metric])]
        if not rows:
            found[metric] = float("nan")
            continue
        worst = max(rows, key=lambda row: row[metric])
        found |= {name: value for name, value in worst.items() if name.startswith(metric)}
    return found
