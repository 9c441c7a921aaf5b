"""Calibration, Brier score and concordance of a model of competing causes, by cause and group."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.curves import CompetingCurves
from drosurv.errors import ArgumentError, require
from drosurv.evaluation.data import log_hazard, middle
from drosurv.evaluation.evaluator import parse_attributes, rows_by_group
from drosurv.judging.adjustment import RELEVANCE, Question
from drosurv.judging.few_times import horizon_among, predicted_time, times_to_judge
from drosurv.judging.from_predictions import judged_patients, judged_times, require_an_event
from drosurv.judging.judged import refuse_late_entry
from drosurv.judging.questions import FEWEST_EVENTS, FEWEST_PATIENTS, questions
from drosurv.judging.verdict import FindingRow, findings
from drosurv.metrics import (
    FollowUp,
    brier_score_by_cause,
    calibration_by_cause,
    concordance_by_cause,
    default_horizon,
)
from drosurv.metrics.calibration import parse_horizons
from drosurv.patients.groups import ALL, EVERYONE, Missing
from drosurv.patients.observation import Rows, one_row_each
from drosurv.patients.target import (
    FloatArray,
    IntArray,
    Target,
    cause_names,
    has_causes,
    parse_competing_target,
)
from drosurv.predictions import Predicted, as_predictions, of_causes
from drosurv.predictions.any_model import final_step
from drosurv.presentation import cause_label

# Columns of the table, and those that the metrics call otherwise.
_COLUMNS = (
    *("cause", "attribute", "group", "horizon", "predicted", "observed", "observed_low", "observed_high"),
    *("predicted_minus_observed", "observed_if_others_censored", "brier", "c_index", "at_risk", "patients"),
    *("events", "training_events"),
)
_NAMES = {
    "low": "observed_low",
    "high": "observed_high",
    "difference": "predicted_minus_observed",
    "others_censored": "observed_if_others_censored",
}


def evaluate_by_cause(
    model: Any,
    X: Any,
    y: Any,
    at: ArrayLike | None = None,
    *,
    sensitive_features: Any = None,
    level: float = 0.95,
    missing: Missing = "group",
    strata: Any = None,
    offset: Any = None,
) -> pd.DataFrame:
    """Compute calibration, Brier score and concordance of predicted incidences for every cause, group and time.

    Parameters
    ----------
    model : CauseSpecificCox or Predictions
        Fitted, or a Pipeline that ends with one; or predicted incidences of all causes.
    X, y
        Test patients, as in :meth:`drosurv.CauseSpecificCox.fit`; fields of `y` are as in :func:`evaluate`.
    at : (k,) array, optional
        Horizons; by default the quartiles of the training event times. Incidences at few times are
        judged at those times until which enough patients are observed: `at` must be some of them, by default all.
    sensitive_features : Series or DataFrame, optional
        Group labels; each column is an attribute.
    level : float
        Confidence level of the intervals.
    missing : "group" or "drop"
        Whether patients without a label form a group of their own or are left out of that attribute.
    strata, offset : (n,) arrays, optional
        For a model that was fitted with them.

    Returns
    -------
    DataFrame
        ``cause`` (its name if `y` has names, else its number), ``attribute``, ``group``, ``horizon``, mean
        ``predicted`` and ``observed`` (Aalen-Johansen) incidence of the cause by the horizon, the interval
        ``observed_low`` to ``observed_high``, ``predicted_minus_observed``, the estimate if other causes counted as
        censored (``observed_if_others_censored``), ``brier`` at the horizon, with the group's own censoring weights,
        ``c_index`` over the follow-up of
        patients ranked by their predicted incidence at the middle one of the horizons `at`, or else at the horizon that
        :func:`evaluate` chooses, patients ``at_risk`` at the horizon, all
        ``patients``, their ``events`` of the cause, and its ``training_events``. NaN after the end of follow-up.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv import CauseSpecificCox, Surv
    >>> from drosurv.evaluation import evaluate_by_cause
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(300, 2)), Surv.competing(rng.integers(0, 3, 300), rng.exponential(size=300))
    >>> table = evaluate_by_cause(CauseSpecificCox().fit(X, y), X, y, at=[0.5])
    >>> bool((table["observed_if_others_censored"] >= table["observed"]).all())
    True
    """
    parse_competing_target(y, complete=False)
    model = of_causes(model, 1, y)[0]
    patients = one_row_each(y, Rows.parse(y, strata=strata, offset=offset))
    model, X, sensitive_features = map(patients.of, (model, X, sensitive_features))
    y, rows = patients.y, patients.rows
    predicted = as_predictions(model, X, len(y), rows=rows)
    if predicted.competing is None:
        raise ArgumentError.must("model", "predict each cause, as CauseSpecificCox does", model)
    if _late_at_few_times(predicted, y):
        refuse_late_entry()
    groups = rows_by_group(parse_attributes(sensitive_features, len(y), missing=missing))
    return _table(predicted, predicted.competing, y, groups, at, level)


def table_by_cause(
    predicted: Predicted, y: Any, horizon: float | None, *, sensitive_features: Any, level: float
) -> pd.DataFrame | None:
    """Return the table of :func:`evaluate_by_cause`, at the horizon if given; None where causes cannot be judged."""
    if not has_causes(y) or predicted.competing is None or _late_at_few_times(predicted, y):
        return None
    groups = rows_by_group(parse_attributes(sensitive_features, len(predicted), at_least=1))
    return _table(predicted, predicted.competing, y, groups, horizon, level, name="horizon")


def _late_at_few_times(predicted: Predicted, y: Any) -> bool:
    since = predicted.rows.entry
    return since is not None and bool(since.any()) and judged_times(predicted, y) is not None


def _table(
    predicted: Predicted,
    curves: CompetingCurves,
    y: Any,
    groups: Mapping[tuple[str, str], IntArray],
    at: ArrayLike | None,
    level: float,
    name: str = "at",
) -> pd.DataFrame:
    """Return the table of :func:`evaluate_by_cause`; messages call the times `at` by the argument `name`."""
    target = parse_competing_target(y, complete=False, require_event=False)
    codes = predicted.rows.cluster_codes
    final, since = final_step(predicted.model), predicted.rows.entry
    follow_up = FollowUp.of(target.of_any_cause()) if predicted.follow_up is None else predicted.follow_up
    if since is not None:
        target = replace(target, entry=since).since_entry
        follow_up = FollowUp.of(target.of_any_cause())
    times, horizon = _times(predicted, y, target.of_any_cause(), follow_up, at, name)
    ranked_at = np.array([horizon])
    n_causes = len(curves.causes)
    training_events: Any = getattr(final, "n_events_", np.nan)
    if np.shape(training_events) != (n_causes,):
        training_events = np.full(n_causes, np.nan)
    tables, called = [], cause_names(y)
    for cause in range(1, n_causes + 1):
        incidence = curves.incidence(cause, times, since)
        # Not by the score of the cause: a high risk of another cause, too, makes its event rare.
        risk = log_hazard(1 - curves.incidence(cause, ranked_at, since)[:, 0])
        everybody = {(EVERYONE, ALL): np.arange(len(target))}
        for (attribute, group), members in {**everybody, **groups}.items():
            causes, seen = target.cause[members], target.time[members]
            alike = None if codes is None else codes[members]
            table = calibration_by_cause(
                causes, seen, incidence[members], times, of=cause, level=level, clusters=alike
            )
            own = FollowUp.of(Target(causes > 0, seen))
            # Censoring weights are not known after the end of follow-up.
            known = times <= own.end
            table["brier"] = np.nan
            table.loc[known, "brier"] = brier_score_by_cause(
                own, causes, seen, incidence[np.ix_(members, known)], times[known], of=cause
            )
            with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
                # A group without a comparable pair has NaN in the table.
                table["c_index"] = concordance_by_cause(causes, seen, risk[members], of=cause)
            table["patients"], table["events"] = len(members), int((causes == cause).sum())
            table["training_events"] = float(training_events[cause - 1])
            tables.append(table.assign(cause=cause_label(cause, called), attribute=attribute, group=group))
    return pd.concat(tables, ignore_index=True).rename(columns=_NAMES)[list(_COLUMNS)]


def _times(
    predicted: Predicted, y: Any, target: Target, follow_up: FollowUp, at: ArrayLike | None, name: str
) -> tuple[FloatArray, float]:
    """Return the times of the table, and the one at which predicted incidences rank patients."""
    given = judged_times(predicted, y)
    asked = None if at is None else np.unique(parse_horizons(name, at))
    if given is not None:
        require_an_event(predicted, y)
        alike, everybody = np.zeros((len(target), len(given))), np.ones(len(target))
        times = given[times_to_judge(given, alike, target, everybody)]
        times = times[times > 0]
        if asked is None:
            return times, horizon_among(times, target)
        asked = np.unique([predicted_time(float(time), times, given, name) for time in asked])
    if asked is not None:
        times, horizon = asked, middle(asked) if len(asked) else 0.0
    else:
        times, horizon = follow_up.event_quartiles, default_horizon(target, predicted.until)
    require(len(times) > 0, name, "hold at least one time", at)
    # Incidences in a table are not known before its first time.
    if predicted.given is not None and not predicted.knows_hazards:
        horizon = max(horizon, float(np.min(predicted.given.times)))
    return times, horizon


def at_middle(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the middle horizon, of everybody and of groups with enough patients and events of a cause."""
    at = table["horizon"] == middle(sorted(table["horizon"].unique()))
    enough = (table["patients"] >= FEWEST_PATIENTS) | (table["attribute"] == EVERYONE)
    return table[at & enough & (table["events"] >= FEWEST_EVENTS)]


