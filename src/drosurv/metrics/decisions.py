"""Decisions at a risk threshold: sensitivity, specificity, predictive values and net benefit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, as_number, require, row_number
from drosurv.groups import Groups, Missing, parse_groups
from drosurv.metrics.inference.gaps import largest_difference
from drosurv.metrics.inference.intervals import Draws, Interval, bootstrap
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.target import BoolArray, FloatArray, Target, parse_target

#: Metrics of a decision, in the order of the tables.
DECISION_METRICS = ("sensitivity", "specificity", "ppv", "npv", "net_benefit")
_ROUNDING = 1e-6


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
    n_bootstrap: int = 500,
    random_state: Any = 0,
    n_jobs: int | None = None,
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
    of :func:`drosurv.evaluate` weight patients for censoring that may depend on their risk and columns instead, so
    that groups add up to everybody.

    Parameters
    ----------
    y : structured array, (n,)
        Event flags and times.
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
        Nominal coverage of the bootstrap intervals.
    n_bootstrap : int
        Bootstrap replicates; 0 for no intervals.
    random_state, n_jobs
        As in :func:`~drosurv.metrics.bootstrap`.

    References
    ----------
    Vickers, Cronin, Elkin, Gonen (2008), Extensions to decision curve analysis, a novel method for evaluating
    diagnostic tests, prediction models and molecular markers, BMC Medical Informatics and Decision Making 8.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, False, False], [1.0, 2.0, 3.0, 3.0])
    >>> found = decisions(y, [0.8, 0.1, 0.7, 0.2], threshold=0.5, horizon=2.5, n_bootstrap=0)
    >>> found.table.set_index("metric")["value"].to_dict()
    {'sensitivity': 0.5, 'specificity': 0.5, 'ppv': 0.5, 'npv': 0.5, 'net_benefit': 0.0}
    """
    require(0 < as_number(threshold) < 1, "threshold", "lie between 0 and 1", threshold)
    require(0 < as_number(horizon) < np.inf, "horizon", "be a positive time", horizon)
    target = parse_target(y, require_event=False)
    positive = _probabilities(event_probability, len(target)) >= threshold
    of = Groups(np.zeros(len(target), dtype=np.intp), ("all",))
    if groups is not None:
        of = parse_groups(groups, len(target), missing=missing, at_least=1)
    members = [np.flatnonzero(of.codes == k) for k in range(len(of))]
    parts = [(target.take(rows), positive[rows]) for rows in members]

    def values(weight: FloatArray) -> FloatArray:
        return np.concatenate(
            [
                decision_values(*part, threshold, horizon, weight[rows])
                for part, rows in zip(parts, members, strict=True)
            ]
        )

    if n_bootstrap:
        found = bootstrap(
            values, len(target), replicates=n_bootstrap, random_state=random_state, n_jobs=n_jobs
        )
        estimate, draws = found.estimate, found.draws
    else:
        estimate, draws = values(np.ones(len(target))), np.empty((0, len(of) * len(DECISION_METRICS)))
    shape = (-1, len(of), len(DECISION_METRICS))
    return _tables(of, parts, estimate.reshape(shape)[0], draws.reshape(shape), threshold, horizon, level)


def decision_values(
    target: Target, positive: BoolArray, threshold: float, horizon: float, weight: FloatArray | None = None
) -> FloatArray:
    """The `DECISION_METRICS` (5,) of patients of whom some are predicted positive, given as (n,) flags.

    A value that cannot be estimated is NaN (`why_undefined` gives the reason). Weight 2 counts a patient twice.
    """
    weight = np.ones(len(target)) if weight is None else weight
    total = float(weight.sum())
    if total == 0:
        return np.full(len(DECISION_METRICS), np.nan)
    share = float(weight[positive].sum()) / total
    risk = _risk_by(target, positive, horizon, weight)
    risk_negative = _risk_by(target, ~positive, horizon, weight)
    true_positive, false_positive = share * risk, share * (1 - risk)
    false_negative, true_negative = (1 - share) * risk_negative, (1 - share) * (1 - risk_negative)
    if share == 0:
        true_positive = false_positive = 0.0
    if share == 1:
        false_negative = true_negative = 0.0

    def ratio(part: float, other: float) -> float:
        return part / (part + other) if part + other > 0 else np.nan

    return np.array(
        [
            ratio(true_positive, false_negative),
            ratio(true_negative, false_positive),
            risk,
            1 - risk_negative,
            true_positive - threshold / (1 - threshold) * false_positive,
        ]
    )


def why_undefined(metric: str, target: Target, positive: BoolArray, horizon: float) -> str:
    """Say why a metric of `decision_values` is NaN; empty if no reason is known."""
    sides = {"positive": positive, "negative": ~positive}
    needed = {"ppv": ["positive"], "npv": ["negative"], "net_benefit": ["positive"]}.get(metric, list(sides))
    for side in needed:
        rows = sides[side]
        if not rows.any():
            if metric in ("ppv", "npv"):
                return f"no patient is predicted {side}"
        elif np.isnan(_risk_by(target, rows, horizon, np.ones(len(target)))):
            last = target.time[rows].max()
            return f"follow-up of the predicted {side}s ends at {last:g}, before the horizon {horizon:g}"
    if metric == "sensitivity":
        return f"no event by {horizon:g} was observed"
    return f"every patient had the event by {horizon:g}" if metric == "specificity" else ""


def _risk_by(target: Target, rows: BoolArray, horizon: float, weight: FloatArray) -> float:
    """One minus the Kaplan-Meier survival of some rows at the horizon; NaN without rows or if follow-up ends before."""
    curve = KaplanMeier.of(target.take(rows), weight[rows])
    return 1.0 - float(curve.at(np.array([horizon]))[0])


def _probabilities(event_probability: Any, n: int) -> FloatArray:
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


def _tables(
    groups: Groups,
    parts: list[tuple[Target, BoolArray]],
    estimate: FloatArray,
    draws: FloatArray,
    threshold: float,
    horizon: float,
    level: float,
) -> Decisions:
    """Tables of the values (k, 5) of k groups and their replicates (replicates, k, 5)."""
    rows, gaps = [], []
    for k, (label, (target, positive)) in enumerate(zip(groups.labels, parts, strict=True)):
        counts = {"patients": len(target), "positives": int(positive.sum())}
        for m, metric in enumerate(DECISION_METRICS):
            bounds = (-np.inf, 1.0) if metric == "net_benefit" else (0.0, 1.0)
            value = float(estimate[k, m])
            ends = _ends(Draws(value, draws[:, k, m], *bounds).interval(level))
            reason = why_undefined(metric, target, positive, horizon) if np.isnan(value) else ""
            rows.append({"group": label, "metric": metric, **ends, "reason": reason, **counts})
    for m, metric in enumerate(DECISION_METRICS if len(groups) > 1 else ()):
        unknown = [
            str(label) for label, bad in zip(groups.labels, np.isnan(estimate[:, m]), strict=True) if bad
        ]
        row: dict[str, Any] = {
            "metric": metric,
            "reason": f"not estimable in {', '.join(unknown)}" if unknown else "",
        }
        if not unknown:
            largest = largest_difference(estimate[:, m], draws[:, :, m])
            row |= {**_ends(largest.interval(level)), "p": largest.p}
        gaps.append(row)
    columns = ["metric", "value", "low", "high", "p", "reason"]
    return Decisions(pd.DataFrame(rows), pd.DataFrame(gaps, columns=columns), threshold, horizon)


def _ends(found: Interval) -> dict[str, float]:
    return {"value": found.estimate, "low": found.low, "high": found.high}
