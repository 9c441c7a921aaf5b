"""Decisions at a risk threshold: sensitivity, specificity, predictive values and net benefit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, as_number, require, row_number
from drosurv.metrics.estimates import Estimate, Estimates, Interval, Scale
from drosurv.metrics.nonparametric import KaplanMeier, incidence_estimates
from drosurv.metrics.risk_strata import EventsByTime
from drosurv.metrics.scores import metric_target
from drosurv.patients.groups import Groups, Missing, parse_groups
from drosurv.patients.observation import Rows
from drosurv.patients.target import BoolArray, FloatArray, Target

#: Metrics of a decision, in the order of the tables.
DECISION_METRICS = ("sensitivity", "specificity", "ppv", "npv", "net_benefit")
_ROUNDING = 1e-6
# An influence that is a smaller share of the largest is a rounding error.
_NO_INFLUENCE = 1e-12


@dataclass(frozen=True, eq=False)
class Decisions:
    """Consequences of treating patients whose predicted risk by `horizon` is at least `threshold`.

    `table` has a row per group and metric: ``group``, ``metric``, ``value``, ``low``, ``high``, ``reason``,
    ``patients`` and ``positives`` (those treated). A value that cannot be estimated is NaN, and ``reason`` says why.
    `gaps` has a row per metric, the largest difference between two groups: ``metric``, ``value``, ``low``, ``high``,
    ``p`` and ``reason``. A gap is NaN if the value of any group is NaN.
    """

    table: pd.DataFrame
    gaps: pd.DataFrame
    threshold: float
    horizon: float


def decisions(
    y: Any,
    event_probability: Any,
    *,
    threshold: float,
    horizon: float,
    groups: Any = None,
    missing: Missing = "group",
    level: float = 0.95,
) -> Decisions:
    r"""Sensitivity, specificity, predictive values and net benefit of a risk threshold, by group.

    A patient is positive if the predicted probability of the event by the horizon is at least the threshold. With
    :math:`\pi` the share of positives, and :math:`F_+, F_-` one minus the Kaplan-Meier survival at the horizon among
    positives and negatives,

    .. math:: TP = \pi F_+, \quad FP = \pi (1 - F_+), \quad FN = (1 - \pi) F_-, \quad TN = (1 - \pi) (1 - F_-)

    .. math:: \text{sensitivity} = \frac{TP}{TP + FN}, \quad \text{specificity} = \frac{TN}{TN + FP}, \quad
              PPV = F_+, \quad NPV = 1 - F_-, \quad
              \text{net benefit} = TP - \frac{p_t}{1 - p_t} FP

    with :math:`p_t` the threshold. Net benefit is that of the R package dcurves; treating nobody has 0. The decisions
    of :func:`drosurv.evaluate` weight patients for censoring that may depend on their predicted risk instead.

    Parameters
    ----------
    y : structured array, (n,)
        Event flags and times. Patients of one of its ``clusters``, or rows with one ``id``, may be alike.
    event_probability : (n,) array
        Predicted probability of the event by the horizon, one minus predicted survival.
    threshold : float
        Smallest predicted risk at which a patient is treated, between 0 and 1.
    horizon : float
        Time by which the event is predicted.
    groups : (n,) labels or (n, J) for intersections, optional
        Group of each patient. Without it all patients are one group, "all".
    missing : "group" or "drop"
        Patients without a label: a group of their own, or left out.
    level : float
        Nominal coverage of the intervals. Those of the largest differences between groups are adjusted for all
        differences of a metric.

    References
    ----------
    Vickers, Cronin, Elkin, Gonen (2008), Extensions to decision curve analysis, a novel method for evaluating
    diagnostic tests, prediction models and molecular markers, BMC Medical Informatics and Decision Making 8.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, False, False], [1.0, 2.0, 3.0, 3.0])
    >>> found = decisions(y, [0.8, 0.1, 0.7, 0.2], threshold=0.5, horizon=2.5)
    >>> found.table.set_index("metric")["value"].to_dict()
    {'sensitivity': 0.5, 'specificity': 0.5, 'ppv': 0.5, 'npv': 0.5, 'net_benefit': 0.0}
    """
    require(0 < as_number(threshold) < 1, "threshold", "lie between 0 and 1", threshold)
    require(0 < as_number(horizon) < np.inf, "horizon", "be a positive time", horizon)
    target = metric_target(y)
    positive = _probabilities(event_probability, len(target)) >= threshold
    of = Groups(np.zeros(len(target), dtype=np.intp), ("all",))
    if groups is not None:
        of = parse_groups(groups, len(target), missing=missing, at_least=1)
    require(0 < as_number(level) < 1, "level", "lie between 0 and 1", level)
    members = [of.codes == k for k in range(len(of))]
    estimates = [
        decision_estimates(target, positive, threshold, horizon, one.astype(float)) for one in members
    ]
    clusters = Rows.parse(y, require_event=False).cluster_codes
    rows, gaps = [], []
    for label, member, found in zip(of.labels, members, estimates, strict=True):
        own = np.flatnonzero(member)
        counts = {"patients": len(own), "positives": int(positive[own].sum())}
        for metric in DECISION_METRICS:
            ends, reason = _ends(found[metric].interval(level, clusters)), ""
            if np.isnan(ends["value"]):
                reason = why_undefined(metric, target.take(own), positive[own], horizon)
            rows.append({"group": label, "metric": metric, **ends, "reason": reason, **counts})
    for metric in DECISION_METRICS if len(of) > 1 else ():
        numbers = [found[metric] for found in estimates]
        unknown = [str(label) for label, one in zip(of.labels, numbers, strict=True) if np.isnan(one.value)]
        gap: dict[str, Any] = {"metric": metric, "reason": ""}
        if unknown:
            gap["reason"] = f"not estimable in {', '.join(unknown)}"
        else:
            (largest,) = Estimates(numbers, clusters).largest_gaps([range(len(of))], level)
            gap |= {**_ends(largest), "p": largest.p}
        gaps.append(gap)
    columns = ["metric", "value", "low", "high", "p", "reason"]
    return Decisions(pd.DataFrame(rows), pd.DataFrame(gaps, columns=columns), threshold, horizon)


def decision_estimates(
    target: Target, positive: BoolArray, threshold: float, horizon: float, weight: FloatArray | None = None
) -> dict[str, Estimate]:
    """The `DECISION_METRICS` of patients of whom some are predicted positive (n,), with each patient's influence.

    A value that cannot be estimated is NaN (`why_undefined` gives the reason).
    """
    n, weight = len(target), np.ones(len(target)) if weight is None else weight
    total = float(weight.sum())
    if total == 0:
        return {metric: Estimate.undefined(n) for metric in DECISION_METRICS}
    at, sides = np.array([threshold]), np.stack([positive, ~positive]).astype(np.float64)
    risks = [incidence_estimates(target, np.array([horizon]), weight * side)[0] for side in sides]
    shares = sides @ weight / total
    of_shares = weight * (sides - shares[:, None]) / total
    # Nobody on a side has no event.
    happened = np.array([risk.value if share else 0.0 for share, risk in zip(shares, risks, strict=True)])
    influence = np.stack([risk.influence for risk in risks])
    of_happened = shares[:, None] * influence + np.nan_to_num(happened)[:, None] * of_shares
    happened = shares * happened
    events = np.count_nonzero(target.event & (target.time <= horizon) & (weight > 0))
    each = shares[:, None], happened[:, None], of_shares[:, :, None], of_happened[:, :, None]
    return {metric: _estimates(metric, at, *each, events - 1.0)[0] for metric in DECISION_METRICS}


def weighted_decision_estimates(
    risk: FloatArray,
    outcomes: EventsByTime,
    thresholds: FloatArray,
    metrics: Sequence[str] = DECISION_METRICS,
) -> dict[str, list[Estimate]]:
    """Decision metrics at K thresholds of predicted risks (n,), for events weighted for censoring within strata.

    Patients count by their pseudo-values: thresholds divide strata, and where patients of higher risk are censored
    earlier, events weighted within a stratum give those above a threshold too few.

    Returns
    -------
    dict
        By metric, its estimate at each threshold; NaN where it is not defined.
    """
    n, weight = len(risk), outcomes.weight
    known_events = np.count_nonzero(weight * outcomes.events)
    sides = _sides(risk, thresholds)
    events, of_events = outcomes.events, np.zeros(sides.shape)
    # Without any event, predicted risks alone would make the pseudo-values differ from 0.
    if known_events:
        sums = outcomes.influences_on_outcomes(np.column_stack([np.ones(n), sides[0]]))
        events, of_events = outcomes.outcomes, np.stack([sums[:, 1:], sums[:, :1] - sums[:, 1:]])
    patients, happened = weight @ sides, (weight * events) @ sides
    each = patients, happened, sides * weight[:, None], of_events
    return {metric: _estimates(metric, thresholds, *each, known_events - 1.0) for metric in metrics}


def _estimates(
    metric: str,
    thresholds: FloatArray,
    patients: FloatArray,
    happened: FloatArray,
    of_patients: FloatArray,
    of_happened: FloatArray,
    freedom: float,
) -> list[Estimate]:
    """Return a metric at K thresholds from the patients and events (2, K) on both sides, and influences on these."""
    (fixed, by_event), (whole, whole_by_event) = _factors(metric, thresholds)
    values, total = _ratios(metric, patients, happened, thresholds)
    known = np.isfinite(values)
    centre, scale = np.where(known, values, 0.0), np.where(known, total, 1.0)
    each = np.einsum("snk,sk->kn", of_patients, (fixed - centre * whole) / scale)
    each += np.einsum("snk,sk->kn", of_happened, (by_event - centre * whole_by_event) / scale)
    # Rounding errors are no influence, and their patients are not counted.
    each[np.abs(each) <= _NO_INFLUENCE * np.abs(each).max(axis=1, keepdims=True, initial=0.0)] = 0.0
    return [
        Estimate(float(value), influence, _scale(metric), freedom)
        if np.isfinite(value)
        else Estimate.undefined(of_patients.shape[1])
        for value, influence in zip(values, each, strict=True)
    ]


def implied_decisions(risk: FloatArray, threshold: float, weight: FloatArray) -> dict[str, float]:
    """The `DECISION_METRICS` that predicted risks (n,) imply if they are right."""
    at = np.array([threshold])
    sides = weight @ _sides(risk, at), (weight * risk) @ _sides(risk, at)
    return {
        metric: float(_ratios(metric, *sides, at)[0][0]) if weight.any() else np.nan
        for metric in DECISION_METRICS
    }


def _sides(risk: FloatArray, thresholds: FloatArray) -> FloatArray:
    """Return who is above, and who is below, each threshold, (2, n, K)."""
    above = risk[:, None] >= thresholds
    return np.stack([above, ~above]).astype(np.float64)


def _factors(
    metric: str, thresholds: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """Return the terms of a metric above and below the line: constants and factors of events on both sides (2, K)."""
    above, odds = np.array([[1.0], [0.0]]), thresholds / (1 - thresholds)
    below, one, none = 1 - above, np.ones((2, 1)), np.zeros((2, 1))
    return {
        "sensitivity": ((none, above), (none, one)),
        "specificity": ((below, -below), (one, -one)),
        "ppv": ((none, above), (above, none)),
        "npv": ((below, -below), (below, none)),
        "net_benefit": ((-above * odds, above * (1 + odds)), (one, none)),
    }[metric]


def _ratios(
    metric: str, patients: FloatArray, happened: FloatArray, thresholds: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return a metric, NaN where it is not defined, and the sums (K,) below the line, of patients and events (2, K)."""
    # Events on a side that a metric does not use may be unknown.
    part, whole = (
        (fixed * patients + np.where(by_event == 0, 0.0, by_event * happened)).sum(axis=0)
        for fixed, by_event in _factors(metric, thresholds)
    )
    value = np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 1e-12)
    return value if metric == "net_benefit" else np.clip(value, 0.0, 1.0), whole


