"""Evidence on predictions that were given as numbers: the model itself, and its training patients, are not known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from drosurv.curves import PointCurves
from drosurv.errors import ArgumentError, arg
from drosurv.evaluation import Predictions
from drosurv.evaluation.from_entry import curve_times
from drosurv.given_predictions import log_mean_hazard
from drosurv.metrics import FollowUp
from drosurv.metrics.expected_events import known_everywhere
from drosurv.metrics.follow_up import last_with_enough_at_risk
from drosurv.predictions import Predicted
from drosurv.presentation import counted, moment
from drosurv.repairs.expected import reference_times
from drosurv.report.alpha_path import Stop
from drosurv.target import FloatArray, Target, parse_target

OWN_FOLLOW_UP = (
    "The training patients are not known. The null model and the censoring distribution are estimated from the audited "
    "patients, for which the likelihood gain is corrected.",
    "Predictions do not show whether the model was trained on any of these patients. If it was, all numbers here are "
    "too good.",
)


def evidence_of_predictions(
    predicted: Predicted,
    y: Any,
    y_train: Any,
    horizon: float | None,
    time_unit: str,
    name: str = "Predictions",
) -> dict[str, Any]:
    """Return fields of the evidence for given predictions.

    Patients are censored at the last predicted time. Probabilities at some times are judged at these times, and
    completed between them.
    """
    predictions, curves = predicted.model, predicted.curves
    ends: tuple[str, ...] = ()
    facts: dict[str, Any] = {"Audited": "predictions; the model itself is not known"}
    found: dict[str, Any] = {"horizon": horizon}
    if isinstance(curves, PointCurves) and curves.times is not None and predictions.trained_on is None:
        end, points = predicted.until, curves.times[curves.times > 0]
        y, ends = until(y, end, time_unit)
        target = parse_target(y)
        horizon = last_horizon(target, points) if horizon is None else horizon
        horizons = np.union1d(nearest_quartiles(target, points), horizon)
        implied = log_mean_hazard(curves.cumulative_hazard(points))
        risk = predicted.risk if predicted.has_log_hazards else implied
        predictions = completed(curves, target, risk)
        facts["Horizons"] = horizons.tolist()
        found = {"horizon": horizon, "horizons": horizons, "until": end if ends else None}
    return found | {
        "stops": (Stop(name, None, predictions),),
        "y": y,
        "follow_up": FollowUp.standing_in(parse_target(y)) if y_train is None else y_train,
        "model": facts,
        "limits": (*ends, *(OWN_FOLLOW_UP if y_train is None else OWN_FOLLOW_UP[1:])),
    }


def until(y: Any, end: float, time_unit: str) -> tuple[Any, tuple[str, ...]]:
    """Censor patients at the last predicted time; return the target, and a sentence for the limits of the report."""
    event, time = y.dtype.names
    later = y[time] > end
    if not later.any():
        return y, ()
    cut = y.copy()
    cut[event] &= ~later
    cut[time] = np.minimum(y[time], end)
    if not cut[event].any():
        raise ArgumentError(
            "predictions",
            f"{arg('predictions')} end at {moment(end, time_unit)}, before the first event: predict later times, "
            "in the unit of the observed times.",
        )
    return cut, (
        f"The predictions end at {moment(end, time_unit)}. Later times ({counted(int(later.sum()), 'patient')}) are "
        "censored there.",
    )


def nearest_quartiles(target: Target, times: FloatArray) -> FloatArray:
    """Return the predicted times nearest to the quartiles of the event times, so that nothing is interpolated."""
    return np.unique(times[np.abs(times - reference_times(target)[:, None]).argmin(axis=1)])


def last_horizon(target: Target, times: FloatArray) -> float:
    """Return the last of the predicted times at which a tenth of the patients is at risk, or else the first."""
    observed = times[times <= last_with_enough_at_risk(target)]
    return float(observed[-1] if len(observed) else times[0])


def completed(curves: PointCurves, target: Target, risk: FloatArray) -> Predictions:
    """Return curves that are also known between the predicted times.

    The shape of the hazard there is estimated from the audited patients: a step function would predict no events
    between the times, and a constant hazard would be wrong if the true hazard changes.
    """
    assert curves.times is not None
    points = curves.times[curves.times > 0]
    later = replace(curves, times=points)
    times = np.union1d(points, curve_times(target.time[target.event]))
    return Predictions(risk, known_everywhere(later, target).survival(times), times, curve_type="step")
