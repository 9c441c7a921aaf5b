r"""Decisions and calibration curves of everybody and every group, and ratios of attributes with many groups.

A decision curve is the net benefit of treating patients above a threshold of predicted risk, by group. With :math:`\pi`
the share of patients whose predicted risk is at least the threshold t, and TP the share who are above it and have the
event by the horizon,

.. math:: NB(t) = TP - (\pi - TP) \frac{t}{1 - t}, \qquad \text{avoided per 100} = 100 (NB - NB_{all}) \frac{1 - t}{t}.

Treating nobody has 0. TP counts events weighted for censoring within strata of predicted risk, of the group alone
(:mod:`drosurv.metrics.risk_strata`). R's dcurves, and :func:`drosurv.metrics.decisions`, take :math:`\pi`
times one minus the Kaplan-Meier survival of the patients above the threshold for TP, which assumes that their censoring
depends on nothing. On the survival example of dcurves the two net benefits differ by at most 0.006.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from drosurv.evaluation.calibration_curves import calibration_curves
from drosurv.evaluation.evaluator import Evaluator, Key
from drosurv.judging.group_picture import MANY_GROUPS
from drosurv.judging.judged import Horizon
from drosurv.metrics.decisions import DECISION_METRICS, implied_decisions, weighted_decision_estimates
from drosurv.metrics.estimates import Estimate, Estimates, Interval
from drosurv.metrics.random_intercept import random_intercept
from drosurv.metrics.risk_strata import ObservedRisk
from drosurv.patients.groups import ALL, EVERYONE
from drosurv.patients.target import FloatArray, IntArray
from drosurv.presentation import moment

#: Name of the row of a group that is not among the audited ones.
NEW_GROUP = "a new one"
_DECISION_COLUMNS = (
    *("attribute", "group", "metric", "value", "low", "high", "predicted", "patients", "positives", "reason"),
)
_PARTLY = "some patients are not judged in "
#: Levels of the two pairs of limits of a funnel plot.
FUNNEL_LEVELS = (0.95, 0.998)
COLUMNS = (
    *("attribute", "group", "threshold", "net_benefit", "low", "high", "treat_all", "treat_none"),
    *("avoided_per_100", "patients"),
)
# Largest number of default thresholds, which are multiples of a round number.
_MOST_THRESHOLDS = 50
_HIGHEST_QUANTILE = 0.99
# Pseudo-patients added to each group, with a risk equal to the threshold: without them the standard error of a net
# benefit would be 0 where nobody is above the threshold.
_ADDED = 2
# Events added to observed and to predicted ones, so that few events do not decide how far predictions are off.
_ADDED_EVENTS = 3


def curves_by_group(evaluator: Evaluator, at: Horizon, level: float) -> dict[str, Any]:
    """Return curves and decisions as fields of the result; none for a model without survival curves."""
    data = evaluator.everyone.data
    if not data.is_judged:
        return {}
    judged = data.risks
    rows = {(EVERYONE, ALL): np.arange(len(evaluator.everyone)), **evaluator.rows}
    outcomes = {key: judged.outcomes(judged.horizon, own) for key, own in rows.items() if len(own)}
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
    groups: Mapping[Key, ObservedRisk],
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
    numbers: dict[Key, dict[str, Estimate]] = {}
    records: list[dict[str, Any]] = []
    for key, outcomes in groups.items():
        found = weighted_decision_estimates(outcomes.risk, outcomes.outcomes, np.array([threshold]))
        numbers[key] = {metric: one for metric, (one,) in found.items()}
        records += _decisions(outcomes, key, threshold, numbers[key], level, time_unit)
    table = pd.DataFrame(records)
    if benefit is not None:
        own = table["metric"] == "net_benefit"
        curve = benefit[benefit["threshold"] == threshold]
        for name, column in {"value": "net_benefit", "low": "low", "high": "high"}.items():
            table.loc[own, name] = curve[column].to_numpy()
    families: dict[str, list[Key]] = {}
    for key in groups:
        if key[0] != EVERYONE:
            families.setdefault(key[0], []).append(key)
    gaps = {metric: _gaps(metric, groups, numbers, families, level, clusters) for metric in DECISION_METRICS}
    rows = [{"attribute": name, **gaps[metric][name]} for name in families for metric in DECISION_METRICS]
    return pd.concat([table, pd.DataFrame(rows)], ignore_index=True).reindex(columns=list(_DECISION_COLUMNS))


def _decisions(
    outcomes: ObservedRisk,
    key: Key,
    threshold: float,
    numbers: Mapping[str, Estimate],
    level: float,
    time_unit: str,
) -> Iterator[dict[str, Any]]:
    """Yield the measures of one group, with their intervals."""
    horizon, weight = moment(outcomes.time, time_unit), outcomes.weight
    reasons = {
        "sensitivity": f"no event by {horizon} was observed",
        "specificity": f"every patient had the event by {horizon}",
        "ppv": "no patient is predicted positive",
        "npv": "no patient is predicted negative",
    }
    shared = {"attribute": key[0], "group": key[1], "patients": round(outcomes.patients)}
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
    groups: Mapping[Key, ObservedRisk],
    numbers: Mapping[Key, Mapping[str, Estimate]],
    families: Mapping[str, list[Key]],
    level: float,
    clusters: IntArray | None,
) -> dict[str, dict[str, Any]]:
    """Return the largest differences of a measure between two groups of each attribute.

    Where patients of a group are left out, mostly those of the highest risk, right decisions would differ, too.
    """
    found: dict[str, dict[str, Any]] = {}
    tested: dict[str, list[int]] = {}
    known: list[Key] = []
    for name, keys in families.items():
        unknown = [key[1] for key in keys if np.isnan(numbers[key][metric].value)]
        partly = [key[1] for key in keys if groups[key].left_out]
        reason = f"{_PARTLY}{', '.join(partly)}" if partly else ""
        reason = f"not estimable in {', '.join(unknown)}" if unknown else reason
        found[name] = {"group": "gap", "metric": metric, "reason": reason}
        if not reason:
            tested[name] = [*range(len(known), len(known) + len(keys))]
            known += keys
    if tested:
        all_numbers = _together([groups[k] for k in known], [numbers[k][metric] for k in known], clusters)
        gaps = all_numbers.largest_gaps(list(tested.values()), level)
        for name, gap in zip(tested, gaps, strict=True):
            found[name] |= _ends(gap)
    return found


def _together(
    groups: Sequence[ObservedRisk], numbers: Sequence[Estimate], clusters: IntArray | None
) -> Estimates:
    """Return numbers of several groups, one each, as numbers of all patients, whose clusters are (n,)."""
    last = max((int(one.rows.max(initial=-1)) for one in groups), default=-1)
    n = 1 + last if clusters is None else len(clusters)
    pairs = zip(groups, numbers, strict=True)
    return Estimates([number.among(outcomes.rows, n) for outcomes, number in pairs], clusters)


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
        new = {"attribute": own["attribute"].iloc[0], "group": NEW_GROUP, "shrunken": np.exp(found.mean)}
        new |= {"low": found.new_low, "high": found.new_high}
        shrunken = own.assign(shrunken=found.shrunken, low=found.low, high=found.high)
        tables.append(pd.concat([shrunken, pd.DataFrame([new])], ignore_index=True))
    columns = ["attribute", "group", "patients", "observed", "expected", "ratio", "shrunken", "low", "high"]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def funnel(expected: FloatArray, level: float, design_effect: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Return limits that contain observed over expected events of a right model with probability `level`."""
    z, expected = float(ndtri((1 + level) / 2)), expected / design_effect
    # The square root of a Poisson count has a standard deviation of about 1/2.
    low, high = (np.maximum(np.sqrt(expected) + sign * z / 2, 0.0) ** 2 / expected for sign in (-1, 1))
    return low, high