def findings_by_cause(
    predicted: Predicted,
    y: Any,
    rows: Rows,
    members: Mapping[tuple[str, str], IntArray],
    *,
    level: float = 0.95,
    relevance: float = RELEVANCE,
    time_unit: str = "",
) -> list[tuple[int | str, FindingRow]]:
    """Return what is found about the events of each cause, of everybody and of `members`, adjusted for all."""
    causes, n = parse_competing_target(y, complete=False).cause, len(predicted)
    everybody = {(EVERYONE, ALL): np.arange(n)}
    masks = {key: np.isin(np.arange(n), own) for key, own in {**everybody, **members}.items()}
    asked: list[tuple[int, Question]] = []
    predicts = 0 if predicted.competing is None else len(predicted.competing.causes)
    for cause in range(1, predicts + 1):
        if (causes == cause).any():
            judged = judged_patients(predicted, y, rows, cause=cause)
            every = questions(judged, masks, time_unit=time_unit)
            asked += [(cause, question) for question in every if question.question == "level"]
    how: dict[str, Any] = {"clusters": rows.cluster_codes, "relevance": relevance}
    found = findings([question for _, question in asked], level, **how)
    return [(cause_label(cause, cause_names(y)), row) for (cause, _), row in zip(asked, found, strict=True)]
