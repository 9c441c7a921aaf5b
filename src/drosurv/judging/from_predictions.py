"""What tests are made from, for any form of predictions: fitted models, arrays, causes, strata, entry, folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from drosurv.curves import CompetingCurves, PointCurves, StepCurves, SurvivalCurves, minus_log, parse_survival
from drosurv.errors import ArgumentError, arg, require
from drosurv.judging.judged import Cohort, Judged, judge_curves
from drosurv.metrics import FollowUp
from drosurv.patients.arrays import is_tensor, set_to
from drosurv.patients.observation import Rows
from drosurv.patients.target import (
    CompetingTarget,
    FloatArray,
    Target,
    cause_names,
    has_causes,
    of_any_cause,
    parse_competing_target,
    parse_target,
    with_times,
)
from drosurv.predictions import Predicted, Predictions
from drosurv.predictions.any_model import final_step
from drosurv.predictions.predicted import needs_causes
from drosurv.presentation import cause_in_words, moment

# Times that differ by a smaller share are equal: single precision rounds by half of it.
_SAME_TIME = 2e-7
# The estimation error of a linear model with more coefficients is not computed from its columns.
_MOST_COLUMNS = 60


def judged_patients(
    predicted: Predicted,
    y: Any,
    rows: Rows | None = None,
    *,
    follow_up: Any = None,
    reference: Predicted | None = None,
    horizon: float | None = None,
    cause: int | None = None,
    scored_at: FloatArray | None = None,
    at_its_times: bool = False,
    require_event: bool = True,
) -> Judged:
    """Return what tests of predictions are made from.

    With causes in `y`, an event is one of any cause unless `cause` says which. `rows` are entry times, strata,
    clusters and ids of the patients. `follow_up` is a FollowUp or the target of the training patients, by
    default what the model keeps, else that of these patients; with `cause` it is not used. The `horizon` and
    `scored_at` are those of :func:`drosurv.judging.judged.judge_curves`. With `at_its_times`, a table is judged at its
    times however many these are. With `require_event`, raise if no patient had the event.
    """
    rows = Rows() if rows is None else rows
    assert rows.weight is None, "rows are repeated as often as their weights say"
    y = with_predicted_times(y, predicted)
    if rows.entry is not None:
        rows = replace(rows, entry=_as_predicted(rows.entry, predicted))
    require_an_event(predicted, y)
    target = outcomes(y, rows, cause)
    trained = predicted.follow_up if follow_up is None or cause is not None else of_any_cause(follow_up)
    known = _of_cause(predicted, target, cause)
    if require_event:
        require_event_of(target, y, cause)
    # With late entries, or one of several causes, one curve for everybody is that of these patients.
    several = cause is not None and (predicted.competing is None or len(predicted.competing.causes) > 1)
    from_test = trained is None or rows.entry is not None or several
    # Of models of causes, the training patients are known with their causes.
    folds = [
        (
            part,
            FollowUp.of(outcomes(seen, Rows(), cause).others_censored)
            if has_causes(seen)
            else FollowUp.parse(seen),
        )
        for part, seen in predicted.trained_on or ()
    ]
    follow_up = (
        FollowUp.of_test_patients(target.others_censored, entry=rows.entry)
        if from_test
        else FollowUp.parse(trained)
    )
    cohort = Cohort(
        target=target,
        follow_up=follow_up,
        folds=folds,
        clusters=rows.cluster_codes,
        patients=rows.patient_codes,
    )
    design = design_columns(predicted)
    if design is not None:
        design = (design - design.mean(axis=0)) / np.maximum(design.std(axis=0), 1e-12)
    return judge_curves(
        known.curves,
        cohort,
        horizon=horizon,
        design=design,
        stratum=rows.stratum,
        training_events=_training_events(predicted, trained, cause),
        reference=None if reference is None else _of_cause(reference, target, cause).curves,
        incidence=known.incidence,
        at_times=known.at_times or at_its_times,
        scored_at=scored_at,
    )


def require_an_event(predicted: Predicted, y: Any, time_unit: str = "") -> None:
    """Raise if the last predicted time is before the first event: the times probably are in another unit."""
    curves = predicted.curves
    if not isinstance(curves, PointCurves) or curves.times is None or predicted.trained_on is not None:
        return
    target = outcomes(y, Rows(), None)
    if target.event.any() and not (target.event & (target.time <= predicted.until)).any():
        raise ArgumentError(
            "predictions",
            f"{arg('predictions')} end at {moment(predicted.until, time_unit)}, before the first event: predict later "
            "times, in the unit of the observed times.",
        )


def with_predicted_times(y: Any, predicted: Predicted, horizon: float | None = None) -> Any:
    """Return y with times that are a predicted time, or the horizon, up to rounding set to this time.

    A time of 1.1 in single precision is not 1.1, and an event then would not count as one by a predicted time of 1.1.
    The horizon is that of :func:`as_predicted_time`.
    """
    names = getattr(getattr(y, "dtype", None), "names", None)
    if not names or y[names[1]].dtype.kind != "f":
        return y
    time = y[names[1]].astype(np.float64)
    found = _as_predicted(time, predicted)
    if horizon is not None:
        found = set_to(found, np.array([float(horizon)]))
    return y if np.array_equal(found, time) else with_times(y, found)


def as_predicted_time(time: float | None, predicted: Predicted) -> float | None:
    """Return a time, such as the horizon, as the predicted time that it is up to rounding; None for None."""
    return None if time is None else float(_as_predicted(np.array([float(time)]), predicted)[0])


def _as_predicted(time: FloatArray, predicted: Predicted) -> FloatArray:
    """Return times (n,), each set to the predicted time, or that of a step of the curves, that it is up to rounding."""
    if predicted.given is not None and predicted.given.times is not None:
        return set_to(time, np.asarray(predicted.given.times, dtype=np.float64), _SAME_TIME)
    curves = predicted.curves
    return set_to(time, curves.times) if isinstance(curves, StepCurves) and curves.times is not None else time


def judged_times(predicted: Predicted, y: Any, cause: int | None = None) -> FloatArray | None:
    """Return the times at which predictions are judged; None if curves are known throughout, or there are none."""
    if not predicted.has_curves:
        return None
    known = _of_cause(predicted, outcomes(y, predicted.rows, cause), cause)
    return known.curves.times if known.at_times else known.curves.few_times


def at_times(predicted: Predicted, y: Any, times: FloatArray, cause: int | None = None) -> Predicted:
    """Return predictions at some times only: survival, or with `cause` its incidence. Scores of strata are left out."""
    known = _of_cause(predicted, outcomes(y, predicted.rows, cause), cause)
    how: dict[str, Any] = {"times": times, "trained_on": predicted.trained_on}
    if cause is None:
        how["survival"] = known.curves.survival(times)
        if predicted.has_risk and predicted.rows.stratum is None:
            how |= {"risk": predicted.risk, "score_type": predicted.score_type}
    elif known.incidence is None:
        how["incidence"] = {cause: 1 - known.curves.survival(times)}
    else:
        how["incidence"] = {cause: np.column_stack([known.incidence(float(time)) for time in times])}
    given = Predictions(**how)
    return replace(predicted, model=given, rows=predicted.rows.only(()))


def outcomes(y: Any, rows: Rows, cause: int | None) -> Target:
    """Return the target of the event, of one cause if given, with the entry times of the rows."""
    if isinstance(y, CompetingTarget) or has_causes(y):
        causes = parse_competing_target(y, complete=False, require_event=False)
        found = causes.of_any_cause() if cause is None else causes.among_others(cause)
        return replace(found, entry=rows.entry)
    if cause is not None:
        given = arg("cause", cause)
        raise ArgumentError("cause", f"{given} needs causes in y: build it with Surv.competing.")
    target = parse_target(y, require_event=False)
    return Target(target.event, target.time, rows.entry)


def require_event_of(target: Target, y: Any, cause: int | None) -> None:
    """Raise if no patient had an event, of the cause if given."""
    if not target.event.any():
        if cause is None:
            parse_target(of_any_cause(y))
        called = cause_in_words(cause, cause_names(y))
        raise ArgumentError("cause", f"no patient had an event of {called}: there is nothing to judge.")


def without_event(target: Target, y: Any, cause: int | None) -> str:
    """Return a note that no patient had an event; empty if somebody had."""
    if target.event.any():
        return ""
    of_cause = "" if cause is None else f" of {cause_in_words(cause, cause_names(y))}"
    coding = "causes (0 = censored)" if has_causes(y) else "event flag (True = event)"
    return (
        f"no patient had an event{of_cause}: nothing is judged, there are no intervals, and numbers that need events "
        f"are NaN; check the coding of the {coding}."
    )


class _OfCause(NamedTuple):
    """Curves to judge, as in :func:`drosurv.judging.judged.judge_curves`."""

    curves: SurvivalCurves
    incidence: Callable[[float], FloatArray] | None = None
    at_times: bool = False


def _of_cause(predicted: Predicted, target: Target, cause: int | None) -> _OfCause:
    """Return the curves of a cause: its hazards, dF / S(t-) of a table of all causes; its incidence, if it is alone."""
    if cause is None:
        return _OfCause(predicted.survival_curves)
    given = predicted.given
    if predicted.competing is not None and predicted.knows_hazards:
        own, competing = predicted.competing.of_cause(cause), predicted.competing
        return _OfCause(own, partial(_incidence, competing, cause, target.entry))
    curves = predicted.survival_curves
    if given is None or given.times is None or not isinstance(curves, PointCurves):
        raise needs_causes(" at times")
    curves, tables = without_event_of(predicted, cause), dict(given.incidence or {})
    assert curves.times is not None
    # The other causes are known if there are others, or nobody had another.
    alone = len(tables) < 2 and target.other is not None and bool(target.other.any())
    if alone or not curves.known_throughout:
        return _OfCause(curves, at_times=True)
    times, number = curves.times, sorted(tables or {cause}).index(cause) + 1
    tables = {k: np.asarray(F, np.float64) for k, F in tables.items()} or {cause: 1 - curves.survival(times)}
    # Where events happen at the times of the table, its hazards are their probabilities.
    at_times_of_table = np.isin(target.time[target.event], times)
    if at_times_of_table.sum() > 0.5 * len(at_times_of_table):
        competing = CompetingCurves.of_incidences(times, tables)
        return _OfCause(competing.of_cause(number), partial(_incidence, competing, number, target.entry))
    own = CompetingCurves.of_incidences(times, tables, between=True).of_cause(number)
    table = partial(_between_times, times, tables, cause, target.entry)
    return _OfCause(PointCurves(own.values, times, own.known_until), table)


def without_event_of(predicted: Predicted, cause: int) -> SurvivalCurves:
    """Return the probability of no event of a cause: one less its given incidence, if there is one."""
    given = predicted.given
    if given is None or given.incidence is None:
        return predicted.survival_curves
    known = given.incidence
    require(cause in known, "cause", f"be one of {sorted(known)}, whose incidence is given", cause)
    return parse_survival(1 - np.asarray(known[cause], np.float64), len(predicted), given.times)


def _incidence(
    competing: CompetingCurves, cause: int, entry: FloatArray | None, horizon: float
) -> FloatArray:
    """Return the probability (n,) of an event of a cause by a time since entry, given no event until then."""
    return competing.incidence(cause, np.array([horizon]), entry).ravel()


def _between_times(
    times: FloatArray, tables: Mapping[int, FloatArray], cause: int, entry: FloatArray | None, horizon: float
) -> FloatArray:
    """Return what `_incidence` does, for tables of events between the times: hazards are constant between them."""
    start = np.zeros((len(tables[cause]), 1))
    grid, F = np.append(0.0, times), np.column_stack([start, tables[cause]])
    survival = 1 - np.column_stack([start, sum(tables.values(), np.zeros(1))])
    logs, rows = minus_log(survival), np.arange(len(F))

    def at(time: FloatArray) -> tuple[FloatArray, FloatArray]:
        right = np.clip(np.searchsorted(grid, time), 1, len(grid) - 1)
        ends = (rows, right - 1), (rows, right)
        passed = np.clip((time - grid[right - 1]) / (grid[right] - grid[right - 1]), 0.0, 1.0)
        alive = np.exp(-(1 - passed) * logs[ends[0]] - passed * logs[ends[1]])
        left = survival[ends[0]] - survival[ends[1]]
        share = np.divide(survival[ends[0]] - alive, left, out=passed.copy(), where=left > 0)
        return F[ends[0]] + share * (F[ends[1]] - F[ends[0]]), alive

    since = np.zeros(len(F)) if entry is None else entry
    (before, alive), (then, _) = at(since), at(since + horizon)
    return np.divide(then - before, alive, out=np.zeros(len(then)), where=alive > 0)


def _training_events(predicted: Predicted, trained: Any, cause: int | None) -> float | None:
    """Return the number of events, of one cause if given, that a model was fitted to; None if not known."""
    final = final_step(predicted.model)
    if cause is not None and np.ndim(getattr(final, "n_events_", 0)) == 1:
        return float(final.n_events_[cause - 1])
    return None if trained is None else FollowUp.parse(trained).events


def design_columns(predicted: Predicted) -> FloatArray | None:
    """Return the columns (n, p) that a linear model has coefficients for; None for others, and more than 60 columns."""
    if predicted.given is not None:
        return predicted.given.design
    estimator = final_step(predicted.model)
    coef = np.atleast_2d(np.asarray(getattr(estimator, "coef_", np.empty((1, 0))), dtype=float))
    Z = predicted.features
    if Z is None or not 0 < coef.shape[-1] <= _MOST_COLUMNS:
        return None
    # Text is encoded, and missing numbers are filled in, as for predictions.
    numbers = getattr(estimator, "_new_features", np.asarray)
    Z = np.asarray(numbers(Z.detach().cpu() if is_tensor(Z) else Z))
    if not np.issubdtype(Z.dtype, np.number) or Z.ndim != 2 or not np.isfinite(Z).all():
        return None
    design = getattr(estimator, "_design", None)
    if design is not None and Z.shape[1] == estimator.n_features_in_:
        Z = design.standardised(Z.astype(np.float64))
    return None if Z.shape[1] != coef.shape[-1] else Z.astype(np.float64)
