"""Decisions and calibration curves of everybody and every group, and ratios of attributes with many groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit, ndtri

from drosurv.evaluation.at_horizon import OutcomesAtHorizon
from drosurv.evaluation.attributes import ALL, EVERYONE, rows_by_group
from drosurv.evaluation.calibration_curves import calibration_curves
from drosurv.evaluation.data import Horizon
from drosurv.evaluation.decision_curves import decision_curves, default_thresholds
from drosurv.evaluation.evaluator import Evaluator, Key
from drosurv.metrics.inference import largest_difference
from drosurv.metrics.random_intercept import random_intercept
from drosurv.observation import Inference, sample_of_many
from drosurv.presentation import moment
from drosurv.target import FloatArray, IntArray

#: Attributes with more groups, such as hospitals, are not drawn group by group.
MANY_GROUPS = 8
# Of very many patients a sample is drawn, but all of a group of at most so many.
_WHOLE_GROUP = 1_000
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
# Normal draws for intervals of the largest differences between groups.
_DRAWS = 2_000
#: Levels of the two pairs of limits of a funnel plot.
FUNNEL_LEVELS = (0.95, 0.998)


def curves_by_group(evaluator: Evaluator, at: Horizon, inference: Inference) -> dict[str, Any]:
    """Return curves and decisions as fields of the result; none for a model without survival curves."""
    data = evaluator.everyone.data
    if not data.is_judged:
        return {}
    rows = {(EVERYONE, ALL): np.arange(len(evaluator.everyone)), **rows_by_group(evaluator.attributes)}
    sampled, used = sample_of_many(evaluator.everyone.target, evaluator.clusters), None
    if sampled is not None:
        rows = {
            key: own if len(own) <= _WHOLE_GROUP else np.intersect1d(own, sampled)
            for key, own in rows.items()
        }
        used = np.unique(np.concatenate(list(rows.values())))
        rows = {key: np.searchsorted(used, own) for key, own in rows.items()}
    outcomes = OutcomesAtHorizon.of_judged(data.judged, used)
    level = inference.level if inference.n_bootstrap else None
    threshold, thresholds = at.threshold, at.thresholds
    thresholds = default_thresholds(outcomes.risk) if thresholds is None else thresholds
    # The threshold that is marked is one of them.
    thresholds = thresholds if threshold is None else np.union1d(thresholds, threshold)
    benefit = decision_curves(outcomes, rows, thresholds, level=level)
    return {
        "decision_curves": benefit,
        "decisions": None if threshold is None else decision_table(outcomes, rows, threshold, benefit, level),
        "calibration_curves": calibration_curves(outcomes, rows, level=level),
    }


def decision_table(
    outcomes: OutcomesAtHorizon,
    groups: Mapping[Key, IntArray],
    threshold: float,
    benefit: pd.DataFrame,
    level: float | None,
) -> pd.DataFrame:
    """Return measures of decisions at a threshold, for everybody and every group, and their largest differences.

    `groups` are the rows of each group's patients, by attribute and label. The decision curves (`benefit`) have the net
    benefit at the threshold and its interval. Without a level there are no intervals.
    """
    curves: dict[Key, Any] = {
        (str(row.attribute), str(row.group)): row
        for row in benefit[benefit["threshold"] == threshold].itertuples()
    }
    records: list[dict[str, Any]] = []
    for key, rows in groups.items():
        if outcomes.weight[rows].sum() > 0:
            records += _decisions(outcomes, key, rows, threshold, curves[key], level)
    table = pd.DataFrame(records)
    gaps = [
        _gap(str(attribute), str(metric), part, level)
        for attribute, own in table.groupby("attribute", sort=False)
        if attribute != EVERYONE
        for metric, part in own.groupby("metric", sort=False)
    ]
    return pd.concat([table, pd.DataFrame(gaps)], ignore_index=True).reindex(columns=list(_DECISION_COLUMNS))


def _decisions(
    outcomes: OutcomesAtHorizon,
    key: Key,
    rows: IntArray,
    threshold: float,
    benefit: Any,
    level: float | None,
) -> Iterator[dict[str, Any]]:
    """Yield the measures of one group, each a ratio of two sums over patients, of constants and weighted events."""
    weight, risk, events = outcomes.weight[rows], outcomes.risk[rows], outcomes.events[rows]
    above = (risk >= threshold).astype(np.float64)
    one, none, below = np.ones(len(rows)), np.zeros(len(rows)), 1 - above
    at = f"by {moment(outcomes.horizon)}"
    measures = {
        "sensitivity": ((none, above), (none, one), f"no event {at} was observed"),
        "specificity": ((below, -below), (one, -one), f"every patient had the event {at}"),
        "ppv": ((none, above), (above, none), "no patient is predicted positive"),
        "npv": ((below, -below), (below, none), "no patient is predicted negative"),
    }
    shared = {"attribute": key[0], "group": key[1], "patients": round(float(weight.sum()))}
    shared["positives"] = round(float(weight @ above))
    known = outcomes.is_known(rows)
    for metric, (part, whole, reason) in measures.items():
        value, predicted = (
            _ratio(
                float(weight @ (part[0] + part[1] * happened)),
                float(weight @ (whole[0] + whole[1] * happened)),
            )
            for happened in (events, risk)
        )
        record = {**shared, "metric": metric, "value": np.nan, "low": np.nan, "high": np.nan}
        if not known:
            record["reason"] = f"follow-up ends before {moment(outcomes.horizon)}"
        elif np.isnan(value):
            record["reason"] = reason
        else:
            terms = (part[0] - value * whole[0], part[1] - value * whole[1])
            total = float(weight @ (whole[0] + whole[1] * events))
            error = outcomes.error_of_sum(rows, *terms) / total
            record |= {"value": value, "standard_error": error, "reason": ""}
            record |= dict(zip(("low", "high"), _share_interval(value, error, level), strict=True))
        yield record | {"predicted": predicted}
    odds = threshold / (1 - threshold)
    yield {
        **shared,
        "metric": "net_benefit",
        "value": benefit.net_benefit,
        "low": benefit.low,
        "high": benefit.high,
        "standard_error": outcomes.error_of_sum(rows, -above * odds, above * (1 + odds)) / weight.sum(),
        "predicted": float(weight @ (above * (risk * (1 + odds) - odds)) / weight.sum()),
        "reason": "" if known else f"follow-up ends before {moment(outcomes.horizon)}",
    }


def _ratio(part: float, whole: float) -> float:
    """Return a share between 0 and 1; NaN if the whole is not above 0."""
    return float(np.clip(part / whole, 0.0, 1.0)) if whole > 1e-12 else float("nan")


def _share_interval(value: float, error: float, level: float | None) -> tuple[float, float]:
    """Return an interval of a share on the logit scale; NaN without a level, and for 0 and 1."""
    if level is None or not 0 < value < 1 or not error > 0:
        return float("nan"), float("nan")
    reach = float(ndtri((1 + level) / 2)) * error / (value * (1 - value))
    centre = float(logit(value))
    return float(expit(centre - reach)), float(expit(centre + reach))


def _gap(attribute: str, metric: str, part: pd.DataFrame, level: float | None) -> dict[str, Any]:
    """Return the largest difference of a measure between two groups, which are taken as independent."""
    record = {"attribute": attribute, "group": "gap", "metric": metric, "reason": ""}
    unknown = part.loc[part["value"].isna(), "group"]
    if len(unknown):
        return record | {"value": np.nan, "reason": f"not estimable in {', '.join(unknown)}"}
    values, errors = (part[name].to_numpy(dtype=np.float64) for name in ("value", "standard_error"))
    noise = np.random.default_rng(0).standard_normal((0 if level is None else _DRAWS, len(values)))
    found = largest_difference(values, values + noise * errors)
    interval = found.interval(level or 0.95)
    return record | {"value": found.estimate, "low": interval.low, "high": interval.high}


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
