"""Events observed by a time and observed risk, weighted for censoring among patients of like predicted risk.

The plain Kaplan-Meier estimate assumes that censoring has nothing to do with risk. Within strata of predicted risk it
need not hold for everybody, only among patients of like risk. No model of censoring is needed, and no columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numba
import numpy as np

from drosurv.metrics.estimates import Estimate, Estimates
from drosurv.metrics.nonparametric import Incidence, free_until
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target

#: Events in a stratum, and the largest number of strata.
EVENTS_PER_STRATUM, MOST_STRATA = 20, 60
# Whether patients were followed is decided in wide strata, so that few of them do not decide it by chance.
_FOLLOWED_PATIENTS, _FOLLOWED_STRATA = 60, 40
#: Smallest share of a wide stratum that is not censored before a time at which it is judged.
LEAST_UNCENSORED = 0.1
# Conditional risks are computed for shares of the hazard in so many steps, of risks below 1.
_STEPS, _MOST_RISK = 64, 1 - 1e-9
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
    found = np.zeros(len(target), np.bool_)
    censoring = _Censoring.of(time, target, weight, risk_strata(risk, n_strata, weight))
    found[censoring.rows] = np.repeat(
        censoring.free[censoring.bounds[1:] - 1] >= LEAST_UNCENSORED, np.diff(censoring.bounds)
    )
    return found


class _Censoring(NamedTuple):
    """Kaplan-Meier curves of censoring in strata, at the times of N patients of weight above 0, `rows` (N,).

    They are sorted by stratum and then by the `time` (N,) until which they are known to be free of events; stratum k
    begins at `bounds` (K + 1,) k. `lost` (N,) are censored before the time until which events count, and later
    censoring is left out. The share `hazard` (N,) of the weight `at_risk` (N,) is lost at the patient's time, and
    `free` (N,) is the probability of not being lost after it.
    """

    rows: IntArray
    bounds: IntArray
    time: FloatArray
    weight: FloatArray
    lost: BoolArray
    at_risk: FloatArray
    hazard: FloatArray
    free: FloatArray

    @classmethod
    def of(cls, until: float, target: Target, weight: FloatArray, stratum: IntArray) -> _Censoring:
        free = free_until(target)
        rows = np.lexsort((free, stratum))
        rows = rows[weight[rows] > 0]
        time, mass, lost = free[rows], weight[rows], ~target.ended[rows] & (free[rows] <= until)
        first = np.flatnonzero(np.diff(stratum[rows], prepend=-1))
        bounds = np.append(first, len(rows))
        return cls(rows, bounds, time, mass, lost, *_kaplan_meier(bounds, time, mass, lost))

    @property
    def first_of_times(self) -> BoolArray:
        """Whether each patient (N,) is the first of a stratum at this time."""
        found = np.append(True, np.diff(self.time) != 0)
        found[self.bounds[:-1]] = True
        return found


@numba.njit(cache=True, nogil=True)
def _kaplan_meier(
    bounds: IntArray, time: FloatArray, weight: FloatArray, lost: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the weight at risk, the share that is lost, and the probability of not being lost (N,); see above."""
    at_risk, hazard, free = np.empty(len(time)), np.empty(len(time)), np.empty(len(time))
    for k in range(len(bounds) - 1):
        total, end = 0.0, bounds[k + 1]
        # From the end: with few patients left, differences of large sums would have rounding errors.
        while end > bounds[k]:
            first, gone = end, 0.0
            while first > bounds[k] and time[first - 1] == time[end - 1]:
                first -= 1
                total += weight[first]
                gone += weight[first] * lost[first]
            at_risk[first:end] = total
            hazard[first:end] = gone / total
            end = first
        left = 1.0
        for i in range(bounds[k], bounds[k + 1]):
            if i == bounds[k] or time[i] != time[i - 1]:
                # Sums of the same weights in another order may differ by rounding.
                left *= 1.0 - hazard[i] if hazard[i] <= 1 - 1e-12 else 0.0
            free[i] = left
    return at_risk, hazard, free


