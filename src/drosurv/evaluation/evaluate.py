"""Everything about one model on one set of patients, in one call."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from sklearn.exceptions import UndefinedMetricWarning

from drosurv.evaluation.attributes import warn_of_small_groups, warn_of_undefined
from drosurv.evaluation.by_cause import evaluate_by_cause
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.control import shrinkage_control
from drosurv.evaluation.engine import replicates_of
from drosurv.evaluation.group_tables import (
    calibration_table,
    cross_group_table,
    d_calibration_table,
    survival_table,
)
from drosurv.evaluation.observed import given_of, of_rows, one_row_each, seen_from_entry
from drosurv.evaluation.predictions import gives_curves, model_name
from drosurv.evaluation.prepare import prepare
from drosurv.evaluation.proportionality import hazards_statement
from drosurv.evaluation.result import EvaluationResult, Settings
from drosurv.evaluation.rows import Row, gaps_between_large, rows_of
from drosurv.groups import Missing
from drosurv.metrics.pair_disparities import Convention
from drosurv.metrics.sampled_pairs import Pairs
from drosurv.presentation import counted
from drosurv.presentation.progress import bar
from drosurv.target import has_causes, parse_target


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
    horizons: Any = None,
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
    random_state: Any = 0,
    threads: int | None = None,
    progress: bool | None = None,
) -> EvaluationResult:
    """Every metric of a survival model, overall and by group, with intervals and tests.

    Parameters
    ----------
    model : fitted model, Predictions, or (n,) array
        Anything with scikit-survival's ``predict`` (and, for Brier scores, likelihood gains and calibration,
        ``predict_survival_function``); or :class:`~drosurv.evaluation.Predictions`, which holds risk scores and
        survival curves as arrays; or an array of risk scores alone.
    X : (n, d) array or DataFrame, or None
        Features of the patients, as the model takes them. F_I takes distances in them. None only with arrays,
        and without F_I.
    y : structured array, (n,)
        What happened to them. With causes (:meth:`drosurv.Surv.competing`), for a model of causes, metrics are of an
        event of any cause, and ``by_cause`` tells them apart.
    y_train : structured array or FollowUp, optional
        Training targets, for censoring weights and the null model. By default what a fitted model of this library
        keeps in ``follow_up_``; for others the scored patients stand in, and the notes say so.
    sensitive_features : DataFrame, Series, mapping, (n,) or (n, J) labels, or None
        One column of group labels per attribute.
    X_train : (m, d) array or DataFrame, optional
        Features of the training patients: they standardise X for F_I, and plain Cox is fitted on them if no
        reference is given.
    reference : fitted model, Predictions, or (n,) array, optional
        The model whose likelihood gain, and whose shrunken copies, the model is compared with. Without it and
        without X_train the comparison is left out, and the result's notes say so.
    entry : (n,) array, optional
        Times from which the patients were under observation. They are judged from then on: times and horizons count
        from entry, and predictions are conditional on no event before it.
    strata, offset : (n,) arrays, optional
        Of the patients, for a model that was fitted with them. Patients of different strata are ranked by their
        predicted cumulative hazard at the middle horizon.
    id : (n,) array, optional
        The patient each row (entry, time] belongs to, where some have several. Each patient is judged once, by what was
        known at the first row, until the first event or the end of the last row.
    horizons : (h,) array, optional
        When calibration is looked at; by default the quartiles of the training event times. Metrics at one
        horizon use the middle one.
    convention : "paper" or "table"
        Definitions of disparities and time grids: the printed ones, or those behind the published tables.
    scale : float
        Hazard difference allowed per unit of feature distance in F_I.
    pairs : "auto", "all" or int
        How many pairs of patients F_I and the censoring-aware disparities look at: "all", whatever the time it
        takes, or so many random ones; by default all of up to 10,000 patients. The result's notes say when pairs
        were sampled, with the standard error that it leaves.
    missing : "group" or "drop"
        Whether patients without a label form a group of their own or are left out of that attribute.
    labels : mapping, optional
        Attribute to the labels that may occur; any other is an error.
    intersections : bool
        Whether the intersections of all attributes are shown as an attribute of their own.
    n_bootstrap : int
        Bootstrap replicates behind the intervals; 0 switches them off.
    n_permutations : int, optional
        Label permutations behind the tests of gaps; by default as many as `n_bootstrap`.
    level : float
        Nominal coverage of the intervals.
    min_group, min_events : int
        Groups with fewer patients or events are warned of and marked.
    random_state : int, Generator or None
        Seed of the resampling.
    threads : int, optional
        Replicates computed at once; by default one per processor core. The result does not depend on it.
    progress : bool, optional
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
    replicates, named = replicates_of("n_bootstrap", n_bootstrap), model_name(reference)
    permutations = replicates_of("n_permutations", n_bootstrap if n_permutations is None else n_permutations)
    once: tuple[str, ...] = ()
    if id is not None:
        rows, y, once = one_row_each(y, entry, id)
        model, X, sensitive_features, reference, entry, strata, offset = (
            of_rows(part, rows) for part in (model, X, sensitive_features, reference, entry, strata, offset)
        )
    given, told = given_of(entry=entry, strata=strata, offset=offset), y
    judged, seen = model, None
    causes = has_causes(y)
    by_cause = None
    if causes:
        by_cause = evaluate_by_cause(
            model,
            X,
            y,
            horizons,
            sensitive_features=sensitive_features,
            level=level,
            missing=missing,
            **given,
        )
    if given or causes:
        seen = seen_from_entry(model, X, y, given, y_train=y_train, horizons=horizons)
        if entry is not None and gives_curves(reference):
            late = seen_from_entry(reference, X, y, {"entry": entry}, y_train=y_train, horizons=horizons)
            reference = late.predictions.risk
        judged, y, y_train = seen.predictions, seen.y, seen.follow_up
    panel = prepare(
        judged,
        X,
        y,
        y_train=y_train,
        sensitive_features=sensitive_features,
        X_train=X_train,
        reference=reference,
        horizons=horizons,
        convention=convention,
        scale=scale,
        pairs=pairs,
        missing=missing,
        labels=labels,
        intersections=intersections,
    )
    said = () if causes else hazards_statement(model, X, parse_target(told), given, level)
    small = warn_of_small_groups(panel.counts, min_group=min_group, min_events=min_events)
    resampling: dict[str, Any] = {"random_state": random_state, "threads": threads}
    tests = len(panel.tests) if permutations else 0
    with bar("evaluating", replicates + tests, shown=progress, late=True) as advance:
        sheet = panel.sheet(replicates, advance=advance, **resampling)
        p_values = panel.p_values(permutations, advance=advance, **resampling)
    table = rows_of(panel, sheet, p_values, small, level)
    between_large = gaps_between_large(panel, sheet, p_values, small, level, permutations, **resampling)
    _warn_of_undefined(table)
    scoring, control = panel.everyone.scoring, shrinkage_control(panel)
    return EvaluationResult(
        rows=table,
        calibration=calibration_table(panel, scoring.calibration_times, level),
        d_calibration=d_calibration_table(panel),
        survival=survival_table(panel, scoring.curve_times, level),
        cross_group=cross_group_table(panel),
        control=control,
        between_large=between_large,
        said=said,
        by_cause=by_cause,
        notes=(
            *once,
            *(seen.notes if seen else ()),
            *panel.notes,
            *(_without_intervals(table) if replicates else ()),
            *(() if control is None else control.notes),
        ),
        settings=Settings(
            model=model_name(model),
            reference="plain Cox" if reference is None else named,
            n_bootstrap=replicates,
            n_permutations=permutations,
            level=level,
            convention=convention,
            missing=missing,
            horizons=tuple(scoring.calibration_times.tolist()),
        ),
    )


