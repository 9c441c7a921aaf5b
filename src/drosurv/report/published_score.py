"""Audit of a model that is known at some times only, such as a published score: of its predictions at these times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from drosurv.errors import ArgumentError, arg
from drosurv.given_predictions import ReadPredictions
from drosurv.predictions import Predictions, as_predictions, final_step


def is_score(model: Any) -> bool:
    """Whether a model, and not an array of predictions, is known at some times only."""
    final = final_step(model)
    return hasattr(final, "predict") and getattr(final, "curve_type", None) == "points"


def predictions_of_score(model: Any, X: Any, n: int, refused: Mapping[str, Any]) -> ReadPredictions:
    """Return the predictions of a score at its times, and a note that nothing is known between them.

    `refused` are arguments of :func:`drosurv.audit` that are only for models with curves.
    """
    score = final_step(model)
    for argument, value in refused.items():
        if value is not None:
            raise ArgumentError(
                argument,
                f"{arg(argument)} is not for {type(score).__name__}, which is known at some times only: leave it out.",
            )
    predicted = as_predictions(model, X, n)
    times = np.asarray(score.unique_times_, dtype=np.float64)
    survival = predicted.survival_curves.survival(times)
    return ReadPredictions(Predictions(predicted.risk, survival, times), (score.known_times,))
