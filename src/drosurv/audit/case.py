"""A case to be audited: models and patients, however they were given; and the report that is made of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from drosurv._version import __version__
from drosurv.audit.contents import all_sections
from drosurv.audit.evidence import Evidence
from drosurv.audit.observed_survival import kaplan_meier_bands
from drosurv.audit.remedy import Remedy, find_remedy
from drosurv.audit.report import AuditReport, ModelAudit
from drosurv.audit.stops import Stop
from drosurv.evaluation import AgainstPlain, beside, evaluate
from drosurv.evaluation.attributes import parse_attributes
from drosurv.evaluation.predictions import predict_curves, predict_risk
from drosurv.evaluation.summary import judged_gaps
from drosurv.insight import WorstOff, worst_off
from drosurv.metrics import likelihood_gains
from drosurv.presentation import attribute_name, group_name, label_name, listing, written
from drosurv.target import FloatArray, Target

if TYPE_CHECKING:
    import pandas as pd

    from drosurv.evaluation import EvaluationResult
    from drosurv.evaluation.attributes import Attribute

# Fewer patients cannot hold two groups that say anything.
LEAST_FOR_RULES = 50


@dataclass(frozen=True)
class Options:
    """How an audit is done; as in :func:`~drosurv.audit.audit`."""

    title: str | None = None
    data_name: str = ""
    time_unit: str = "time"
    n_bootstrap: int = 500
    n_bootstrap_path: int = 100
    level: float = 0.95
    search_rules: bool = True
    random_state: int = 0
    on_step: Callable[[str, int], None] | None = None
    also: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Case:
    """What is audited.

    Attributes
    ----------
    stops : tuple of Stop
        The audited model, and those to compare it with.
    y : structured array, (n,)
        What happened to the audited patients.
    target : Target
        The same, parsed.
    follow_up : structured array or FollowUp
        Of the training patients.
    sensitive_features : see :func:`~drosurv.audit.audit`
    reference : pair of fitted model, Predictions or (n,) array, and features; or None
        What the audited model is compared with, and what it takes.
    reference_name : str
        What readers call it.
    features : DataFrame or array, optional
        What rules may speak about.
    data, model : mapping
        Names and values for the method card.
    missing, limits : tuple of str
        What could not be computed, and what the report cannot say.
    horizons : (h,) float64, optional
        When calibration is looked at; by default at quartiles of the event times.
    """

    stops: tuple[Stop, ...]
    y: Any
    target: Target
    follow_up: Any
    sensitive_features: Any
    reference: tuple[Any, Any] | None
    reference_name: str
    features: pd.DataFrame | FloatArray | None
    data: Mapping[str, Any]
    model: Mapping[str, Any]
    missing: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    horizons: FloatArray | None = None

    @property
    def audited(self) -> Stop:
        """The model under audit."""
        return next(stop for stop in self.stops if stop.audited)


def report_on(case: Case, options: Options) -> AuditReport:
    """Compute the evidence, and let every section collect what it shows."""
    evidence = gather(case, options)
    parts = {}
    for section in all_sections():
        part = section.collect(evidence)
        if part is not None:
            parts[section.key] = part
    models = tuple(
        ModelAudit(
            name=stop.name,
            alpha=stop.alpha,
            audited=stop.audited,
            statements=tuple(
                s for part in parts.values() if part.said_by_model for s in part.said_by_model[k]
            ),
            headline=_headline(evidence.results[k]),
            tables={
                table.key: table for part in parts.values() if part.by_model for table in part.by_model[k]
            },
        )
        for k, stop in enumerate(case.stops)
    )
    name = case.audited.name
    return AuditReport(
        title=options.title or (f"{name}, on {options.data_name}" if options.data_name else name),
        subtitle=_subtitle(case, evidence.attributes),
        created=date.today().isoformat(),
        version=__version__,
        level=f"{100 * options.level:g} %",
        time_unit=options.time_unit,
        models=models,
        parts=parts,
    )


def gather(case: Case, options: Options) -> Evidence:
    """Evaluate every model, compare with the reference, and search for rules."""
    target, n = case.target, len(case.target)
    attributes = parse_attributes(case.sensitive_features, n)
    steps = len(case.stops) + 2 * options.search_rules
    tell = options.on_step or (lambda name, steps: None)
    reference = None if case.reference is None else predict_risk(*case.reference, n, name="reference")
    given: dict[str, Any] = {
        "y_train": case.follow_up,
        "sensitive_features": case.sensitive_features,
        "horizons": case.horizons,
        "level": options.level,
        "random_state": options.random_state,
    }
    results = []
    for stop in case.stops:
        tell(stop.name, steps)
        replicates = (
            options.n_bootstrap if stop.audited else min(options.n_bootstrap, options.n_bootstrap_path)
        )
        with warnings.catch_warnings():
            if not stop.audited:
                # What is said of small groups is said once, of the audited model.
                warnings.simplefilter("ignore")
            results.append(
                evaluate(
                    stop.model,
                    stop.X,
                    case.y,
                    X_train=stop.X_train,
                    reference=reference,
                    n_bootstrap=replicates,
                    **given,
                )
            )
    audited = case.audited
    curves = predict_curves(audited.model, audited.X, n)
    gains = None if curves is None else likelihood_gains(case.follow_up, target, curves)
    against: AgainstPlain | None = None
    reference_result = None
    if case.reference is not None:
        with warnings.catch_warnings():
            # Again, what there is to say of small groups is said of the audited model.
            warnings.simplefilter("ignore")
            if options.n_bootstrap > 1:
                against = beside(
                    (audited.model, audited.X),
                    case.reference,
                    case.y,
                    case.sensitive_features,
                    y_train=case.follow_up,
                    n_bootstrap=options.n_bootstrap,
                    level=options.level,
                    random_state=options.random_state,
                )
            reference_result = evaluate(reference, None, case.y, n_bootstrap=0, **given)
    found, why = None, "it was not asked for"
    remedy: Remedy | None = None
    if options.search_rules:
        tell("rules for the worst off", steps)
        found, why = _rules(case, options, gains)
        if found is not None and case.features is not None:
            tell("repairs", steps)
            remedy = find_remedy(
                case.stops,
                case.y,
                target,
                case.follow_up,
                case.features,
                options.level,
                options.random_state,
            )
    settings: dict[str, Any] = {"Bootstrap replicates, audited model": options.n_bootstrap}
    if len(case.stops) > 1:
        fewer = min(options.n_bootstrap, options.n_bootstrap_path)
        settings["Bootstrap replicates, models compared"] = fewer
    result = next(r for stop, r in zip(case.stops, results, strict=True) if stop.audited)
    return Evidence(
        target=target,
        attributes=attributes,
        stops=case.stops,
        results=tuple(results),
        level=options.level,
        time_unit=options.time_unit,
        reference=case.reference_name,
        reference_result=reference_result,
        against=against,
        bands=kaplan_meier_bands(target, attributes, _curve_times(results), options.level),
        worst_off=found,
        not_searched=why,
        settings={**settings, "Level of intervals": options.level, "Seed": options.random_state},
        data={**_facts(target, attributes, options.time_unit), **case.data},
        model=case.model,
        missing=(*case.missing, *map(_sentence, result.notes)),
        limits=case.limits,
        also=options.also,
        remedy=remedy,
    )


def _rules(case: Case, options: Options, gains: FloatArray | None) -> tuple[WorstOff | None, str]:
    n = len(case.target)
    if n < LEAST_FOR_RULES:
        return None, f"{n} patients are too few, it takes {LEAST_FOR_RULES}"
    if gains is None:
        return None, "the model gives no survival curves"
    if case.features is None or np.shape(case.features)[1] == 0:
        return None, "no columns were given that rules could speak about"
    return worst_off(
        None,
        case.features,
        case.y,
        harm=-gains,
        min_group=max(20, min(50, n // 20)),
        confidence=options.level,
        random_state=options.random_state,
    ), ""


def _facts(target: Target, attributes: Sequence[Attribute], time_unit: str) -> dict[str, str]:
    """Facts of the audited patients."""
    events = target.n_events
    return {
        "Patients": written(len(target), "count"),
        "Events": f"{written(events, 'count')} ({written(events / len(target), 'share')})",
        "Median time observed": f"{written(float(np.median(target.time)), 'time')} {time_unit}",
        "Longest time observed": f"{written(float(target.time.max()), 'time')} {time_unit}",
        **{
            f"Groups by {attribute_name(a.name)}": ", ".join(label_name(a.name, label) for label in a.labels)
            for a in attributes
        },
    }


def _headline(result: EvaluationResult) -> dict[str, str]:
    """The few numbers that change as the slider moves."""
    worst = next(iter(judged_gaps(result.rows, "concordance_index", result.settings.level)), None)
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


def _subtitle(case: Case, attributes: Sequence[Attribute]) -> str:
    told = f"{len(case.target):,} patients with {case.target.n_events:,} events"
    if attributes:
        told += f", in groups by {listing([attribute_name(a.name) for a in attributes])}"
    trained = case.data.get("Patients trained on")
    return f"{told}." + (f" The model was trained on {trained} patients." if trained else "")


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:]
