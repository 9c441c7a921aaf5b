"""The report on a case: the evidence is computed, and every section collects what it shows."""

from __future__ import annotations

import warnings
from dataclasses import fields, replace
from datetime import date
from typing import Any

import numpy as np

from drosurv._version import __version__
from drosurv.audit.evidence import FEWEST, Case, Evidence
from drosurv.audit.report import AuditReport, ModelAudit
from drosurv.audit.sections.section import all_sections
from drosurv.evaluation import EvaluationResult, beside, evaluate
from drosurv.evaluation.attributes import parse_attributes
from drosurv.evaluation.predictions import predict_curves, predict_risk
from drosurv.evaluation.prepare import prepare
from drosurv.evaluation.summary import judged_gaps
from drosurv.insight import WorstOff, worst_off
from drosurv.metrics import likelihood_gains
from drosurv.presentation import attribute_name, first_upper, group_name, listing, written

# Fewer patients cannot hold two groups that say anything.
LEAST_FOR_RULES = 50


def report_on(case: Case) -> AuditReport:
    """Compute the evidence, and let every section collect what it shows."""
    evidence = gather(without_tiny_groups(case))
    found = {section.key: section.collect(evidence) for section in all_sections()}
    parts = {key: part for key, part in found.items() if part is not None}
    models = tuple(
        ModelAudit(
            name=stop.name,
            alpha=stop.alpha,
            audited=stop.audited,
            statements=tuple(s for part in parts.values() for s in part.said_of(k)),
            headline=_headline(evidence.results[k]),
            tables={table.key: table for part in parts.values() for table in part.tables_of(k)},
        )
        for k, stop in enumerate(case.stops)
    )
    name = case.stops[case.start].name
    return AuditReport(
        title=case.title or (f"{name}, on {case.data_name}" if case.data_name else name),
        subtitle=_subtitle(evidence),
        created=date.today().isoformat(),
        version=__version__,
        level=f"{100 * case.level:g} %",
        time_unit=case.time_unit,
        models=models,
        parts=parts,
    )


def without_tiny_groups(case: Case) -> Case:
    """The case without groups of so few patients that the page would tell what became of one of them."""
    attributes = parse_attributes(case.sensitive_features, len(case.target))
    tiny = [
        (attribute.name, label)
        for attribute in attributes
        for label, rows in zip(attribute.labels, attribute.rows, strict=True)
        if len(rows) < FEWEST
    ]
    if not tiny:
        return case
    left = [
        attribute.without([label for name, label in tiny if name == attribute.name])
        for attribute in attributes
    ]
    shown = {attribute.name: attribute.groups for attribute in left if len(attribute.labels) > 1}
    note = (
        f"Groups of fewer than {FEWEST} patients are not shown, so that nobody can be recognised: "
        f"{listing([group_name(*who) for who in tiny])}."
    )
    return replace(case, sensitive_features=shown or None, limits=(*case.limits, note))


def gather(case: Case) -> Evidence:
    """Evaluate every model, compare with the reference, and search for rules."""
    steps = len(case.stops) + case.search_rules

    def tell(name: str) -> None:
        if case.on_step is not None:
            case.on_step(name, steps)

    judged: dict[str, Any] = {
        "y_train": case.follow_up,
        "level": case.level,
        "random_state": case.random_state,
    }
    grouped = {**judged, "sensitive_features": case.sensitive_features, "horizons": case.horizons}
    risk = (
        None if case.reference is None else predict_risk(*case.reference, len(case.target), name="reference")
    )
    audited, results = case.stops[case.start], []
    for stop in case.stops:
        tell(stop.name)
        replicates = case.n_bootstrap if stop.audited else min(case.n_bootstrap, case.n_bootstrap_path)
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
                    reference=risk,
                    n_bootstrap=replicates,
                    **grouped,
                )
            )
    against, ranked = None, {}
    if case.reference is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if case.n_bootstrap > 1:
                against = beside(
                    (audited.model, audited.X),
                    case.reference,
                    case.y,
                    case.sensitive_features,
                    n_bootstrap=case.n_bootstrap,
                    name=case.reference_name,
                    recalibrated=bool(case.model.get("recalibrate")),
                    **judged,
                )
            ranked = _ranked_by(risk, case)
    if case.search_rules:
        tell("rules and repairs for the worst off")
    rules, why = _rules(case)
    missing = (*case.missing, *map(first_upper, results[case.start].notes))
    known = {one.name: getattr(case, one.name) for one in fields(case)}
    return Evidence(
        **known | {"missing": missing},
        attributes=parse_attributes(case.sensitive_features, len(case.target)),
        results=tuple(results),
        ranked_by_reference=ranked,
        against=against,
        worst_off=rules,
        not_searched=why,
    )


def _ranked_by(risk: Any, case: Case) -> dict[tuple[str, str], float]:
    """The reference's c-index of everybody and of every group."""
    panel = prepare(
        risk,
        None,
        case.y,
        y_train=case.follow_up,
        sensitive_features=case.sensitive_features,
        wanted=("concordance_index",),
    )
    sheet = panel.sheet()
    return {(place.attribute, place.group): sheet[place].estimate for place in sheet.places}


def _rules(case: Case) -> tuple[WorstOff | None, str]:
    """Rules for the worst off, or why there are none."""
    n, audited = len(case.target), case.stops[case.start]
    if not case.search_rules:
        return None, "it was not asked for"
    if n < LEAST_FOR_RULES:
        return None, f"{n} patients are too few, it takes {LEAST_FOR_RULES}"
    curves = predict_curves(audited.model, audited.X, n)
    if curves is None:
        return None, "the model gives no survival curves"
    if case.features is None or np.shape(case.features)[1] == 0:
        return None, "no columns were given that rules could speak about"
    return worst_off(
        None,
        case.features,
        case.y,
        harm=-likelihood_gains(case.follow_up, case.target, curves),
        min_group=max(20, min(50, n // 20)),
        confidence=case.level,
        random_state=case.random_state,
    ), ""


def _headline(result: EvaluationResult) -> dict[str, str]:
    """The few numbers that change as the slider moves."""
    worst = next(iter(judged_gaps(result, "concordance_index")), None)
    found = {"c-index": written(result.value("concordance_index"))}
    if worst is not None:
        found["Served worst"] = f"{written(worst.worst[1])}, {group_name(worst.attribute, worst.worst[0])}"
        found["Gap"] = written(worst.size)
    return found


def _subtitle(evidence: Evidence) -> str:
    told = f"{len(evidence.target):,} patients with {evidence.target.n_events:,} events"
    if evidence.attributes:
        told += f", in groups by {listing([attribute_name(a.name) for a in evidence.attributes])}"
    trained = evidence.data.get("Patients trained on")
    return f"{told}." + (f" The model was trained on {trained} patients." if trained else "")
