"""Cross-fitted predictions: each fold is predicted by a model that was trained on the other folds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from drosurv.curves import CompetingCurves, PointCurves, SurvivalCurves, TableValues, joined_curves
from drosurv.errors import ArgumentError, arg, as_whole
from drosurv.evaluation import Predictions
from drosurv.evaluation.data import curves_since_entry, log_hazard, ranking_time, standardised_features
from drosurv.judging.from_predictions import design_columns
from drosurv.metrics import FollowUp, default_horizon
from drosurv.patients.draws import draw_folds
from drosurv.patients.observation import Rows, generator, take
from drosurv.patients.target import (
    BoolArray,
    FloatArray,
    IntArray,
    Surv,
    has_causes,
    of_any_cause,
    parse_target,
)
from drosurv.predictions import as_predictions
from drosurv.predictions.any_model import final_step, fit_any, plain_cox, prepared

Parts: TypeAlias = Sequence[tuple[IntArray, IntArray]]
Folds: TypeAlias = int | Iterable[tuple[IntArray, IntArray]]
CROSS_FITTED = (
    "The audited predictions come from several models, each trained without the patients it predicts. A model trained "
    "on all patients differs from them, and is a little better.",
    "The test of all subgroups seldom finds one in cross-fitted predictions: models trained on the other patients of a "
    "subgroup have adapted to it in part.",
)


# Curves are computed at no more times than this.
_TIMES = 300


class PatientRows(NamedTuple):
    """The target `y` of N rows (entry, time] on which models are trained, and the `patient` (N,), a row of X, of each.

    Predictions are made from the first row of a patient, so models are trained with the features, strata and offsets of
    that row in all of them.
    """

    y: Any
    patient: IntArray


def cross_fitted(
    estimator: Any,
    X: Any,
    y: Any,
    parts: Parts,
    *,
    rows: Rows | None = None,
    intervals: PatientRows | None = None,
) -> Predictions:
    """Return out-of-fold risk scores of an estimator, and survival curves if it predicts them.

    A copy of the estimator is trained for each of the `parts`, pairs of the rows to train on and the rows to predict.
    Fields of `y` are used in training, by estimators of this library; others get event and time. Entry, strata and
    offset of the `rows` are used in training and prediction; with them, scores are hazards at one time. Curves are
    those of the models themselves, with their own hazards; of models of causes, those of each cause. With `intervals`,
    a model is trained on all rows of its training patients.
    """
    rows = rows or Rows()
    outcome, causes = replace(parse_target(of_any_cause(y)), entry=rows.entry), has_causes(y)
    given = PatientRows(y, np.arange(len(outcome))) if intervals is None else intervals
    times = curve_times(outcome.time[outcome.event])
    needed: tuple[str, ...] = ("entry",) if intervals is None else ("entry", "id")
    n, risk, trained_on = len(outcome), np.empty(len(outcome)), []
    found: list[tuple[IntArray, SurvivalCurves]] = []
    designs: list[tuple[IntArray, FloatArray | None]] = []
    by_cause: list[tuple[IntArray, CompetingCurves]] = []
    for train, test in parts:
        learned = train if intervals is None else np.flatnonzero(np.isin(given.patient, train))
        of = given.patient[learned]
        fold_options = {name: take(values, of) for name, values in rows.for_models.items()}
        model = fit_any(estimator, take(X, of), given.y[learned], needed, **fold_options)
        seen = outcome.take(train)
        follow_up = FollowUp.of(replace(seen, entry=None), entry=seen.entry)
        trained_on.append((test, Surv.event_time(y)[train] if causes else follow_up))
        last, features = final_step(model), prepared(model, take(X, test))
        predicted = as_predictions(last, features, len(test), rows=rows.take(test))
        if predicted.competing is not None:
            by_cause.append((test, predicted.competing))
        elif not rows.observed:
            # Scores of different models have different zeros: subtract the mean of each model's training patients.
            in_training = as_predictions(last, prepared(model, take(X, train)), len(train))
            risk[test] = predicted.risk - np.mean(in_training.risk)
        designs.append((test, design_columns(predicted)))
        if predicted.curves is not None:
            found.append((test, _known_at(predicted.curves, times)))
    design = _joined(n, designs)
    if by_cause:
        return Predictions(by_cause=CompetingCurves.joined(n, by_cause), trained_on=trained_on, design=design)
    curves = joined_curves(n, found) if found else None
    if curves is None:
        return Predictions(risk, score_type=predicted.score_type)
    how: dict[str, Any] = {"survival": curves, "trained_on": trained_on, "design": design}
    if not rows.observed:
        return Predictions(risk, score_type=predicted.score_type, **how)
    since = curves_since_entry(as_predictions(Predictions(survival=curves), X, n), outcome)
    if since is not None:
        at = ranking_time(since, default_horizon(outcome.since_entry))
        how["risk"] = log_hazard(since.survival(np.array([at]))[:, 0])
    return Predictions(score_type="other", **how)


def _joined(n: int, parts: Sequence[tuple[IntArray, FloatArray | None]]) -> FloatArray | None:
    """Return the columns (n, p) of all folds; None if a fold has none, or another number of them."""
    known = [columns for _, columns in parts if columns is not None]
    if len(known) < len(parts) or len({columns.shape[1] for columns in known}) != 1:
        return None
    found = np.empty((n, known[0].shape[1]))
    for rows, columns in parts:
        found[rows] = columns
    return found


def curve_times(times: FloatArray) -> FloatArray:
    """Return the times at which curves are computed: those given, or quantiles of them if there are many."""
    distinct = np.unique(times)
    if len(distinct) <= _TIMES:
        return distinct
    return np.unique(np.quantile(distinct, np.linspace(0, 1, _TIMES), method="nearest"))


def _known_at(curves: SurvivalCurves, times: FloatArray) -> SurvivalCurves:
    """Return curves that are known at times of their own as known at common times; others unchanged."""
    if not isinstance(curves, PointCurves):
        return curves
    return PointCurves(TableValues(times, curves.survival(times)), times, curves.known_until)


def cross_fitted_cox(
    estimator: Any,
    X: Any,
    y: Any,
    parts: Parts,
    *,
    rows: Rows | None = None,
    intervals: PatientRows | None = None,
) -> Predictions | None:
    """Return out-of-fold predictions of plain Cox on the features of the estimator's last step; None for text."""
    from sklearn.preprocessing import StandardScaler

    steps = [(name, clone(step)) for name, step in getattr(estimator, "steps", ())[:-1]]
    plain = Pipeline([*steps, ("scale", StandardScaler()), ("cox", plain_cox(estimator))])
    features = Pipeline(steps).fit(X, y).transform(X) if steps else X
    if standardised_features(features, None).test is None:
        return None
    return cross_fitted(plain, X, y, parts, rows=rows, intervals=intervals)


