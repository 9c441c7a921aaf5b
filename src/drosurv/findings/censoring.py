"""A Cox model of censoring, for weights of predictions at few times.

The risk of being censored depends on columns of the patients. Events leave the risk set before censorings of the same
time. With ties, coefficients are Efron's, and each time's hazard solves the likelihood of grouped times, so that
without columns the curve is the Kaplan-Meier curve of censoring. Patients who start at different times have baselines
of their own, since the end of observation is often counted from entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from drosurv.target import BoolArray, FloatArray, IntArray, Target

# Smallest probability of being uncensored by which a patient is weighted.
LEAST_PROBABILITY = 0.02
# With fewer censored patients nobody is weighted.
_FEWEST_CENSORED = 5
# Patients who start at different times share a baseline if fewer are censored.
_FEWEST_IN_STRATUM = 25
# Ridge penalty of the coefficients of standardised columns.
_PENALTY = 1.0
_MOST_STEPS, _TOLERANCE = 30, 1e-8
_LARGEST_SCORE = 5.0


@dataclass(frozen=True, eq=False)
class CensoringModel:
    """Probabilities of being uncensored of n patients.

    `times` (V,) are the times of censoring and `hazard` (V,) their baseline hazards, with sums `cumulative` (V + 1,);
    `relative` (n,) are the patients' relative hazards and `columns` (n, q) what they depend on. `at_risk` and
    `remaining` (V,) are summed relative hazards before and after the censorings of each time, `mean_columns` (V, q)
    the means at risk, `inverse` (q, q) the inverse information. Strata stand behind one another on the axis of time:
    `shift` (n,) is where that of each patient begins.
    """

    times: FloatArray
    hazard: FloatArray
    cumulative: FloatArray
    relative: FloatArray
    columns: FloatArray
    at_risk: FloatArray
    remaining: FloatArray
    mean_columns: FloatArray
    inverse: FloatArray
    weight: FloatArray
    position: IntArray
    censored: BoolArray
    first: IntArray
    shift: FloatArray

    def _between(self, before: FloatArray, after: FloatArray | None) -> tuple[IntArray, IntArray]:
        """Return the number (n,) of the first time of censoring after one time, and of the first not before another."""
        end = np.searchsorted(self.times, before + self.shift, side="left")
        if after is None:
            return np.zeros(len(end), np.intp), end
        return np.minimum(np.searchsorted(self.times, after + self.shift, side="right"), end), end

    def cumulative_hazard(self, before: FloatArray, after: FloatArray | None = None) -> FloatArray:
        """Return each patient's hazard of censoring at times before one time (n,), and after another (n,) if given."""
        start, end = self._between(before, after)
        return self.relative * (self.cumulative[end] - self.cumulative[start])

    def inverse_probability(self, before: FloatArray, after: FloatArray | None = None) -> FloatArray:
        """Return 1 / G (n,), G the probability of no censoring before a time, given none up to another."""
        hazard = self.cumulative_hazard(before, after)
        found: FloatArray = np.exp(np.minimum(hazard, -np.log(LEAST_PROBABILITY)))
        return found

    def covariance(
        self, values: FloatArray, before: FloatArray, after: FloatArray | None = None
    ) -> FloatArray:
        """Return the covariance (J, J) of J weighted sums that is due to the estimated hazards of censoring.

        Each sum is of values (n, J) that were divided by G at `before` (n, J), or at the same times (n,) for all.
        Squares of estimated derivatives are too large by the variance of each, which is subtracted.
        """
        if before.ndim == 1:
            by_time, by_coefficient = (one.T for one in self.derivatives(values, before, after))
            noise = (values * self._noise(before, after)[:, None]).T @ values
        else:
            columns = zip(values.T, before.T, strict=True)
            found = [self.derivatives(one[:, None], at, after) for one, at in columns]
            by_time, by_coefficient = (np.hstack(part).T for part in zip(*found, strict=True))
            noise = np.zeros((len(found), len(found)))
            for j in range(len(found)):
                for k in range(j, len(found)):
                    shares = self._noise(np.minimum(before[:, j], before[:, k]), after)
                    noise[j, k] = noise[k, j] = values[:, j] * values[:, k] @ shares
        total = by_time * self._hazard_variance @ by_time.T + by_coefficient @ self.inverse @ by_coefficient.T
        return np.asarray(total - noise, np.float64)

    def _noise(self, before: FloatArray, after: FloatArray | None) -> FloatArray:
        """Return the part (n,) of squared derivatives that is due to each patient's own variation."""
        start, end = self._between(before, after)
        sums = np.append(0.0, np.cumsum(self._hazard_variance))
        baseline = self.relative**2 * np.maximum(sums[end] - sums[start], 0.0)
        hazard = self.cumulative_hazard(before, after)[:, None]
        means = np.vstack(
            [np.zeros(self.columns.shape[1]), np.cumsum(self.hazard[:, None] * self.mean_columns, axis=0)]
        )
        own = hazard * self.columns - self.relative[:, None] * (means[end] - means[start])
        found: FloatArray = baseline + np.einsum("ij,jk,ik->i", own, self.inverse, own)
        return found

    @property
    def _hazard_variance(self) -> FloatArray:
        """Variance (V,) of each time's baseline hazard (Greenwood's, where nobody differs)."""
        counts = np.bincount(self.position[self.censored], self.weight[self.censored], len(self.times))
        return np.divide(
            counts,
            self.at_risk * self.remaining,
            out=np.zeros_like(counts),
            where=self.remaining > 1e-9 * self.at_risk,
        )

    def influences(
        self, values: FloatArray, before: FloatArray, after: FloatArray | None = None
    ) -> FloatArray:
        """Return each patient's influence (n, K) on K sums of `values` (n, K), divided by G at the same times (n,)."""
        by_time, by_coefficient = self.derivatives(values, before, after)
        at_risk = self.at_risk[:, None]
        share = np.divide(by_time, at_risk, out=np.zeros_like(by_time), where=at_risk > 0)
        slope = self.inverse @ by_coefficient
        # At the last time, often the end of a study, all who are left are censored, whatever their hazards.
        informative = self.remaining > 1e-9 * self.at_risk
        hazard = np.where(informative, self.hazard, 0.0)
        cumulative = np.append(0.0, np.cumsum(hazard))
        # A patient's martingale is the censoring less the hazard while at risk, between these times of censoring.
        since, until = self.first, self.position + self.censored
        means = self.mean_columns @ slope
        sums = np.cumsum(hazard[:, None] * (share - means), axis=0)
        sums = np.vstack([np.zeros((1, share.shape[1])), sums])
        own = cumulative[until] - cumulative[since]
        found: FloatArray = sums[until] - sums[since] + own[:, None] * (self.columns @ slope)
        found *= -self.relative[:, None]
        censored = np.flatnonzero(self.censored)
        censored = censored[informative[self.position[censored]]]
        at = self.position[censored]
        found[censored] += share[at] - means[at] + self.columns[censored] @ slope
        return found

    def derivatives(
        self, values: FloatArray, before: FloatArray, after: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return derivatives of K sums by the log hazards at each time (V, K), and by the coefficients (q, K).

        The sums are of `values` (n, K) that were divided by G at the same times (n,) (`inverse_probability`).
        """
        mass = values * self.relative[:, None]
        start, end = self._between(before, after)
        by_time = self._later(mass, end) - (0.0 if after is None else self._later(mass, start))
        by_coefficient = self.columns.T @ (values * self.cumulative_hazard(before, after)[:, None])
        by_coefficient -= self.mean_columns.T @ (by_time * self.hazard[:, None])
        return by_time, by_coefficient

    def _later(self, mass: FloatArray, place: IntArray) -> FloatArray:
        """Return sums (V, K) of mass (n, K) over the patients whose place is after each time."""
        sums = np.zeros((len(self.times) + 1, mass.shape[1]))
        order = np.argsort(place, kind="stable")
        places, first = np.unique(place[order], return_index=True)
        sums[places] = np.add.reduceat(mass[order], first, axis=0)
        found: FloatArray = np.cumsum(sums[:0:-1], axis=0)[::-1]
        return found


def fit_censoring(
    time: FloatArray,
    censored: BoolArray,
    columns: FloatArray,
    weight: FloatArray,
    start: FloatArray | None = None,
) -> CensoringModel | None:
    """Fit a Cox model of censoring on columns (n, q); return None if fewer than 5 patients are censored.

    Patients are at risk of censoring after their starts (n,), and count as `weight` (n,) copies.
    """
    censored = censored & (weight > 0)
    if start is not None:
        censored &= time > start
    if weight[censored].sum() < _FEWEST_CENSORED:
        return None
    Z = _standardised(columns, weight)
    shift = np.zeros(len(time))
    if start is not None:
        shift = _strata(start, np.where(censored, weight, 0.0)) * (time.max() + 1.0)
        start = start + shift
    time = time + shift
    times, at = np.unique(time[censored], return_inverse=True)
    # An event leaves before censorings of its time; `position` is the number of times of censoring before it.
    position = np.searchsorted(times, time, side="left")
    position[censored] = at
    until = position + censored
    first = np.zeros(len(time), np.intp) if start is None else np.searchsorted(times, start, side="right")
    first = np.minimum(first, until)
    sums = _RiskSums(until, first, len(times))
    coef = np.zeros(Z.shape[1])
    efron = _Efron(at, weight[censored], len(times))
    inverse: FloatArray = np.eye(len(coef)) / _PENALTY
    for _ in range(_MOST_STEPS if Z.shape[1] else 0):
        score, information = efron.derivatives(coef, Z, weight, censored, sums)
        inverse = np.asarray(np.linalg.inv(information + _PENALTY * np.eye(len(coef))), np.float64)
        step = inverse @ (score - _PENALTY * coef)
        coef = coef + np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < _TOLERANCE:
            break
    relative = np.exp(np.clip(Z @ coef, -_LARGEST_SCORE, _LARGEST_SCORE))
    mass = weight * relative
    at_risk = sums(mass)
    tied: FloatArray = np.bincount(at, mass[censored], len(times)).astype(np.float64)
    remaining = np.maximum(at_risk - tied, 0.0)
    hazard = _grouped_hazards(at, relative[censored], weight[censored], tied, remaining)
    means = np.divide(sums(mass[:, None] * Z), at_risk[:, None])
    cumulative = np.append(0.0, np.cumsum(hazard))
    return CensoringModel(
        times, hazard, cumulative, relative, Z, at_risk, remaining, means, inverse, weight, position, censored,
        first, shift
    )  # fmt: skip


def known_status(
    target: Target, other: BoolArray, times: FloatArray, start: FloatArray, model: CensoringModel | None
) -> tuple[BoolArray, FloatArray]:
    """Return who had the event by each time (n, K), and 1 / G (n, K), 0 where the status after `start` is not known.

    A patient who is censored at a time is free of the event then; after an event of another cause, always.
    """
    time = target.time[:, None]
    happened = target.event[:, None] & (time <= times)
    free = (time > times) | (~target.event[:, None] & (time >= times)) | other[:, None]
    inverse = ((free | happened) & (start[:, None] < times)).astype(np.float64)
    if model is not None:
        after = start if (start > 0).any() else None
        until = np.minimum(time, times)
        inverse *= np.column_stack([model.inverse_probability(before, after) for before in until.T])
    return happened, inverse


def _strata(start: FloatArray, censored: FloatArray) -> IntArray:
    """Return strata (n,) of patients with neighbouring starts, each with enough censored patients (weights (n,))."""
    starts, at = np.unique(start, return_inverse=True)
    counts = np.bincount(at, censored, len(starts))
    stratum, inside, left = np.zeros(len(starts), np.intp), 0.0, counts.sum()
    for k in range(1, len(starts)):
        inside, left = inside + counts[k - 1], left - counts[k - 1]
        new = inside >= _FEWEST_IN_STRATUM and left >= _FEWEST_IN_STRATUM
        stratum[k] = stratum[k - 1] + new
        inside = 0.0 if new else inside
    found: IntArray = stratum[at]
    return found


class _RiskSums(NamedTuple):
    """Sums over the patients at risk at each of V times, from the first (n,) to before the last (n,)."""

    until: IntArray
    first: IntArray
    n_times: int

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return sums (V,) or (V, q) of values (n,) or (n, q)."""
        if values.ndim == 2:
            return (
                np.column_stack([self(column) for column in values.T])
                if values.shape[1]
                else np.empty((self.n_times, 0))
            )
        size = self.n_times + 1
        change = np.bincount(self.first, values, size) - np.bincount(self.until, values, size)
        return np.cumsum(change)[: self.n_times]


class _Efron:
    """Efron's partial likelihood of the censorings: each has a term, without a share of those tied with it."""

    def __init__(self, at: IntArray, weight: FloatArray, n_times: int) -> None:
        order = np.argsort(at, kind="stable")
        mass = weight[order]
        before = np.cumsum(mass) - mass
        totals = np.bincount(at, weight, n_times)
        begins = np.append(0.0, np.cumsum(totals)[:-1])
        self.at, self.order, self.weight, self.n_times = at, order, weight, n_times
        self.share = np.empty(len(at))
        self.share[order] = (before - begins[at[order]]) / totals[at[order]]

    def derivatives(
        self, coef: FloatArray, Z: FloatArray, weight: FloatArray, censored: BoolArray, sums: _RiskSums
    ) -> tuple[FloatArray, FloatArray]:
        """Return score (q,) and information (q, q) at a coefficient (q,)."""
        relative = np.exp(np.clip(Z @ coef, -_LARGEST_SCORE, _LARGEST_SCORE))
        mass = weight * relative
        S0, S1 = sums(mass), sums(mass[:, None] * Z)
        d0 = np.bincount(self.at, mass[censored], self.n_times)
        d1 = np.column_stack([np.bincount(self.at, c, self.n_times) for c in (mass[:, None] * Z)[censored].T])
        below = np.maximum(S0[self.at] - self.share * d0[self.at], 1e-12)
        mean = (S1[self.at] - self.share[:, None] * d1[self.at]) / below[:, None]
        term = self.weight / below
        hazard = np.append(0.0, np.cumsum(np.bincount(self.at, term, self.n_times)))
        own = np.bincount(self.at, term * self.share, self.n_times)
        total = hazard[sums.until] - hazard[sums.first]
        total[censored] -= own[self.at]
        score = self.weight @ (Z[censored] - mean)
        information = (Z * (mass * total)[:, None]).T @ Z - (mean * self.weight[:, None]).T @ mean
        return score, information


def _grouped_hazards(
    at: IntArray, relative: FloatArray, weight: FloatArray, tied: FloatArray, remaining: FloatArray
) -> FloatArray:
    """Return the hazards (V,) a that solve sum of weight r / (exp(a r) - 1) over the censored = sum of r remaining."""
    counts = np.bincount(at, weight, len(tied))
    mean = tied / counts
    left = np.maximum(remaining, 1e-9 * tied)
    hazard = np.log1p(tied / left) / mean
    for _ in range(5):
        grown = np.expm1(np.minimum(hazard[at] * relative, 50.0))
        value = np.bincount(at, weight * relative / grown, len(tied)) - left
        slope = np.bincount(at, weight * relative**2 * (grown + 1) / grown**2, len(tied))
        # On the log scale, so that hazards stay above 0.
        hazard = hazard * np.exp(np.clip(value / (slope * hazard), -1.0, 1.0))
    found: FloatArray = hazard
    return found


def _standardised(columns: FloatArray, weight: FloatArray) -> FloatArray:
    """Return columns with mean 0 and standard deviation 1, without constant and repeated ones."""
    Z = np.asarray(columns, dtype=np.float64).reshape(len(weight), -1)
    Z = Z - np.average(Z, axis=0, weights=weight)
    scale = np.sqrt(np.average(Z**2, axis=0, weights=weight))
    Z = Z[:, scale > 1e-9] / scale[scale > 1e-9]
    return Z
