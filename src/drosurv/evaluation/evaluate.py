"""`evaluate`: every metric of one model on one set of patients, overall and by group.

Its steps: predictions and outcomes (`data`); the metrics (`catalogue`) of everybody and of groups, with tests
(`evaluator`); the table of all numbers and the group table (`group_table`); and the result (`result`) with its
sentences and tables (`result_views`) and plots (`plots`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from drosurv.errors import ArgumentError, each_warning_once
from drosurv.evaluation.by_cause import table_by_cause
from drosurv.evaluation.curves_by_group import curves_by_group
from drosurv.evaluation.data import (
    EvaluationData,
    Features,
    Subset,
    curves_since_entry,
    fit_plain_cox,
    ranking_time,
    standardised_features,
)
from drosurv.evaluation.evaluator import Evaluator, compared_attributes, warn_of_small_groups
from drosurv.evaluation.group_table import (
    calibration_table,
    frame_of,
    group_table,
    group_tables,
    parse_subgroups,
    rows_of,
    warn_of_undefined_rows,
    with_findings,
)
from drosurv.evaluation.result import EvaluationResult, Settings
from drosurv.evaluation.result_views import hazards_statement
from drosurv.evaluation.risks_by_time import risks_by_time
from drosurv.judging.few_times import common_times
from drosurv.judging.from_predictions import (
    as_predicted_time,
    judged_patients,
    outcomes,
    with_predicted_times,
    without_event,
)
from drosurv.judging.judged import Horizon
from drosurv.judging.residuals import design_effect
from drosurv.judging.verdict import in_order
from drosurv.judging.words import event_in_words
from drosurv.metrics import FollowUp, default_horizon
from drosurv.paper.disparities import sampled_individual_disparity
from drosurv.paper.sampled_pairs import sampled_number
from drosurv.patients.groups import ALL, EVERYONE
from drosurv.patients.observation import Inference, Rows, one_row_each
from drosurv.patients.target import (
    FloatArray,
    Target,
    cause_names,
    has_causes,
    of_any_cause,
    parse_competing_target,
)
from drosurv.predictions import Predicted, as_predictions, of_causes
from drosurv.predictions.any_model import final_step, name_of_reference
from drosurv.predictions.given import ranked_by_hazard
from drosurv.presentation import cause_in_words, counted, listing, moment, written

_SCORES = {"log time": "log times", "other": "not"}


@each_warning_once
def evaluate(
    model: Any,
    X: Any,
    y: Any,
    *,
    y_train: Any = None,
    sensitive_features: Any = None,
    X_train: Any = None,
    reference: Any = None,
    reference_name: str | None = None,
    strata: Any = None,
    offset: Any = None,
    horizon: float | None = None,
    threshold: float | None = None,
    thresholds: Any = None,
    cause: int | str | None = None,
    subgroups: Mapping[str, Any] | None = None,
    time_unit: str = "",
    level: float = 0.95,
    relevance: float = 1.05,
    paper: bool = False,
) -> EvaluationResult:
    """Compute every metric of a survival model, overall and by group, with intervals and tests.

    Parameters
    ----------
    model : fitted model, Predictions, pair (times, survival), or (n,) array
        Anything with scikit-survival's ``predict`` (and, for Brier scores, likelihood gains and calibration,
        ``predict_survival_function``); or :class:`~drosurv.evaluation.Predictions`, which holds risk scores and
        survival curves as arrays; or increasing times (k,) and the survival (n, k) at them; or risk scores alone.
    X : (n, d) array or DataFrame, or None
        Features of the patients, as the model takes them; F_I also measures distances in them. May be None if `model`
        is given as arrays; F_I is then left out.
    y : structured array, (n,)
        Event and time of the patients, and how they were observed (:class:`drosurv.Surv`). With a field ``entry``,
        they are evaluated from then on: times and horizons count from entry, and predictions are conditional on no
        event before it. With predictions at few times, only patients at risk at the first of them are judged, by
        their later events (with one time, those who entered at 0), and the horizon is one of these times. Of several
        rows (entry, time] with one ``id``, a patient is predicted from the features of the first, and followed until
        the first event or the end of the last; the rows must leave no gap.
        Without ``entry``, rows of one ``id`` are correlated. Patients of one of the ``clusters``, such as a hospital,
        may be alike: each counts, and variances are those of sums by cluster. A row with ``weight`` 2, a whole number,
        stands for two patients, as if it were there twice. With causes (:meth:`drosurv.Surv.competing`), the event
        is an event of any cause unless `cause` says which, and ``by_cause`` has metrics of each cause, at `horizon` if
        it is given.
    y_train : structured array or FollowUp, optional
        Training targets, for the null model. By default what a fitted model of this library keeps in ``follow_up_``;
        for other models those of the test patients are used, and the notes say so.
    sensitive_features : DataFrame, Series, mapping, (n,) or (n, J) labels, or None
        One column of group labels per attribute. Patients without a label form a group of their own.
    X_train : (m, d) array or DataFrame, optional
        Features of the training patients: they standardise X for F_I, and plain Cox is fitted on them if no
        reference is given.
    reference : fitted model, Predictions, pair (times, survival), or (n,) array, optional
        Model to compare with: by its likelihood gain, and by its scores multiplied by factors below 1 (shrinkage
        control). Strata and offset are passed to it if it was fitted with them. Without a reference and without X_train
        the comparison is left out, and the notes say so.
    reference_name : str, optional
        What sentences call it; by default its class, or "the reference" for arrays.
    strata, offset : (n,) arrays, optional
        Strata and offset of the patients, for a model that was fitted with them. With strata, patients are ranked by
        their predicted cumulative hazard at the horizon.
    horizon : float, optional
        The time at which predicted and observed survival of groups are compared. By default the median follow-up
        (reverse Kaplan-Meier) of the test patients, at most the last time with a tenth of them at risk, and at most
        the last time of given predictions.
    threshold : float, optional
        Patients would be treated if their predicted probability of an event by the horizon is at least this. If given,
        ``decisions`` holds sensitivity, specificity, predictive values and net benefit by group.
    thresholds : (K,) array, optional
        Thresholds of the decision curves; by default round numbers up to the 99th percentile of the predicted risks.
    cause : int or str, optional
        One of several causes, by number or name, of a model of causes or of predicted incidences. Expected events are
        its summed hazard; what is predicted by a time is its incidence. Incidences of this cause alone are judged at
        their times.
    subgroups : mapping, optional
        Name of a subgroup to a mask (n,) of its patients: more rows of ``groups``, such as subgroups that were found.
    time_unit : str
        Unit of the times, such as "days", for sentences.
    level : float
        Nominal coverage of the intervals.
    relevance : float
        Ratios of observed to expected events that differ from 1 by at most this factor are no problem, and slopes that
        differ from 1 by at most the factor less 1.
    paper : bool
        Whether to compute the metrics of the paper's tables too, which measure how far predicted hazards differ between
        patients and groups (F_I, F_G, F_cap, F_A), concordance imparity, and the shrinkage control. They have no
        intervals, and nothing is judged by them.

    Returns
    -------
    EvaluationResult
        ``.findings``, what was found about everybody and each group; a table of all metrics (``.to_frame()``) and its
        views: ``.summary()``, ``.to_markdown()``, ``.to_dict()`` and plots.

    Notes
    -----
    Intervals come from the influence of each patient on each number, so they depend neither on a seed nor on the order
    of rows. Censoring weights are those of the evaluated patients; of a group, those of the group. Brier scores of
    everybody and of groups are over the same times, until a tenth of all patients is at risk; a group that was not
    followed until then has none. Uno's C is until that time too; that of groups, and their AUC, are until a time to
    which all large groups of the attribute were followed. Gaps of Harrell's c-index and of the likelihood gain depend
    on the length of follow-up, and have no test. If no patient had an event, nothing is judged, there are no intervals,
    and a note asks to check the coding of the event.

    Examples
    --------
    >>> import drosurv
    >>> from drosurv.datasets import make_hidden_minority
    >>> train, test = make_hidden_minority(400, random_state=0), make_hidden_minority(400, random_state=1)
    >>> model = drosurv.CoxPH().fit(train.X, train.y)
    >>> result = drosurv.evaluate(
    ...     model, test.X, test.y, y_train=train.y, sensitive_features=test.sensitive_features
    ... )
    >>> table = result.to_frame()
    >>> table.query("kind == 'group' and metric == 'concordance_index'")["value"].round(1).tolist()
    [0.7, 0.5]
    """
    rows = Rows.parse(y, strata=strata, offset=offset, require_event=False)
    model, number = of_causes(model, cause, y)
    if reference is not None:
        reference, _ = of_causes(reference, cause, y, name="reference")
    return evaluate_rows(
        model,
        X,
        y,
        rows,
        Inference(level, relevance=relevance),
        Horizon(horizon, threshold, thresholds, time_unit),
        y_train=y_train,
        sensitive_features=sensitive_features,
        X_train=X_train,
        reference=reference,
        reference_name=reference_name,
        cause=number,
        subgroups=subgroups,
        paper=paper,
    )


def evaluate_rows(
    model: Any,
    X: Any,
    y: Any,
    rows: Rows,
    inference: Inference,
    at: Horizon,
    *,
    sensitive_features: Any = None,
    reference: Any = None,
    reference_name: str | None = None,
    cause: int | None = None,
    subgroups: Mapping[str, Any] | None = None,
    **how: Any,
) -> EvaluationResult:
    """Evaluate a model, with arguments as in :func:`evaluate`; `rows`, `inference` and `at` are checked already."""
    patients = one_row_each(y, rows, X)
    y, rows = patients.y, patients.rows
    model, X, sensitive_features, reference, subgroups = map(
        patients.of, (model, X, sensitive_features, reference, subgroups)
    )
    predicted = as_predictions(model, X, len(y), rows=rows)
    at = replace(at, horizon=as_predicted_time(at.horizon, predicted))
    y = with_predicted_times(y, predicted, at.horizon)
    if reference_name is None:
        reference_name = name_of_reference(reference)
    by_cause = table_by_cause(
        predicted, y, at.horizon, sensitive_features=sensitive_features, level=inference.level
    )
    evaluator = prepare(
        predicted,
        y,
        sensitive_features=sensitive_features,
        reference=reference,
        horizon=at.horizon,
        cause=cause,
        time_unit=at.time_unit,
        **how,
    )
    small = warn_of_small_groups(evaluator.counts)
    if evaluator.count(evaluator.everyone).is_small:
        small |= {(EVERYONE, ALL)}
    table, between_large = rows_of(evaluator, small, inference.level)
    data, control = evaluator.everyone.data, evaluator.control
    rows_of_subgroups = parse_subgroups(subgroups, len(evaluator.everyone))
    judged = group_table(
        evaluator, table, at, inference, subgroups=rows_of_subgroups, reference=reference_name
    )
    table = with_findings(table, judged.findings)
    undefined = warn_of_undefined_rows(table, without_event(data.outcome, y, cause))
    return EvaluationResult(
        found=in_order(judged.findings),
        curves=partial(curves_by_group, evaluator, at, inference.level),
        calibrated=partial(calibration_table, evaluator, inference.level),
        subgroups=rows_of_subgroups,
        risks=partial(risks_by_time, evaluator, inference.level),
        table=frame_of(table),
        groups=judged.table,
        **group_tables(evaluator, inference.level),
        control=control,
        between_large=frame_of(between_large),
        hazards=tuple
        if has_causes(y)
        else partial(hazards_statement, model, X, data.outcome, rows, inference.level),
        by_cause=by_cause,
        notes=(
            *patients.notes,
            *evaluator.notes,
            *_not_counted(data, at.time_unit),
            *undefined,
            *(() if control is None else control.notes),
        ),
        not_judged=data.judged.not_judged if data.is_judged else "",
        not_compared=evaluator.not_compared,
        design_effects=_design_effects(evaluator),
        settings=Settings(
            model=predicted.title,
            reference=reference_name,
            level=inference.level,
            horizons=tuple(data.calibration_times.tolist()),
            horizon=data.horizon,
            threshold=at.threshold,
            n_tests=judged.n_tests,
            as_many_tests=judged.as_many_tests,
            time_unit=at.time_unit,
            several_events=data.is_judged and data.judged.cohort.several_events,
            event=event_in_words(y, cause),
            other_events=0
            if cause is None
            else parse_competing_target(y, complete=False, require_event=False).of_others(cause),
            rows=len(data.target),
            clusters=rows.n_clusters,
            clusters_name=rows.clusters_name,
            since=_since(data, at.time_unit),
        ),
    )


def prepare(
    predicted: Predicted,
    y: Any,
    *,
    y_train: Any = None,
    sensitive_features: Any = None,
    X_train: Any = None,
    reference: Any = None,
    wanted: Collection[str] | None = None,
    horizon: float | None = None,
    cause: int | None = None,
    scored_at: FloatArray | None = None,
    paper: bool = False,
    time_unit: str = "",
    **how: Any,
) -> Evaluator:
    """Check the arguments, predict, and return the evaluator of all metrics, or of those `wanted`.

    Parameters are those of :func:`evaluate_rows`, `scored_at` that of :func:`drosurv.judging.judged.judge_curves`;
    `how` are those of :class:`~drosurv.evaluation.data.EvaluationData`.
    """
    n, rows, X = len(predicted), predicted.rows, predicted.X
    given = None if X is None else np.shape(X)[0] if hasattr(X, "shape") else len(X)
    if given not in (None, n):
        raise ArgumentError("X", f"X has {given} rows for the {n} patients of y: give one row each.")
    y_train = None if y_train is None else of_any_cause(y_train)
    attributes, notes = compared_attributes(sensitive_features, n)
    features = standardised_features(X, X_train, in_folds=bool(predicted.trained_on))
    if cause is None and not predicted.has_risk and not rows.observed and not has_causes(y):
        predicted = ranked_by_hazard(predicted)
        if predicted.has_risk:
            notes.append(
                "patients are ranked by the mean of their predicted cumulative hazards: no risk scores were given."
            )
    outcome = outcomes(y, rows, cause)
    trained = _follow_up(predicted, outcome, y, y_train, cause)
    if trained is None:
        trained = FollowUp.of_test_patients(outcome)
        notes.append("the null model comes from the test patients: y_train was not given.")
    ranked_at, ranking_notes = _ranking(predicted, outcome, y, cause, horizon, time_unit)
    notes += ranking_notes
    compared, note = _compared(predicted, reference, features, trained, cause)
    ranks = compared is not None and compared.has_log_hazards and compared.competing is None
    ranks &= cause is None and rows.entry is None and (compared is None or compared.rows.stratum is None)
    if compared is not None and not ranks:
        note = (
            "the share of the reference's likelihood gain and the shrinkage control are left out: the reference "
            "has no scores that are log hazards."
        )
    with_curves = compared if compared is not None and compared.has_curves else None
    how_to_judge = {"follow_up": y_train, "reference": with_curves, "horizon": horizon, "cause": cause}
    how_to_judge |= {"scored_at": scored_at, "require_event": False}
    if with_curves is not None and predicted.has_curves and cause is None:
        models = {"the model": predicted, "the reference": with_curves}
        times = {name: one.survival_curves.few_times for name, one in models.items()}
        shared = common_times(times, "reference")
        notes += [] if shared is None else [shared[1]]
        if times["the reference"] is not None and times["the model"] is None:
            notes.append(
                "the likelihood gain over the reference is left out: the reference is known at few times only, the "
                "model throughout."
            )
    data = EvaluationData(
        predicted,
        outcome,
        FollowUp.parse(trained),
        cause,
        ranked_at,
        reference=compared if ranks else None,
        features=features.test,
        given_horizon=horizon,
        judge=partial(judged_patients, predicted, y, rows, **how_to_judge) if predicted.has_curves else None,
        at_times=scored_at is not None,
        **how,
    )
    # Predict now, so that errors come before any other work.
    _ = cause is None and predicted.curves, data.is_judged and data.judged, data.calibration_times
    _ = data.scores.has_risk and data.risk, data.has_curves and data.curves, data.reference_risk
    marks: dict[str, Any] = {"clusters": rows.cluster_codes, "patients": rows.patient_codes}
    evaluator = Evaluator(Subset(data), attributes, wanted, paper=paper, **marks)
    if (paper and features.test is None) or _shows_individual_disparity(evaluator):
        notes.append(features.note)
    notes += [note, *_left_out(evaluator), _sampled(evaluator), *_different_follow_up(evaluator, time_unit)]
    not_compared = note if cause is None and compared is None else ""
    return replace(evaluator, notes=tuple(filter(None, notes)), not_compared=not_compared)


def _compared(
    predicted: Predicted, reference: Any, features: Features, trained: Any, cause: int | None
) -> tuple[Predicted | None, str]:
    """Return the predictions of the reference, plain Cox where it can be fitted, and a note if there is none."""
    n, rows = len(predicted), predicted.rows
    if reference is None and cause is not None:
        # Of predictions in folds, no other model is known.
        remedy = "" if predicted.trained_on else ": pass one of causes as reference"
        return None, f"the model is compared with no other{remedy}."
    if reference is None:
        cox, note = fit_plain_cox(predicted.model, features, trained)
        return None if cox is None else as_predictions(cox, features.test, n, name="reference"), note
    fitted_with = getattr(final_step(reference), "_fitted_with", ())
    return as_predictions(reference, predicted.X, n, rows=rows.only(fitted_with), name="reference"), ""


def _follow_up(predicted: Predicted, outcome: Target, y: Any, y_train: Any, cause: int | None) -> Any:
    """Return the follow-up of the training patients; that of the test patients with entry times, or of one cause."""
    if outcome.entry is not None and y_train is not None and not isinstance(y_train, FollowUp):
        raise ArgumentError(
            "y_train",
            "y_train cannot be used with entry times: leave it out. Censoring weights come from the test patients, "
            "whose times count from their entry.",
        )
    known = y_train if y_train is not None else predicted.follow_up
    if known is not None and (predicted.rows.observed or has_causes(y)):
        # Plain Cox is not fitted to them: it would know neither entry nor strata nor causes.
        known = FollowUp.parse(of_any_cause(known))
    if outcome.entry is None and cause is None:
        return known
    events = None if known is None or cause is not None else known.events
    return FollowUp.of_test_patients(outcome.since_entry, events)


def _ranking(
    predicted: Predicted, outcome: Target, y: Any, cause: int | None, horizon: float | None, time_unit: str
) -> tuple[float | None, list[str]]:
    """Return the time whose predicted hazards rank patients, and notes; None where their risk scores do.

    Scores of patients in different strata, with different entry times, or of several causes have no common baseline
    hazard.
    """
    called, late = cause_in_words(cause, cause_names(y)), outcome.entry is not None
    if cause is None and not late and not has_causes(y) and predicted.rows.stratum is None:
        return None, []
    if cause is None and late:
        predicted.require_curves("entry")
    curves, notes = curves_since_entry(predicted, outcome, cause), []
    since, by = " after entry" if late else "", "incidence" if cause else "cumulative hazard"
    if curves is None:
        # Of patients who entered late, predictions at few times do not count from entry.
        times, since = predicted.survival_curves.few_times, ""
        assert times is not None
        at, judged = float(times[-1]), "who are at risk at the first predicted time, by their later events"
        if len(times) == 1:
            judged = "who entered at 0"
    else:
        end = np.inf if cause is None else predicted.until
        at = ranking_time(curves, default_horizon(outcome.since_entry, end) if horizon is None else horizon)
    if late and curves is not None:
        notes.append(
            "patients are evaluated from their entry on: times count from there, predictions are conditional on no "
            "event before it, and censoring weights and the null model come from the test patients."
        )
    if cause is not None:
        notes.append(f"events are those of {called}; patients who had another one stay free of it.")
    notes.append(f"patients are ranked by their predicted {by} at {moment(at, time_unit)}{since}.")
    if curves is None:
        notes.append(
            f"with late entry, predictions at few times are judged only for patients {judged}. The horizon is one of "
            "the predicted times. Brier scores, and calibration at times since entry, are left out; the null model "
            "comes from the test patients."
        )
    if has_causes(y) and cause is None:
        notes.append(f"events are those of {called}; the table by cause has each cause.")
    return at, notes


def _since(data: EvaluationData, time_unit: str) -> str:
    """Return words after a time, of patients who entered late: what it counts from, or when they were at risk."""
    entry = data.outcome.entry
    if entry is None or not entry.any() or not data.is_judged:
        return ""
    if data.has_curves:
        return " after entry"
    times = data.predicted.survival_curves.few_times
    assert times is not None, "curves known throughout are known since entry"
    return f" (of those {f'at risk at {moment(float(times[0]), time_unit)}' if len(times) > 1 else 'observed from 0'})"


def _design_effects(evaluator: Evaluator) -> dict[str, float]:
    """Return the design effects of everybody and of each attribute; empty without clusters."""
    data = evaluator.everyone.data
    if evaluator.clusters is None or not data.is_judged:
        return {}
    codes = {attribute.name: attribute.groups.codes for attribute in evaluator.attributes}
    found = {name: design_effect(data.judged.residuals, own) for name, own in codes.items()}
    return {EVERYONE: design_effect(data.judged.residuals), **found}


def _not_counted(data: EvaluationData, time_unit: str) -> Iterator[str]:
    """Yield notes on patients, predictions or events that are not compared with each other."""
    if not data.is_judged:
        return
    residuals, curves = data.judged.residuals, data.predicted.curves
    if data.judged.few_times:
        if data.judged.not_judged:
            yield data.judged.not_judged
        known = residuals.known_parts
        last = residuals.ends[known - 1] if known else -np.inf
        times = () if curves is None or curves.times is None else curves.times
        if late := [moment(float(time), time_unit) for time in times if time > last]:
            yield f"predictions at {listing(late, 3)} are not judged: too few patients are observed until then."
    elif later := data.target.n_events - round(float(residuals.observed.sum())):
        verb = "is" if later == 1 else "are"
        yield f"{counted(later, 'event')} {verb} not counted as observed: the predictions end before."


def _shows_individual_disparity(evaluator: Evaluator) -> bool:
    return any(metric.name == "individual_disparity" for metric in evaluator.metrics)


def _sampled(evaluator: Evaluator) -> str:
    """Return a note on the standard error of disparities if pairs are sampled; else an empty text."""
    data = evaluator.everyone.data
    number = sampled_number(data.pairs, len(evaluator.everyone))
    if number is None or not _shows_individual_disparity(evaluator):
        return ""
    value, error = sampled_individual_disparity(data.risk, data.features, pairs=number)
    relative = f" of {100 * error / value:.2g} %" if value > 0 else ""
    return (
        f"F_I and the censoring-aware disparities are estimated from {number:,} random pairs of patients, with a "
        f"standard error{relative}."
    )


def _different_follow_up(evaluator: Evaluator, time_unit: str) -> Iterator[str]:
    """Yield a note for every attribute whose groups have very different follow-up."""
    for attribute in evaluator.attributes:
        found = evaluator.follow_ups[attribute.name]
        pairs = zip(attribute.labels, found.medians.values(), strict=True)
        medians = ", ".join(f"{label}: {written(median, 'time')}" for label, median in pairs)
        if found.differs:
            yield (
                f"follow-up differs between groups of {attribute.name} (median {medians}): their Uno's C and AUC end "
                f"at {moment(found.horizon, time_unit)}, to which all were followed; their c-indices and gains are not "
                "comparable."
            )


def _left_out(evaluator: Evaluator) -> Iterator[str]:
    """Yield notes on the metrics that are left out, with the reason."""
    data = evaluator.everyone.data
    if not data.is_judged:
        yield "Brier scores, likelihood gains and calibration are left out: the model gives no survival curves."
    elif np.ptp(data.judged.score) == 0:
        yield "the calibration slope is left out: the predictions of all patients are equal."
    if data.is_judged and data.judged.cohort.several_events:
        yield "observed risks are left out: some patients had several events."
    needed = {"log hazard", "hazards"} if data.scores.has_risk else {"risk", "log hazard", "hazards"}
    labels = [one.label for one in evaluator.asked if needed & {*one.needs}]
    if labels and not data.scores.has_risk:
        yield f"{', '.join(labels)} are left out: no risk scores were given."
    elif labels and not data.scores.has_log_hazards:
        yield (
            f"{', '.join(labels)} are left out: they need scores that are log hazards, and these are "
            f"{_SCORES[data.scores.score_type]}."
        )
    elif any("hazards" in one.needs for one in evaluator.asked) and not evaluator.has_hazards:
        risk = data.risk
        yield (
            f"disparities of hazards are left out: exp overflows, or is 0, for scores of {risk.min():g} to "
            f"{risk.max():g}."
        )
    if not evaluator.attributes:
        yield "nothing is shown by group: no groups were given."
