"""`evaluate`: every metric of one model on one set of patients, overall and by group.

Its steps: predictions from entry on where patients entered late (`from_entry`); predictions and outcomes (`data`);
the metrics (`catalogue`) of everybody and of groups, with replicates and tests, as one table (`evaluator`); the group
table (`groups`); and the result (`result`) with its sentences and tables (`views`) and plots (`plots`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from drosurv.errors import as_number, each_warning_once, require
from drosurv.evaluation.attributes import ALL, EVERYONE, Count, parse_attributes, warn_of_small_groups
from drosurv.evaluation.by_cause import evaluate_by_cause
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.curves_by_group import curves_by_group, shrunken_ratios
from drosurv.evaluation.data import EvaluationData, Subset
from drosurv.evaluation.decision_curves import parse_thresholds
from drosurv.evaluation.evaluator import (
    BootstrapValues,
    Evaluator,
    Key,
    frame_of,
    gaps_between_large,
    rows_of,
    warn_of_undefined_rows,
    without_intervals,
)
from drosurv.evaluation.from_entry import one_row_each, predict_from_entry, reference_from_entry
from drosurv.evaluation.group_table import decision_table, group_table, group_tables, parse_subgroups
from drosurv.evaluation.reference import fit_plain_cox, shrinkage_control, standardised_features
from drosurv.evaluation.result import EvaluationResult, Settings
from drosurv.evaluation.result_views import hazards_statement
from drosurv.metrics import FollowUp, default_horizon
from drosurv.metrics.disparities import sampled_individual_disparity
from drosurv.metrics.sampled_pairs import sampled_number
from drosurv.observation import Inference, Rows, label_codes
from drosurv.predictions import Predicted, as_predictions, model_name
from drosurv.presentation import Statement, counted, moment, written
from drosurv.presentation.progress import bar
from drosurv.target import has_causes, of_any_cause, parse_target

# Groups with fewer patients or events are marked, with a warning, and not judged.
MIN_GROUP, MIN_EVENTS = 50, 10
# Intervals and tests from fewer replicates get a note that they are rough.
_FEW = 50
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
    entry: Any = None,
    strata: Any = None,
    offset: Any = None,
    id: Any = None,
    sample_weight: Any = None,
    horizon: float | None = None,
    threshold: float | None = None,
    thresholds: Any = None,
    subgroups: Mapping[str, Any] | None = None,
    n_bootstrap: int = 500,
    level: float = 0.95,
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: bool | None = None,
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
        Event and time of the patients. With causes (:meth:`drosurv.Surv.competing`), for a model of causes, the event
        is an event of any cause, and ``by_cause`` has metrics of each cause.
    y_train : structured array or FollowUp, optional
        Training targets, for censoring weights and the null model. By default what a fitted model of this library
        keeps in ``follow_up_``; for other models those of the scored patients are used, and the notes say so.
    sensitive_features : DataFrame, Series, mapping, (n,) or (n, J) labels, or None
        One column of group labels per attribute. Patients without a label form a group of their own.
    X_train : (m, d) array or DataFrame, optional
        Features of the training patients: they standardise X for F_I, and plain Cox is fitted on them if no
        reference is given.
    reference : fitted model, Predictions, pair (times, survival), or (n,) array, optional
        Model to compare with: by its likelihood gain, and by its scores multiplied by factors below 1 (shrinkage
        control). Strata and offset are passed to it if it was fitted with them. Without a reference and without X_train
        the comparison is left out, and the notes say so.
    entry : (n,) array, optional
        Times from which the patients were under observation. They are evaluated from then on: times and horizons count
        from entry, and predictions are conditional on no event before it.
    strata, offset : (n,) arrays, optional
        Strata and offset of the patients, for a model that was fitted with them. With strata, patients are ranked by
        their predicted cumulative hazard at the horizon.
    id : (n,) array, optional
        Patient of each row, if some have several rows. With `entry` each patient is evaluated once: predicted from the
        features of the first row, and followed until the first event or the end of the last row. Without `entry` rows
        of one patient are correlated: bootstrap replicates draw patients.
    sample_weight : (n,) array, optional
        Whole numbers: a row of weight 2 stands for two patients, as if it were there twice.
    horizon : float, optional
        The time at which predicted and observed survival of groups are compared. By default the median follow-up
        (reverse Kaplan-Meier) of the scored patients, at most the last time with a tenth of them at risk, and at most
        the last time of given predictions.
    threshold : float, optional
        Patients would be treated if their predicted probability of an event by the horizon is at least this. If given,
        ``decisions`` holds sensitivity, specificity, predictive values and net benefit by group.
    thresholds : (K,) array, optional
        Thresholds of the decision curves; by default round numbers up to the 99th percentile of the predicted risks.
    subgroups : mapping, optional
        Name of a subgroup to a mask (n,) of its patients: more rows of ``groups``, such as subgroups that were found.
    n_bootstrap : int
        Number of bootstrap replicates for intervals, and of permutations of the labels for tests of gaps; 0 for none.
    level : float
        Nominal coverage of the intervals.
    random_state : int, Generator or None
        Seed of the resampling.
    n_jobs : int, optional
        Replicates computed at once; by default one per processor core, one alone for few patients. The result does not
        depend on it.
    verbose : bool, optional
        Whether a progress bar may appear when it takes long; by default in a terminal.

    Returns
    -------
    EvaluationResult
        A table (``.to_frame()``) and its views: ``.summary()``, ``.to_markdown()``, ``.to_dict()`` and plots.

    Examples
    --------
    >>> import drosurv
    >>> from drosurv.datasets import make_hidden_minority
    >>> train, test = make_hidden_minority(400, random_state=0), make_hidden_minority(400, random_state=1)
    >>> model = drosurv.CoxPH().fit(train.X, train.y)
    >>> result = drosurv.evaluate(
    ...     model, test.X, test.y, y_train=train.y, sensitive_features=test.sensitive_features, n_bootstrap=0
    ... )
    >>> table = result.to_frame()
    >>> table.query("kind == 'group' and metric == 'concordance_index'")["value"].round(1).tolist()
    [0.7, 0.5]
    """
    rows = Rows.parse(
        parse_target(of_any_cause(y)),
        entry=entry,
        strata=strata,
        offset=offset,
        id=id,
        sample_weight=sample_weight,
    )
    return evaluate_rows(
        model,
        X,
        y,
        rows,
        Inference(level, n_bootstrap, random_state, n_jobs, verbose),
        y_train=y_train,
        sensitive_features=sensitive_features,
        X_train=X_train,
        reference=reference,
        horizon=horizon,
        threshold=threshold,
        thresholds=thresholds,
        subgroups=subgroups,
    )


