"""Predictions for patients with late entry, strata or offsets, and of one of several causes.

A patient who came under observation at time V was free of the event then, and is evaluated from V on: time counts from
entry, and the prediction is the survival S(V + u | x) / S(V | x). On this time scale every metric has its usual
definition. Predictions at few times are not known at common times since entry: such patients are ranked, and have
findings from the first predicted time, but no Brier scores.

Scores of patients in different strata, with different entry times, or of several causes have no common baseline hazard.
Such patients are ranked by the logarithm of their predicted cumulative hazard at the middle horizon instead.

One of several causes is an event by itself, so that metrics of survival are those of its incidence. A patient who had
an event of another cause is known never to have this one (`other` in :class:`~drosurv.patients.target.Target`):
observed survival is that of Aalen-Johansen, and Brier scores and concordance are those by cause.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from drosurv.curves import CurveType, StepCurves, SurvivalCurves
from drosurv.errors import ArgumentError, arg, require
from drosurv.judging.known_curves import KnownCurves, known_throughout
from drosurv.metrics import FollowUp, default_horizon
from drosurv.metrics.follow_up import brier_times, last_with_enough_at_risk
from drosurv.patients.target import (
    CompetingTarget,
    FloatArray,
    Target,
    batches,
    cause_names,
    has_causes,
    of_any_cause,
    parse_competing_target,
    parse_target,
)
from drosurv.predictions import Predicted, Predictions, ScoreType, as_predictions
from drosurv.presentation import cause_in_words, moment

# Curves are computed at no more times than this.
_TIMES = 300
# Patients are predicted in batches whose curves have about so many numbers.
NUMBERS_AT_ONCE = 2_000_000
_LEAST_HAZARD = 1e-12


class FromEntry(NamedTuple):
    """Predictions, outcomes (n,) and follow-up of patients on the time scale that starts at entry, and notes on it."""

    predictions: Predictions
    y: Any
    follow_up: FollowUp
    notes: tuple[str, ...]


class TimeScale(NamedTuple):
    """Outcomes of n patients since their entry, the times of their curves, and the horizon at which they are ranked."""

    target: Target
    entry: FloatArray | None
    follow_up: FollowUp
    times: FloatArray
    horizon: float
    notes: tuple[str, ...]

    def with_predictions(
        self,
        survival: FloatArray,
        risk: FloatArray | None = None,
        score_type: ScoreType = "log hazard",
        curve_type: CurveType = "step",
    ) -> FromEntry:
        """Return predictions: survival (n, k) at these times with the type of its curves, and risk scores with theirs.

        Without risk scores, patients are ranked by their cumulative hazard at the horizon, whose type is "other".
        """
        if risk is None:
            at_horizon = survival[:, np.searchsorted(self.times, self.horizon)]
            return self.ranked(at_horizon, self.horizon, survival, curve_type)
        predictions = Predictions(risk, survival, self.times, score_type=score_type, curve_type=curve_type)
        return FromEntry(predictions, self.target.to_structured(), self.follow_up, self.notes)

    def ranked(
        self,
        survival: FloatArray,
        time: float,
        curves: FloatArray | None = None,
        curve_type: CurveType = "points",
    ) -> FromEntry:
        """Return predictions that rank patients by their survival (n,) at a time; `curves` (n, k) at these times."""
        times = None if curves is None else self.times
        # Without curves the time is one of the predictions, which count from the start of the time scale.
        since = "" if curves is None or self.entry is None else " after entry"
        return FromEntry(
            Predictions(log_hazard(survival), curves, times, score_type="other", curve_type=curve_type),
            self.target.to_structured(),
            replace(self.follow_up, other_times=True),
            (
                *self.notes,
                f"patients are ranked by their predicted cumulative hazard at {moment(time)}{since}.",
            ),
        )


def log_hazard(survival: FloatArray) -> FloatArray:
    """Return log cumulative hazards of survival (n,), finite also for 0 and 1."""
    hazard = -np.log(np.clip(survival, np.finfo(float).tiny, 1.0))
    found: FloatArray = np.log(np.maximum(hazard, _LEAST_HAZARD))
    return found


def time_scale(
    y: Any,
    entry: FloatArray | None,
    follow_up: Any = None,
    horizon: float | None = None,
) -> TimeScale:
    """Return the time scale that starts at entry (n,), or at time 0 if `entry` is None.

    The follow-up is as given, else that of the test patients; with entry times it is always that of the test
    patients. The horizon at which patients are ranked is chosen as in :func:`~drosurv.evaluation.evaluate`.
    """
    target, notes = parse_target(of_any_cause(y)), []
    follow_up = None if follow_up is None else FollowUp.parse(of_any_cause(follow_up))
    if entry is not None:
        target = Target(target.event, target.time - entry)
        follow_up = FollowUp.of_test_patients(target, None if follow_up is None else follow_up.events)
        notes.append(
            "patients are evaluated from their entry on: times count from there, predictions are conditional on no "
            "event before it, and censoring weights and the null model come from the test patients."
        )
    follow_up = FollowUp.of_test_patients(target) if follow_up is None else follow_up
    horizon = default_horizon(target) if horizon is None else horizon
    times = np.unique(np.concatenate([[0.0, horizon], curve_times(target.time), follow_up.event_quartiles]))
    return TimeScale(target, entry, follow_up, times, float(horizon), tuple(notes))


def predict_from_entry(
    predicted: Predicted, y: Any, *, y_train: Any = None, horizon: float | None = None
) -> FromEntry:
    """Predict from entry on with curves; entry times, strata and offset are those of the predictions' rows."""
    causes, entry = has_causes(y), predicted.rows.entry
    if entry is not None and y_train is not None and not isinstance(y_train, FollowUp):
        raise ArgumentError(
            "y_train",
            "y_train cannot be used with entry times: leave it out. Censoring weights come from the test patients, "
            "whose times count from their entry.",
        )
    follow_up = y_train if y_train is not None else predicted.follow_up
    curves, target = predicted.survival_curves, parse_target(of_any_cause(y))
    few_times = not known_throughout(curves)
    if entry is not None and few_times:
        return _at_few_times(curves, time_scale(y, entry, follow_up))
    scale = time_scale(y, entry, follow_up, horizon)
    if few_times and curves.times is not None:
        before = curves.times[curves.times <= scale.horizon]
        scale = scale._replace(times=curves.times, horizon=float(max(before, default=curves.times[0])))
    survival = survival_from_entry(curves, target, scale.entry, scale.times)
    by_hazard = entry is not None or predicted.rows.stratum is not None or causes
    # At times that are read from curves known throughout, predictions are not those at few times.
    read: CurveType = "points" if few_times else "step" if isinstance(curves, StepCurves) else "smooth"
    risk = None if by_hazard else predicted.risk
    found = scale.with_predictions(survival, risk, predicted.score_type, read)
    if not causes:
        return found
    note = f"events are those of {cause_in_words(None, cause_names(y))}; the table by cause has each cause."
    return found._replace(notes=(*found.notes, note))


