r"""Decision curves: net benefit of treating patients above a threshold of predicted risk, by group.

With :math:`\pi` the share of patients whose predicted risk is at least the threshold t, and TP the share who are above
it and have the event by the horizon,

.. math:: NB(t) = TP - (\pi - TP) \frac{t}{1 - t}, \qquad \text{avoided per 100} = 100 (NB - NB_{all}) \frac{1 - t}{t}.

Treating nobody has 0. TP counts events weighted for censoring within strata of predicted risk, of the group alone
(:mod:`drosurv.evaluation.at_horizon`). R's dcurves, and :func:`drosurv.metrics.decisions`, take :math:`\pi` times one
minus the Kaplan-Meier survival of the patients above the threshold for TP, which assumes that their censoring depends
on nothing. On the survival example of dcurves the two net benefits differ by at most 0.006.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from drosurv.evaluation.at_horizon import OutcomesAtHorizon
from drosurv.metrics.decisions import weighted_decision_estimates
from drosurv.metrics.estimates import Estimate
from drosurv.patients.target import FloatArray

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


def default_thresholds(risk: FloatArray) -> FloatArray:
    """Return round numbers up to the 99th percentile of the risks (n,)."""
    highest = float(np.quantile(risk, _HIGHEST_QUANTILE))
    highest = min(max(highest, 1e-4), 0.99)
    power = 10.0 ** math.floor(math.log10(highest / _MOST_THRESHOLDS))
    step = next(
        factor * power for factor in (1, 2, 5, 10) if highest / (factor * power) <= _MOST_THRESHOLDS + 1e-9
    )
    # Rounded, so that 3 * 0.01 is 0.03.
    return np.round(step * np.arange(1, math.floor(highest / step + 1e-9) + 1), 10)


def decision_curves(
    groups: Mapping[tuple[str, str], OutcomesAtHorizon], thresholds: FloatArray, *, level: float = 0.95
) -> pd.DataFrame:
    """Return the decision curve of each group, with a band that contains the whole curve with probability `level`.

    `groups` are outcomes by attribute and label; the curve of a group whose follow-up ends before the horizon is NaN.
    """
    odds = thresholds / (1 - thresholds)
    tables = []
    for (attribute, group), outcomes in groups.items():
        benefit = treat_all = low = high = np.full(len(thresholds), np.nan)
        if len(outcomes):
            curve = weighted_decision_estimates(
                outcomes.risk, outcomes.outcomes, thresholds, ["net_benefit"]
            )["net_benefit"]
            added = np.sqrt(_ADDED * odds) * outcomes.alike / outcomes.total
            larger = _missing_variance(curve, outcomes, thresholds)
            curve = [
                replace(one, influence=factor * one.influence, further=more)
                for one, factor, more in zip(curve, larger, added[:, None], strict=True)
            ]
            intervals = outcomes.estimates(curve).intervals(level, together=True)
            benefit, low, high = np.array([(one.estimate, one.low, one.high) for one in intervals]).T
            observed = float(outcomes.weight @ outcomes.events) / outcomes.total
            treat_all = observed * (1 + odds) - odds
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
                    "patients": round(outcomes.total),
                }
            )
        )
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(COLUMNS))


def _missing_variance(
    curve: Sequence[Estimate], outcomes: OutcomesAtHorizon, thresholds: FloatArray
) -> FloatArray:
    """Return by how much (K,) influences are too small if events are as predicted; at least 1.

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
    mean -= weight @ mean / outcomes.total
    alone = risk * (1 - risk) + factor * outcomes.outcomes.variances_by_censoring
    by_chance = (weight * alone) @ above
    # An event that counts 1 / G has the variance risk / G, with the mean of 1 / G over the events of a stratum. What
    # this is more is lost where a stratum is in part below the threshold.
    for rows in (np.flatnonzero(stratum == one) for one in np.unique(stratum)):
        events, squares = (weight[rows] @ outcomes.events[rows] ** power for power in (1, 2))
        lost = (
            np.maximum(risk[rows] * (squares / events - risk[rows]) - alone[rows], 0.0) if events > 0 else 0.0
        )
        part = weight[rows] @ above[rows] / max(float(weight[rows].sum()), 1e-300)
        by_chance += (weight[rows] * lost) @ above[rows] * (1 - part)
    expected = ((1 + odds) ** 2 * by_chance + weight @ mean**2) / outcomes.total**2
    found = np.array([float(one.influence @ one.influence) for one in curve])
    ratio: FloatArray = np.divide(expected, found, out=np.ones(len(odds)), where=found > 0)
    return np.sqrt(np.maximum(ratio, 1.0))
