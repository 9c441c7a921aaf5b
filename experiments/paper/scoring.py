"""Metrics of the settings of a grid on held-out patients."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from drosurv.curves import SurvivalCurves
from drosurv.estimators.baseline import Baseline
from drosurv.evaluation.attributes import (
    parse_attributes,
)
from drosurv.evaluation.data import EvaluationData, Subset
from drosurv.evaluation.evaluator import Evaluator, Key
from drosurv.metrics import FollowUp
from drosurv.metrics.disparities import Convention
from drosurv.metrics.inference import Draws
from drosurv.observation import Inference
from drosurv.predictions import Predictions, as_predictions
from drosurv.target import FloatArray, parse_target


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