def _at_few_times(curves: SurvivalCurves, scale: TimeScale) -> FromEntry:
    """Return scores of patients who entered late and were predicted at few times only."""
    assert curves.times is not None
    last = curves.times[-1:]
    found = scale.ranked(curves.survival(last)[:, 0], float(last[0]))
    left_out = (
        "predictions at few times are compared with events of patients at risk at the first predicted time, and the "
        "horizon is a time of the predictions; Brier scores and calibration at times since entry are left out."
    )
    return found._replace(notes=(*found.notes, left_out))


def reference_from_entry(reference: Predicted, y: Any, **how: Any) -> Predicted:
    """Return predictions of the reference from entry on, as `predict_from_entry` with the arguments `how`.

    Given predictions, and models without entry times, strata, offset and causes, are returned unchanged.
    """
    needed = reference.rows.observed or reference.competing is not None
    if reference.given is not None or not reference.has_curves or not needed:
        return reference
    found = predict_from_entry(reference, y, **how).predictions
    return as_predictions(found, reference.X, len(reference), name="reference")


def curve_times(times: FloatArray) -> FloatArray:
    """Return the times at which curves are computed: those given, or quantiles of them if there are many."""
    distinct = np.unique(times)
    if len(distinct) <= _TIMES:
        return distinct
    return np.unique(np.quantile(distinct, np.linspace(0, 1, _TIMES), method="nearest"))


