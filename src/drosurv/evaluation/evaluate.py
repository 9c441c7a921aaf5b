"""`evaluate`: every metric of one model on one set of patients, overall and by group.

Its steps: predictions from entry on where patients entered late (`from_entry`); predictions and outcomes (`data`);
the metrics (`catalogue`) of everybody and of groups, with replicates and tests, as one table (`evaluator`); the group
table (`groups`); and the result (`result`) with its sentences and tables (`views`) and plots (`plots`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from drosurv.errors import ArgumentError, as_number, each_warning_once, require
from drosurv.evaluation.attributes import (
    ALL,
    EVERYONE,
    Count,
    intersection_of,
    parse_attributes,
    warn_of_small_groups,
)
from drosurv.evaluation.by_cause import evaluate_by_cause
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.data import EvaluationData, Subset
from drosurv.evaluation.evaluator import (
    Evaluator,
    frame_of,
    gaps_between_large,
    replicates_of,
    rows_of,
    warn_of_undefined_rows,
    without_intervals,
)
from drosurv.evaluation.from_entry import first_rows, predict_from_entry, reference_from_entry
from drosurv.evaluation.groups import decision_table, group_table, group_tables, parse_subgroups
from drosurv.evaluation.predictions import given_arguments, predict_curves, predict_risk, predicted_until
from drosurv.evaluation.reference import fit_plain_cox, shrinkage_control, standardised_features
from drosurv.evaluation.result import EvaluationResult, Settings
from drosurv.evaluation.views import hazards_statement
from drosurv.groups import Missing
from drosurv.metrics import FollowUp, default_horizon, sampled_individual_disparity
from drosurv.metrics.disparities import Convention
from drosurv.metrics.sampled_pairs import Pairs, sampled_number
from drosurv.predictions import model_name, score_type, select_rows, training_follow_up
from drosurv.presentation import counted, moment, written
from drosurv.presentation.progress import bar
from drosurv.target import has_causes, parse_target

# Intervals from fewer replicates, and tests from fewer permutations, get a note that they are rough.
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
    horizon: float | None = None,
    horizons: Any = None,
    threshold: float | None = None,
    subgroups: Mapping[str, Any] | None = None,
    convention: Convention = "paper",
    scale: float = 0.01,
    pairs: Pairs = "auto",
    missing: Missing = "group",
    labels: Mapping[str, Sequence[Any]] | None = None,
    intersections: bool = False,
    n_bootstrap: int = 500,
    n_permutations: int | None = None,
    level: float = 0.95,
    min_group: int = 50,
    min_events: int = 10,
    further_tests: int = 0,
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: bool | None = None,
) -> EvaluationResult:
    """Compute every metric of a survival model, overall and by group, with intervals and tests.

    Parameters
    ----------
    model : fitted model, Predictions, or (n,) array
        Anything with scikit-survival's ``predict`` (and, for Brier scores, likelihood gains and calibration,
        ``predict_survival_function``); or :class:`~drosurv.evaluation.Predictions`, which holds risk scores and
        survival curves as arrays; or an array of risk scores alone.
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
        One column of group labels per attribute.
    X_train : (m, d) array or DataFrame, optional
        Features of the training patients: they standardise X for F_I, and plain Cox is fitted on them if no
        reference is given.
    reference : fitted model, Predictions, or (n,) array, optional
        Model to compare with: by its likelihood gain, and by its scores multiplied by factors below 1 (shrinkage
        control). Strata and offset are passed to it if it was fitted with them. Without a reference and without X_train
        the comparison is left out, and the notes say so.
    entry : (n,) array, optional
        Times from which the patients were under observation. They are evaluated from then on: times and horizons count
        from entry, and predictions are conditional on no event before it.
    strata, offset : (n,) arrays, optional
        Strata and offset of the patients, for a model that was fitted with them. With strata, patients are ranked by
        their predicted cumulative hazard at the middle horizon.
    id : (n,) array, optional
        Patient of each row (entry, time], if some have several rows. Each patient is evaluated once: predicted from
        the features of the first row, and followed until the first event or the end of the last row.
    horizon : float, optional
        The time at which predicted and observed survival of groups are compared. By default the middle one of the
        horizons, where they are given, else the median follow-up (reverse Kaplan-Meier) of the scored patients, at most
        the last time with a tenth of them at risk, and at most the last time of given predictions.
    horizons : (h,) array, optional
        Further times of the calibration table; by default the quartiles of the training event times.
    threshold : float, optional
        Patients would be treated if their predicted probability of an event by the horizon is at least this. If given,
        ``decisions`` holds sensitivity, specificity, predictive values and net benefit by group.
    subgroups : mapping, optional
        Name of a subgroup to a mask (n,) of its patients: more rows of ``groups``, such as subgroups that were found.
    convention : "paper" or "table"
        Definitions of disparities and time grids: as printed in the paper, or as used for its published tables.
    scale : float
        Hazard difference allowed per unit of feature distance in F_I.
    pairs : "auto", "all" or int
        Pairs of patients in F_I and the censoring-aware disparities: "all", or this many random ones; by default all
        of up to 10,000 patients. The notes say when pairs were sampled, and the standard error of the estimate.
    missing : "group" or "drop"
        Whether patients without a label form a group of their own or are left out of that attribute.
    labels : mapping, optional
        Attribute to the labels that may occur; any other is an error.
    intersections : bool
        Whether the intersections of all attributes are shown as an attribute of their own.
    n_bootstrap : int
        Number of bootstrap replicates for intervals; 0 for none.
    n_permutations : int, optional
        Number of permutations of the labels for tests of gaps; by default `n_bootstrap`.
    level : float
        Nominal coverage of the intervals.
    min_group, min_events : int
        Groups with fewer patients or events are marked, with a warning.
    further_tests : int
        Number of other tests on the same patients; intervals and p-values of the group table are adjusted for them too.
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
    # Arguments are checked before any work.
    require(0 < as_number(level) < 1, "level", "lie between 0 and 1", level)
    require(horizon is None or as_number(horizon) > 0, "horizon", "be a time above 0", horizon)
    require(threshold is None or 0 < as_number(threshold) < 1, "threshold", "lie between 0 and 1", threshold)
    replicates, reference_name = replicates_of("n_bootstrap", n_bootstrap), model_name(reference)
    permutations = replicates_of("n_permutations", n_bootstrap if n_permutations is None else n_permutations)
    id_notes: tuple[str, ...] = ()
    if id is not None:
        rows, y, id_notes = first_rows(y, entry, id)
        model, X, sensitive_features, reference, entry, strata, offset, subgroups = (
            select_rows(part, rows)
            for part in (model, X, sensitive_features, reference, entry, strata, offset, subgroups)
        )
    given, y_given = given_arguments(entry=entry, strata=strata, offset=offset), y
    predictor, since_entry = model, None
    causes = has_causes(y)
    groups: dict[str, Any] = {"sensitive_features": sensitive_features, "missing": missing}
    by_cause = evaluate_by_cause(model, X, y, horizons, level=level, **groups, **given) if causes else None
    if given or causes:
        when: dict[str, Any] = {"y_train": y_train, "horizons": horizons, "horizon": horizon}
        since_entry = predict_from_entry(model, X, y, given, **when)
        reference = reference_from_entry(reference, X, y, given, **when)
        predictor, y, y_train = since_entry.predictions, since_entry.y, since_entry.follow_up
    evaluator = prepare(
        predictor,
        X,
        y,
        y_train=y_train,
        X_train=X_train,
        reference=reference,
        horizons=horizons,
        given_horizon=horizon,
        convention=convention,
        scale=scale,
        pairs=pairs,
        labels=labels,
        intersections=intersections,
        **groups,
    )
    hazards = (
        partial(hazards_statement, model, X, parse_target(y_given), given, level) if not causes else tuple
    )
    small = warn_of_small_groups(evaluator.counts, min_group=min_group, min_events=min_events)
    if Count.of(evaluator.everyone.target).is_small(min_group, min_events):
        small |= {(EVERYONE, ALL)}
    if evaluator.everyone.data.has_curves:
        # Computed before the groups and replicates that share it.
        _ = evaluator.everyone.data.expected_events
    resampling: dict[str, Any] = {"random_state": random_state, "n_jobs": n_jobs}
    tests = len(evaluator.tests) if permutations else 0
    with bar("evaluating", replicates + tests, shown=verbose, late=True) as advance:
        drawn = evaluator.draw(replicates, advance=advance, **resampling)
        p_values = evaluator.p_values(permutations, advance=advance, **resampling)
    table = rows_of(evaluator, drawn, p_values, small, level)
    between_large = gaps_between_large(
        table, evaluator, drawn, p_values, small, level, permutations, **resampling
    )
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
        level=level,
        min_group=min_group,
        min_events=min_events,
        further_tests=further_tests,
    )
    decided = None
    if threshold is not None and data.has_curves:
        decided = decision_table(evaluator, threshold, level, n_bootstrap=replicates, **resampling)
    return EvaluationResult(
        decisions=decided,
        table=frame_of(table),
        groups=table_of_groups,
        **group_tables(evaluator, drawn, level),
        control=control,
        between_large=frame_of(between_large),
        hazards=hazards,
        by_cause=by_cause,
        notes=(
            *id_notes,
            *(since_entry.notes if since_entry else ()),
            *evaluator.notes,
            *_not_counted(data),
            *_rough(replicates, permutations),
            *(without_intervals(table) if replicates else ()),
            *(() if control is None else control.notes),
        ),
        settings=Settings(
            model=model_name(model),
            reference="plain Cox" if reference is None else reference_name,
            n_bootstrap=replicates,
            n_permutations=permutations,
            level=level,
            convention=convention,
            missing=missing,
            horizons=tuple(data.calibration_times.tolist()),
            horizon=data.horizon,
            threshold=threshold,
            n_tests=n_tests,
        ),
    )


