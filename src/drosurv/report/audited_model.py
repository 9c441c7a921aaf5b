"""The audited model, or its predictions, with its features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from drosurv.patients.observation import select_rows
from drosurv.patients.target import IntArray
from drosurv.predictions import Predictions
from drosurv.predictions.any_model import final_step, prepared


@dataclass(frozen=True, eq=False)
class AuditedModel:
    """A fitted model, or Predictions, with its features of the audited and of the training patients.

    If the model is the last step of a Pipeline, `whole` is the Pipeline with its features.
    """

    name: str
    model: Any
    X: Any = None
    X_train: Any = None
    whole: tuple[Any, Any] | None = None

    @staticmethod
    def of(model: Any, X: Any, X_train: Any) -> AuditedModel:
        """Return the last step of a model with the features that it takes."""
        estimator = final_step(model)
        train = None if X_train is None else prepared(model, X_train)
        whole = None if estimator is model else (model, X)
        return AuditedModel(type(estimator).__name__, estimator, prepared(model, X), train, whole)

    def frozen(self, features: Any) -> tuple[Any, Any] | None:
        """Return the model (or a pair of times and survival) and its features, as a repair takes them.

        A Pipeline is repaired as a whole, because readers know its columns. Predictions without columns get `features`,
        those that rules may use. None without curves.
        """
        X = features if self.X is None else self.X
        if isinstance(self.model, Predictions):
            times, survival = self.model.times, self.model.survival
            return None if survival is None or times is None else ((times, survival), X)
        if not hasattr(self.model, "predict_survival_function"):
            return None
        return self.whole or (self.model, X)

    def take(self, rows: IntArray) -> AuditedModel:
        """Return the model with some of the audited patients."""
        whole = None if self.whole is None else (self.whole[0], select_rows(self.whole[1], rows))
        model, X = select_rows(self.model, rows), select_rows(self.X, rows)
        return replace(self, model=model, X=X, whole=whole)