def survival_from_entry(
    curves: SurvivalCurves, target: Target, entry: FloatArray | None, times: FloatArray
) -> FloatArray:
    """Return survival (n, k) at times since entry, given no event before it, of curves that are known throughout."""
    if entry is None:
        return curves.survival(times)
    known = None if isinstance(curves, StepCurves) else KnownCurves(curves, target)
    steps = curves if known is None else known.curves
    if known is not None and not isinstance(steps, StepCurves):
        hazards = known.accumulated(entry[:, None] + times)[0]
        return np.asarray(np.exp(known.accumulated(entry)[0][:, None] - hazards), np.float64)
    jumps = steps.times
    assert jumps is not None
    out = np.empty((len(curves), len(times)))
    for part in batches(len(curves), max(1, NUMBERS_AT_ONCE // len(jumps))):
        survival = np.column_stack([np.ones(len(entry[part])), steps.take(part).survival(jumps)])
        at = np.searchsorted(jumps, entry[part, None] + np.append(0.0, times), side="right")
        at_entry, later = np.split(np.take_along_axis(survival, at, axis=1), [1], axis=1)
        # Survival stays 0 for a patient whose predicted survival at entry is 0.
        out[part] = np.divide(later, at_entry, out=np.zeros_like(later), where=at_entry > 0)
    return out


def predict_of_cause(predicted: Predicted, y: Any, cause: int, horizon: float | None = None) -> FromEntry:
    """Return predicted incidences of a cause, as survival without it, from entry on, and its events."""
    causes, entry = parse_competing_target(y, complete=False), predicted.rows.entry
    since = CompetingTarget(causes.cause, causes.time if entry is None else causes.time - entry)
    target, called = since.among_others(cause), cause_in_words(cause, cause_names(y))
    if not target.event.any():
        raise ArgumentError("cause", f"no patient had an event of {called}: there is nothing to evaluate.")
    follow_up, given = FollowUp.of_test_patients(target), predicted.given
    horizon = default_horizon(target, predicted.until) if horizon is None else horizon
    notes = (f"events are those of {called}; patients who had another one stay free of it.",)
    if predicted.knows_hazards:
        if predicted.competing is None:
            raise ArgumentError(
                "cause",
                f"{arg('cause')} needs a model of causes, such as CauseSpecificCox, or predicted incidences.",
            )
        scored = brier_times(follow_up, target, until=last_with_enough_at_risk(target))
        times = np.unique(
            np.concatenate([[0.0, horizon], curve_times(target.time), follow_up.event_quartiles, scored])
        )
        survival = 1 - predicted.competing.incidence(cause, times, entry)
    else:
        assert given is not None
        require(entry is None, "entry", "be left out of y with given predictions of a cause", entry)
        tables = given.incidence or {
            cause: 1 - predicted.survival_curves.survival(np.asarray(given.times, float))
        }
        require(cause in tables, "cause", f"be one of {sorted(tables)}, whose incidence is given", cause)
        times = np.asarray(given.times, dtype=np.float64)
        survival = 1 - np.asarray(tables[cause], dtype=np.float64)
    at = int(np.searchsorted(times, horizon, side="right")) - 1
    since_entry = "" if entry is None else " after entry"
    ranked = f"patients are ranked by their predicted incidence at {moment(float(times[max(at, 0)]))}{since_entry}."
    read: CurveType = "step" if predicted.knows_hazards else "points"
    scores = log_hazard(survival[:, max(at, 0)])
    predictions = Predictions(scores, survival, times, score_type="other", curve_type=read)
    return FromEntry(predictions, target, replace(follow_up, other_times=True), (*notes, ranked))