def fold_parts(
    event: BoolArray, folds: Folds, random_state: int, clusters: Any = None, order: IntArray | None = None
) -> Parts:
    """Return pairs of the rows to train on and the rows to predict, as given or drawn with events spread evenly.

    Rows of one of the `clusters` (n,), or of one patient, share a fold. With the `order` (n,) of
    :func:`drosurv.patients.draws.row_order` the folds do not depend on the order of the rows.
    """
    if isinstance(folds, Iterable):
        given = [(np.asarray(train), np.asarray(test)) for train, test in folds]
        predicted = np.sort(np.concatenate([[], *(test for _, test in given)]))
        overlap = any(np.isin(train, test).any() for train, test in given)
        if overlap or not np.array_equal(predicted, np.arange(len(event))):
            both = "some rows to predict are also rows to train on"
            wrong = both if overlap else "rows are left out or repeated"
            raise ArgumentError(
                "folds",
                f"{arg('folds')} must predict every patient once, by a model that was trained without them: {wrong}.",
            )
        return given
    fewest = int(np.sum(event))
    if not 2 <= as_whole(folds) <= max(fewest, 2):
        wanted = f"be a whole number from 2 to the number of events, {fewest}"
        raise ArgumentError.must("folds", wanted, folds)
    numbers = draw_folds(len(event), folds, generator(random_state), event, clusters, order=order)
    return [(np.flatnonzero(numbers != fold), np.flatnonzero(numbers == fold)) for fold in range(folds)]
