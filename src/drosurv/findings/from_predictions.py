"""What tests are made from, for any form of predictions: fitted models, arrays, causes, strata, entry, folds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from drosurv.curves import PointCurves, SurvivalCurves, parse_survival
from drosurv.errors import ArgumentError
from drosurv.findings.judged import Cohort, Judged, judge_curves, known_throughout
from drosurv.metrics import FollowUp
from drosurv.observation import Rows, label_codes
from drosurv.predictions import Predicted, final_step
from drosurv.solvers.arrays import is_tensor
from drosurv.target import (
    BoolArray,
    CompetingTarget,
    FloatArray,
    IntArray,
    Target,
    has_causes,
    parse_competing_target,
    parse_target,
)

# The estimation error of a linear model with more coefficients is not computed from its columns.
_MOST_COLUMNS = 60
# Largest number of columns, and of the levels of a column, that censoring may depend on.
_MOST_CENSORING, _MOST_LEVELS = 20, 5


def judged_patients(
    predicted: Predicted,
    y: Any,
    rows: Rows | None = None,
    *,
    follow_up: FollowUp | None = None,
    reference: Predicted | None = None,
    groups: FloatArray | None = None,
    features: Any = None,
    horizon: float | None = None,
    cause: int | None = None,
) -> Judged:
    """Return what tests of predictions are made from.

    Parameters
    ----------
    predicted, reference : Predicted
        Predictions of the n patients, with survival curves.
    y : structured array, (n,)
        Events and times; with causes, of any cause unless `cause` says which.
    rows : Rows, optional
        Entry times, strata, clusters, ids and copies of the patients.
    follow_up : FollowUp, optional
        That of the training patients; by default what the model keeps, else that of these patients.
    groups : (n, q) array, optional
        Indicators of groups, on which censoring may depend.
    features : DataFrame or (n, d) array, optional
        Features on which censoring may depend.
    horizon : float, optional
        As in :func:`drosurv.findings.judged.judge_curves`.
    cause : int, optional
        One of several causes.
    """
    rows = Rows() if rows is None else rows
    target, other = _outcomes(y, rows, cause)
    stratum = None if rows.strata is None else label_codes("strata", rows.strata, len(target))[0]
    labels = rows.clusters if rows.clusters is not None else rows.id
    clusters = None if labels is None else label_codes("clusters", labels, len(target))[0]
    trained = follow_up if follow_up is not None else predicted.follow_up
    events = _training_events(predicted, trained, cause)
    # Where patients entered late, or one cause is judged, one curve for everybody is that of these patients.
    stands_in = trained is None or rows.entry is not None or cause is not None
    cohort = Cohort(
        target=target,
        follow_up=_own_follow_up(target, rows) if stands_in else FollowUp.parse(trained),
        other=other,
        columns=_censoring_columns(groups, features, len(target)),
        weight=rows.weight,
        clusters=clusters,
    )
    return judge_curves(
        _curves(predicted, target, cause),
        cohort,
        horizon=horizon,
        design=design_columns(predicted),
        stratum=stratum,
        training_events=events,
        cross_fitted=predicted.trained_on is not None,
        reference=None if reference is None else _curves(reference, target, cause),
    )


def _outcomes(y: Any, rows: Rows, cause: int | None) -> tuple[Target, BoolArray | None]:
    """Return the target, of one cause if given, and who had an event of another cause."""
    if isinstance(y, CompetingTarget) or has_causes(y):
        causes = parse_competing_target(y, complete=False)
        found = causes.of_any_cause() if cause is None else causes.of_cause(cause)
        other = None if cause is None else (causes.cause > 0) & (causes.cause != cause)
        return Target(found.event, found.time, rows.entry), other
    if cause is not None:
        raise ArgumentError(
            "cause", "cause needs a target with causes: build y with Surv.competing(cause, time)."
        )
    target = parse_target(y)
    return Target(target.event, target.time, rows.entry), None


def _curves(predicted: Predicted, target: Target, cause: int | None) -> SurvivalCurves:
    if cause is None:
        return predicted.survival_curves
    given = predicted.given
    if predicted.competing is None:
        curves = predicted.survival_curves
        if isinstance(curves, PointCurves):
            # One column of incidences: judged at its times.
            return curves
    elif given is None:
        return predicted.competing.of_cause(cause)
    else:
        return _curves_of_incidence(predicted, target, cause)
    raise ArgumentError("cause", "cause needs a model of causes, or predicted incidences.")


def _curves_of_incidence(predicted: Predicted, target: Target, cause: int) -> SurvivalCurves:
    """Return hazards dF / S(t-) of a table of incidences whose times are close together; else the incidence itself."""
    assert predicted.given is not None
    assert predicted.given.incidence is not None
    assert predicted.competing is not None
    own = predicted.competing.of_cause(cause)
    assert own.times is not None
    table = PointCurves(own.values, own.times, own.known_until)
    if not known_throughout(table, target):
        survival = 1 - np.asarray(predicted.given.incidence[cause], dtype=np.float64)
        return parse_survival(survival, len(predicted), predicted.given.times)
    # Where events happen at the times of the table, its hazards are their probabilities.
    return own if np.isin(target.time[target.event], own.times).mean() > 0.5 else table


def _own_follow_up(target: Target, rows: Rows) -> FollowUp:
    return replace(FollowUp.of(target, rows.weight, entry=rows.entry), stands_in=True, events=0.0)


def _training_events(predicted: Predicted, trained: Any, cause: int | None) -> float | None:
    """Return the number of events, of one cause if given, that a model was fitted to; None if not known."""
    final = final_step(predicted.model)
    if cause is not None and np.ndim(getattr(final, "n_events_", 0)) == 1:
        return float(final.n_events_[cause - 1])
    return None if trained is None else FollowUp.parse(trained).training_events


def design_columns(predicted: Predicted) -> FloatArray | None:
    """Return the standardised features (n, p) of a linear model; None for other models, and more than 60 columns."""
    estimator = final_step(predicted.model)
    coef = np.atleast_2d(np.asarray(getattr(estimator, "coef_", np.empty((1, 0))), dtype=float))
    Z = predicted.features
    if Z is None or not 0 < coef.shape[-1] <= _MOST_COLUMNS:
        return None
    Z = np.asarray(Z.detach().cpu() if is_tensor(Z) else Z)
    if not np.issubdtype(Z.dtype, np.number) or Z.ndim != 2 or not np.isfinite(Z).all():
        return None
    design = getattr(estimator, "_design", None)
    if design is not None and Z.shape[1] == estimator.n_features_in_:
        Z = design.standardised(Z.astype(np.float64))
    if Z.shape[1] != coef.shape[-1]:
        return None
    found: FloatArray = (Z - Z.mean(axis=0)) / np.maximum(Z.std(axis=0), 1e-12)
    return found


def _censoring_columns(groups: FloatArray | None, features: Any, n: int) -> FloatArray:
    """Return numeric columns (n, q) on which censoring may depend: groups, numbers, and columns with few levels."""
    found: list[Any] = [] if groups is None else list(np.asarray(groups, np.float64).T)
    if features is not None and not is_tensor(features):
        table = features if isinstance(features, pd.DataFrame) else pd.DataFrame(np.asarray(features))
        for _, column in table.items():
            found += _numeric(column)
    kept = found[:_MOST_CENSORING]
    return np.column_stack(kept).astype(np.float64) if kept else np.empty((n, 0))


def _numeric(column: pd.Series) -> list[FloatArray | IntArray]:
    """Return a column of numbers with the mean for missing ones, or indicators of few levels; else nothing."""
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        values = np.where(np.isfinite(values), values, np.nan)
        if np.isnan(values).all():
            return []
        return [np.where(np.isnan(values), np.nanmean(values), values)]
    codes, levels = pd.factorize(column)
    return (
        [(codes == k).astype(np.float64) for k in range(len(levels))] if len(levels) <= _MOST_LEVELS else []
    )
