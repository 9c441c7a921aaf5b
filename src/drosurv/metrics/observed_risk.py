r"""Observed risk by a time beside the mean predicted risk of the same patients.

The observed risk is one minus Kaplan-Meier, or with causes the incidence of Aalen-Johansen, within strata of predicted
risk, averaged over the patients (:mod:`drosurv.metrics.risk_strata`). The plain Kaplan-Meier estimate assumes that
censoring has nothing to do with risk; within strata it needs that only among patients of like risk.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from drosurv.metrics.estimates import Estimate
from drosurv.metrics.risk_strata import EventsByTime, followed_until
from drosurv.patients.target import FloatArray, IntArray, Target


@dataclass(frozen=True, eq=False)
class ObservedRisk:
    """Mean `predicted` and `observed` risk by a time of the `patients` whose stratum was followed until then.

    `left_out` is the number of the others. The interval of the observed risk is that of these patients, whose predicted
    risks are fixed: it excludes the mean predicted risk where the predictions are shown to be wrong on average.
    """

    patients: float
    left_out: float
    predicted: float
    risk: FloatArray
    outcomes: EventsByTime | None = None

    @property
    def value(self) -> float:
        """The observed risk without an interval; NaN without patients."""
        return np.nan if self.outcomes is None else _mean(self.outcomes)

    @cached_property
    def observed(self) -> Estimate:
        """The observed risk."""
        if self.outcomes is None:
            return Estimate.undefined(len(self.risk))
        return observed_given_risks(self.outcomes, self.risk)

    @property
    def ratio(self) -> float:
        """Observed over predicted risk; NaN if no event is predicted."""
        return self.value / self.predicted if self.predicted > 0 else np.nan


def observed_risk(
    target: Target,
    risk: FloatArray,
    time: float,
    weight: FloatArray | None = None,
    clusters: IntArray | None = None,
) -> ObservedRisk:
    """Return predicted and observed risk by a time of n patients with risks, weights and clusters (n,)."""
    weight = np.ones(len(target)) if weight is None else weight
    inside = weight * followed_until(time, target, risk, weight, clusters)
    total, everybody = float(inside.sum()), float(weight.sum())
    if not total > 0:
        return ObservedRisk(0.0, everybody, np.nan, risk)
    outcomes = EventsByTime.of(time, target, risk, inside, clusters)
    return ObservedRisk(total, everybody - total, float(inside @ risk) / total, risk, outcomes)


def observed_given_risks(outcomes: EventsByTime, risk: FloatArray) -> Estimate:
    r"""Return the observed risk, as an estimate of that of patients with the same predicted risks (n,).

    It is the mean of the pseudo-values that tests of predictions at few times judge. The influence of patient i is

    .. math:: \frac{w_i}{\sum_j w_j} (x_i - m_i)

    with x the pseudo-value and m its expected value: the predicted risk, multiplied by one factor for each stratum so
    that the sums of both are equal in it. Where no patient had the event by the time, the risk is 0, without an
    interval.
    """
    stratum, weight = outcomes.stratum, outcomes.weight
    total = float(weight.sum())
    if not total > 0:
        return Estimate.undefined(len(risk))
    if not _happened(outcomes):
        return Estimate(0.0, np.zeros(len(risk)), "logit")
    observed = weight * outcomes.outcomes
    number, events, predicted = (np.bincount(stratum, values) for values in (weight, observed, weight * risk))
    factor = np.divide(events, predicted, out=np.zeros(len(events)), where=predicted > 0)
    # A stratum whose risks are all 0 has no factor.
    equal = np.divide(events, number, out=np.zeros(len(events)), where=(number > 0) & ~(predicted > 0))
    influence = (observed - weight * (factor[stratum] * risk + equal[stratum])) / total
    # Degrees of freedom are patients less one: with few events, events less one give intervals of nearly 0 to 1, which
    # hold the truth no more often.
    freedom = np.count_nonzero(weight) - 1.0
    return Estimate(_mean(outcomes), influence, "logit", freedom)


def _happened(outcomes: EventsByTime) -> bool:
    return bool((outcomes.happened & (outcomes.weight > 0)).any())


def _mean(outcomes: EventsByTime) -> float:
    """Return the mean of the outcomes; 0 without an event, where predicted risks alone would make it differ from 0."""
    return float(np.clip(outcomes.mean, 0.0, 1.0)) if _happened(outcomes) else 0.0