@numba.njit(cache=True, nogil=True)
def _influences(
    bounds: IntArray,
    time: FloatArray,
    weight: FloatArray,
    lost: BoolArray,
    at_risk: FloatArray,
    hazard: FloatArray,
    terms: FloatArray,
) -> FloatArray:
    """Return each patient's influence (N, q) on the sums of terms (N, q), which are over the probability of being free.

    To the own term it adds weight times the sum over t_j of (dN - Y d_j / n_j) a_j / (n_j - d_j), with n_j at risk, of
    whom d_j are lost and whose terms have the sum a_j.
    """
    found = terms.copy()
    share = np.zeros(len(time))
    for s in range(terms.shape[1]):
        for k in range(len(bounds) - 1):
            total, end = 0.0, bounds[k + 1]
            while end > bounds[k]:
                first = end
                while first > bounds[k] and time[first - 1] == time[end - 1]:
                    first -= 1
                    total += terms[first, s]
                left = at_risk[first] * (1 - hazard[first])
                share[first:end] = total / left if left > 1e-12 * at_risk[first] else 0.0
                end = first
            passed = 0.0
            for i in range(bounds[k], bounds[k + 1]):
                if i == bounds[k] or time[i] != time[i - 1]:
                    passed += share[i] * hazard[i]
                found[i, s] += weight[i] * (lost[i] * share[i] - passed)
    return found


@numba.njit(cache=True, nogil=True)
def _given_risks(
    bounds: IntArray,
    lost: BoolArray,
    inverse: FloatArray,
    passed: FloatArray,
    ahead: FloatArray,
    log_free: FloatArray,
    log_mean: FloatArray,
) -> FloatArray:
    """Return what conditional risks change in the outcomes, and the variances that censoring adds, (2, N).

    `passed` (N,) is the sum of the hazards of being lost over G, and `inverse` (N,) is 1 / G, or 0 where G is 0. The
    other numbers are those of `EventsByTime._shares`.
    """
    found = np.zeros((2, len(lost)))
    for k in range(len(bounds) - 1):
        begin, last = bounds[k], bounds[k + 1]
        while begin < last:
            before, end = passed[begin - 1] if begin > 0 else 0.0, begin
            while end < last and ahead[end] == ahead[begin]:
                end += 1
            if passed[end - 1] > before:
                at_mean = -np.expm1(log_mean[begin] * ahead[begin])
                for i in range(bounds[k], last):
                    remaining = -np.expm1(log_free[i] * ahead[begin])
                    found[1, i] += remaining * np.exp(log_free[i]) * (passed[end - 1] - before)
                    if i >= begin:
                        own = lost[i] * inverse[i] if i < end else 0.0
                        found[0, i] += (remaining - at_mean) * (own - (passed[min(i, end - 1)] - before))
            begin = end
        # If all are lost, those of the last time count by their risk, over G before it.
        begin = last
        while begin > bounds[k] and inverse[begin - 1] == 0:
            begin -= 1
        before = inverse[begin - 1] if begin > bounds[k] else 1.0
        for i in range(begin, last):
            found[0, i] -= np.expm1(log_free[i] * ahead[i]) * before
    return found


@numba.njit(cache=True, nogil=True)
def _without_event(
    bounds: IntArray, lost: BoolArray, ahead: FloatArray, log_free: FloatArray, mass: FloatArray
) -> FloatArray:
    """Return sums of masses (N,) times the probability of no event between a patient's time and the end, (2, N).

    The first sum is over the patient and all later ones of the stratum. The second is the patient's own product if the
    patient is lost, else 0.
    """
    found = np.zeros((2, len(mass)))
    for k in range(len(bounds) - 1):
        begin, last = bounds[k], bounds[k + 1]
        while begin < last:
            end, some_lost, total = begin, False, 0.0
            while end < last and ahead[end] == ahead[begin]:
                some_lost |= lost[end]
                end += 1
            for i in range(last - 1, begin - 1 if some_lost else last, -1):
                own = mass[i] * np.exp(log_free[i] * ahead[begin])
                total += own
                if i < end:
                    found[0, i], found[1, i] = total, lost[i] * own
            begin = end
    return found