def evaluate_rows(
    model: Any,
    X: Any,
    y: Any,
    rows: Rows,
    inference: Inference,
    *,
    y_train: Any = None,
    sensitive_features: Any = None,
    X_train: Any = None,
    reference: Any = None,
    horizon: float | None = None,
    horizons: Any = None,
    threshold: float | None = None,
    thresholds: Any = None,
    subgroups: Mapping[str, Any] | None = None,
    further_tests: int = 0,
) -> EvaluationResult:
    """Evaluate with arguments as in :func:`evaluate`, those about rows and inference already checked.

    `horizons` (h,) are further times of the calibration table; by default the quartiles of the training event times.
    The group table is adjusted for so many `further_tests` on the same patients too.
    """
    # Arguments are checked before any work.
    require(horizon is None or as_number(horizon) > 0, "horizon", "be a time above 0", horizon)
    require(threshold is None or 0 < as_number(threshold) < 1, "threshold", "lie between 0 and 1", threshold)
    thresholds = parse_thresholds(thresholds)
    patients = one_row_each(y, rows)
    y, rows = patients.y, patients.observed
    model, X, sensitive_features, reference, subgroups = map(
        patients.of, (model, X, sensitive_features, reference, subgroups)
    )
    y_given, causes, since_entry = y, has_causes(y), None
    predicted = as_predictions(model, X, len(y), rows=rows)
    reference_name = "plain Cox" if reference is None else model_name(reference)
    by_cause = None
    if causes:
        by_cause = evaluate_by_cause(
            model,
            X,
            y,
            horizons,
            sensitive_features=sensitive_features,
            level=inference.level,
            **rows.observed,
        )
    judged = predicted
    if rows.observed or causes:
        when: dict[str, Any] = {"y_train": y_train, "horizons": horizons, "horizon": horizon}
        since_entry = predict_from_entry(predicted, y, **when)
        reference = reference_from_entry(reference, X, y, rows, **when)
        y, y_train = since_entry.y, since_entry.follow_up
        judged = as_predictions(since_entry.predictions, X, len(y))
    evaluator = prepare(
        judged,
        y,
        y_train=y_train,
        sensitive_features=sensitive_features,
        X_train=X_train,
        reference=reference,
        clusters=rows.id if rows.entry is None else None,
        horizons=horizons,
        given_horizon=horizon,
    )
    small = warn_of_small_groups(evaluator.counts, min_group=MIN_GROUP, min_events=MIN_EVENTS)
    if Count.of(evaluator.everyone.target).is_small(MIN_GROUP, MIN_EVENTS):
        small |= {(EVERYONE, ALL)}
    if evaluator.everyone.data.has_curves:
        # Computed before the groups and replicates that share it.
        _ = evaluator.everyone.data.expected_events
    drawn, p_values = _resampled(evaluator, inference)
    table = rows_of(evaluator, drawn, p_values, small, inference.level)
    between_large = gaps_between_large(table, evaluator, drawn, p_values, small, inference)
    warn_of_undefined_rows(table)
    data, control = evaluator.everyone.data, shrinkage_control(evaluator)
    table_of_groups, n_tests = group_table(
        evaluator,
        {
            (row.attribute, row.group): (row.value, row.low, row.high)
            for row in table
            if row.metric == "concordance_index" and row.kind != "gap"
        },
        subgroups=parse_subgroups(subgroups, len(evaluator.everyone)),
        level=inference.level,
        min_group=MIN_GROUP,
        min_events=MIN_EVENTS,
        further_tests=further_tests,
    )
    decided = None
    if threshold is not None and data.has_curves:
        decided = decision_table(evaluator, threshold, inference)
    return EvaluationResult(
        decisions=decided,
        **curves_by_group(evaluator, X, thresholds, threshold, inference),
        shrunken=shrunken_ratios(table_of_groups, inference.level),
        table=frame_of(table),
        groups=table_of_groups,
        **group_tables(evaluator, drawn, inference.level),
        control=control,
        between_large=frame_of(between_large),
        hazards=tuple if causes else partial(_tested_hazards, model, X, y_given, rows, inference),
        by_cause=by_cause,
        notes=(
            *patients.notes,
            *(since_entry.notes if since_entry else ()),
            *evaluator.notes,
            *_not_counted(data),
            *_rough(inference),
            *(without_intervals(table) if inference.n_bootstrap else ()),
            *(() if control is None else control.notes),
        ),
        settings=Settings(
            model=predicted.title,
            reference=reference_name,
            n_bootstrap=inference.n_bootstrap,
            level=inference.level,
            horizons=tuple(data.calibration_times.tolist()),
            horizon=data.horizon,
            threshold=threshold,
            n_tests=n_tests,
        ),
    )


