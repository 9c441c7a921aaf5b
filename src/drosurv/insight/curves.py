"""Survival curves of any fitted model, or predictions made elsewhere, and the follow-up of its training patients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from drosurv.errors import Argument, ArgumentError
from drosurv.estimators.baseline import HeldStepFunction
from drosurv.evaluation.predictions import predict_curves, training_follow_up
from drosurv.metrics.follow_up import FollowUp
from drosurv.metrics.survival_curves import SurvivalCurves, parse_survival
from drosurv.target import FloatArray, Target


def predicted_curves(model: Any, X: Any, n: int) -> SurvivalCurves:
    """Predicted survival of n patients, to be read at any time.

    Of anything with scikit-survival's ``predict_survival_function`` or ``predict_cumulative_hazard_function`` and its
    features; or of predictions made elsewhere: an increasing array of p times and the survival probabilities (n, p)
    at them.
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
    return parse_survival([HeldStepFunction(*steps) for steps in survival_steps(model, X)], n)


def survival_steps(model: Any, X: Any) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Times and heights of the steps of each patient's survival curve."""
    hazards = not hasattr(model, "predict_survival_function")
    if hazards and not hasattr(model, "predict_cumulative_hazard_function"):
        raise ArgumentError(
            Argument("model"),
            f": {type(model).__name__} has neither predict_survival_function nor predict_cumulative_hazard_function: "
            "give a fitted survival model with curves, or a pair (times, survival).",
        )
    predict = model.predict_cumulative_hazard_function if hazards else model.predict_survival_function
    for function in predict(X):
        if not hasattr(function, "x"):
            raise ArgumentError(
                Argument("model"),
                f": the curves of {type(model).__name__} must be step functions with x and y, got "
                f"{type(function).__name__}: pass a pair (times, survival) instead.",
            )
        heights = getattr(function, "a", 1.0) * np.asarray(function.y) + getattr(function, "b", 0.0)
        yield function.x, np.clip(np.exp(-heights) if hazards else heights, 0.0, 1.0)


def follow_up_of(model: Any, y_train: Any, target: Target) -> FollowUp:
    """The training patients' follow-up: as given, else as the model keeps it, else that of the patients judged."""
    if y_train is None:
        y_train = training_follow_up(model)
    return FollowUp.parse(target if y_train is None else y_train)
