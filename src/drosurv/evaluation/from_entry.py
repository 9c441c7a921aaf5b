"""Predictions for patients with late entry, strata or offsets.

A patient who came under observation at time V was known to be free of the event then, and is judged from V on: time
counts from entry, and the prediction is the survival S(V + u | x) / S(V | x). On this time scale every metric has its
usual definition.

Scores of different strata, from different entry times, or of several causes share no baseline hazard. Such patients
are ranked by the logarithm of their predicted cumulative hazard at the middle horizon instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from drosurv.errors import ArgumentError, require
from drosurv.evaluation.data import middle, parse_horizons
from drosurv.evaluation.predictions import (
    Predictions,
    ScoreType,
    final_step,
    prepared,
    score_type,
    take,
    training_follow_up,
    unwrapped,
)
from drosurv.metrics import FollowUp, default_horizon
from drosurv.observation import ends_of_patients, entry_times, in_pandas, parse_observation
from drosurv.presentation import moment
from drosurv.target import FloatArray, IntArray, Target, has_causes, of_any_cause, parse_target

# Most times at which curves are kept.
_TIMES = 300
# Survival curves are predicted for so many patients at once that they have this many numbers.
NUMBERS_AT_ONCE = 2_000_000
_LEAST_HAZARD = 1e-12


class JudgedFromEntry(NamedTuple):
    """Predictions and outcomes (n,) of patients on the time scale on which they are judged, and notes about it."""

    predictions: Predictions
    y: NDArray[Any]
    follow_up: FollowUp
    notes: tuple[str, ...]


def first_rows(y: Any, entry: Any, id: Any) -> tuple[IntArray, NDArray[Any], tuple[str, ...]]:
    """Return the first row of each patient, of several rows (entry, time], the patients' targets, and a note.

    What was known at the first row is what a prediction can be made from. It is judged until the patient's first event
    or the end of the last row.
    """
    target = parse_target(of_any_cause(y))
    observation = parse_observation(target, entry=entry, id=id)
    assert observation.patient is not None, "parsed from an id"
    first, until = ends_of_patients(observation.patient, target)
    note = (
        f"the {len(target):,} rows are of {len(first):,} patients: each is judged by what was known at the first row, "
        "until the first event or the end of the last row."
    )
    return first, np.asarray(y)[until], (note,) if len(first) < len(target) else ()


def select_rows(given: Any, rows: IntArray) -> Any:
    """Select rows of what was given for each row; models, which take any rows, and None are returned as they are."""
    if given is None or hasattr(given, "predict"):
        return given
    if isinstance(given, Predictions):
        parts = given.trained_on and [
            (np.flatnonzero(np.isin(rows, predicted)), seen) for predicted, seen in given.trained_on
        ]
        risk, survival = select_rows(given.risk, rows), select_rows(given.survival, rows)
        return replace(given, risk=risk, survival=survival, trained_on=parts)
    if isinstance(given, list):
        # An array of text would turn a missing label into the word nan.
        return [given[row] for row in rows]
    if isinstance(given, Mapping):
        return {name: select_rows(values, rows) for name, values in given.items()}
    return take(given, rows)


class TimeScale(NamedTuple):
    """What happened to n patients since their entry, and the times at which curves are read and ranks are taken."""

    target: Target
    entry: FloatArray | None
    follow_up: FollowUp
    times: FloatArray
    horizon: float
    notes: tuple[str, ...]

    def judged(
        self, survival: FloatArray, risk: FloatArray | None = None, score_type: ScoreType = "log hazard"
    ) -> JudgedFromEntry:
        """Survival (n, k) at these times, of patients ranked by risk scores, or else by their cumulative hazard.

        The score type is that of the risk scores; a cumulative hazard at one time is none of them.
        """
        notes, follow_up = self.notes, self.follow_up
        if risk is None:
            score_type = "other"
            follow_up = replace(follow_up, other_times=True)
            here = survival[:, np.searchsorted(self.times, self.horizon)]
            risk = np.log(np.maximum(-np.log(np.maximum(here, np.finfo(float).tiny)), _LEAST_HAZARD))
            ranked = f"patients are ranked by their predicted cumulative hazard at {moment(self.horizon)}."
            notes = (*notes, ranked)
        predictions = Predictions(risk, survival, self.times, score_type=score_type)
        return JudgedFromEntry(predictions, self.target.to_structured(), follow_up, notes)


def time_scale(
    y: Any, entry: Any, follow_up: Any = None, horizons: Any = None, horizon: float | None = None
) -> TimeScale:
    """The time scale of patients who are judged from their entry (n,) on, or from the beginning where it is None.

    The follow-up is as given, else that of the scored patients; with entry times it is always theirs. The
    horizon at which patients are ranked is chosen as in :func:`~drosurv.evaluation.evaluate`.
    """
    target, notes = parse_target(of_any_cause(y)), []
    since = None if entry is None else entry_times(entry, target)
    follow_up = None if follow_up is None else FollowUp.parse(of_any_cause(follow_up))
    if since is not None:
        target = Target(target.event, target.time - since)
        follow_up = FollowUp.standing_in(target, None if follow_up is None else follow_up.training_events)
        notes.append(
            "patients are judged from their entry on: times count from there, predictions are conditional on no event "
            "before it, and censoring weights and the null model come from the scored patients."
        )
    follow_up = FollowUp.standing_in(target) if follow_up is None else follow_up
    at = parse_horizons(horizons, follow_up)
    if horizon is None:
        horizon = default_horizon(target) if horizons is None else middle(at)
    times = np.unique(np.concatenate([[0.0, horizon], curve_times(target.time), at]))
    return TimeScale(target, since, follow_up, times, float(horizon), tuple(notes))


def predict_from_entry(
    model: Any,
    X: Any,
    y: Any,
    given: dict[str, Any],
    *,
    y_train: Any = None,
    horizons: Any = None,
    horizon: float | None = None,
) -> JudgedFromEntry:
    """Predict with a model that has survival curves, for patients with given entry, strata or offset, each (n,)."""
    model, causes, entry = unwrapped(model), has_causes(y), given.get("entry")
    if entry is not None and y_train is not None and not isinstance(y_train, FollowUp):
        raise ArgumentError(
            "y_train",
            "y_train has no definition beside entry: it does not say when those patients entered. "
            "Leave it out; censoring weights then come from the scored patients.",
        )
    columns = {name: np.asarray(value) for name, value in given.items() if name != "entry"}
    for name, value in columns.items():
        require(value.shape == (len(y),), name, f"have one value per row, shape ({len(y)},)", value.shape)
    check_takes(model, columns)
    follow_up = y_train if y_train is not None else training_follow_up(model)
    scale = time_scale(y, entry, follow_up, horizons, horizon)
    survival = survival_from_entry(model, X, scale.entry, columns, scale.times)
    by_hazard = entry is not None or "strata" in columns or causes
    risk = None
    if not by_hazard:
        risk = np.asarray(final_step(model).predict(prepared(model, X), **columns), np.float64)
    seen = scale.judged(survival, risk, score_type(model))
    any_cause = "the event is an event of any cause; the table by cause tells them apart."
    return seen._replace(notes=(*seen.notes, any_cause)) if causes else seen


def reference_from_entry(reference: Any, X: Any, y: Any, given: dict[str, Any], **how: Any) -> Any:
    """Predictions of the reference from entry on; scores, or a model of features alone, stay as they are.

    Of what is given it takes what it was fitted with, and any entry times; `how` as in `predict_from_entry`.
    """
    final = final_step(reference)
    takes = ("entry", *getattr(final, "_fitted_with", ()))
    taken = {name: value for name, value in given.items() if name in takes}
    if not hasattr(final, "predict_survival_function") or not (taken or hasattr(final, "n_causes_")):
        return reference
    return predict_from_entry(reference, X, y, taken, **how).predictions


def check_takes(model: Any, columns: dict[str, Any]) -> None:
    """Raise unless a model predicts curves from strata and offset as they are given."""
    method = getattr(final_step(model), "predict_survival_function", None)
    if method is None or not hasattr(final_step(model), "unique_times_"):
        raise ArgumentError(
            "model",
            f"{type(final_step(model)).__name__} has no predict_survival_function and unique_times_, without which "
            "entry times and strata have no definition.",
        )
    missing = [name for name in columns if name not in signature(method).parameters]
    if missing:
        raise ArgumentError(
            missing[0],
            f"{type(final_step(model)).__name__} has no definition for {missing[0]}: leave it out.",
        )


def curve_times(times: FloatArray) -> FloatArray:
    """Times to keep curves at: those given, thinned to quantiles where there are many."""
    distinct = np.unique(times)
    if len(distinct) <= _TIMES:
        return distinct
    return np.unique(np.quantile(distinct, np.linspace(0, 1, _TIMES), method="nearest"))


def survival_from_entry(
    model: Any, X: Any, entry: FloatArray | None, columns: dict[str, Any], times: FloatArray
) -> FloatArray:
    """Survival (n, k) at times since entry, given no event before it."""
    # Features are prepared once, not for every batch of patients.
    model, X = final_step(model), in_pandas(prepared(model, X))
    # Curves change at these times only.
    jumps = times if entry is None else np.asarray(model.unique_times_, dtype=np.float64)
    out = np.empty((len(X), len(times)))
    for part in gen_batches(len(X), max(1, NUMBERS_AT_ONCE // len(jumps))):
        given = {name: value[part] for name, value in columns.items()}
        curves = np.asarray(model.predict_survival_function(take(X, part), times=jumps, **given), np.float64)
        if entry is None:
            out[part] = curves
            continue
        known, later = since_entry(curves, 1.0, jumps, entry[part], times)
        # Of a patient whose survival at entry is predicted to be 0, survival stays 0.
        out[part] = np.divide(later, known, out=np.zeros_like(later), where=known > 0)
    return out


def since_entry(
    curves: FloatArray, start: float, jumps: FloatArray, entry: FloatArray, times: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Step curves (n, m) with a value at the start, read at each entry (n, 1) and at times since then (n, k)."""
    from_start = np.column_stack([np.full(len(curves), start), curves])
    at = entry[:, None] + np.concatenate([[0.0], times])
    found = np.take_along_axis(from_start, np.searchsorted(jumps, at, side="right"), axis=1)
    return found[:, :1], found[:, 1:]
