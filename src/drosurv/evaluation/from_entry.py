"""Predictions for patients with late entry, strata or offsets.

A patient who came under observation at time V was free of the event then, and is evaluated from V on: time counts from
entry, and the prediction is the survival S(V + u | x) / S(V | x). On this time scale every metric has its usual
definition.

Scores of patients in different strata, with different entry times, or of several causes have no common baseline hazard.
Such patients are ranked by the logarithm of their predicted cumulative hazard at the middle horizon instead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from drosurv.errors import ArgumentError, require
from drosurv.evaluation.data import middle, parse_horizons
from drosurv.metrics import FollowUp, default_horizon
from drosurv.observation import ends_of_patients, entry_times, in_pandas, parse_observation
from drosurv.predictions import (
    Predictions,
    ScoreType,
    check_takes,
    final_step,
    prepared,
    score_type,
    take,
    training_follow_up,
    unwrapped,
)
from drosurv.presentation import moment
from drosurv.target import FloatArray, IntArray, Target, has_causes, of_any_cause, parse_target

# Curves are computed at no more times than this.
_TIMES = 300
# Patients are predicted in batches whose curves have about so many numbers.
NUMBERS_AT_ONCE = 2_000_000
_LEAST_HAZARD = 1e-12


class FromEntry(NamedTuple):
    """Predictions and outcomes (n,) of patients on the time scale that starts at entry, and notes about it."""

    predictions: Predictions
    y: NDArray[Any]
    follow_up: FollowUp
    notes: tuple[str, ...]


def first_rows(y: Any, entry: Any, id: Any) -> tuple[IntArray, NDArray[Any], tuple[str, ...]]:
    """Return the first row of each patient who has several rows (entry, time], the patients' targets, and a note.

    A prediction can use only the first row. The target of a patient is the first event, or the end of the last row.
    """
    target = parse_target(of_any_cause(y))
    observation = parse_observation(target, entry=entry, id=id)
    assert observation.patient is not None, "parsed from an id"
    first, until = ends_of_patients(observation.patient, target)
    note = (
        f"the {len(target):,} rows are of {len(first):,} patients: each is predicted from the first row, and followed "
        "until the first event or the end of the last row."
    )
    return first, np.asarray(y)[until], (note,) if len(first) < len(target) else ()


class TimeScale(NamedTuple):
    """Outcomes of n patients since their entry, the times of their curves, and the horizon at which they are ranked."""

    target: Target
    entry: FloatArray | None
    follow_up: FollowUp
    times: FloatArray
    horizon: float
    notes: tuple[str, ...]

    def with_predictions(
        self, survival: FloatArray, risk: FloatArray | None = None, score_type: ScoreType = "log hazard"
    ) -> FromEntry:
        """Return predictions: survival (n, k) at these times, and risk scores of the given type.

        Without risk scores, patients are ranked by their cumulative hazard at the horizon, whose type is "other".
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
        return FromEntry(predictions, self.target.to_structured(), follow_up, notes)


def time_scale(
    y: Any, entry: Any, follow_up: Any = None, horizons: Any = None, horizon: float | None = None
) -> TimeScale:
    """Return the time scale that starts at entry (n,), or at time 0 if `entry` is None.

    The follow-up is as given, else that of the scored patients; with entry times it is always that of the scored
    patients. The horizon at which patients are ranked is chosen as in :func:`~drosurv.evaluation.evaluate`.
    """
    target, notes = parse_target(of_any_cause(y)), []
    since = None if entry is None else entry_times(entry, target)
    follow_up = None if follow_up is None else FollowUp.parse(of_any_cause(follow_up))
    if since is not None:
        target = Target(target.event, target.time - since)
        follow_up = FollowUp.standing_in(target, None if follow_up is None else follow_up.training_events)
        notes.append(
            "patients are evaluated from their entry on: times count from there, predictions are conditional on no "
            "event before it, and censoring weights and the null model come from the scored patients."
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
) -> FromEntry:
    """Predict with a model that has survival curves; `given` may hold entry, strata and offset, each (n,)."""
    model, causes, entry = unwrapped(model), has_causes(y), given.get("entry")
    if entry is not None and y_train is not None and not isinstance(y_train, FollowUp):
        raise ArgumentError(
            "y_train",
            "y_train cannot be used with entry, because it does not say when the training patients entered. "
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
    found = scale.with_predictions(survival, risk, score_type(model))
    any_cause = "the event is an event of any cause; the table by cause has each cause."
    return found._replace(notes=(*found.notes, any_cause)) if causes else found


def reference_from_entry(reference: Any, X: Any, y: Any, given: dict[str, Any], **how: Any) -> Any:
    """Return predictions of the reference from entry on; risk scores, and models that need none of `given`, unchanged.

    Entry times, and the strata and offset that it was fitted with, are passed to it; `how` as in `predict_from_entry`.
    """
    final = final_step(reference)
    takes = ("entry", *getattr(final, "_fitted_with", ()))
    taken = {name: value for name, value in given.items() if name in takes}
    if not hasattr(final, "predict_survival_function") or not (taken or hasattr(final, "n_causes_")):
        return reference
    return predict_from_entry(reference, X, y, taken, **how).predictions


def curve_times(times: FloatArray) -> FloatArray:
    """Return the times at which curves are computed: those given, or quantiles of them if there are many."""
    distinct = np.unique(times)
    if len(distinct) <= _TIMES:
        return distinct
    return np.unique(np.quantile(distinct, np.linspace(0, 1, _TIMES), method="nearest"))


def survival_from_entry(
    model: Any, X: Any, entry: FloatArray | None, columns: dict[str, Any], times: FloatArray
) -> FloatArray:
    """Return survival (n, k) at times since entry, given no event before it."""
    # Steps of a Pipeline transform features once, not in every batch.
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
        # Survival stays 0 for a patient whose predicted survival at entry is 0.
        out[part] = np.divide(later, known, out=np.zeros_like(later), where=known > 0)
    return out


def since_entry(
    curves: FloatArray, start: float, jumps: FloatArray, entry: FloatArray, times: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the values of step curves (n, m) at entry (n, 1) and at times since then (n, k).

    Before the first of the `jumps` (m,) a curve has the value `start`.
    """
    from_start = np.column_stack([np.full(len(curves), start), curves])
    at = entry[:, None] + np.concatenate([[0.0], times])
    found = np.take_along_axis(from_start, np.searchsorted(jumps, at, side="right"), axis=1)
    return found[:, :1], found[:, 1:]
