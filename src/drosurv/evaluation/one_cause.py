"""One of several causes as an event by itself, so that metrics of survival are those of its incidence.

A patient who had an event of another cause will never have this one, and would have been observed until censoring. That
time is not known: it is drawn from the Kaplan-Meier curve of censoring after the event. The patients then are censored
data of the time to this event, infinite for those who never have it, and Kaplan-Meier, Brier scores and concordance of
them estimate what Aalen-Johansen and the scores by cause do (Ruan and Gray, Statistics in Medicine 27, 2008).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from drosurv.curves import CompetingCurves
from drosurv.errors import ArgumentError, arg, require
from drosurv.evaluation.data import parse_horizons
from drosurv.evaluation.from_entry import NUMBERS_AT_ONCE, FromEntry, curve_times, since_entry
from drosurv.metrics import FollowUp, default_horizon
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.predictions import Predicted, Predictions
from drosurv.presentation import moment
from drosurv.target import CompetingTarget, FloatArray, Target, parse_competing_target


def as_one_event(target: CompetingTarget, cause: int, seed: int = 0) -> Target:
    """Return the target of a cause, with patients who had another one free of it until a drawn time of censoring."""
    _, censoring = KaplanMeier.both(Target(target.cause > 0, target.time))
    other = (target.cause > 0) & (target.cause != cause)
    last = target.time.max()
    free = np.append(1.0, censoring.survival)
    # The first time at which the curve of censoring is below a uniform share of its value at the event.
    left = free[np.searchsorted(censoring.times, target.time, side="right")]
    wanted = np.random.default_rng(seed).uniform(size=len(target)) * left
    place = np.searchsorted(-censoring.survival, -wanted, side="left")
    drawn = np.append(censoring.times, last)[np.minimum(place, len(censoring.times))]
    return Target(target.cause == cause, np.where(other, np.maximum(drawn, target.time), target.time))


def predict_of_cause(predicted: Predicted, y: Any, cause: int, horizon: float | None = None) -> FromEntry:
    """Return predicted incidences of a cause, as survival without it, from entry on, and its events."""
    causes, entry = parse_competing_target(y, complete=False), predicted.rows.entry
    since = CompetingTarget(causes.cause, causes.time if entry is None else causes.time - entry)
    target = as_one_event(since, cause)
    if not target.event.any():
        raise ArgumentError(
            "cause", f"no patient had an event of cause {cause}: there is nothing to evaluate."
        )
    follow_up, given = FollowUp.standing_in(target), predicted.given
    horizon = default_horizon(target, predicted.until) if horizon is None else horizon
    notes = (
        f"the event is one of cause {cause}; patients who had another one are free of it until a time of censoring, "
        "which is drawn from the curve of censoring.",
    )
    if given is None:
        if predicted.competing is None:
            raise ArgumentError(
                "cause",
                f"{arg('cause')} needs a model of causes, such as CauseSpecificCox, or predicted incidences.",
            )
        times = np.unique(
            np.concatenate([[0.0, horizon], curve_times(target.time), parse_horizons(None, follow_up)])
        )
        survival = 1 - incidence_from_entry(predicted.competing, entry, times, cause)
    else:
        require(entry is None, "entry", "be left out with given predictions of a cause", entry)
        tables = given.incidence or {
            cause: 1 - predicted.survival_curves.survival(np.asarray(given.times, float))
        }
        require(cause in tables, "cause", f"be one of {sorted(tables)}, whose incidence is given", cause)
        times = np.asarray(given.times, dtype=np.float64)
        survival = 1 - np.asarray(tables[cause], dtype=np.float64)
    at = int(np.searchsorted(times, horizon, side="right")) - 1
    risk = np.log(np.clip(-np.log(np.clip(survival[:, max(at, 0)], 1e-300, 1.0)), 1e-12, None))
    ranked = f"patients are ranked by their predicted incidence at {moment(float(times[max(at, 0)]))}."
    predictions = Predictions(risk, survival, times, score_type="other")
    return FromEntry(
        predictions, target.to_structured(), replace(follow_up, other_times=True), (*notes, ranked)
    )


def incidence_from_entry(
    curves: CompetingCurves, entry: FloatArray | None, times: FloatArray, cause: int
) -> FloatArray:
    """Return the incidence (n, k) of a cause by times since entry, (F(V + u) - F(V)) / S(V)."""
    if entry is None:
        return curves.incidence(cause, times)
    jumps = curves.any_cause.times
    assert jumps is not None
    out = np.empty((len(curves), len(times)))
    for part in gen_batches(len(curves), max(1, NUMBERS_AT_ONCE // len(jumps))):
        some = curves.take(part)
        before, then = since_entry(some.incidence(cause, jumps), 0.0, jumps, entry[part], times)
        alive, _ = since_entry(some.any_cause.survival(jumps), 1.0, jumps, entry[part], times)
        out[part] = np.divide(then - before, alive, out=np.zeros_like(then), where=alive > 0)
    return out
