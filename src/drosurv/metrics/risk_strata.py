"""Events observed by a time and observed risk, weighted for censoring among patients of like predicted risk.

The plain Kaplan-Meier estimate assumes that censoring has nothing to do with risk. Within strata of predicted risk it
need not hold for everybody, only among patients of like risk. No model of censoring is needed, and no columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from drosurv.metrics.estimates import Estimate
from drosurv.metrics.nonparametric import Incidence, free_until
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target

#: Events in a stratum, and the largest number of strata.
EVENTS_PER_STRATUM, MOST_STRATA = 20, 60
# Whether patients were followed is decided in wide strata, so that few of them do not decide it by chance.
_FOLLOWED_PATIENTS, _FOLLOWED_STRATA = 60, 40
#: Smallest share of a wide stratum that is not censored before a time at which it is judged.
LEAST_UNCENSORED = 0.1
# Conditional risks are computed in so many intervals, of risks below 1.
_INTERVALS, _MOST_RISK = 64, 1 - 1e-9
# Risks that differ in later digits are equal.
_DIGITS = 12
_ROUNDING = 1e-9


def risk_strata(risk: FloatArray, n_strata: int, weight: FloatArray | None = None) -> IntArray:
    """Return the number (n,), from 0, of each patient's stratum: quantile groups of the predicted risk (n,).

    Patients of equal risk are in one stratum. There are at most `n_strata`; those of weight (n,) 0 do not count.

    >>> risk_strata(np.array([0.4, 0.1, 0.2, 0.2, 0.2, 0.3]), 3).tolist()
    [2, 0, 1, 1, 1, 2]
    """
    values, place = np.unique(np.round(risk, _DIGITS), return_inverse=True)
    mass = np.bincount(place, weight, len(values)).astype(np.float64)
    middle = (np.cumsum(mass) - mass / 2) / max(float(mass.sum()), 1e-300)
    number = np.minimum(n_strata * middle, n_strata - 1).astype(np.intp)
    found: IntArray = np.unique(number, return_inverse=True)[1][place]
    return found


def copies_per_patient(values: FloatArray, weight: FloatArray, clusters: IntArray | None) -> float:
    """Return the design effect of clusters (n,) on a sum of values (n,), at least 1; that of m copies of each is m."""
    if clusters is None:
        return 1.0
    total = float(weight.sum())
    residual = values - float(weight @ values) / total if total > 0 else values
    together, alone = (np.bincount(clusters, weight * residual) ** 2).sum(), float(weight @ residual**2)
    return max(float(together) / alone, 1.0) if alone > 0 else 1.0


def followed_until(
    time: float,
    target: Target,
    risk: FloatArray,
    weight: FloatArray | None = None,
    clusters: IntArray | None = None,
) -> BoolArray:
    """Return which patients (n,) are in a stratum of predicted risk (n,) that was followed until a time.

    At least a tenth of the stratum is then not censored, by Kaplan-Meier. Only censoring decides: patients who had the
    event are not lost. Patients of weight (n,) 0 are not followed. Copies in one of the `clusters` (n,) count once in
    the size of strata.
    """
    weight = np.ones(len(target)) if weight is None else weight
    lost = (~target.ended & (target.time < time)).astype(np.float64)
    patients = float(weight.sum()) / copies_per_patient(lost, weight, clusters)
    n_strata = int(np.clip(patients / _FOLLOWED_PATIENTS + _ROUNDING, 1, _FOLLOWED_STRATA))
    stratum, found = risk_strata(risk, n_strata, weight), np.zeros(len(target), np.bool_)
    for rows in _members(stratum, weight):
        censoring = Incidence.of_censoring(target.take(rows), weight[rows])
        found[rows] = censoring.free_at(np.array([time]))[0] >= LEAST_UNCENSORED
    return found


@dataclass(frozen=True, eq=False)
class EventsByTime:
    r"""Events of n patients by a time, weighted for censoring within strata of predicted risk.

    A patient with the event at T counts in `events` (n,)

    .. math:: 1 / \hat G_b(T-)

    with the Kaplan-Meier estimate of being uncensored in the patient's stratum b; all others count 0. The sum over a
    stratum is its number of patients times one minus Kaplan-Meier, or with causes the incidence of Aalen-Johansen:
    patients with an event of another cause are not censored. Patients count by their `weight` (n,), 0 outside of a
    group, and times from 0.
    """

    time: float
    target: Target
    weight: FloatArray
    stratum: IntArray
    risk: FloatArray | None = None

    @classmethod
    def of(
        cls,
        time: float,
        target: Target,
        risk: FloatArray,
        weight: FloatArray | None = None,
        clusters: IntArray | None = None,
    ) -> EventsByTime:
        """Form strata of patients with predicted risks (n,) by the time, with about 20 events each.

        Copies in one of the `clusters` (n,) count once.
        """
        weight = np.ones(len(target)) if weight is None else weight
        happened = (target.event & (target.time <= time)).astype(np.float64)
        events = float(weight @ happened) / copies_per_patient(happened, weight, clusters)
        n_strata = int(np.clip(events / EVENTS_PER_STRATUM + _ROUNDING, 1, MOST_STRATA))
        return cls(time, target, weight, risk_strata(risk, n_strata, weight), risk)

    @cached_property
    def _censoring(self) -> list[tuple[IntArray, Incidence]]:
        """The patients of each stratum, and their curve of censoring."""
        return [
            (rows, Incidence.of_censoring(self.target.take(rows), self.weight[rows]))
            for rows in _members(self.stratum, self.weight)
        ]

    @cached_property
    def happened(self) -> BoolArray:
        """Who (n,) is known to have had the event by the time."""
        return self.target.event & (self.target.time <= self.time)

    @cached_property
    def inverse(self) -> FloatArray:
        """One over the probability (n,) that the outcome by the time is known; 0 where censoring hides it."""
        found, target = np.zeros(len(self.target)), self.target
        known = target.ended | (free_until(target) > self.time)
        for rows, censoring in self._censoring:
            inside = rows[known[rows]]
            free = censoring.free_at(np.minimum(target.time[inside], self.time))
            found[inside] = np.divide(1.0, free, out=np.zeros(len(inside)), where=free > 0)
        return found

    @property
    def events(self) -> FloatArray:
        """Weighted events (n,)."""
        return self.inverse * self.happened

    def influences(self, f: FloatArray) -> FloatArray:
        """Return each patient's influence (n,) on the sum of weight times `f` (n,) times the events.

        It is the weight times the derivative by it: the patient's own term, and the effect on the weights of others.
        Of several sums, with `f` (n, q), it is (n, q).
        """
        return self.influences_of_known((self.happened.astype(np.float64) * np.transpose(f)).T)

    def influences_of_known(self, f: FloatArray) -> FloatArray:
        """Return the same for sums of weight times `f` times `inverse`, over all patients whose outcome is known."""
        terms = ((self.weight * self.inverse) * np.transpose(f)).T
        found, until = terms.copy(), np.minimum(self.target.time, self.time)
        for rows, censoring in self._censoring:
            through = censoring.derivative_of_inverse(until[rows], terms[rows])
            found[rows] += (self.weight[rows] * through.T).T
        return found

    @cached_property
    def outcomes(self) -> FloatArray:
        r"""Pseudo-values (n,) of the event by the time, whose sums have the variance of independent numbers.

        They are the weighted events with each patient's effect on the weights of others, and so have the same sum over
        a stratum, but for what the patient's conditional risk m differs from that at the mean risk of the stratum:

        .. math:: \int_0^t (m_i(u) - \bar m_b(u)) \frac{dM_i(u)}{\hat G_b(u)}, \quad
                  m_i(u) = 1 - (1 - p_i)^{1 - \psi(u)}

        with p the risk by t, M the martingale of censoring and :math:`\psi` the share of the cumulative hazard until u.
        The mean of this is zero, unless censoring depends on risk inside of a stratum: then it removes the bias, if
        predictions are right. If a whole stratum is censored before t, the last patients count by their m.
        """
        sums = self.influences(np.ones(len(self.weight)))
        found = np.divide(sums, self.weight, out=np.zeros(len(sums)), where=self.weight > 0)
        return found + self._changes

    @cached_property
    def mean(self) -> float:
        """The mean of the `outcomes`, without each of them: effects on the weights of others have the sum 0."""
        return float(self.weight @ (self.events + self._changes)) / float(self.weight.sum())

    @property
    def _changes(self) -> FloatArray:
        """What conditional risks change in the outcomes (n,)."""
        return self._given_risks[0]

    @property
    def variances_by_censoring(self) -> FloatArray:
        r"""Variances (n,) that censoring adds to the `outcomes` if predictions are right.

        .. math:: \int_0^t m_i(u) (1 - m_i(u)) (1 - p_i)^{\psi(u)} \frac{d\hat\Lambda_b(u)}{\hat G_b(u)}

        They do not depend on the patient's own outcome. Squares of a few large weights do, and are too small just where
        the sum is too small.
        """
        return self._given_risks[1]

    @cached_property
    def _given_risks(self) -> tuple[FloatArray, FloatArray]:
        """What conditional risks change in the outcomes (n,), and the variances (n,), where patients were censored."""
        changes, variances = np.zeros(len(self.weight)), np.zeros(len(self.weight))
        if self.risk is None:
            return changes, variances
        happened = Incidence.of(replace(self.target, entry=None), self.weight)
        total = -np.log1p(-np.minimum(happened.at(np.array([self.time])), _MOST_RISK))[0]
        for rows, censoring in self._censoring:
            times = censoring.times[censoring.times <= self.time]
            if not censoring.events[: len(times)].any():
                continue
            elapsed = times / self.time
            if total > 0:
                elapsed = -np.log1p(-np.minimum(happened.at(times), _MOST_RISK)) / total
            given = _GivenRisk.of(self.risk[rows], self.weight[rows], censoring, np.minimum(elapsed, 1.0))
            changes[rows], variances[rows] = given.changes(), given.variances()
        return changes, variances

    def share(self) -> Estimate:
        """Return the observed risk: the mean of the weighted events."""
        total = float(self.weight.sum())
        if not total > 0:
            return Estimate.undefined(len(self.weight))
        value = float(self.weight @ self.events) / total
        influence = (self.influences(np.ones(len(self.weight))) - value * self.weight) / total
        return Estimate(value, influence, "logit", np.count_nonzero(self.weight * self.events) - 1.0)


class _GivenRisk(NamedTuple):
    """Conditional risks of n patients of a stratum in q short intervals of the cumulative hazard.

    `log_free` (n, 1) is the logarithm of one minus the risk, `mean` that of the mean risk, `middle` (q,) the share of
    the hazard in the middle of each interval, `remaining` (n, q) the risk from then on. `passed` is the integral of the
    censoring hazard over G until each time, `first` (q,) the first time of each interval, and `interval` (m,) that of
    each of the first m times.
    """

    censoring: Incidence
    log_free: FloatArray
    mean: float
    middle: FloatArray
    remaining: FloatArray
    passed: FloatArray
    first: IntArray
    interval: IntArray

    @classmethod
    def of(
        cls, risk: FloatArray, weight: FloatArray, censoring: Incidence, elapsed: FloatArray
    ) -> _GivenRisk:
        """`elapsed` (m,) is the share of the cumulative hazard at the first m times of the curve of censoring."""
        m = len(elapsed)
        inverse = _inverse(censoring.free[1 : m + 1])
        passed = np.append(0.0, np.cumsum(inverse * censoring.events[:m] / censoring.at_risk[:m]))
        _, first, interval = np.unique(np.floor(_INTERVALS * elapsed), return_index=True, return_inverse=True)
        middle = np.bincount(interval, elapsed) / np.bincount(interval)
        log_free = np.log1p(-np.clip(risk, 0.0, _MOST_RISK))[:, None]
        remaining = -np.expm1(log_free * (1 - middle))
        mean = np.log1p(-min(float(np.average(risk, weights=weight)), _MOST_RISK))
        return cls(censoring, log_free, float(mean), middle, remaining, passed, first, interval)

    def changes(self) -> FloatArray:
        """Return what predicted risks change in the pseudo-values (n,)."""
        censoring, remaining, m = self.censoring, self.remaining, len(self.interval)
        free, before = censoring.free[1 : m + 1], censoring.free[:m]
        change = remaining + np.expm1(self.mean * (1 - self.middle))
        own = np.searchsorted(censoring.times, censoring.target.time)
        until = np.minimum(own[:, None] + 1, np.append(self.first, m))
        found = -(change * np.diff(self.passed[until], axis=1)).sum(axis=1)
        lost = np.flatnonzero(censoring.target.event & (own < m))
        found[lost] += change[lost, self.interval[own[lost]]] * _inverse(free)[own[lost]]
        if not free[-1] > 0:
            end = int(np.argmin(free > 0))
            last = own >= end
            found[last] += remaining[last, self.interval[end]] / before[end]
        return np.asarray(found, np.float64)

    def variances(self) -> FloatArray:
        """Return the variances (n,) that censoring adds."""
        at_risk = self.remaining * (1 - self.remaining) * np.exp(self.log_free * self.middle)
        found: FloatArray = at_risk @ np.diff(self.passed[np.append(self.first, len(self.interval))])
        return found


def _inverse(free: FloatArray) -> FloatArray:
    """Return one over probabilities; 0 where they are 0."""
    return np.divide(1.0, free, out=np.zeros(len(free)), where=free > 0)


def _members(stratum: IntArray, weight: FloatArray) -> list[IntArray]:
    """Return the rows of each stratum, without those of weight 0."""
    rows = np.flatnonzero(weight > 0)
    rows = rows[np.argsort(stratum[rows], kind="stable")]
    return np.split(rows, np.flatnonzero(np.diff(stratum[rows])) + 1) if len(rows) else []


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
    def only_predicted(self) -> float:
        """The mean predicted risk, that of all patients if none was followed."""
        return self.predicted if self.patients or not len(self.risk) else float(self.risk.mean())

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
