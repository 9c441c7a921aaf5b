"""Evidence on predictions that were given as numbers: the model itself, and its training patients, are not known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from drosurv.curves import PointCurves
from drosurv.errors import ArgumentError, arg
from drosurv.given_predictions import log_mean_hazard
from drosurv.metrics import FollowUp
from drosurv.predictions import Predicted
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
    """Return fields of the evidence for given predictions; without scores, patients are ranked by their mean hazard."""
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