def _tested_hazards(model: Any, X: Any, y: Any, rows: Rows, inference: Inference) -> tuple[Statement, ...]:
    """State whether effects change with time."""
    return hazards_statement(model, X, parse_target(y), rows.observed, inference.level)


def _resampled(evaluator: Evaluator, inference: Inference) -> tuple[BootstrapValues, dict[Key, float]]:
    """Return the metrics with their replicates, and p-values of permutation tests."""
    replicates = inference.n_bootstrap
    tests = len(evaluator.tests) if replicates else 0
    with bar("evaluating", replicates + tests, shown=inference.verbose, late=True) as advance:
        drawn = evaluator.draw(inference, advance=advance)
        return drawn, evaluator.p_values(inference, advance=advance)


def prepare(
    predicted: Predicted,
    y: Any,
    *,
    y_train: Any,
    sensitive_features: Any,
    X_train: Any = None,
    reference: Any = None,
    wanted: Collection[str] | None = None,
    clusters: Any = None,
    **how: Any,
) -> Evaluator:
    """Check the arguments, predict, and return the evaluator of all metrics, or of those `wanted`.

    Parameters are those of :func:`evaluate`; `how` are those of :class:`~drosurv.evaluation.data.EvaluationData`.
    """
    target, X = parse_target(y), predicted.X
    if how.get("given_horizon") is None and how.get("horizons") is None:
        how["given_horizon"] = default_horizon(target, predicted.until)
    follow_up_note = ""
    if y_train is None:
        y_train = predicted.follow_up
    if y_train is None:
        y_train = FollowUp.standing_in(target)
        follow_up_note = (
            "censoring weights and the null model come from the scored patients: y_train was not given."
        )
    attributes = parse_attributes(sensitive_features, len(target))
    features = standardised_features(X, X_train)
    reference_note = ""
    compared = reference, X
    if reference is None:
        cox, reference_note = fit_plain_cox(predicted.model, features, y_train)
        compared = cox, features.test
    other = None
    if compared[0] is not None:
        other = as_predictions(*compared, len(target), name="reference")
        if not other.has_log_hazards:
            reference_note = (
                "the share of the reference's likelihood gain and the shrinkage control are left out: the reference "
                "has no scores that are log hazards."
            )
    data = EvaluationData(predicted, target, y_train, reference=other, features=features.test, **how)
    # Predict now, so that errors come before any other work.
    _ = data.calibration_times, data.has_risk and data.risk, data.has_curves and data.curves
    _ = data.reference_risk, data.reference_curves
    codes = None if clusters is None else label_codes("id", clusters, len(target))[0]
    evaluator = Evaluator(Subset(data), attributes, wanted, clusters=codes)
    notes = [follow_up_note, reference_note, features.note, *_left_out(evaluator), _sampled(evaluator)]
    notes += _different_follow_up(evaluator)
    return replace(evaluator, notes=tuple(note for note in notes if note))


