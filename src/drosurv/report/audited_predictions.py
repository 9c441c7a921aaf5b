"""Audit of predictions that are given as numbers, and of a published score, by its predictions at its times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from drosurv.curves import PointCurves
from drosurv.errors import ArgumentError, arg
from drosurv.given_predictions import ReadPredictions, log_mean_hazard
from drosurv.metrics import FollowUp
from drosurv.predictions import Predicted, Predictions, as_predictions, final_step
from drosurv.presentation import moment
from drosurv.report.alpha_path import Stop
from drosurv.target import of_any_cause, parse_target

OWN_FOLLOW_UP = (
    "The training patients are not known. The null model and the censoring distribution are estimated from the audited "
    "patients, for which the likelihood gain is corrected.",
    "Predictions do not show whether the model was trained on any of these patients. If it was, all numbers here are "
    "too good.",
)


def evidence_of_predictions(
    predicted: Predicted, y: Any, y_train: Any, time_unit: str, name: str = "Predictions"
) -> dict[str, Any]:
    """Return fields of the evidence for given predictions; without scores, patients are ranked by mean hazard."""
    predictions, curves = predicted.model, predicted.curves
    if isinstance(curves, PointCurves) and curves.times is not None and predictions.trained_on is None:
        target, points = parse_target(of_any_cause(y)), curves.times[curves.times > 0]
        if not (target.event & (target.time <= predicted.until)).any():
            raise ArgumentError(
                "predictions",
                f"{arg('predictions')} end at {moment(predicted.until, time_unit)}, before the first event: predict "
                "later times, in the unit of the observed times.",
            )
        if not predicted.has_risk:
            implied = log_mean_hazard(curves.cumulative_hazard(points))
            predictions = replace(predictions, risk=implied, score_type="other")
    return {
        "stops": (Stop(name, None, predictions),),
        "y": y,
        "follow_up": FollowUp.standing_in(parse_target(of_any_cause(y))) if y_train is None else y_train,
        "model": {"Audited": "predictions; the model itself is not known"},
        "limits": OWN_FOLLOW_UP if y_train is None else OWN_FOLLOW_UP[1:],
    }


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