def _scale(metric: str) -> Scale:
    return "identity" if metric == "net_benefit" else "logit"


def why_undefined(metric: str, target: Target, positive: BoolArray, horizon: float) -> str:
    """Say why a metric of `decision_estimates` is NaN; empty if no reason is known."""
    sides = {"positive": positive, "negative": ~positive}
    needed = {"ppv": ["positive"], "npv": ["negative"], "net_benefit": ["positive"]}.get(metric, list(sides))
    for side in needed:
        rows = sides[side]
        if not rows.any():
            if metric in ("ppv", "npv"):
                return f"no patient is predicted {side}"
        elif np.isnan(KaplanMeier.of(target.take(rows)).at(np.array([horizon]))[0]):
            last = target.time[rows].max()
            return f"follow-up of the predicted {side}s ends at {last:g}, before the horizon {horizon:g}"
    if metric == "sensitivity":
        return f"no event by {horizon:g} was observed"
    return f"every patient had the event by {horizon:g}" if metric == "specificity" else ""


def _probabilities(event_probability: Any, n: int) -> FloatArray:
    """Return predicted probabilities (n,) of the event; raise for other numbers."""
    found = np.asarray(event_probability, dtype=np.float64)
    wanted = f"hold one probability for each of the {n} patients"
    require(found.shape == (n,), "event_probability", wanted, found.shape)
    wrong = ~((found >= -_ROUNDING) & (found <= 1 + _ROUNDING))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ArgumentError(
            "event_probability",
            f"event_probability must lie between 0 and 1, got {found[row]} for row "
            f"{row_number(row, event_probability)}: divide percentages by 100, and pass one minus survival, "
            "not a risk score.",
        )
    return found


def _ends(found: Interval) -> dict[str, float]:
    return {"value": found.estimate, "low": found.low, "high": found.high}
