"""Decisions and calibration curves of everybody and every group, and ratios of attributes with many groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from drosurv.evaluation.at_horizon import JudgedRisks, OutcomesAtHorizon, together
from drosurv.evaluation.attributes import ALL, EVERYONE, rows_by_group
from drosurv.evaluation.calibration_curves import calibration_curves
from drosurv.evaluation.data import Horizon
from drosurv.evaluation.decision_curves import decision_curves, default_thresholds
from drosurv.evaluation.evaluator import Evaluator, Key
from drosurv.judging.group_picture import MANY_GROUPS
from drosurv.metrics.decisions import DECISION_METRICS, implied_decisions, weighted_decision_estimates
from drosurv.metrics.estimates import Estimate, Interval
from drosurv.metrics.random_intercept import random_intercept
from drosurv.patients.target import FloatArray, IntArray
from drosurv.presentation import moment

#: Name of the row of a group that is not among the audited ones.
NEW_GROUP = "a new one"
_DECISION_COLUMNS = [
    "attribute",
    "group",
    "metric",
    "value",
    "low",
    "high",
    "predicted",
    "patients",
    "positives",
    "reason",
]
#: Levels of the two pairs of limits of a funnel plot.
FUNNEL_LEVELS = (0.95, 0.998)


def curves_by_group(evaluator: Evaluator, at: Horizon, level: float) -> dict[str, Any]:
    """Return curves and decisions as fields of the result; none for a model without survival curves."""
    data = evaluator.everyone.data
    if not data.is_judged:
        return {}
    judged = JudgedRisks(data, evaluator.clusters)
    rows = {(EVERYONE, ALL): np.arange(len(evaluator.everyone)), **rows_by_group(evaluator.attributes)}
    outcomes = {key: judged.at(judged.horizon, own) for key, own in rows.items() if len(own)}
    threshold, thresholds = at.threshold, at.thresholds
    thresholds = default_thresholds(data.judged.risk) if thresholds is None else thresholds
    # The threshold that is marked is one of them.
    thresholds = thresholds if threshold is None else np.union1d(thresholds, threshold)
    benefit = decision_curves(outcomes, thresholds, level=level)
    return {
        "decision_curves": benefit,
        "decisions": None
        if threshold is None
        else decision_table(outcomes, threshold, level, evaluator.clusters, benefit, at.time_unit),
        "calibration_curves": calibration_curves(outcomes, level=level),
    }


def decision_table(
    groups: Mapping[Key, OutcomesAtHorizon],
    threshold: float,
    level: float,
    clusters: IntArray | None = None,
    benefit: pd.DataFrame | None = None,
    time_unit: str = "",
) -> pd.DataFrame:
    """Return measures of decisions at a threshold, for everybody and every group, and their largest differences.

    `groups` are outcomes by attribute and label. Intervals of the differences of a measure are adjusted for all groups
    and attributes. The net benefit is that of the decision curves (`benefit`), if given, with their band.
    """
    numbers = {
        key: {
            metric: numbers[0]
            for metric, numbers in weighted_decision_estimates(
                outcomes.risk, outcomes.outcomes, np.array([threshold])
            ).items()
        }
        for key, outcomes in groups.items()
    }
    records = [
        record
        for key, outcomes in groups.items()
        for record in _decisions(outcomes, key, threshold, numbers[key], level, time_unit)
    ]
    table = pd.DataFrame(records)
    if benefit is not None:
        own = table["metric"] == "net_benefit"
        curve = benefit[benefit["threshold"] == threshold]
        for name, column in {"value": "net_benefit", "low": "low", "high": "high"}.items():
            table.loc[own, name] = curve[column].to_numpy()
    families = {
        attribute: [key for key in groups if key[0] == attribute]
        for attribute in dict.fromkeys(attribute for attribute, _ in groups)
        if attribute != EVERYONE
    }
    gaps = {metric: _gaps(metric, groups, numbers, families, level, clusters) for metric in DECISION_METRICS}
    found = [{"attribute": name, **gaps[metric][name]} for name in families for metric in DECISION_METRICS]
    return pd.concat([table, pd.DataFrame(found)], ignore_index=True).reindex(columns=list(_DECISION_COLUMNS))


def _decisions(
    outcomes: OutcomesAtHorizon,
    key: Key,
    threshold: float,
    numbers: Mapping[str, Estimate],
    level: float,
    time_unit: str,
) -> Iterator[dict[str, Any]]:
    """Yield the measures of one group, with their intervals."""
    horizon, weight = moment(outcomes.horizon, time_unit), outcomes.weight
    reasons = {
        "sensitivity": f"no event by {horizon} was observed",
        "specificity": f"every patient had the event by {horizon}",
        "ppv": "no patient is predicted positive",
        "npv": "no patient is predicted negative",
    }
    shared = {"attribute": key[0], "group": key[1], "patients": round(outcomes.total)}
    shared["positives"] = round(float(weight @ (outcomes.risk >= threshold)))
    predicted = implied_decisions(outcomes.risk, threshold, weight)
    found = outcomes.estimates(list(numbers.values())).intervals(level)
    for metric, one in zip(numbers, found, strict=True):
        reason = ""
        if not len(outcomes):
            reason = f"follow-up ends before {horizon}"
        elif np.isnan(one.estimate):
            reason = reasons[metric]
        yield {**shared, "metric": metric, **_ends(one), "predicted": predicted[metric], "reason": reason}


def _ends(found: Interval) -> dict[str, float]:
    return {"value": found.estimate, "low": found.low, "high": found.high}


def _gaps(
    metric: str,
    groups: Mapping[Key, OutcomesAtHorizon],
    numbers: Mapping[Key, Mapping[str, Estimate]],
    families: Mapping[str, list[Key]],
    level: float,
    clusters: IntArray | None,
) -> dict[str, dict[str, Any]]:
    """Return the largest differences of a measure between two groups of each attribute."""
    unknown = {
        name: [key[1] for key in keys if np.isnan(numbers[key][metric].value)]
        for name, keys in families.items()
    }
    known = [key for name, keys in families.items() if not unknown[name] for key in keys]
    tested = [name for name in families if not unknown[name]]
    found: dict[str, dict[str, Any]] = {
        name: {"group": "gap", "metric": metric, "reason": f"not estimable in {', '.join(labels)}"}
        for name, labels in unknown.items()
        if labels
    }
    if tested:
        all_numbers = together(
            [groups[key] for key in known], [numbers[key][metric] for key in known], clusters
        )
        places = {key: place for place, key in enumerate(known)}
        largest = all_numbers.largest_gaps(
            [[places[key] for key in families[name]] for name in tested], level
        )
        for name, gap in zip(tested, largest, strict=True):
            found[name] = {"group": "gap", "metric": metric, "reason": "", **_ends(gap)}
    return found


def shrunken_ratios(
    groups: pd.DataFrame, level: float, design_effects: Mapping[str, float] | None = None
) -> pd.DataFrame:
    """Return observed over expected events of attributes with many groups, with a random intercept for each group.

    `groups` is the group table. An attribute's last row is the prediction interval of a new group. With
    patients in clusters, numbers of events are divided by the design effect of the attribute.
    """
    tables = []
    for name, part in groups[groups["expected"] > 0].groupby("attribute", sort=False):
        if len(part) <= MANY_GROUPS:
            continue
        own = part[["attribute", "group", "patients", "observed", "expected", "ratio"]]
        alike = (design_effects or {}).get(str(name), 1.0)
        found = random_intercept(own["observed"] / alike, own["expected"] / alike, level=level)
        new = {
            "attribute": own["attribute"].iloc[0],
            "group": NEW_GROUP,
            "shrunken": np.exp(found.mean),
            "low": found.new_low,
            "high": found.new_high,
        }
        tables.append(
            pd.concat(
                [
                    own.assign(shrunken=found.shrunken, low=found.low, high=found.high),
                    pd.DataFrame([new]),
                ],
                ignore_index=True,
            )
        )
    columns = ["attribute", "group", "patients", "observed", "expected", "ratio", "shrunken", "low", "high"]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def funnel(expected: FloatArray, level: float, design_effect: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Return limits that contain observed over expected events of a right model with probability `level`."""
    z, expected = float(ndtri((1 + level) / 2)), expected / design_effect
    # The square root of a Poisson count has a standard deviation of about 1/2.
    low, high = (np.maximum(np.sqrt(expected) + sign * z / 2, 0.0) ** 2 / expected for sign in (-1, 1))
    return low, high