def _derivatives(
    f: FloatArray,
    censoring: _Censoring,
    ahead: FloatArray,
    log_free: FloatArray,
    log_mean: FloatArray,
    happened: BoolArray,
) -> FloatArray:
    r"""Return derivatives (N,), by weights, of the sum of weight times f (N,) times the outcomes.

    The patient's own f times outcome is left out. For constant masses, weights times f, the sum is one over times:

    .. math:: E / G + D A / R + (Q_L - h Q_B) / G, \quad D = L - h B

    E, L and B are the masses of patients who have the event, are lost and are at risk, Q such sums of masses times
    differences of conditional risks, A the weighted events from then on, R the weight that is not lost, and h the share
    that is. What h, R, G, A and the mean risk add to the derivative follows by the chain rule.
    """
    bounds, weight, lost, new = censoring.bounds, censoring.weight, censoring.lost, censoring.first_of_times
    # By patient: the number of the time; by time: the first patient; by stratum: the first and last time.
    at, first, mass = np.cumsum(new) - 1, np.flatnonzero(new), weight * f
    begin, last = at[bounds[:-1]], at[bounds[1:] - 1]
    stratum = np.repeat(np.arange(len(begin)), last - begin + 1)

    def until(values: FloatArray, step: int = 1) -> FloatArray:
        sums = values[::step].cumsum()[::step]
        return np.asarray(sums - (sums - values)[begin if step > 0 else last][stratum], np.float64)

    onwards, at_times = partial(until, step=-1), partial(np.add.reduceat, indices=first)
    staying, leaving = _without_event(bounds, lost, ahead, log_free, mass)
    staying, leaving = staying[first], at_times(leaving)
    columns = censoring.hazard, censoring.at_risk, censoring.free, ahead, np.exp(log_mean * ahead)
    h, n, G, rest, at_mean = (values[first] for values in columns)
    before = np.append(1.0, G[:-1])
    before[begin] = 1.0
    inverse, left = _inverse(G), np.where(G > 0, n * (1 - h), np.inf)
    events, total = at_times(weight * happened) * inverse, onwards(at_times(mass))
    later, change = onwards(events) / left, at_times(mass * lost) - h * total
    passed, by_left = until(change / left), change * later / left
    by_free = leaving - h * staying - change * at_mean - at_times(mass * happened)
    # If all are lost, those of the last time count by their risk, over G before it.
    by_free = np.where(G > 0, by_free * inverse - passed * events, (staying - total) / before)
    by_hazard = ((staying - at_mean * total) * inverse - total * later) / n - onwards(by_free) / left
    by_mean = np.add.reduceat(change * inverse * rest * at_mean, begin) / n[begin]
    # By the mean risk: the risk less the mean, over one minus the mean.
    found = np.expm1(log_free - log_mean) * by_mean[stratum][at] - until(h * by_hazard + by_left)[at]
    found += happened * (passed * inverse)[at] + lost * (by_hazard + by_left)[at]
    return np.asarray(found, np.float64)


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
    def _censoring(self) -> _Censoring:
        return _Censoring.of(self.time, self.target, self.weight, self.stratum)

    @cached_property
    def happened(self) -> BoolArray:
        """Who (n,) is known to have had the event by the time."""
        return self.target.event & (self.target.time <= self.time)

    @cached_property
    def inverse(self) -> FloatArray:
        """One over the probability (n,) that the outcome by the time is known; 0 where censoring hides it."""
        found, censoring = np.zeros(len(self.target)), self._censoring
        known = self.target.ended[censoring.rows] | (censoring.time > self.time)
        found[censoring.rows] = known * _inverse(censoring.free)
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
        found, censoring = np.zeros(terms.shape), self._censoring
        own = terms[censoring.rows]
        inside = _influences(*censoring[1:7], np.ascontiguousarray(np.atleast_2d(own.T).T))
        found[censoring.rows] = inside.reshape(own.shape)
        return found

    @cached_property
    def outcomes(self) -> FloatArray:
        r"""Pseudo-values (n,) of the event by the time, whose sums have the variance of independent numbers.

        They are the weighted events with each patient's effect on the weights of others, and so have the same sum over
        a stratum, but for what the patient's conditional risk m differs from that at the mean risk of the stratum:

        .. math:: \int_0^t (m_i(u) - \bar m_b(u)) \frac{dM_i(u)}{\hat G_b(u)}, \quad
                  m_i(u) = 1 - (1 - p_i)^{1 - \psi(u)}

        with p the risk by t, M the martingale of censoring and :math:`\psi` the share of the cumulative hazard until u,
        rounded to 1 / 64.
        The mean of this is zero, unless censoring depends on risk inside of a stratum: then it removes the bias, if
        predictions are right. If a whole stratum is censored before t, the last patients count by their m.
        """
        sums = self.influences(np.ones(len(self.weight)))
        found = np.divide(sums, self.weight, out=np.zeros(len(sums)), where=self.weight > 0)
        return found + self._changes

    def influences_on_outcomes(self, f: FloatArray) -> FloatArray:
        """Return each patient's influence (n, q) on the sums of weight times `f` (n, q) times the `outcomes`.

        It is the weight times the derivative by it, with strata as they are.
        """
        found, censoring = (self.weight * self.outcomes)[:, None] * f, self._censoring
        if not censoring.lost.any():
            return found
        rows, bounds = censoring.rows, censoring.bounds
        # A threshold divides one stratum; in the others f is constant, and the sum is a multiple of one sum.
        values, places = f[rows], np.arange(len(rows))
        low, high = (end.reduceat(values, bounds[:-1]) for end in (np.minimum, np.maximum))
        divided = [(places[bounds[k] : bounds[k + 1]], s) for k, s in np.argwhere(low != high)]
        take = np.concatenate([places, *(part for part, _ in divided)])
        ends = np.cumsum([len(rows), *(len(part) for part, _ in divided)])
        factor = np.concatenate([np.ones(len(rows)), *(values[part, s] for part, s in divided)])
        longer = _Censoring(rows[take], np.append(bounds, ends[1:]), *(each[take] for each in censoring[2:]))
        shares = (each[take] for each in (*self._shares, self.happened[rows]))
        whole, *sums = np.split(_derivatives(factor, longer, *shares), ends[:-1])
        inside = whole[:, None] * np.repeat(low, np.diff(bounds), axis=0)
        for (part, s), own in zip(divided, sums, strict=True):
            inside[part, s] = own
        found[rows] += censoring.weight[:, None] * inside
        return found

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

        .. math:: (1 - p_i) \int_0^t m_i(u) \frac{d\hat\Lambda_b(u)}{\hat G_b(u)}

        They do not depend on the patient's own outcome. Squares of a few large weights do, and are too small just where
        the sum is too small.
        """
        return self._given_risks[1]

    @cached_property
    def _given_risks(self) -> tuple[FloatArray, FloatArray]:
        """What conditional risks change in the outcomes (n,), and the variances (n,), where patients were censored."""
        found, censoring = np.zeros((2, len(self.weight))), self._censoring
        if self.risk is not None and censoring.lost.any():
            inverse = _inverse(censoring.free)
            passed = np.cumsum(censoring.first_of_times * censoring.hazard * inverse)
            given = censoring.bounds, censoring.lost, inverse, passed, *self._shares
            found[:, censoring.rows] = _given_risks(*given)
        return found[0], found[1]

    @cached_property
    def _shares(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What conditional risks are computed from, each (N,).

        The share of the cumulative hazard until the time that is ahead of patients, and the logarithms of one minus
        the risk and one minus the mean risk of the stratum. Shares are rounded to 1 / 64: few have to be computed, and
        small changes of weights leave them as they are. (Their own error adds at most 2 % to errors of decisions.)
        """
        censoring = self._censoring
        happened = Incidence.of(replace(self.target, entry=None), self.weight)
        until = np.append(censoring.time, self.time)
        hazard = -np.log1p(-np.minimum(happened.at(until), _MOST_RISK))
        passed = (hazard if hazard[-1] > 0 else until)[:-1] / (hazard[-1] or self.time)
        ahead = 1 - np.floor(np.minimum(passed, 1.0) * _STEPS + 0.5 + _ROUNDING) / _STEPS
        risk = np.zeros(len(passed)) if self.risk is None else self.risk[censoring.rows]
        risk, first = np.clip(risk, 0.0, _MOST_RISK), censoring.bounds[:-1]
        sums = np.add.reduceat(censoring.weight * risk, first) / censoring.at_risk[first]
        log_free, log_mean = np.log1p(-risk), np.repeat(np.log1p(-sums), np.diff(censoring.bounds))
        return ahead, log_free, log_mean