def default_thresholds(risk: FloatArray) -> FloatArray:
    """Return round numbers up to the 99th percentile of the risks (n,)."""
    highest = min(max(float(np.quantile(risk, _HIGHEST_QUANTILE)), 1e-4), 0.99)
    power = 10.0 ** math.floor(math.log10(highest / _MOST_THRESHOLDS))
    steps = (factor * power for factor in (1, 2, 5, 10))
    step = next(step for step in steps if highest / step <= _MOST_THRESHOLDS + 1e-9)
    # Rounded, so that 3 * 0.01 is 0.03.
    return np.round(step * np.arange(1, math.floor(highest / step + 1e-9) + 1), 10)


def decision_curves(
    groups: Mapping[tuple[str, str], ObservedRisk], thresholds: FloatArray, *, level: float = 0.95
) -> pd.DataFrame:
    """Return the decision curve of each group, with a band that contains the whole curve with probability `level`.

    `groups` are outcomes by attribute and label; the curve of a group whose follow-up ends before the horizon is NaN.
    """
    odds = thresholds / (1 - thresholds)
    tables = []
    for (attribute, group), outcomes in groups.items():
        benefit = treat_all = low = high = np.full(len(thresholds), np.nan)
        if len(outcomes):
            wanted = outcomes.risk, outcomes.outcomes, thresholds, ["net_benefit"]
            curve = weighted_decision_estimates(*wanted)["net_benefit"]
            added = np.sqrt(_ADDED * odds) * outcomes.alike / outcomes.patients
            larger = _missing_variance(curve, outcomes, thresholds)
            curve = [
                replace(one, influence=factor * one.influence, further=more)
                for one, factor, more in zip(curve, larger, added[:, None], strict=True)
            ]
            intervals = outcomes.estimates(curve).intervals(level, together=True)
            benefit, low, high = np.array([(one.estimate, one.low, one.high) for one in intervals]).T
            treat_all = outcomes.observed.value * (1 + odds) - odds
        tables.append(
            pd.DataFrame(
                {
                    "attribute": attribute,
                    "group": group,
                    "threshold": thresholds,
                    "net_benefit": benefit,
                    "low": low,
                    "high": high,
                    "treat_all": treat_all,
                    "treat_none": 0.0,
                    "avoided_per_100": 100 * (benefit - treat_all) / odds,
                    "patients": round(outcomes.patients),
                }
            )
        )
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(COLUMNS))


