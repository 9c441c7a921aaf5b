"""Audit a fitted model, or an estimator that is trained on folds of the audited patients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from drosurv.curves import PointCurves
from drosurv.errors import ArgumentError, InputError, arg, each_warning_once, require, warn_caller
from drosurv.estimators.coefficients.proportional_hazards import UNTESTED
from drosurv.estimators.network_settings import readable_parameters
from drosurv.evaluation.by_cause import table_by_cause
from drosurv.evaluation.data import standardised_features
from drosurv.evaluation.result_views import hazards_statement
from drosurv.judging.from_predictions import outcomes, require_an_event, require_event_of
from drosurv.judging.judged import Horizon
from drosurv.judging.known_columns import known_columns
from drosurv.metrics import FollowUp
from drosurv.patients.arrays import on_host
from drosurv.patients.draws import row_order
from drosurv.patients.observation import Inference, Rows, one_row_each, require_rows
from drosurv.patients.target import Surv, has_causes, of_any_cause, parse_target, with_fields
from drosurv.predictions import Predicted, Predictions, as_predictions, of_causes, require_model
from drosurv.predictions.any_model import (
    columns_used,
    final_step,
    fitted_plain_cox,
    is_score,
    name_of_reference,
    prepared,
    require_fitted,
    training_follow_up,
    unwrapped,
)
from drosurv.predictions.given import ReadPredictions, ranked_by_hazard, read_scores
from drosurv.presentation import first_upper, written
from drosurv.presentation.drawing import bar
from drosurv.report.cross_fit import (
    CROSS_FITTED,
    Folds,
    Parts,
    PatientRows,
    cross_fitted,
    cross_fitted_cox,
    fold_parts,
)
from drosurv.report.evidence import AuditedModel, Evidence, Page
from drosurv.report.report import AuditReport
from drosurv.tables import TableEncoder

OWN_FOLLOW_UP = (
    "The training patients are not known. The null model and the censoring distribution are estimated from the audited "
    "patients, for which the likelihood gain is corrected.",
    "Predictions do not show whether the model was trained on any of these patients. If it was, all numbers here are "
    "too good.",
)
# The reference model and its features.
Compared: TypeAlias = tuple[Any, Any] | None


@each_warning_once
def audit(
    model: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    y_train: Any = None,
    X_train: Any = None,
    reference: Any = None,
    strata: Any = None,
    offset: Any = None,
    horizon: float | None = None,
    threshold: float | None = None,
    cause: int | str | None = None,
    features: Any = None,
    keep_columns: Sequence[str] = (),
    search_rules: bool = True,
    folds: Folds | None = None,
    level: float = 0.95,
    relevance: float = 1.05,
    random_state: int = 0,
    verbose: bool | None = None,
    page: Page | None = None,
) -> AuditReport:
    """Audit a survival model, or predictions, on patients that the model was not trained on.

    Parameters
    ----------
    model : fitted model, Predictions, pair (times, survival), or (n,) array of risk scores
        Anything that :func:`drosurv.evaluate` takes. With `folds`, an estimator or Pipeline, fitted or not: copies of
        it are trained.
    X : (n, d) array or DataFrame, or None
        Features of the patients, as the model takes them. For predictions, columns that may define subgroups, or None.
    y : structured array, (n,)
        Events and times, with further fields as in :func:`drosurv.evaluate`. Models trained in folds take them too,
        except weights, and are trained on all rows of a patient, with the values of the first; a cluster is in one
        fold. With competing causes, the event of the report is one of any cause, unless `cause` says which, and one
        section is about each cause.
    sensitive_features : DataFrame, Series, mapping, (n,) or (n, J) labels, optional
        One column of group labels per attribute.
    y_train : structured array or FollowUp, optional
        Training target; not needed for models of this library, which keep the follow-up of their training patients. For
        predictions, that of the audited patients is used by default.
    X_train : (m, d) array or DataFrame, optional
        Training features. With them and a structured `y_train`, plain Cox is trained.
    reference : fitted model, Predictions, pair (times, survival), or (n,) array, optional
        Model to compare with; by default plain Cox, if training patients are given. A Pipeline takes `X`, any other
        model the features that the last step of `model` takes.
    strata, offset : (n,) arrays, optional
        As in :func:`drosurv.evaluate`.
    horizon, threshold : float, optional
        As in :func:`drosurv.evaluate`; with a threshold, the report has a section on decisions.
    cause : int or str, optional
        One of several causes, of a model of causes or of predicted incidences.
    features : DataFrame, (n, d'), optional
        Columns that define subgroups and describe the patients, in units and names that readers know; by default X.
    keep_columns : sequence of str
        Columns that are known when a prediction is made although they look like the outcome: the page names them.
        Others that look like it define no subgroups; if the model uses one, the verdict is that the data have a
        problem.
    search_rules : bool
        Whether to search the columns for subgroups whose predictions are wrong.
    folds : int, or pairs of arrays, optional
        For cohorts too small to hold patients out: number of folds for cross-validation. Every patient is predicted by
        a model, and by plain Cox, that were trained without the patient's fold. Or pairs of the rows to train on and
        the rows to predict, one pair for each fold.
    level : float
        Confidence level of the intervals.
    relevance : float
        Factor, at least 1: a smaller difference of a ratio from 1, or of a slope by the factor less 1, is no problem,
        even if it is significant.
    random_state : int
        Random seed.
    verbose : bool, optional
        Whether a progress bar is shown; by default in a terminal.
    page : Page, optional
        Title and name of the data, unit of the times, warnings to show, further sections.

    Returns
    -------
    AuditReport
        With ``.to_html(path)``, ``.to_markdown()``, ``.to_json()`` and ``.to_summary()``.

    Notes
    -----
    Of more than 100,000 patients, repairs, remedies, decision curves and calibration curves are those of a random
    sample, with 20,000 events if there are as many, but at most 100,000 patients. Findings, bounds for subgroups and
    metrics are of all patients.

    Examples
    --------
    >>> import drosurv
    >>> from drosurv.datasets import make_hidden_minority
    >>> train, test = make_hidden_minority(500, random_state=0), make_hidden_minority(500, random_state=1)
    >>> model = drosurv.DROCox(alpha=0.3).fit(train.X, train.y)
    >>> given = {"sensitive_features": test.sensitive_features, "search_rules": False}
    >>> report = drosurv.audit(model, test.X, test.y, **given)
    >>> report.model
    'DROCox'

    Survival probabilities of any model, at three times:

    >>> times = [0.5, 1.0, 2.0]
    >>> survival = model.predict_survival_function(test.X, times=times)
    >>> drosurv.audit((times, survival), None, test.y, **given).model
    'Predictions'
    """
    page = page or Page()
    reference_name, warned = page.reference_name or name_of_reference(reference), [*page.warnings]
    require_model(model)
    Horizon(horizon, threshold)
    Inference(level, relevance=relevance)
    for name, table in {"X": X, "features": features}.items():
        require_rows(name, table, len(y))
    rows = Rows.parse(y, strata=strata, offset=offset)
    trained = folds is not None and not is_score(model)
    patients = one_row_each(y, rows, _named_features(X, features), trained=trained)
    intervals = None
    if patients.notes:
        assert rows.patient is not None, "of several rows"
        intervals = PatientRows(with_fields(y, weight=None), rows.patient)
    copied = rows.copies is not None
    y, rows = patients.y, patients.rows
    model, X, sensitive_features, reference, features = map(
        patients.of, (model, X, sensitive_features, reference, features)
    )
    model, cause = of_causes(model, cause, y)
    if reference is not None:
        reference, _ = of_causes(reference, cause, y, name="reference")
    require_event_of(outcomes(y, rows, cause), y, cause)
    model, causes = unwrapped(model), has_causes(y)
    others = any(part is not None for part in (reference, X_train, y_train))
    _check_together(rows, causes, folds, others, X_train is not None, copied)
    known = known_columns(model, X, y, features, entry=rows.entry, keep_columns=keep_columns)
    features = known.features
    left_out = known.note if search_rules else ""
    if left_out:
        warn_caller(left_out, argument="keep_columns")
    severities = {known.problem: "blocking", left_out: "note", known.fact: "note"}
    warned += [{"severity": severity, "text": text} for text, severity in severities.items() if text]
    if features is None:
        features = X if X is None or hasattr(X, "columns") else np.asarray(on_host(X))
    estimator = final_step(model)
    fields: dict[str, Any] = {"y": y, "rows": rows, "horizon": horizon, "model": _settings(estimator)}
    if folds is not None and not is_score(model):
        untrained = "be left out where predictions are given, since only a model can be trained on folds"
        require(hasattr(model, "fit"), "folds", untrained, folds)
        target = parse_target(of_any_cause(y))
        order = row_order(target, X, y[y.dtype.names[0]], rows.entry, rows.cluster)
        parts = fold_parts(target.event, folds, random_state, rows.cluster_codes, order)
        fields |= _evidence_of_folds(model, X, y, rows, parts, intervals)
        fields["model"] |= {"Folds": len(parts)}
        fields |= {"data": _features(X), "trained_on": None}
        reference_name = "plain Cox"
    elif is_score(model) or not (
        hasattr(model, "predict") or hasattr(estimator, "predict_survival_function")
    ):
        name = "Predictions"
        if is_score(model):
            refused = {"folds": folds, "X_train": X_train, "strata": strata, "offset": offset}
            parsed, name = _predictions_of_score(model, X, len(y), refused), type(estimator).__name__
        elif isinstance(model, (Predictions, tuple)):
            parsed = ReadPredictions(model, ())
        else:
            # Scores alone may be log risks or hazard ratios.
            parsed = read_scores(as_predictions(model, None, len(y), rows=rows).risk)
        warned += [{"severity": "note", "text": note} for note in parsed.notes]
        predicted = as_predictions(parsed.predictions, None, len(y), rows=rows)
        fields |= _evidence_of_predictions(predicted, y, y_train, reference, page.time_unit, name)
    else:
        require_fitted(model)
        compared: Compared = None
        if reference is not None:
            compared = reference, X if hasattr(reference, "steps") else prepared(model, X)
        fields |= {"data": _features(prepared(model, X)), "trained_on": _trained_on(estimator, cause)}
        fields["features_train"] = _described(model, X_train)
        if rows.observed or causes:
            fields |= _evidence_from_entry(model, X, y, rows, y_train, compared, level, cause)
        else:
            fields |= _evidence_of_model(model, X, X_train, y_train, compared)
    fields["limits"] = (*map(first_upper, patients.notes), *fields.get("limits", ()))
    if patients.changing:
        warned.append({"severity": "note", "text": patients.changing})
    audited, also = fields["audited_model"], {**page.also}
    if causes:
        judged = as_predictions(audited.model, audited.X, len(y), rows=rows)
        by_cause = table_by_cause(judged, y, horizon, sensitive_features=sensitive_features, level=level)
        also |= {} if by_cause is None else {"causes": by_cause}
    if page.features_train is not None:
        fields["features_train"] = page.features_train
    with bar("auditing", shown=verbose) as progress:
        return AuditReport.of(
            Evidence(
                **fields,
                sensitive_features=sensitive_features,
                features=features,
                columns=columns_used(model, X),
                page=replace(page, warnings=warned, reference_name=reference_name, also=also),
                level=level,
                relevance=relevance,
                search_rules=search_rules,
                random_state=random_state,
                on_step=lambda name, steps: progress(doing=name, of=steps),
                threshold=threshold,
                cause=cause,
            )
        )


def _named_features(X: Any, features: Any) -> Any:
    """Return the features in columns that readers know: X, unless its columns are not those of the given `features`."""
    known = set(getattr(features, "columns", ()))
    return X if features is None or (hasattr(X, "columns") and known.issuperset(X.columns)) else features


def _check_together(rows: Rows, causes: bool, folds: Any, others: bool, trained: bool, copied: bool) -> None:
    """Raise for arguments that cannot be used together."""
    if folds is not None and others:
        raise ArgumentError(
            "folds",
            f"{arg('folds')} trains the model and plain Cox on the audited patients only: leave out "
            "training patients and a reference.",
        )
    if (rows.observed or causes) and trained:
        raise ArgumentError(
            "X_train",
            f"plain Cox would be trained without {next(iter(rows.observed), 'causes')}: leave out {arg('X_train')}.",
        )
    if folds is not None and (copied or (causes and rows.observed)):
        what = "weights" if copied else f"causes and {next(iter(rows.observed))}"
        remedy = "audit a model that was fitted to other patients"
        raise InputError(f"folds cannot be used with {what}: {remedy}.")


def _evidence_of_predictions(
    predicted: Predicted, y: Any, y_train: Any, reference: Any, time_unit: str, name: str
) -> dict[str, Any]:
    """Return fields of the evidence for given predictions; without scores, patients are ranked by mean hazard."""
    predictions, curves = predicted.model, predicted.curves
    if isinstance(curves, PointCurves) and curves.times is not None and predictions.trained_on is None:
        require_an_event(predicted, y, time_unit)
        predictions = ranked_by_hazard(predicted).model
    missing: tuple[str, ...] = (f"{UNTESTED}predictions come without a model's coefficients.",)
    if reference is None:
        missing += ("The model is not compared with another one: no other predictions were given.",)
    return {
        "audited_model": AuditedModel(name, predictions),
        "follow_up": FollowUp.of_test_patients(parse_target(of_any_cause(y))) if y_train is None else y_train,
        "reference": None if reference is None else (reference, None),
        "missing": missing,
        "model": {"Audited": "predictions; the model itself is not known"},
        "limits": OWN_FOLLOW_UP if y_train is None else OWN_FOLLOW_UP[1:],
    }


def _predictions_of_score(model: Any, X: Any, n: int, refused: Mapping[str, Any]) -> ReadPredictions:
    """Return the predictions of a score at its times, with a note; raise if one of the `refused` arguments is given."""
    score = final_step(model)
    for argument, value in refused.items():
        if value is not None:
            raise ArgumentError(
                argument,
                f"{arg(argument)} is not for {type(score).__name__}, which is known at some times only: leave it out.",
            )
    predicted = as_predictions(model, X, n)
    times = np.asarray(score.unique_times_, dtype=np.float64)
    survival = predicted.survival_curves.survival(times)
    return ReadPredictions(Predictions(predicted.risk, survival, times), (score.known_times,))


def _evidence_of_model(model: Any, X: Any, X_train: Any, y_train: Any, compared: Compared) -> dict[str, Any]:
    """Return fields of the evidence for a fitted model, and the reference."""
    follow_up = y_train if y_train is not None else training_follow_up(model)
    if follow_up is None:
        raise ArgumentError(
            "y_train",
            f"y_train is needed, because {type(final_step(model)).__name__} does not keep the follow-up of its "
            "training patients: pass the training target.",
        )
    missing, final = [], final_step(model)
    if np.ndim(getattr(final, "coef_", 0)) != 1:
        missing.append(f"{UNTESTED}the model has no coefficients.")
    elif not hasattr(final, "check_proportional_hazards"):
        missing.append(f"{UNTESTED}there is no such test for {type(final).__name__}.")
    elif final.capabilities.own_curves:
        missing.append(f"{UNTESTED}the model is not a Cox model.")
    left_out = "The model is not compared with plain Cox: "
    # A training target may be only the patients' follow-up.
    has_rows = getattr(getattr(y_train, "dtype", None), "names", None) is not None
    if compared is None and (X_train is None or not has_rows):
        missing.append(f"{left_out}no training patients were given (--train, or X_train in Python).")
    elif compared is None:
        both = standardised_features(prepared(model, X), prepared(model, X_train))
        if both.train is None or both.test is None:
            missing.append(f"{left_out}the features hold text or missing values.")
        else:
            compared = fitted_plain_cox(model, both.train, y_train), both.test
    audited = AuditedModel.of(model, X, X_train)
    return {
        "audited_model": audited,
        "follow_up": follow_up,
        "reference": compared,
        "missing": tuple(missing),
    }


def _evidence_from_entry(
    model: Any, X: Any, y: Any, rows: Rows, y_train: Any, compared: Compared, level: float, cause: int | None
) -> dict[str, Any]:
    """Return fields of the evidence for patients with late entry, strata, offsets or competing causes."""
    follow_up = y_train if y_train is not None else training_follow_up(model)
    if follow_up is None:
        follow_up = FollowUp.of_test_patients(parse_target(of_any_cause(y)))
    notes = []
    if not has_causes(y):
        tested = hazards_statement(model, X, parse_target(y), rows, level)
        notes += [s.text for s in tested if s.concern or s.code == "hazards_untested"]
    return {
        "audited_model": AuditedModel(type(final_step(model)).__name__, model, X),
        "follow_up": follow_up,
        "reference": compared,
        # Notes of an evaluation of one cause say so.
        "missing": () if compared or cause is not None else ("The model is not compared with plain Cox.",),
        "limits": tuple(map(first_upper, notes)),
    }


def _evidence_of_folds(
    estimator: Any, X: Any, y: Any, rows: Rows, parts: Parts, intervals: PatientRows | None
) -> dict[str, Any]:
    """Return fields of the evidence for an estimator that is trained, like plain Cox, on folds of the patients."""
    causes, y = has_causes(y), with_fields(y, entry=rows.entry, clusters=rows.clusters)
    cox = None if causes else cross_fitted_cox(estimator, X, y, parts, rows=rows, intervals=intervals)
    found = cross_fitted(estimator, X, y, parts, rows=rows, intervals=intervals)
    name = f"{type(final_step(estimator)).__name__}, cross-fitted"
    missing = (
        *(() if cox is not None or causes else ("Plain Cox could not be trained on these features.",)),
        f"{UNTESTED}the audited predictions are of several models, one per fold.",
    )
    return {
        "audited_model": AuditedModel(name, found),
        "y": y,
        "rows": rows.only(()),
        "follow_up": FollowUp.of_test_patients(parse_target(of_any_cause(y)))
        if causes or rows.observed
        else Surv.event_time(y),
        "reference": None if cox is None else (cox, None),
        "missing": missing,
        "limits": CROSS_FITTED,
    }


def _described(model: Any, X_train: Any) -> pd.DataFrame | TableEncoder | None:
    """Return what describes the training patients: their table, or the encoder that was fitted to it."""
    if isinstance(X_train, pd.DataFrame):
        return X_train
    for _, step in getattr(model, "steps", ()):
        if isinstance(step, TableEncoder):
            return step
    # For a repaired model that of its base model, if both were trained on the same patients.
    repaired, base = final_step(model), getattr(final_step(model), "base_", None)
    if base is None or not hasattr(final_step(base), "follow_up_"):
        return None
    same = np.array_equal(final_step(base).follow_up_.times, repaired.follow_up_.times)
    return _described(base, None) if same else None


def _features(X: Any) -> dict[str, str]:
    return {} if X is None else {"Features": written(np.shape(X)[1], "count")}


def _trained_on(estimator: Any, cause: int | None) -> tuple[int, int] | None:
    """Return the numbers of training patients and events, of the cause; None if the model does not keep them."""
    if not hasattr(estimator, "n_patients_"):
        return None
    by_cause = np.atleast_1d(estimator.n_events_)
    if cause is not None and 1 < len(by_cause) < cause:
        # Said where its incidence is asked for.
        return None
    events = by_cause.sum() if cause is None or len(by_cause) == 1 else by_cause[cause - 1]
    return int(estimator.n_patients_), int(events)


def _settings(estimator: Any) -> dict[str, Any]:
    """Return class, parameters and training status of a model."""
    settings: dict[str, Any] = {"Estimator": type(estimator).__name__}
    if hasattr(estimator, "get_params"):
        settings |= readable_parameters(estimator)
    if hasattr(estimator, "repairs_"):
        settings["Repairs"] = " ".join(estimator.in_words()) or "none"
    ended = {"status_": "Training ended", "n_iter_": "Iterations", "objective_": "Objective"}
    known = [(name, fitted) for fitted, name in ended.items() if hasattr(estimator, fitted)]
    return settings | {name: getattr(estimator, fitted) for name, fitted in known}
