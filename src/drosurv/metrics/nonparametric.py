"""Nonparametric estimates: Kaplan-Meier, Aalen-Johansen for competing risks, and quantiles.

Patients may have weights (weight 2 counts a patient twice) and entry times (left truncation): patient i is at risk at t
if ``entry_i < t <= Y_i``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from drosurv.errors import as_number, require
from drosurv.metrics.estimates import Estimate
from drosurv.patients.arrays import batches, places_in
from drosurv.patients.target import FloatArray, IntArray, Target

# Number of rows that stand for a patient with another cause in `censored_later`.
_PARTS = 20


@dataclass(frozen=True, eq=False)
class KaplanMeier:
    r"""Kaplan-Meier estimate of survival after each of the distinct times.

    .. math:: \hat S(t) = \prod_{t_j \le t} \left( 1 - \frac{d_j}{n_j} \right), \qquad
              \widehat{Var} \log \hat S(t) = \sum_{t_j \le t} \frac{d_j}{n_j (n_j - d_j)}

    with d `events` among n patients `at_risk` (m,) at the distinct `times` (m,), ascending, and Greenwood's variance.
    With `in_clusters`, the n outcomes and numbers (n,) of clusters, intervals use the variance of sums over clusters:

    .. math:: \log \hat S(t) \approx \log S(t) - \sum_i \sum_{t_j \le t} \frac{1}{n_j - d_j}
              \left( dN_i(t_j) - Y_i(t_j) \frac{d_j}{n_j} \right)

    of which the squares, summed over patients, are Greenwood's variance.

    Of one of several causes the curve is 1 - F, with F the incidence of Aalen-Johansen: patients who had an event of
    another cause at Y stay at risk, at later times t with weight G(t-) / G(Y-) of not being censored by then.
    """

    times: FloatArray
    survival: FloatArray
    events: FloatArray
    at_risk: FloatArray
    in_clusters: tuple[Target, IntArray] | None = None

    @classmethod
    def of(
        cls,
        target: Target,
        weight: FloatArray | None = None,
        *,
        entry: FloatArray | None = None,
        clusters: IntArray | None = None,
    ) -> KaplanMeier:
        """Estimate the curve of n patients with weights and entry times, or in clusters, each (n,)."""
        if target.other is None:
            times, at_risk, (events,) = _counts(target, [target.event], weight, entry)
            found = cls._estimate(times, at_risk, events)
        else:
            found = cls.both(target, weight, entry=entry)[0]
        return found if clusters is None else replace(found, in_clusters=(target, clusters))

    @classmethod
    def both(
        cls, target: Target, weight: FloatArray | None = None, *, entry: FloatArray | None = None
    ) -> tuple[KaplanMeier, KaplanMeier]:
        """Estimate the curve of the event and that of censoring; parameters as in `of`.

        At equal times events come first: a patient with the event is no longer at risk of being censored.
        """
        if target.other is None:
            times, at_risk, (events, censored) = _counts(target, [target.event, ~target.event], weight, entry)
            censoring = cls._estimate(times, at_risk - events, censored)
        else:
            marks = [target.event, target.ended, ~target.ended]
            times, at_risk, (events, ended, censored) = _counts(target, marks, weight, entry)
            censoring = cls._estimate(times, at_risk - ended, censored)
            assert entry is None, "with causes, times count from entry"
            before = np.concatenate(([1.0], censoring.survival[:-1]))
            others = np.divide(ended - events, before, out=np.zeros(len(times)), where=before > 0)
            at_risk = at_risk + before * (np.cumsum(others) - others)
        return cls._estimate(times, at_risk, events), censoring

    @classmethod
    def _estimate(cls, times: FloatArray, at_risk: FloatArray, events: FloatArray) -> KaplanMeier:
        share = np.divide(events, at_risk, out=np.zeros(len(times)), where=events > 0)
        survival = np.cumprod(np.maximum(1.0 - share, 0.0), dtype=np.float64)
        return cls(times, survival, events, at_risk)

    @property
    def log_variance(self) -> FloatArray:
        """Greenwood's variance of log survival, (m,); infinite where survival is 0."""
        denominator = self.at_risk * (self.at_risk - self.events)
        otherwise = np.where(self.events > 0, np.inf, 0.0)
        return np.cumsum(np.divide(self.events, denominator, out=otherwise, where=denominator > 0))

    def at(self, at: FloatArray) -> FloatArray:
        """The curve at k times, (k,); NaN after the last time unless the curve has reached 0."""
        if len(self.times) == 0:
            return np.full(len(at), np.nan)
        found = step_function(self.times, self.survival, at, before=1.0)
        beyond = (at > self.times[-1]) & (self.survival[-1] > 0)
        return np.where(beyond, np.nan, found)

    def interval(self, at: FloatArray, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Ends of the log-log interval at k times, each (k,); equal to the curve where it is 0 or 1."""
        error = np.sqrt(step_function(self.times, self.log_variance, at, before=0.0))
        if self.in_clusters is not None:
            error = np.fmax(error, self._error_by_cluster(*self.in_clusters, at, level))
        return _log_log_interval(self.at(at), error, level)

    def _error_by_cluster(
        self, target: Target, clusters: IntArray, at: FloatArray, level: float
    ) -> FloatArray:
        """Return the standard error (k,) of log survival by cluster, times Student's over the normal quantile."""
        left = self.at_risk - self.events
        jump = np.divide(1.0, left, out=np.zeros(len(left)), where=left > 0)
        hazard = np.cumsum(jump * self.events / self.at_risk)
        place = np.searchsorted(self.times, target.time)
        ended = target.event * jump[place] - hazard[place]
        last, k = int(clusters.max()) + 1, len(np.unique(clusters))
        # The hazard of patients with another cause after their time, and their weights by cluster.
        later, free, share = np.zeros(len(self.times)), np.zeros(last), np.zeros(len(target))
        if target.other is not None:
            uncensored = np.concatenate(([1.0], KaplanMeier.both(target)[1].survival[:-1]))
            later = np.cumsum(uncensored * jump * self.events / self.at_risk)
            share = np.divide(target.other, uncensored[place], out=share, where=uncensored[place] > 0)
            ended += share * later[place]
        # Of each cluster: the sum over rows that have ended by a time, and the number of its other rows.
        sums, others = np.zeros(last), np.bincount(clusters, minlength=last).astype(np.float64)
        squares, seen = np.empty(len(at)), target.time[target.order]
        expected, first = step_function(self.times, hazard, at, before=0.0), 0
        of_free = step_function(self.times, later, at, before=0.0)
        for column in np.argsort(at):
            until = int(np.searchsorted(seen, at[column], side="right"))
            rows = target.order[first:until]
            sums += np.bincount(clusters[rows], ended[rows], last)
            others -= np.bincount(clusters[rows], minlength=last)
            free += np.bincount(clusters[rows], share[rows], last)
            residuals = sums - expected[column] * others - of_free[column] * free
            squares[column], first = (residuals**2).sum(), until
        return _student_error(squares, k, level)


@dataclass(frozen=True, eq=False)
class CumulativeIncidence:
    """Cumulative incidence of one cause at each of the distinct times (m,), and its variance.

    `in_clusters` are the estimate with the patients' influences and the clusters (n,): intervals then use the variance
    of sums of influences by cluster.
    """

    times: FloatArray
    incidence: FloatArray
    variance: FloatArray
    in_clusters: tuple[Incidence, IntArray] | None = None

    def at(self, at: FloatArray) -> FloatArray:
        """The curve at k times, (k,); NaN after the last time."""
        return self._read(self.incidence, at)

    def interval(self, at: FloatArray, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Ends of the log-log interval at k times, each (k,); equal to the curve where it is 0 or 1."""
        share, error = self.at(at), np.sqrt(self._read(self.variance, at))
        if self.in_clusters is not None:
            curve, clusters = self.in_clusters
            codes, found = np.unique(clusters, return_inverse=True)
            influences = curve.derivative(at, np.eye(len(at)))
            sums = np.array([np.bincount(found, column, len(codes)) for column in influences.T])
            error = np.maximum(error, _student_error((sums**2).sum(axis=1), len(codes), level))
        with np.errstate(divide="ignore", invalid="ignore"):
            return _log_log_interval(share, error / share, level)

    def _read(self, values: FloatArray, at: FloatArray) -> FloatArray:
        if len(self.times) == 0:
            return np.full(len(at), np.nan)
        return np.where(at > self.times[-1], np.nan, step_function(self.times, values, at, before=0.0))


def _student_error(squares: FloatArray, k: int, level: float) -> FloatArray:
    """Return standard errors from squared sums of k clusters, times Student's over the normal quantile."""
    upper, freedom = (1 + level) / 2, max(k - 1, 1)
    found: FloatArray = np.sqrt(k / freedom * squares) * stdtrit(freedom, upper) / ndtri(upper)
    return found


def aalen_johansen(
    cause: Any,
    time: Any,
    *,
    of: int = 1,
    weight: FloatArray | None = None,
    entry: FloatArray | None = None,
    clusters: IntArray | None = None,
) -> CumulativeIncidence:
    r"""Cumulative incidence of one of several competing causes (Aalen-Johansen).

    .. math:: \hat F_k(t) = \sum_{t_j \le t} \hat S(t_{j-1}) \frac{d_{kj}}{n_j}

    with S the Kaplan-Meier curve of all causes together, and d events among n patients at risk. Counting the other
    causes as censored would overestimate the incidence.

    Parameters
    ----------
    cause : (n,) int
        Cause of each patient's event: 1, 2, ...; 0 if censored.
    time : (n,) float
        Time of the event or of censoring.
    of : int
        Cause whose incidence to estimate.
    weight, entry : (n,) float64, optional
        Patient weights, and times of entry into observation.
    clusters : (n,) int, optional
        Numbers of the clusters: intervals allow for correlation within them. Not with weights or entry.

    Returns
    -------
    CumulativeIncidence
        With the delta-method variance (Marubini, Valsecchi 1995), in which weight 2 counts a patient twice.

    References
    ----------
    Aalen, Johansen (1978), An empirical transition matrix for non-homogeneous Markov chains based on censored
    observations, Scandinavian Journal of Statistics 5.

    Examples
    --------
    >>> curve = aalen_johansen([1, 2, 1, 0], [1.0, 2.0, 3.0, 4.0])
    >>> curve.incidence.tolist()
    [0.25, 0.25, 0.5, 0.5]
    """
    causes = np.asarray(cause)
    time, entered = (None if part is None else np.asarray(part, dtype=np.float64) for part in (time, entry))
    target = Target(causes == of, time, entered, other=(causes != 0) & (causes != of))
    curve = Incidence.of(target, np.ones(len(causes)) if weight is None else weight)
    at, at_risk, events, incidence, before = (
        curve.times,
        curve.at_risk,
        curve.ended,
        curve.incidence,
        curve.free[:-1],
    )
    hazard = np.divide(curve.events, at_risk, out=np.zeros(len(at)), where=curve.events > 0)
    # (F(t) - F_j)^2 a_j + b_j - 2 (F(t) - F_j) c_j, summed over t_j <= t, by powers of F(t).
    left = at_risk * (at_risk - events)
    a = np.divide(events, left, out=np.zeros(len(at)), where=left > 0)
    per_patient = np.divide(1.0, at_risk, out=np.zeros(len(at)), where=at_risk > 0)
    b = before**2 * hazard * (1.0 - hazard) * per_patient
    c = before * hazard * per_patient
    variance = (
        incidence**2 * np.cumsum(a)
        - 2 * incidence * np.cumsum(a * incidence + c)
        + np.cumsum(a * incidence**2 + b + 2 * c * incidence)
    )
    assert clusters is None or (weight is None and entry is None)
    in_clusters = None if clusters is None else (curve, clusters)
    return CumulativeIncidence(at, incidence, np.maximum(variance, 0.0), in_clusters)


def _log_log_interval(
    share: FloatArray, error_of_log: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Ends of the log-log interval of shares (k,), which lies between 0 and 1."""
    require(0 < as_number(level) < 1, "level", "lie between 0 and 1", level)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = ndtri((1 + level) / 2) * error_of_log / -np.log(share)
        low, high = share ** np.exp(reach), share ** np.exp(-reach)
    known = (share > 0) & (share < 1)
    return np.where(known, low, share), np.where(known, high, share)


def _counts(
    target: Target, marks: list[Any], weight: FloatArray | None, entry: FloatArray | None
) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
    """Distinct times (m,), the weight at risk (m,), and for each mark (n,) the weight of the marked patients (m,)."""
    order = target.order
    mass = np.ones(len(order)) if weight is None else weight[order]
    if weight is not None:
        order, mass = order[mass > 0], mass[mass > 0]
    seen = target.time[order]
    if len(seen) == 0:
        return seen, seen, [seen] * len(marks)
    first = np.flatnonzero(np.concatenate(([True], seen[1:] != seen[:-1])))
    times = seen[first]
    # Summed from the end: with few patients left, differences of large sums would have rounding errors.
    at_risk = np.cumsum(mass[::-1])[::-1][first]
    if entry is not None:
        starts = entry[order]
        by_entry = np.argsort(starts, kind="stable")
        later = np.concatenate((np.cumsum(mass[by_entry][::-1])[::-1], [0.0]))
        at_risk = at_risk - later[np.searchsorted(starts[by_entry], times, side="left")]
    return times, at_risk, [np.add.reduceat(mass * mark[order], first) for mark in marks]


def free_until(target: Target) -> FloatArray:
    """Return the time before which each patient is known to be free of any event, (n,).

    It is the time of the event, or just after the time of censoring: a patient who is censored at t had no event by t.
    """
    return np.where(target.ended, target.time, np.nextafter(target.time, np.inf))


@dataclass(frozen=True, eq=False)
class Incidence:
    r"""Aalen-Johansen incidence of the event of n patients, and its derivative by the weight of each patient.

    `incidence` (m,) is F after each of the distinct `times` (m,), and `free` (m + 1,) the probability S of no event of
    any cause at first and after each of them. With :math:`n_j` patients `at_risk` (m,) at :math:`t_j`, of whom
    :math:`d_j` have the event, and :math:`a_j` one of any cause, the derivative of F(t) by the weight of patient i is

    .. math:: \sum_{t_j \le t} \frac{S(t_j-)}{n_j} \left( dN_i(t_j) - Y_i(t_j) \frac{d_j}{n_j} \right)
              - \frac{F(t) - F(t_j)}{n_j - a_j} \left( dA_i(t_j) - Y_i(t_j) \frac{a_j}{n_j} \right)

    with N and A the patient's events of the cause and of any. Without other causes 1 - F is the Kaplan-Meier curve.
    """

    target: Target
    times: FloatArray
    at_risk: FloatArray
    events: FloatArray
    ended: FloatArray
    incidence: FloatArray
    free: FloatArray

    @classmethod
    def of(cls, target: Target, weight: FloatArray) -> Incidence:
        """Estimate the incidence of n patients, at risk from their entry on, with weights (n,)."""
        marks = [target.event, target.ended]
        times, at_risk, (events, ended) = _counts(target, marks, weight, target.entry)
        share = np.divide(ended, at_risk, out=np.zeros(len(times)), where=ended > 0)
        # Sums of the same weights in another order may differ by rounding.
        free = np.concatenate(([1.0], np.cumprod(np.where(share > 1 - 1e-12, 0.0, 1.0 - share))))
        hazard = np.divide(events, at_risk, out=np.zeros(len(times)), where=events > 0)
        return cls(target, times, at_risk, events, ended, np.cumsum(free[:-1] * hazard), free)

    @classmethod
    def of_censoring(cls, target: Target, weight: FloatArray) -> Incidence:
        """Estimate the incidence of censoring; after an event at its time a patient is not at risk of it.

        Its time is just after the last time at which the patient was observed: `free_at` t is G(t-).
        """
        return cls.of(Target(~target.ended, free_until(target)), weight)

    def at(self, at: FloatArray) -> FloatArray:
        """Return the incidence at k times, (k,); constant after the last time."""
        return step_function(self.times, self.incidence, at, before=0.0)

    def free_at(self, at: FloatArray) -> FloatArray:
        """Return the probability of no event of any cause by k times, (k,)."""
        return self.free[places_in(self.times, at, "right")]

    def derivative(self, at: FloatArray, factors: FloatArray) -> FloatArray:
        """Return the derivative (n,), by each weight, of the sum over k times of F times factors (k,).

        Of several such sums, with factors (k, q), it is (n, q).
        """
        several = factors[:, None] if factors.ndim == 1 else factors
        if len(self.times) == 0:
            return np.zeros((len(self.target), *np.shape(factors)[1:]))
        place, last = places_in(self.times, at, "right"), len(self.times)
        order = np.argsort(place, kind="stable")
        first = np.searchsorted(place[order], np.arange(1, last + 1))

        def later(values: FloatArray) -> FloatArray:
            """Return the sums (m, q) of values (k, q) at each of the distinct times or later."""
            sums = values[order][::-1].cumsum(axis=0)[::-1]
            return np.vstack([sums, np.zeros((1, sums.shape[1]))])[first]

        after, weighted = later(several), later(several * self.at(at)[:, None])
        by_event = (self.free[:-1] / self.at_risk)[:, None] * after
        left = (self.at_risk - self.ended)[:, None]
        by_any = np.divide(
            after * self.incidence[:, None] - weighted,
            left,
            out=np.zeros_like(after),
            where=left > 1e-12 * self.at_risk[:, None],
        )
        expected = (by_event * self.events[:, None] + by_any * self.ended[:, None]) / self.at_risk[:, None]
        passed = np.vstack([np.zeros((1, expected.shape[1])), np.cumsum(expected, axis=0)])
        # Patients without weight may have a time after the last one; they have no influence.
        own = np.minimum(np.searchsorted(self.times, self.target.time, side="left"), last - 1)
        found = self.target.event[:, None] * by_event[own] + self.target.ended[:, None] * by_any[own]
        found -= passed[own + 1]
        if self.target.entry is not None:
            found += passed[np.searchsorted(self.times, self.target.entry, side="right")]
        return np.asarray(found.reshape(len(found), *np.shape(factors)[1:]), np.float64)

    def derivative_of_inverse(self, at: FloatArray, terms: FloatArray) -> FloatArray:
        """Return the derivative (n,), by each weight, of a sum of terms (k,) that are divided by `free_at` k times.

        Of several such sums, with terms (k, q), it is (n, q).
        """
        free = self.free_at(at).reshape(-1, *[1] * (np.ndim(terms) - 1))
        return self.derivative(at, np.divide(terms, free, out=np.zeros(np.shape(terms)), where=free > 0))


# Influences on so many numbers are computed at once.
_AT_ONCE = 16


def incidence_estimates(target: Target, at: FloatArray, weight: FloatArray | None = None) -> list[Estimate]:
    """Return the Aalen-Johansen incidence of the event of n patients at k times; NaN after the end of follow-up.

    Patients are at risk from their entry on, and have weights (n,). Without other causes the incidence is one minus
    Kaplan-Meier.
    """
    weight = np.ones(len(target)) if weight is None else weight
    curve, at = Incidence.of(target, weight), np.atleast_1d(at)
    found = []
    for some in batches(len(at), _AT_ONCE):
        times = at[some]
        values = curve.at(times)
        influences = weight[:, None] * curve.derivative(times, np.eye(len(times)))
        for time, value, influence in zip(times, values, influences.T, strict=True):
            if len(curve.times) == 0 or (time > curve.times[-1] and value < 1):
                found.append(Estimate.undefined(len(target)))
                continue
            by_then = np.count_nonzero(target.event & (target.time <= time) & (weight > 0))
            found.append(Estimate(float(value), influence, "logit", by_then - 1.0))
    return found


def censored_later(target: Target, weight: FloatArray) -> tuple[IntArray, Target, FloatArray]:
    """Return rows (m,), targets and weights (m,) in which patients with an event of another cause are censored.

    They never have this event, and would have been observed until censoring, at a time that is not known. Each is
    several rows of equal weight, censored at quantiles of the curve of censoring after the event, so that the rows are
    censored data of the time to this event. (Ruan and Gray, Statistics in Medicine 27, 2008, draw one such time.)
    """
    if target.other is None:
        return np.arange(len(target)), target, weight
    censoring = KaplanMeier.both(target, weight)[1]
    parts = np.where(target.other, _PARTS, 1)
    rows = np.repeat(np.arange(len(target)), parts)
    part = np.arange(len(rows)) - np.repeat(np.cumsum(parts) - parts, parts)
    time, other = target.time[rows], target.other[rows]
    # The first time at which the curve is at most a share of its value before the event.
    left = np.concatenate(([1.0], censoring.survival))[places_in(censoring.times, time, "left")]
    place = np.searchsorted(-censoring.survival, -left * (1 - (part + 0.5) / _PARTS), side="left")
    later = np.append(censoring.times, censoring.times[-1])[place]
    until = np.where(other, np.maximum(later, time), time)
    return rows, Target(target.event[rows], until), weight[rows] / parts[rows]


def weighted_quantiles(
    x: FloatArray, weight: FloatArray | None, q: Sequence[float] | FloatArray
) -> FloatArray:
    """Quantiles of a column (n,), interpolated as numpy's and R's defaults are.

    Whole-number weights count as copies; others are first scaled to mean one, so that their unit does not matter.
    """
    if weight is None:
        # Several times faster than np.quantile, which sorts only in part.
        values, last = np.sort(x), np.arange(1.0, len(x) + 1.0)
    else:
        order = np.argsort(x, kind="stable")
        values, counts = x[order], weight[order]
        if (counts != np.round(counts)).any():
            counts = counts * (len(counts) / counts.sum())
        last = np.cumsum(counts)
    rank = np.asarray(q) * max(last[-1] - 1.0, 0.0)
    whole = np.floor(rank)
    # The copy at rank r, from 0, is of the first value whose copies reach beyond it; rounding must not skip one.
    places = [np.searchsorted(last, whole + step + 1.0 - 1e-9) for step in (0, 1)]
    low, high = (values[np.minimum(place, len(values) - 1)] for place in places)
    share, apart = rank - whole, high - low
    # As numpy rounds.
    found: FloatArray = np.where(share < 0.5, low + apart * share, high - apart * (1.0 - share))
    return found


def step_function(times: FloatArray, values: FloatArray, at: FloatArray, *, before: float) -> FloatArray:
    """Right-continuous step function through (times, values), with the value `before` before the first time."""
    return np.concatenate(([before], values))[places_in(times, at, "right")]