def prepare(
    model: Any,
    X: Any,
    y: Any,
    *,
    y_train: Any,
    sensitive_features: Any,
    X_train: Any = None,
    reference: Any = None,
    missing: Missing = "group",
    labels: Mapping[str, Sequence[Any]] | None = None,
    intersections: bool = False,
    wanted: Collection[str] | None = None,
    **how: Any,
) -> Evaluator:
    """Check the arguments, predict, and return the evaluator of all metrics, or of those `wanted`.

    Parameters are those of :func:`evaluate`; `how` are those of :class:`~drosurv.evaluation.data.EvaluationData`.
    """
    if how.get("convention", "paper") not in ("paper", "table"):
        raise ArgumentError.must("convention", "be 'paper' or 'table'", how["convention"])
    target = parse_target(y)
    if how.get("given_horizon") is None and how.get("horizons") is None:
        how["given_horizon"] = default_horizon(target, predicted_until(model))
    follow_up_note = ""
    if y_train is None:
        y_train = training_follow_up(model)
    if y_train is None:
        y_train = FollowUp.standing_in(target)
        follow_up_note = (
            "censoring weights and the null model come from the scored patients: y_train was not given."
        )
    attributes = parse_attributes(sensitive_features, len(target), missing=missing, labels=labels)
    if intersections and len(attributes) > 1:
        attributes.append(intersection_of(attributes))
    features = standardised_features(X, X_train)
    reference_note = ""
    compared = reference, X
    if reference is None:
        cox, reference_note = fit_plain_cox(model, features, y_train)
        compared = cox, features.test
    has_reference, risk = compared[0] is not None, None
    if has_reference:
        risk = predict_risk(*compared, len(target), name="reference")
        if score_type(compared[0]) != "log hazard":
            risk = None
            reference_note = (
                "the share of the reference's likelihood gain and the shrinkage control are left out: the scores of "
                "the reference are not log hazards."
            )
    data = EvaluationData(
        model,
        X,
        target,
        y_train,
        reference=risk,
        reference_curves=predict_curves(*compared, len(target)) if has_reference else None,
        reference_model=compared[0],
        features=features.test,
        **how,
    )
    # Predict now, so that errors come before any other work.
    _ = data.calibration_times, data.has_risk and data.risk, data.has_curves and data.curves
    evaluator = Evaluator(Subset(data), attributes, wanted)
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