def _not_counted(data: EvaluationData) -> tuple[str, ...]:
    """Return a note on observed events that are later than the predictions, and so are not compared with them."""
    later = data.target.n_events - int(data.expected_events.events.sum()) if data.has_curves else 0
    if later == 0:
        return ()
    verb = "is" if later == 1 else "are"
    return (f"{counted(later, 'event')} {verb} not counted as observed: the predictions end before.",)


def _rough(inference: Inference) -> tuple[str, ...]:
    """Return a note that intervals and tests are rough, if they come from few replicates."""
    if not 0 < inference.n_bootstrap < _FEW:
        return ()
    return (f"intervals and tests are rough: they come from only {inference.n_bootstrap} replicates.",)


def _sampled(evaluator: Evaluator) -> str:
    """Return a note on the standard error of disparities if pairs are sampled; else an empty text."""
    data = evaluator.everyone.data
    number = sampled_number(data.pairs, len(evaluator.everyone))
    if number is None or "individual_disparity" not in (metric.name for metric in evaluator.metrics):
        return ""
    value, error = sampled_individual_disparity(
        data.risk, data.features, convention=data.convention, pairs=number
    )
    relative = f" of {100 * error / value:.2g} %" if value > 0 else ""
    return (
        f"F_I and the censoring-aware disparities are estimated from {number:,} random pairs of patients, with a "
        f"standard error{relative}."
    )


def _different_follow_up(evaluator: Evaluator) -> list[str]:
    """Return a note for every attribute whose groups have very different follow-up."""
    notes = []
    for attribute in evaluator.attributes:
        found = evaluator.follow_ups[attribute.name]
        if found.differs:
            medians = ", ".join(
                f"{label}: {written(median, 'time')}"
                for label, median in zip(attribute.labels, found.medians.values(), strict=True)
            )
            notes.append(
                f"follow-up differs between groups of {attribute.name} (median {medians}): their Brier scores, gains "
                f"and Uno's C use censoring weights of each group and end at {moment(found.horizon)}; their c-indices "
                "are not comparable."
            )
    return notes


def _left_out(evaluator: Evaluator) -> list[str]:
    """Return notes on the metrics that are left out, with the reason."""
    notes, data = [], evaluator.everyone.data
    if not data.has_curves:
        notes.append(
            "Brier scores, likelihood gains and calibration are left out: the model gives no survival curves."
        )
    if not data.has_risk:
        labels = [
            metric.label
            for metric in CATALOGUE.values()
            if {"risk", "log hazard", "slope", "hazards"} & {*metric.needs}
        ]
        notes.append(f"{', '.join(filter(None, labels))} are left out: no risk scores were given.")
    elif not data.has_log_hazards:
        labels = [
            metric.label for metric in CATALOGUE.values() if {"log hazard", "hazards"} & {*metric.needs}
        ]
        notes.append(
            f"{', '.join(filter(None, labels))} are left out: they need scores that are log hazards, and these are "
            f"{_SCORES[data.predicted.score_type]}."
        )
    elif not evaluator.has_hazards:
        notes.append(
            f"disparities of hazards are left out: exp overflows, or is 0, for scores of {data.risk.min():g} to "
            f"{data.risk.max():g}."
        )
    if not evaluator.attributes:
        notes.append("nothing is shown by group: no groups were given.")
    return notes
