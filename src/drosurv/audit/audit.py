"""The audit: evaluate a model and its relatives, describe who is worst off, put it all into one report."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from drosurv._version import __version__
from drosurv.audit.alpha_path import final_estimator, prepared
from drosurv.audit.method_card import LIMITS, audit_settings, data_facts, model_settings
from drosurv.audit.model_tables import (
    accuracy_table,
    calibration_table,
    fairness_table,
    group_table,
    shrinkage_table,
    survival_table,
)
from drosurv.audit.observed_survival import Bands, kaplan_meier_bands
from drosurv.audit.report import AuditReport, ModelAudit
from drosurv.audit.stops import Stop, find_stops
from drosurv.audit.trade_off import control_table, trade_off_table
from drosurv.audit.worst_off import describe_worst_off
from drosurv.evaluation import evaluate
from drosurv.evaluation.attributes import parse_attributes
from drosurv.evaluation.features import plain_cox_risk, standardised_features
from drosurv.evaluation.predictions import predict_risk, training_follow_up, unwrapped
from drosurv.evaluation.summary import judged_gaps
from drosurv.presentation import GroupGap, group_name, written
from drosurv.target import FloatArray, Target, parse_target

if TYPE_CHECKING:
    import pandas as pd

    from drosurv.evaluation import EvaluationResult


def audit(
    model: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    y_train: Any = None,
    X_train: Any = None,
    alpha_path: Mapping[float, Any] | Sequence[float] | None = None,
    reference: Any = None,
    reference_name: str = "plain Cox",
    features: pd.DataFrame | None = None,
    title: str | None = None,
    data_name: str = "",
    time_title: str = "time",
    n_bootstrap: int = 500,
    n_bootstrap_path: int = 100,
    level: float = 0.95,
    search_rules: bool = True,
    random_state: int = 0,
    on_step: Callable[[str, int], None] | None = None,
) -> AuditReport:
    """Audit a survival model on patients it was not trained on.

    Parameters
    ----------
    model : fitted model or Pipeline
        Anything that :func:`drosurv.evaluate` takes.
    X : (n, d) array or DataFrame
        Features of the patients, as the model takes them.
    y : structured array, (n,)
        What happened to them.
    sensitive_features : DataFrame, Series, mapping, (n,) or (n, J) labels
        One column of group labels per attribute.
    y_train : structured array or FollowUp, optional
        Training target; not needed for a model of this library, which keeps what is needed of it.
    X_train : (m, d) array or DataFrame, optional
        Training features. With them and a structured `y_train`, the models of the slider and plain Cox are trained.
    alpha_path : mapping of alpha to fitted model, or sequence of alphas, optional
        The models of the slider, or the shares to train them at; by default :data:`~drosurv.audit.ALPHAS` where
        training patients are given. An empty sequence leaves the slider out.
    reference : fitted model or (n,) array, optional
        What the shrinkage control shrinks; by default plain Cox, where training patients are given. A Pipeline takes
        `X`, any other model the features that the last step of `model` takes.
    reference_name : str
        What readers call it.
    features : DataFrame, (n, d'), optional
        Columns that the rules may speak about, in units and names that readers know; by default X.
    title, data_name, time_title : str
        What the report is called, what the data are called, and what the times are, such as "days".
    n_bootstrap, n_bootstrap_path : int
        Bootstrap replicates and permutations for the audited model, and for each model of the slider.
    level : float
        Of the intervals.
    search_rules : bool
        Whether to search for rules that describe who is worst off.
    random_state : int
        Seed of everything random.
    on_step : callable, optional
        Told each step's name and the number of steps.

    Returns
    -------
    AuditReport
        With ``.to_html(path)``, ``.to_markdown()`` and ``.to_json()``.

    Examples
    --------
    >>> from drosurv import DROCox
    >>> from drosurv.audit import audit
    >>> from drosurv.datasets import make_hidden_minority
    >>> train, test = make_hidden_minority(500, random_state=0), make_hidden_minority(500, random_state=1)
    >>> model = DROCox(alpha=0.3).fit(train.X, train.y)
    >>> report = audit(
    ...     model, test.X, test.y, sensitive_features=test.sensitive_features, n_bootstrap=20, search_rules=False
    ... )
    >>> report.audited.name, len(report.models)
    ('DROCox, alpha 0.3', 1)
    """
    target = parse_target(y)
    model = unwrapped(model)
    follow_up = y_train if y_train is not None else training_follow_up(model)
    if follow_up is None:
        raise ValueError(
            f"y_train is needed: {type(final_estimator(model)).__name__} does not keep the training patients' "
            "follow-up. Pass the training target."
        )
    attributes = parse_attributes(sensitive_features, len(target))
    stops = find_stops(model, X_train, y_train, alpha_path)
    steps = len(stops) + search_rules
    tell = on_step or (lambda name, steps: None)
    if hasattr(reference, "steps"):
        reference = predict_risk(reference, X, len(target), name="reference")
    elif reference is None and X_train is not None:
        # Once for all models, which are compared with the same plain Cox however each prepares its patients.
        both = standardised_features(prepared(model, X), prepared(model, X_train))
        reference, _ = plain_cox_risk(both, follow_up)
    given = {
        "y_train": follow_up,
        "sensitive_features": sensitive_features,
        "reference": reference,
        "level": level,
        "random_state": random_state,
    }
    results = []
    for stop in stops:
        tell(stop.name, steps)
        replicates = n_bootstrap if stop.audited else min(n_bootstrap, n_bootstrap_path)
        with warnings.catch_warnings():
            if not stop.audited:
                # What is said of small groups is said once, of the audited model.
                warnings.simplefilter("ignore")
            results.append(
                evaluate(
                    final_estimator(stop.model),
                    prepared(stop.model, X),
                    y,
                    X_train=None if X_train is None else prepared(stop.model, X_train),
                    n_bootstrap=replicates,
                    **given,
                )
            )
    bands = kaplan_meier_bands(target, attributes, _curve_times(results), level)
    models = tuple(
        _model_audit(stop, result, bands, time_title, reference_name)
        for stop, result in zip(stops, results, strict=True)
    )
    worst_off = None
    if search_rules:
        tell("rules for the worst off", steps)
        worst_off = describe_worst_off(model, X, y, follow_up, features, level, random_state)
    names = tuple(attribute.name for attribute in attributes)
    estimator = final_estimator(model)
    shown, result = next((m, r) for m, r in zip(models, results, strict=True) if m.audited)
    compared = {"Bootstrap replicates, models compared": min(n_bootstrap, n_bootstrap_path)}
    settings = {
        "Bootstrap replicates, audited model": n_bootstrap,
        **(compared if len(stops) > 1 else {}),
        "Level of intervals": level,
        "Seed": random_state,
    }
    return AuditReport(
        title=title or (f"{shown.name}, on {data_name}" if data_name else shown.name),
        subtitle=_subtitle(target, names, estimator),
        created=date.today().isoformat(),
        version=__version__,
        level=f"{100 * level:g} %",
        time_title=time_title,
        attributes=names,
        models=models,
        trade_off=trade_off_table(models, results, names),
        control=control_table(result, names, reference_name),
        worst_off=worst_off,
        method=(
            data_facts(target, prepared(model, X), attributes, estimator, time_title),
            model_settings(estimator),
            audit_settings(settings),
        ),
        limits=(*result.notes, *LIMITS),
    )


def _model_audit(
    stop: Stop, result: EvaluationResult, bands: Bands, time_title: str, reference: str
) -> ModelAudit:
    worst = next(iter(judged_gaps(result.rows, "concordance_index", result.settings.level)), None)
    told = result.statements(reference=reference, time_unit=time_title)
    return ModelAudit(
        name=stop.name,
        alpha=stop.alpha,
        audited=stop.audited,
        statements=tuple(s for s in told if s.code not in ("overall", "imparity")),
        headline=_headline(result, worst),
        accuracy=accuracy_table(result),
        fairness=fairness_table(result),
        groups=group_table(result, worst),
        calibration=calibration_table(result, time_title),
        survival=survival_table(result, bands),
        shrinkage=shrinkage_table(result, reference),
    )


def _headline(result: EvaluationResult, worst: GroupGap | None) -> dict[str, str]:
    """The few numbers that change as the slider moves."""
    found = {"c-index": written(result.value("concordance_index"))}
    if worst is not None:
        found["Served worst"] = f"{written(worst.worst[1])}, {group_name(worst.attribute, worst.worst[0])}"
        found["Gap"] = written(worst.size)
    return found


def _curve_times(results: Sequence[EvaluationResult]) -> FloatArray:
    """Times of the mean survival curves, the same for every model that has them."""
    for result in results:
        if len(result.survival):
            times: FloatArray = np.unique(result.survival["time"].to_numpy(dtype=np.float64))
            return times
    return np.zeros(1)


def _subtitle(target: Target, attributes: Sequence[str], estimator: Any) -> str:
    told = f"{len(target):,} patients with {target.n_events:,} events"
    *others, last = attributes or ("",)
    named = f"{', '.join(others)} and {last}" if others else last
    told += f", in groups by {named}." if named else "."
    if hasattr(estimator, "n_patients_"):
        told += f" The model was trained on {estimator.n_patients_:,} patients."
    return told