def _rough(replicates: int, permutations: int) -> tuple[str, ...]:
    """Return notes that intervals or tests are rough, if they come from few replicates."""
    behind = (
        ("intervals", replicates, "bootstrap replicates"),
        ("tests of gaps", permutations, "permutations"),
    )
    return tuple(
        f"{what} are rough: they come from only {number} {how}."
        for what, number, how in behind
        if 0 < number < _FEW
    )


def _sampled(evaluator: Evaluator) -> str:
    """Return a note on the standard error of disparities if pairs are sampled; else an empty text."""
    data = evaluator.everyone.data
    number = sampled_number(data.pairs, len(evaluator.everyone))
    if number is None or "individual_disparity" not in (metric.name for metric in evaluator.metrics):
        return ""
    value, error = sampled_individual_disparity(
        data.risk, data.features, scale=data.scale, convention=data.convention, pairs=number
    )
    relative = f" of {100 * error / value:.2g} %" if value > 0 else ""
    return (
        f"F_I and the censoring-aware disparities are estimated from {number:,} random pairs of patients, with a "
        f'standard error{relative}; pairs="all" uses every pair.'
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
            f"{_SCORES[score_type(data.model)]}."
        )
    elif not evaluator.has_hazards:
        notes.append(
            f"disparities of hazards are left out: exp overflows, or is 0, for scores of {data.risk.min():g} to "
            f"{data.risk.max():g}."
        )
    if not evaluator.attributes:
        notes.append("nothing is shown by group: no groups were given.")
    return notes