def _missing_variance(
    curve: Sequence[Estimate], outcomes: ObservedRisk, thresholds: FloatArray
) -> FloatArray:
    """Return factors (K,), at least 1, that give influences the variance of events as predicted.

    Samples with few events above the threshold have a low net benefit and small influences: with rare events and
    censoring, bands of influences alone contain the whole curve in 81 to 87 % of samples. Expected are the predicted
    risks, multiplied by one factor so that their sum is near that of the events.
    """
    weight, stratum = outcomes.weight, outcomes.outcomes.stratum
    observed, predicted = (float(weight @ each) / outcomes.alike for each in (outcomes.events, outcomes.risk))
    factor = (observed + _ADDED_EVENTS) / (predicted + _ADDED_EVENTS)
    risk = np.minimum(outcomes.risk * factor, 1.0)
    odds, above = thresholds / (1 - thresholds), (outcomes.risk[:, None] >= thresholds).astype(np.float64)
    mean = above * (risk[:, None] * (1 + odds) - odds)
    mean -= weight @ mean / outcomes.patients
    alone = risk * (1 - risk) + factor * outcomes.outcomes.variances_by_censoring
    by_chance = (weight * alone) @ above
    # An event that counts 1 / G has the variance risk / G, with the mean of 1 / G over the events of a stratum. What
    # this is more is lost where a stratum is in part below the threshold.
    for rows in (np.flatnonzero(stratum == one) for one in np.unique(stratum)):
        events, squares = (weight[rows] @ outcomes.events[rows] ** power for power in (1, 2))
        if not events > 0:
            continue
        lost = np.maximum(risk[rows] * (squares / events - risk[rows]) - alone[rows], 0.0)
        part = weight[rows] @ above[rows] / max(float(weight[rows].sum()), 1e-300)
        by_chance += (weight[rows] * lost) @ above[rows] * (1 - part)
    expected = ((1 + odds) ** 2 * by_chance + weight @ mean**2) / outcomes.patients**2
    found = np.array([float(one.influence @ one.influence) for one in curve])
    ratio: FloatArray = np.divide(expected, found, out=np.ones(len(odds)), where=found > 0)
    return np.sqrt(np.maximum(ratio, 1.0))
