"""Survival curves of any fitted model, or predictions made elsewhere, and the follow-up of its training patients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drosurv.errors import Argument, ArgumentError
from drosurv.evaluation.predictions import predict_curves, training_follow_up
from drosurv.metrics.follow_up import FollowUp
from drosurv.metrics.survival_curves import SurvivalCurves, parse_survival
from drosurv.target import FloatArray, Target


def predicted_curves(model: Any, X: Any, n: int) -> SurvivalCurves:
    """Predicted survival of n patients, to be read at any time.

    Parameters
    ----------
    model : fitted survival model, or a pair (times, survival)
        Anything with scikit-survival's ``predict_survival_function`` or
        ``predict_cumulative_hazard_function``; or predictions made elsewhere: an increasing array of p times
        and the survival probabilities (n, p) at them.
    X : array or DataFrame, (n, d)
        Features as the model takes them; not used with predictions made elsewhere.
    n : int
        Number of patients.
    """
    if isinstance(model, tuple):
        if len(model) != 2:
            raise ArgumentError(
                Argument("predictions"), f" must be a pair (times, survival), got {len(model)} items."
            )
        return parse_survival(model[1], n, model[0])
    curves = predict_curves(model, X, n)
    if curves is not None:
        return curves
    if hasattr(model, "predict_cumulative_hazard_function"):
        return parse_survival([_survival(f) for f in model.predict_cumulative_hazard_function(X)], n)
    raise ArgumentError(
        Argument("model"),
        " must be a fitted survival model with predict_survival_function or predict_cumulative_hazard_function, or a "
        f"pair (times, survival); got {type(model).__name__}.",
    )


def follow_up_of(model: Any, y_train: Any, target: Target) -> FollowUp:
    """The training patients' follow-up: as given, else as the model keeps it, else that of the patients judged."""
    if y_train is None:
        y_train = training_follow_up(model)
    return FollowUp.parse(target if y_train is None else y_train)


@dataclass(frozen=True)
class _StepCurve:
    """A step function through (x, y), as scikit-survival's."""

    x: FloatArray
    y: FloatArray

    def __call__(self, times: FloatArray) -> FloatArray:
        held: FloatArray = self.y[np.maximum(np.searchsorted(self.x, times, side="right") - 1, 0)]
        return held


def _survival(hazard: Any) -> _StepCurve:
    return _StepCurve(hazard.x, np.exp(-(hazard.a * np.asarray(hazard.y) + hazard.b)))
