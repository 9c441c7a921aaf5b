"""From what a caller gives to what the engine takes: checked once, predicted once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from drosurv.errors import ArgumentError
from drosurv.evaluation.attributes import Attribute, intersection_of, parse_attributes
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.engine import Panel
from drosurv.evaluation.features import plain_cox_risk, standardised_features
from drosurv.evaluation.patients import Patients, Scoring
from drosurv.evaluation.predictions import predict_risk, training_follow_up
from drosurv.groups import Missing
from drosurv.metrics import FollowUp, sampled_individual_disparity
from drosurv.metrics.pair_disparities import Convention
from drosurv.metrics.sampled_pairs import Pairs, sampled_number
from drosurv.target import parse_target


def prepare(
    model: Any,
    X: Any,
    y: Any,
    *,
    y_train: Any,
    sensitive_features: Any,
    X_train: Any = None,
    reference: Any = None,
    horizons: Any = None,
    convention: Convention = "paper",
    scale: float = 0.01,
    pairs: Pairs = "auto",
    missing: Missing = "group",
    labels: Mapping[str, Sequence[Any]] | None = None,
    intersections: bool = False,
    wanted: Collection[str] | None = None,
    name: str = "model",
) -> Panel:
    """Check everything and ask the model; parameters as in :func:`~drosurv.evaluation.evaluate`."""
    if convention not in ("paper", "table"):
        raise ArgumentError.must("convention", "be 'paper' or 'table'", convention)
    target = parse_target(y)
    whose_follow_up = ""
    if y_train is None:
        y_train = training_follow_up(model)
    if y_train is None:
        y_train = FollowUp.parse(target)
        whose_follow_up = (
            "censoring weights and the null model come from the scored patients: y_train was not given."
        )
    attributes = parse_attributes(sensitive_features, len(target), missing=missing, labels=labels)
    intersection = intersection_of(attributes) if attributes else None
    features = standardised_features(X, X_train)
    why_no_reference = ""
    if reference is None:
        reference, why_no_reference = plain_cox_risk(features, y_train)
    else:
        reference = predict_risk(reference, X, len(target), name="reference")
    scoring = Scoring(
        model, X, target, y_train, horizons, reference, convention, features.test, scale, pairs, name
    )
    # Asked for here, so that what is wrong with them is said before any work.
    _ = scoring.calibration_times, scoring.has_risk and scoring.risk
    shown: list[Attribute] = [*attributes]
    if intersections and intersection is not None and len(attributes) > 1:
        shown.append(intersection)
    panel = Panel(Patients(scoring), shown, intersection, wanted)
    notes = [whose_follow_up, why_no_reference, features.note, *_left_out(panel), _sampled(panel)]
    return replace(panel, notes=tuple(note for note in notes if note))


def _sampled(panel: Panel) -> str:
    """How much the sampling of pairs leaves open, where pairs are sampled."""
    scoring = panel.everyone.scoring
    number = sampled_number(scoring.pairs, len(panel.everyone))
    if number is None or "individual_disparity" not in (metric.name for metric in panel.metrics):
        return ""
    value, error = sampled_individual_disparity(
        scoring.risk, scoring.features, scale=scoring.scale, convention=scoring.convention, pairs=number
    )
    relative = f" of {100 * error / value:.2g} %" if value > 0 else ""
    return (
        f"F_I and the censoring-aware disparities are estimated from {number:,} random pairs of patients, which leaves "
        f'a standard error{relative}; pairs="all" looks at every pair.'
    )


def _left_out(panel: Panel) -> list[str]:
    notes, scoring = [], panel.everyone.scoring
    if not scoring.has_curves:
        notes.append(
            "Brier scores, likelihood gains and calibration are left out: the model gives no survival curves."
        )
    if not scoring.has_risk:
        labels = [metric.label for metric in CATALOGUE.values() if {"risk", "hazards"} & {*metric.needs}]
        notes.append(f"{', '.join(filter(None, labels))} are left out: no risk scores were given.")
    elif not panel.has_hazards:
        notes.append(
            f"disparities of hazards are left out: exp overflows, or is 0, for scores of {scoring.risk.min():g} to "
            f"{scoring.risk.max():g}."
        )
    if not panel.attributes:
        notes.append("nothing is shown by group: no groups were given.")
    return notes
