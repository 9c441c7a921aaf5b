"""Bound the error of a model in all subgroups that one or two conditions define, at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, arg, as_number, as_whole, each_warning_once, require, warn_caller
from drosurv.judging.adjustment import RELEVANCE, Question, adjust
from drosurv.judging.drawn_events import PatientEvents
from drosurv.judging.few_times import ResidualsAtTimes
from drosurv.judging.from_predictions import as_predicted_time, judged_patients, with_predicted_times
from drosurv.judging.judged import Horizon, Judged
from drosurv.judging.known_columns import known_columns
from drosurv.judging.questions import KINDS, group_sums, of_level, of_timing
from drosurv.judging.questions import n_patients as count_patients
from drosurv.judging.residual_tests import level as level_test
from drosurv.judging.residual_tests import timing as timing_test
from drosurv.judging.residuals import EstimationError, PatientResiduals, design_effect
from drosurv.judging.rules import CodedTable, readable_table
from drosurv.judging.simultaneous_tests import (
    LEAST_EXPECTED,
    MOST_LEVELS,
    N_CUTS,
    bounded_means,
    compare_events,
    events_of,
    judged_subgroups,
)
from drosurv.judging.subgroup_bounds import BRIER, GAIN, REPLICATES, SubgroupBounds, fewest_replicates
from drosurv.judging.words import CENSORED_BEFORE
from drosurv.metrics import FollowUp
from drosurv.patients.draws import order_by_content
from drosurv.patients.groups import ALL, EVERYONE
from drosurv.patients.observation import Rows, generator, one_row_each
from drosurv.patients.target import (
    BoolArray,
    FloatArray,
    IntArray,
    Target,
    cause_names,
    has_causes,
    of_any_cause,
    parse_target,
)
from drosurv.predictions import as_predictions, of_causes
from drosurv.presentation import cause_in_words, counted_patients, moment, written

LEAST_PATIENTS = 50


@each_warning_once
def certify(
    model: Any,
    X: Any,
    y: Any,
    *,
    alpha: float = 0.05,
    horizon: float | None = None,
    brier_time: float | None = None,
    level: float = 0.95,
    features: Any = None,
    keep_columns: Sequence[str] = (),
    n_bootstrap: int | None = None,
    random_state: int | np.random.Generator | None = 0,
    strata: Any = None,
    offset: Any = None,
    cause: int | str | None = None,
) -> SubgroupBounds:
    """Bound how wrong a model is in every subgroup that one or two conditions on the columns define.

    Subgroups are made of conditions on the columns: numbers above or not above a decile, a category or any other, a
    missing value; one condition, or two joined by "and", with more than 60 columns on the same column only. Those with
    at least the share `alpha` of the patients and at least 10 predicted events are tested all at once, on patients that
    the model was not trained on.

    Parameters
    ----------
    model : fitted survival model, :class:`drosurv.evaluation.Predictions`, or a pair (times, survival)
        It must predict survival curves: risk scores alone do not give a number of events.
    X : (n, d) array or DataFrame
        Features, as the model takes them, of patients that it was not trained on.
    y : structured array (n,)
        Events and times of the same patients, with further fields as in :func:`drosurv.evaluate`; with competing
        causes, an event of any cause unless `cause` says which.
    alpha : float
        Size of the smallest subgroup, as a share of the patients in (0, 1]; the rows of one patient have equal shares.
    horizon : float, optional
        Time until which events are counted, and of the Brier score; by default the whole follow-up is counted.
    brier_time : float, optional
        Time of the Brier score, if not the `horizon`. Without both it is the median follow-up, but at most the last
        time at which a tenth of the patients is at risk, and one of the times of predictions at few times.
    level : float
        Confidence of the bounds, for all subgroups at once; 1 - level is the chance of a false alarm.
    features : DataFrame (n, d'), optional
        Columns that may define subgroups, in units and names that a reader knows; ``X`` by default.
    keep_columns : sequence of str
        Columns that are known when a prediction is made although they look like the outcome. Others that look like it
        define no subgroups.
    n_bootstrap : int, optional
        Number of simulations, and of replicates of the multiplier bootstrap, by default 999. The smallest possible
        p-value is 3 / (n_bootstrap + 1): with fewer than 59 simulations no p-value is below 0.05.
    random_state : int, Generator or None
        Seed or source of randomness.
    strata, offset : (n,), optional
        Strata and offset of the patients, for models that take them.
    cause : int or str, optional
        Judge one of several causes; the Brier score is that of its incidence.

    Returns
    -------
    SubgroupBounds

    Notes
    -----
    *Observed / expected events* are those of :mod:`drosurv.judging`. Where curves are known throughout, events are
    counted over the whole follow-up. Predictions at few times are compared with the events by the last of these times,
    weighted for censoring among patients of like risk. The statistic of a subgroup is the signed root of the Poisson
    deviance over the dispersion.

    *Timing.* The whole follow-up (not with `horizon`) is cut into at most four parts with equal numbers of
    expected events. The events of a subgroup in a part with at least 5 expected events are compared with its share
    of all events of the subgroup, whether their total is right or wrong: the statistic is the difference of square
    roots of counts, over the dispersion.

    *Adjustment.* Outcomes are simulated as if the model were right. Each simulation gives three numbers over all
    subgroups: the largest and the smallest statistic of the number of events, and the largest absolute statistic of the
    parts of the follow-up. A p-value is three times the share of simulations that are at least as extreme. Events are
    drawn from the model's curves, until the patient's censoring time. This is the observed one; for patients with an
    event it is drawn from the Kaplan-Meier curve of censoring after the event. So a right model has a significant
    subgroup with a probability of at most 1 - level. Bounds hold the ratios that the same statistic does not reject.
    With clusters, all rows of a cluster get the same outcome in some of the simulations: in as many as are needed for
    sums of clusters to vary as much as the observed ones.

    The predictions of a fitted model have an estimation error. It is added to the variance if the number of training
    events is known. For predictions in folds it is subtracted, because errors of folds cancel. Bounds are for the given
    predictions, and do not contain this error.

    *Brier score and gain over the null model.* Means over a subgroup with one-sided bounds from the largest
    studentised deviation, by a multiplier bootstrap with one multiplier per patient or cluster.

    *Assumptions.* Patients (or clusters) are independent. Censoring is independent of the event time given the
    features. The Brier score of curves that are known throughout, and simulated censoring times after an event,
    also assume that censoring has the same distribution for all patients. Subgroups that need more than two
    columns, finer cuts, or columns that were not measured are not covered.

    *Order.* Random numbers are drawn for the patients in an order by what is known about them. So the results depend
    neither on the order of rows and columns, nor on what columns, categories and clusters are called.

    *Many patients.* The simulations are of a sample of at most 200,000 patients, with 10,000 expected events if there
    are as many: the distribution of the most extreme statistic hardly changes with more. Replicates run in threads on
    all cores; the result does not depend on the number of threads.

    Examples
    --------
    >>> import drosurv
    >>> from drosurv.datasets import make_hidden_minority
    >>> train, test = make_hidden_minority(random_state=0), make_hidden_minority(random_state=1)
    >>> model = drosurv.CoxPH().fit(train.X, train.y)
    >>> bounds = drosurv.certify(model, test.X, test.y, n_bootstrap=59)
    >>> "x5 > " in bounds.significant["group"].iloc[0]
    True
    """
    at, rows = Horizon(horizon), Rows.parse(y, strata=strata, offset=offset)
    model, number = of_causes(model, cause, y)
    known = known_columns(model, X, y, features, entry=rows.entry, keep_columns=keep_columns)
    known.warn()
    found = certify_rows(
        model,
        X,
        y,
        rows,
        at,
        alpha=alpha,
        brier_time=brier_time,
        level=level,
        features=known.features,
        n_bootstrap=n_bootstrap,
        random_state=random_state,
        cause=number,
    )
    if n_bootstrap is not None and n_bootstrap < (fewest := fewest_replicates(level)):
        warn_caller(
            f"with {arg('n_bootstrap', n_bootstrap)}, no subgroup can be significant at the level {level:g}: the "
            f"smallest p-value is 3/{n_bootstrap + 1}. At least {fewest:,} are needed.",
            argument="n_bootstrap",
        )
    notes = [*found.notes, *filter(None, (known.problem, known.note))]
    if rows.n_clusters:
        who = counted_patients(found.n_patients, 0, rows.n_clusters, rows.clusters_name)
        notes.append(f"there are {who}.")
    if has_causes(y):
        notes.append(f"events are those of {cause_in_words(number, cause_names(y))}.")
    return replace(found, notes=tuple(notes))


@each_warning_once
def certify_rows(
    model: Any,
    X: Any,
    y: Any,
    rows: Rows,
    at: Horizon,
    *,
    alpha: float = 0.05,
    brier_time: float | None = None,
    level: float = 0.95,
    features: Any = None,
    n_bootstrap: int | None = None,
    random_state: int | np.random.Generator | None = 0,
    cause: int | None = None,
    y_train: Any = None,
    relevance: float = RELEVANCE,
) -> SubgroupBounds:
    """Bound errors in subgroups, with arguments as in :func:`certify`; `rows` and the horizon `at` are checked already.

    `y_train`, for the null model, is that of an evaluation of the same patients, so that both give the same numbers for
    all patients. If the observed over expected events of all patients differ from 1 by at most the factor `relevance`,
    predictions are not corrected for all patients to judge the subgroups a second time.
    """
    horizon = at.horizon
    require(0 < as_number(alpha) <= 1, "alpha", "lie in (0, 1]", alpha)
    require(0.5 <= as_number(level) < 1, "level", "lie in [0.5, 1)", level)
    n_bootstrap = REPLICATES if n_bootstrap is None else n_bootstrap
    require(as_whole(n_bootstrap) >= 19, "n_bootstrap", "be a whole number of at least 19", n_bootstrap)
    table = readable_table(X, len(y), getattr(model, "feature_names_in_", None), features)
    patients = one_row_each(y, rows)
    y, rows, notes = patients.y, patients.rows, patients.notes
    model, X, table = map(patients.of, (model, X, table))
    if rows.entry is not None:
        notes = (*notes, "patients are judged from their entry on.")
    n = len(y)
    _check_times(parse_target(of_any_cause(y)), horizon, brier_time)
    predicted = as_predictions(model, X, n, rows=rows, need_curves=True)
    horizon, brier_time = (as_predicted_time(time, predicted) for time in (horizon, brier_time))
    for time in (horizon, brier_time):
        y = with_predicted_times(y, predicted, time)
    judge = partial(judged_patients, predicted, y, rows, follow_up=y_train, cause=cause)
    judged = judge(horizon=brier_time if horizon is None else horizon)
    at_brier = judged if horizon is None or brier_time in (None, horizon) else judge(horizon=brier_time)
    everybody = np.ones(n, np.bool_)
    if judged.not_judged:
        notes = (*notes, judged.not_judged)
    n_patients = round(count_patients(judged, everybody))
    if n_patients < LEAST_PATIENTS:
        raise ArgumentError(
            "y",
            f"there are {n_patients} patients, too few for subgroups: at least {LEAST_PATIENTS} are needed.",
        )
    rng = generator(random_state)
    residuals, error, until = judged.residuals, judged.error, np.full(n, np.inf)
    if horizon is not None:
        residuals, error, until = judged.at_horizon, judged.error_at_horizon, judged.cohort.since + horizon
    if isinstance(residuals, ResidualsAtTimes):
        residuals = residuals.until_last()
    means = {BRIER: brier_losses(at_brier), GAIN: -judged.gains}
    order = _order(judged, residuals, at_brier, CodedTable.from_table(table, N_CUTS, MOST_LEVELS))
    events = PatientEvents.of(judged, residuals, until, order, rng)
    if judged.few_times:
        counted_by = f"events are counted by {moment(float(events.ends[-1]), at.time_unit)}"
        notes = (*notes, f"{counted_by}, {CENSORED_BEFORE}.")
    expected = float((events.weight @ events.expected).sum())
    if expected < LEAST_EXPECTED:
        raise ArgumentError(
            "model",
            f"{arg('model')} expects {written(expected) if expected > 0 else 'no'} events of all patients, and "
            f"subgroups need {LEAST_EXPECTED:g}: check the predictions, and test more patients if they are right.",
        )
    subgroups = judged_subgroups(table, events, alpha * events.counts.sum())
    if len(subgroups) == 0:
        enough = len(judged_subgroups(table, events, 0.0)) > 0
        remedy = f"pass a smaller {arg('alpha')}" if enough else "test more patients"
        raise ArgumentError(
            "alpha",
            f"no subgroup has at least {arg('alpha', alpha)} of the {n_patients:,} patients and {LEAST_EXPECTED:g} "
            f"expected events: {remedy}.",
        )
    sample = events.sample(rng)
    how = (level, n_bootstrap, rng)
    test = compare_events(subgroups, events, sample, *how, error)
    overall, timing, (wrong_number, wrong_timing) = _overall(residuals, everybody, error, level, relevance)
    rescaled = None
    if wrong_number or wrong_timing:
        ratios = np.full(len(events.ends), overall["ratio"])
        if wrong_timing:
            observed, expected = (part.sum(axis=0) for part in (events.observed, events.expected))
            ratios = np.maximum(observed, 0.0) / np.maximum(expected, 1e-12)
        again = events.rescaled(ratios)
        if float((again.weight @ again.expected).sum()) >= LEAST_EXPECTED:
            rescaled = compare_events(subgroups, again, again.sample(rng), *how, error)
    if at_brier.few_times and at_brier.cohort.since.any():
        del means[BRIER]
    bounded = bounded_means(subgroups, means, events.weight, sample, *how)
    if BRIER in bounded:
        bounded[BRIER]["bound"] = min(bounded[BRIER]["bound"], 1.0)
    bounded[GAIN] |= {name: -bounded[GAIN][name] for name in ("estimate", "bound", "all patients")}
    return SubgroupBounds(
        bounds=pd.DataFrame({**test.bounds, **bounded}).T[["estimate", "bound", "group"]],
        significant=test.significant,
        rules=test.rules,
        overall={**overall, **{name: bounded[name]["all patients"] for name in means}},
        rescaled=None if rescaled is None else rescaled.significant,
        rescaled_rules=() if rescaled is None else rescaled.rules,
        timing=timing if wrong_timing else None,
        n_subgroups=len(subgroups),
        n_patients=n_patients,
        n_events=_counted(judged, events, until),
        alpha=float(alpha),
        level=float(level),
        horizon=at_brier.horizon,
        counted_until=None if horizon is None else float(horizon),
        notes=notes,
        subgroups=subgroups,
        n_bootstrap=int(n_bootstrap),
        design_effect=design_effect(residuals),
    )


def _order(judged: Judged, residuals: PatientResiduals, at_brier: Judged, table: CodedTable) -> IntArray:
    """Return the rows (n,) in the order in which outcomes are drawn for them, by what is known about them."""
    cohort, target = judged.cohort, judged.cohort.target
    ended = np.where(target.event, 2, target.ended)
    known = [target.time, ended, cohort.since, *residuals.expected.T, at_brier.risk]
    return order_by_content(known, table.codes.T, cohort.clusters)


def _counted(judged: Judged, events: PatientEvents, until: FloatArray) -> int:
    """Return the number of events that were counted: with predictions at few times, those by the last known one."""
    target = judged.cohort.target
    last = np.minimum(until, events.ends[-1]) if judged.few_times else until
    return round(float(events.weight @ (target.event & (target.time <= last))))


def enough_replicates(level: float, factor: float) -> int:
    """Return a number of replicates with which p-values can be significant after multiplication by a factor."""
    # The smallest p-value is 3 / (replicates + 1): with 999 replicates and a factor of 5, three tenths of 0.05.
    return int(np.ceil(REPLICATES * max(1.0, factor / 5 * 0.05 / (1 - level))))


def _check_times(target: Target, horizon: float | None, brier_time: float | None) -> None:
    """Raise if a time is not within the follow-up."""
    longest = float(target.time.max())
    require(brier_time is None or as_number(brier_time) > 0, "brier_time", "be a time above 0", brier_time)
    for name, time in (("horizon", horizon), ("brier_time", brier_time)):
        if time is not None and time > longest:
            raise ArgumentError(
                name, f"{arg(name, time)} must not lie after the longest time in y, {longest:g}."
            )


def _overall(
    residuals: PatientResiduals,
    everybody: BoolArray,
    error: EstimationError | None,
    level: float,
    relevance: float,
) -> tuple[dict[str, float], dict[str, Any] | None, tuple[bool, bool]]:
    """Return the events of all patients, those of the most extreme part if it is tested, and which are wrong."""
    sums = group_sums(residuals, everybody, error)
    assert sums is not None
    ends = residuals.ends[: len(sums.observed)]
    timed, of_number = timing_test(sums, ends), of_level(residuals, everybody, len(ends) - 1)
    of_parts = None if timed is None else of_timing(residuals, everybody, sums, timed)
    asked = [
        Question(KINDS["level"], EVERYONE, ALL, level_test(sums), contributions=of_number),
        Question(KINDS["timing"], EVERYONE, ALL, timed, contributions=of_parts),
    ]
    number, part = adjust(asked, level, searched=True, clusters=residuals.clusters, relevance=relevance)
    overall = {"observed": max(float(sums.observed.sum()), 0.0), "expected": float(sums.expected.sum())}
    overall |= {"ratio": number.value, "low": number.low, "high": number.high, "p": number.p}
    if timed is None:
        return overall, None, (number.wrong, False)
    at = int(np.searchsorted(ends, timed.time))
    timing = {**events_of(sums.observed, sums.expected, ends, at), "p": part.p}
    return overall, timing, (number.wrong, part.wrong)


def brier_losses(judged: Judged) -> FloatArray:
    r"""Return squared errors (n,) of predictions at the horizon, weighted by the inverse probability of censoring.

    .. math:: w_i = \frac{1[Y_i \le t, d_i = 1]}{G(Y_i-)} + \frac{1[T_i > t]}{G(t-)}

    With causes, d is an event of any cause; patients who had another one are free of this event. T > t is known if the
    patient was observed longer than t, or censored at t. At few times, weights are those of patients of like risk.
    """
    at = judged.at_horizon
    if isinstance(at, ResidualsAtTimes):
        F, outcome, followed = (part[:, 0] for part in (at.probability, at.outcome, at.followed))
        return followed * (outcome * (1 - 2 * F) + F**2)
    ends = judged.cohort.target.since_entry
    horizon = np.array([judged.horizon])
    weights = FollowUp.of(ends).censoring_weights(ends, horizon)
    return weights.squared_errors(horizon, judged.risk[:, None]).ravel()