def _inverse(free: FloatArray) -> FloatArray:
    """Return one over probabilities; 0 where they are 0."""
    return np.divide(1.0, free, out=np.zeros(free.shape), where=free > 0)


@dataclass(frozen=True, eq=False)
class ObservedRisk:
    """Predicted risks (m,) by a time, and outcomes, of m patients whose stratum of risk was followed until then.

    Their `rows` (m,) are positions among all patients. The numbers (m,) of their `clusters` are None where patients are
    independent, as they are inside of one cluster. `everybody` are the predicted risks of these patients and of those
    who were not followed. The interval of the observed risk is that of patients whose predicted risks are fixed: it
    excludes the mean predicted risk where the predictions are shown to be wrong on average.
    """

    risk: FloatArray
    outcomes: EventsByTime
    rows: IntArray
    clusters: IntArray | None
    everybody: FloatArray

    @classmethod
    def of(
        cls,
        target: Target,
        risk: FloatArray,
        time: float,
        *,
        rows: IntArray | None = None,
        clusters: IntArray | None = None,
    ) -> ObservedRisk:
        """Weight outcomes by a time of some of n patients with predicted risks and clusters (n,), by default of all."""
        rows = np.arange(len(target)) if rows is None else rows
        own, everybody = target.take(rows), risk[rows]
        kept = followed_until(time, own, everybody, None, _clusters_within(clusters, rows))
        own, rows, risk = own.take(kept), rows[kept], everybody[kept]
        clusters = _clusters_within(clusters, rows)
        return cls(risk, EventsByTime.of(time, own, risk, None, clusters), rows, clusters, everybody)

    def __len__(self) -> int:
        return len(self.risk)

    @property
    def time(self) -> float:
        """The time by which events are predicted."""
        return self.outcomes.time

    @property
    def weight(self) -> FloatArray:
        """Weights (m,)."""
        return self.outcomes.weight

    @property
    def events(self) -> FloatArray:
        """Weighted events (m,)."""
        return self.outcomes.events

    @property
    def patients(self) -> float:
        """The number of patients."""
        return float(self.weight.sum())

    @property
    def left_out(self) -> int:
        """The number of patients whose stratum was not followed."""
        return len(self.everybody) - len(self)

    @property
    def freedom(self) -> float:
        """Degrees of freedom: the number of events less one."""
        return np.count_nonzero(self.events) - 1.0

    @property
    def predicted(self) -> float:
        """The mean predicted risk; NaN without patients."""
        return float(self.weight @ self.risk) / self.patients if self.patients else np.nan

    @property
    def only_predicted(self) -> float:
        """The mean predicted risk, that of all patients if none was followed."""
        return self.predicted if self.patients or not len(self.everybody) else float(self.everybody.mean())

    @property
    def value(self) -> float:
        """The observed risk without an interval; NaN without patients."""
        return _mean(self.outcomes) if self.patients else np.nan

    @cached_property
    def observed(self) -> Estimate:
        """The observed risk; see :func:`observed_given_risks`."""
        return observed_given_risks(self.outcomes, self.risk)

    @cached_property
    def alike(self) -> float:
        """How many times larger clusters make the variance of the observed risk; at least 1."""
        both = (Estimates([self.observed], clusters) for clusters in (None, self.clusters))
        alone, together = (float(one.covariance[0, 0]) for one in both)
        return max(together / alone, 1.0) if alone > 0 else 1.0

    def estimates(self, numbers: Sequence[Estimate]) -> Estimates:
        """Return numbers of these patients together."""
        return Estimates(numbers, self.clusters)


def _clusters_within(clusters: IntArray | None, rows: IntArray) -> IntArray | None:
    """Return the clusters of some rows, from 0; None inside of one cluster, given which patients are independent."""
    if clusters is None:
        return None
    labels, found = np.unique(clusters[rows], return_inverse=True)
    return found if len(labels) > 1 else None


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
