"""Curves without a model: Kaplan-Meier, and Aalen-Johansen where patients may have one of several events.

Patients may have weights, where a whole number counts copies, and entry times, before which they are not at
risk: patient i is at risk at t if ``entry_i < t <= Y_i``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from drosurv.errors import as_number, require
from drosurv.target import FloatArray, Target

# From so many times on they are sorted before they are looked up, which is several times faster.
_SCATTERED = 10_000


@dataclass(frozen=True, eq=False)
class KaplanMeier:
    r"""Share of patients free of the event after each time.

    .. math:: \hat S(t) = \prod_{t_j \le t} \left( 1 - \frac{d_j}{n_j} \right), \qquad
              \widehat{Var} \log \hat S(t) = \sum_{t_j \le t} \frac{d_j}{n_j (n_j - d_j)}

    with d events among n at risk (Greenwood): `events` and `at_risk` (m,) at the distinct `times` (m,), ascending.
    """

    times: FloatArray
    survival: FloatArray
    events: FloatArray
    at_risk: FloatArray

    @classmethod
    def of(
        cls, target: Target, weight: FloatArray | None = None, *, entry: FloatArray | None = None
    ) -> KaplanMeier:
        """The curve of n patients with weights and entry times, each (n,)."""
        times, at_risk, (died,) = _counts(target, [target.event], weight, entry)
        return cls._through(times, at_risk, died)

    @classmethod
    def both(
        cls, target: Target, weight: FloatArray | None = None, *, entry: FloatArray | None = None
    ) -> tuple[KaplanMeier, KaplanMeier]:
        """The curve of the event and that of censoring; parameters as above.

        At equal times events come first: whoever had the event is no longer at risk of being censored.
        """
        times, at_risk, (died, left) = _counts(target, [target.event, ~target.event], weight, entry)
        return cls._through(times, at_risk, died), cls._through(times, at_risk - died, left)

    @classmethod
    def _through(cls, times: FloatArray, at_risk: FloatArray, gone: FloatArray) -> KaplanMeier:
        share = np.divide(gone, at_risk, out=np.zeros(len(times)), where=gone > 0)
        survival = np.cumprod(np.maximum(1.0 - share, 0.0), dtype=np.float64)
        return cls(times, survival, gone, at_risk)

    @property
    def log_variance(self) -> FloatArray:
        """Greenwood's variance of the logarithm of the survival, (m,); infinite where survival is 0."""
        left = self.at_risk * (self.at_risk - self.events)
        unknown = np.where(self.events > 0, np.inf, 0.0)
        return np.cumsum(np.divide(self.events, left, out=unknown, where=left > 0))

    def at(self, at: FloatArray) -> FloatArray:
        """The curve at k times, (k,); NaN after the last time if somebody was still free of the event there."""
        if len(self.times) == 0:
            return np.full(len(at), np.nan)
        found = step_function(self.times, self.survival, at, before=1.0)
        beyond = (at > self.times[-1]) & (self.survival[-1] > 0)
        return np.where(beyond, np.nan, found)

    def interval(self, at: FloatArray, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Ends of the log-log interval at k times, each (k,); the curve itself where it is 0 or 1."""
        variance = step_function(self.times, self.log_variance, at, before=0.0)
        return _log_log_interval(self.at(at), np.sqrt(variance), level)


def share_of_ties(target: Target) -> float:
    """Share of the patients at risk who have the event at the same time as another, as a mean over events."""
    curve = KaplanMeier.of(target)
    events = curve.events[curve.events > 0]
    if len(events) == 0:
        return 0.0
    return float(np.average((events - 1) / curve.at_risk[curve.events > 0], weights=events))


@dataclass(frozen=True, eq=False)
class CumulativeIncidence:
    """Share of patients who have had an event of one cause by each of the distinct times (m,), and its variance."""

    times: FloatArray
    incidence: FloatArray
    variance: FloatArray

    def at(self, at: FloatArray) -> FloatArray:
        """The curve at k times, (k,); NaN after the last time of the sample."""
        return self._read(self.incidence, at)

    def interval(self, at: FloatArray, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Ends of the log-log interval at k times, each (k,); the curve itself where it is 0 or 1."""
        share, variance = self.at(at), self._read(self.variance, at)
        with np.errstate(divide="ignore", invalid="ignore"):
            error_of_log = np.sqrt(variance) / share
        return _log_log_interval(share, error_of_log, level)

    def _read(self, values: FloatArray, at: FloatArray) -> FloatArray:
        if len(self.times) == 0:
            return np.full(len(at), np.nan)
        return np.where(at > self.times[-1], np.nan, step_function(self.times, values, at, before=0.0))


def aalen_johansen(
    cause: Any, time: Any, *, of: int = 1, weight: FloatArray | None = None, entry: FloatArray | None = None
) -> CumulativeIncidence:
    r"""Cumulative incidence of one cause where others may come first.

    .. math:: \hat F_k(t) = \sum_{t_j \le t} \hat S(t_{j-1}) \frac{d_{kj}}{n_j}

    with S the Kaplan-Meier curve of all causes together and n at risk. Counting the other causes as censored
    instead would estimate the incidence if they did not exist, which is larger.

    Parameters
    ----------
    cause : (n,) int
        What happened: 0 censored, 1, 2, ... the causes.
    time : (n,) float
        When.
    of : int
        The cause whose incidence is wanted.
    weight, entry : (n,) float64, optional
        Patient weights; when each came under observation.

    Returns
    -------
    CumulativeIncidence
        With the delta-method variance (Marubini, Valsecchi 1995); weights count as copies in it.

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
    target = Target(causes != 0, np.asarray(time, dtype=np.float64))
    at, at_risk, (of_cause, events) = _counts(target, [causes == of, target.event], weight, entry)
    share = np.divide(events, at_risk, out=np.zeros(len(at)), where=events > 0)
    before = np.concatenate(([1.0], np.cumprod(np.maximum(1.0 - share, 0.0))[:-1]))
    hazard = np.divide(of_cause, at_risk, out=np.zeros(len(at)), where=of_cause > 0)
    incidence = np.cumsum(before * hazard)
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
    return CumulativeIncidence(at, incidence, np.maximum(variance, 0.0))


def _log_log_interval(
    share: FloatArray, error_of_log: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Ends of the interval of shares (k,), normal for log(-log): so it stays between 0 and 1."""
    require(0 < as_number(level) < 1, "level", "lie between 0 and 1", level)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = norm.ppf((1 + level) / 2) * error_of_log / -np.log(share)
        low, high = share ** np.exp(reach), share ** np.exp(-reach)
    known = (share > 0) & (share < 1)
    return np.where(known, low, share), np.where(known, high, share)


def _counts(
    target: Target, marks: list[Any], weight: FloatArray | None, entry: FloatArray | None
) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
    """Distinct times (m,), the weight at risk there, and that of the patients at each with each of the marks."""
    order = target.order
    mass = np.ones(len(order)) if weight is None else weight[order]
    if weight is not None:
        order, mass = order[mass > 0], mass[mass > 0]
    seen = target.time[order]
    if len(seen) == 0:
        return seen, seen, [seen] * len(marks)
    first = np.flatnonzero(np.concatenate(([True], seen[1:] != seen[:-1])))
    times = seen[first]
    # Summed from the end, so that whole-number weights leave no rounding where few are left.
    at_risk = np.cumsum(mass[::-1])[::-1][first]
    if entry is not None:
        starts = entry[order]
        by_entry = np.argsort(starts, kind="stable")
        later = np.concatenate((np.cumsum(mass[by_entry][::-1])[::-1], [0.0]))
        at_risk = at_risk - later[np.searchsorted(starts[by_entry], times, side="left")]
    return times, at_risk, [np.add.reduceat(mass * mark[order], first) for mark in marks]


def step_function(times: FloatArray, values: FloatArray, at: FloatArray, *, before: float) -> FloatArray:
    """Right-continuous step function through (times, values)."""
    if at.ndim == 1 and len(at) > _SCATTERED:
        # Sorted times are found faster, since neighbouring searches read the same memory.
        order = np.argsort(at)
        place = np.empty(len(at), dtype=np.intp)
        place[order] = np.searchsorted(times, at[order], side="right")
    else:
        place = np.searchsorted(times, at, side="right")
    return np.concatenate(([before], values))[place]