def _without_intervals(rows: Sequence[Row]) -> tuple[str, ...]:
    """Which groups' numbers have no interval although there are replicates, and why."""
    bare: dict[str, list[str]] = {}
    for row in rows:
        metric, has_none = CATALOGUE[row.metric], isnan(row.low) and not isnan(row.value)
        if row.kind == "group" and row.better and metric.resampled and has_none:
            bare.setdefault(row.whose, []).append(metric.label)
    if not bare:
        return ()
    told = "; ".join(f"{whose}: {', '.join(labels)}" for whose, labels in bare.items())
    return (f"no interval where every replicate gives the same number, which says nothing ({told}).",)


def _warn_of_undefined(rows: Sequence[Row]) -> None:
    """One warning that names every group, and the metrics it has no value of; one if the reference gains nothing."""
    undefined: dict[str, list[str]] = {}
    gain = next((row for row in rows if row.metric == "gain_over_null"), None)
    # With a gain of the model's own there are events: the share of the reference's lacks only the latter.
    no_gain = gain is not None and gain.status != "undefined"
    for row in rows:
        if no_gain and row.metric == "share_of_gain" and row.status == "undefined":
            warnings.warn(
                "the share of the reference's gain is undefined (NaN): the reference predicts these patients no better "
                "than no model does.",
                UndefinedMetricWarning,
                stacklevel=3,
            )
        elif row.status == "undefined" and row.kind != "gap":
            who = f"{row.whose} ({counted(row.n, 'patient')}, {counted(row.events, 'event')})"
            undefined.setdefault(who, []).append(row.metric)
    warn_of_undefined([f"{who}: {', '.join(metrics)}" for who, metrics in undefined.items()])
