r"""Intervals, differences and tests of numbers that know the influence of each patient on them.

A metric is a function of patients and their weights :math:`w`. The influence of patient i on its value :math:`v` is

.. math:: \varphi_i = w_i \, \partial v / \partial w_i

and the variance of the value is :math:`\frac{m}{m - 1} \sum_i \varphi_i^2`, with m patients who have an influence. The
influences of several numbers are the columns of a matrix :math:`\Phi`; their covariances are those of its columns.
Patients of one cluster, or rows of one patient, are summed first. Differences of numbers have the differences of
influences. Intervals that hold together, adjusted p-values and tests of the largest of several differences come from
the largest of correlated normal numbers, drawn with the correlations of these columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri, stdtr, stdtrit

from drosurv.patients.arrays import batches
from drosurv.patients.target import FloatArray, IntArray

Scale = Literal["identity", "logit", "log"]
# With one draw fewer than a round number, p-values are whole multiples of one over this number. The draws are always
# the same, and what is made of them does not depend on the order of patients.
_DRAWS = 19_999
# Draws that are computed at a time, in the cache.
_TOGETHER = 2_500
# Numbers whose standard error is below this share of their value, or of 1, are constant up to rounding.
_CONSTANT = 1e-12


@dataclass(frozen=True)
class Interval:
    """An estimate with a confidence interval from `low` to `high`, whose nominal coverage is `level`.

    What is unknown is NaN. The function that returns the interval says which hypothesis `p` tests.
    """

    estimate: float
    low: float
    high: float
    level: float
    standard_error: float = np.nan
    p: float = np.nan


@dataclass(frozen=True, eq=False)
class Estimate:
    """A number with the influence (n,) of each patient on it, 0 for patients who do not count.

    Its interval is symmetric on the `scale`: "logit" for shares, "log" for positive numbers. `freedom` are the degrees
    of freedom of its t quantiles, such as the number of events less one. `patients` is the number of those who count,
    by default of those who have an influence. Errors that are not of these patients, such as the estimation error of
    the model, are `further` influences (m,), which belong to no cluster. A number to which a known one was added, such
    as an observed less a predicted risk, was `moved` by it: the interval is made before, and moves with the number.
    """

    value: float
    influence: FloatArray
    scale: Scale = "identity"
    freedom: float = np.inf
    patients: int | None = None
    further: FloatArray = field(default_factory=lambda: np.empty(0))
    moved: float = 0.0

    @staticmethod
    def undefined(n: int) -> Estimate:
        """Return a number of n patients that is not defined."""
        return Estimate(np.nan, np.zeros(n))

    def among(self, rows: IntArray, n: int) -> Estimate:
        """Return this number of some rows of n patients as one of all of them."""
        influence = np.zeros(n)
        influence[rows] = self.influence
        return replace(self, influence=influence)

    def plus(self, known: float) -> Estimate:
        """Return this number plus a known one, and the ends of its interval with it."""
        return replace(self, value=self.value + known, moved=self.moved + known)

    def minus(self, other: Estimate) -> Estimate:
        """Return the difference to another number of the same patients."""
        return Estimate(
            self.value - other.value,
            self.influence - other.influence,
            freedom=min(self.freedom, other.freedom),
            patients=None if self.patients != other.patients else self.patients,
            further=np.subtract(*_padded([self.further, other.further])),
        )

    def interval(self, level: float, clusters: IntArray | None = None) -> Interval:
        """Return the interval of this number alone; see :meth:`Estimates.intervals`."""
        return Estimates([self], clusters).intervals(level)[0]


class Estimates:
    """Several numbers of the same n patients, of whom those with the same of the `clusters` (n,) may be alike.

    Patients of a number of one cluster alone, such as a hospital, are independent given the cluster.
    """

    def __init__(self, estimates: Sequence[Estimate], clusters: IntArray | None = None) -> None:
        self.estimates = tuple(estimates)
        self.clusters = clusters

    @property
    def values(self) -> FloatArray:
        """The numbers, (k,)."""
        return np.array([each.value for each in self.estimates])

    @cached_property
    def _by_cluster(self) -> tuple[FloatArray | None, ...]:
        """Sums of influences by cluster, for each number; None without clusters, and for a number of one cluster."""
        if self.clusters is None:
            return (None,) * len(self.estimates)
        return tuple(sums_by_cluster(each.influence, self.clusters) for each in self.estimates)

    @cached_property
    def _columns(self) -> FloatArray:
        """Influences, and further ones, (rows, k), with the inner products of the sums by cluster; 0 if not defined."""
        columns = [
            each.influence if sums is None or self.clusters is None else spread_out(sums, self.clusters)
            for each, sums in zip(self.estimates, self._by_cluster, strict=True)
        ]
        further = _padded([each.further for each in self.estimates])
        found = np.column_stack([np.concatenate(pair) for pair in zip(columns, further, strict=True)])
        return np.where(np.isfinite(found).all(axis=0), found, 0.0)

    @cached_property
    def _numbers(self) -> FloatArray:
        """The number of patients or clusters behind each number, (k,); further influences count as patients."""

        def number(each: Estimate, sums: FloatArray | None) -> int:
            if sums is not None:
                # Sums of a cluster may be rounding errors.
                return int(np.count_nonzero(np.abs(sums) > _CONSTANT * np.abs(sums).max(initial=0.0)))
            return int(np.count_nonzero(each.influence)) if each.patients is None else each.patients

        known = [number(*each) for each in zip(self.estimates, self._by_cluster, strict=True)]
        return np.array(known, np.float64) + self._further

    @property
    def _further(self) -> FloatArray:
        return np.array([np.count_nonzero(each.further) for each in self.estimates], np.float64)

    @cached_property
    def _factors(self) -> FloatArray:
        """The root of m / (m - 1), (k,), with m patients or clusters; 0 with less than two."""
        number = self._numbers
        return np.asarray(np.where(number > 1, np.sqrt(number / np.maximum(number - 1, 1)), 0.0), np.float64)

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariances (k, k) of the numbers."""
        return np.asarray(
            self._columns.T @ self._columns * np.outer(self._factors, self._factors), np.float64
        )

    @cached_property
    def counted_covariance(self) -> FloatArray:
        """Covariances (k, k), 0 of numbers without an interval, which no adjustment counts."""
        known = np.isfinite(self.standard_errors) & np.isfinite(self.freedom)
        return np.where(np.outer(known, known), self.covariance, 0.0)

    @cached_property
    def standard_errors(self) -> FloatArray:
        """Standard errors (k,); NaN where a number does not vary, or is not defined."""
        error = np.sqrt(np.einsum("ij,ij->j", self._columns, self._columns)) * self._factors
        known = np.isfinite(self.values) & (error > _CONSTANT * np.maximum(np.abs(self.values), 1.0))
        return np.where(known, error, np.nan)

    @cached_property
    def freedom(self) -> FloatArray:
        """Degrees of freedom (k,): those of each number, or of the clusters if these are fewer; NaN if below 1."""
        of_clusters = self._numbers - self._further - 1.0
        found = np.array(
            [
                each.freedom if sums is None else min(each.freedom, fewer)
                for each, sums, fewer in zip(self.estimates, self._by_cluster, of_clusters, strict=True)
            ]
        )
        return np.where(found >= 1, found, np.nan)

    def intervals(self, level: float, *, together: bool = False) -> list[Interval]:
        """Return an interval of each number; if `together`, all of them cover with the probability `level`.

        A number that does not vary has no interval, nor has one with less than one degree of freedom.
        """
        alpha = joint(self.counted_covariance).alphas(level) if together else 1 - level
        reach = _quantile(alpha, self.freedom) * self.standard_errors
        found = zip(self.estimates, self.standard_errors.tolist(), reach.tolist(), strict=True)
        return [_interval(*each, level) for each in found]

    def combinations(self, factors: FloatArray, level: float, *, together: bool = False) -> list[Interval]:
        """Return intervals of r sums of factors (r, k) times these numbers, as :meth:`intervals`."""
        covariance = factors @ self.covariance @ factors.T
        error, n = np.sqrt(np.maximum(np.diag(covariance), 0.0)), np.empty(0)
        alpha = joint(covariance).alphas(level) if together else np.full(len(factors), 1 - level)
        reach = _quantile(alpha, self.freedom.min()) * error
        found = zip((factors @ self.values).tolist(), error.tolist(), reach.tolist(), strict=True)
        return [_interval(Estimate(value, n), se, width, level) for value, se, width in found]

    def lowest(self, level: float) -> tuple[int, Interval]:
        """Return the position of the smallest number, -1 if none is defined, and its interval.

        All numbers lie in their simultaneous intervals with the probability `level`; then the smallest lies in this
        interval.
        """
        values = self.values
        if np.isnan(values).all():
            return -1, Interval(np.nan, np.nan, np.nan, level)
        place = int(np.nanargmin(values))
        found = self.intervals(level, together=True)
        low, high = (np.fmin.reduce([getattr(each, end) for each in found]) for end in ("low", "high"))
        if np.isnan(found[place].low):
            low = high = np.nan
        return place, Interval(
            float(values[place]), float(low), float(high), level, found[place].standard_error
        )

    def p_values(self) -> FloatArray:
        """Return two-sided p-values (k,) of the hypotheses that the numbers are 0, each alone."""
        return _p(np.abs(self.values) / self.standard_errors, self.freedom)

    def largest_gaps(self, families: Sequence[Sequence[int]], level: float) -> list[Interval]:
        """Return the largest difference between two numbers of each family (their positions), and the test of none.

        Differences are tested in standard errors. Intervals and p-values are adjusted for all differences of all
        families. The lower end is 0 where the test does not reject.
        """
        pairs = [(i, j, which) for which, some in enumerate(families) for i in some for j in some if i < j]
        if not pairs:
            return [Interval(np.nan, np.nan, np.nan, level) for _ in families]
        first, second, family = map(np.asarray, zip(*pairs, strict=True))
        own = np.diag(self.counted_covariance)
        variance = own[first] + own[second] - 2 * self.counted_covariance[first, second]
        counted = (own[first] > 0) & (own[second] > 0)
        # Two numbers of the same patients may be equal up to rounding.
        error = np.sqrt(np.where(counted & (variance > _CONSTANT**2 * own[first]), variance, np.nan))
        freedom = np.minimum(self.freedom[first], self.freedom[second])
        usable = np.flatnonzero(np.isfinite(error))
        root = _root(self.counted_covariance)
        known = np.flatnonzero(own > 0)
        draws = _independent_draws(self.counted_covariance[np.ix_(known, known)])
        differences = (root[first[usable]] - root[second[usable]]) / error[usable, None]
        weight = np.isfinite(error).astype(np.float64)
        tests = Joint(_least_p(differences, draws, weight[usable]), weight, np.ones(len(weight)))
        gap = np.abs(self.values[first] - self.values[second])
        p = tests.adjusted(_p(gap / error, freedom))
        reach = _quantile(tests.alphas(level), freedom) * error
        return [self._largest_gap(family == which, gap, reach, p, level) for which in range(len(families))]

    @staticmethod
    def _largest_gap(
        own: FloatArray, gap: FloatArray, reach: FloatArray, p: FloatArray, level: float
    ) -> Interval:
        value = float(np.fmax.reduce(gap[own], initial=np.nan))
        if not np.isfinite(reach[own]).any():
            return Interval(value, np.nan, np.nan, level)
        # All differences lie in their intervals with the probability `level`; then the largest lies in this interval.
        low, high = np.nanmax(gap[own] - reach[own]), np.nanmax(gap[own] + reach[own])
        return Interval(value, max(float(low), 0.0), float(high), level, p=float(np.nanmin(p[own])))


def sums_by_cluster(influence: FloatArray, clusters: IntArray) -> FloatArray | None:
    """Return sums of influences (n,) by cluster, given the clusters (n,); None if all are in one."""
    inside = clusters[influence != 0]
    if len(inside) and (inside == inside[0]).all():
        return None
    return np.bincount(clusters, influence).astype(np.float64)


def spread_out(sums: FloatArray, clusters: IntArray) -> FloatArray:
    """Return numbers (n,), equal in each cluster, whose inner products are those of sums by cluster."""
    return (sums / np.sqrt(np.maximum(np.bincount(clusters), 1)))[clusters]


@dataclass(frozen=True, eq=False)
class Joint:
    """The joint distribution of the p-values of k correlated tests if all hypotheses are true.

    `least` are draws, in order, of the smallest of p over `weight` (k,), the share of the error rate that each test
    has. Tests of weight 0 do not count. `rate` (k,) is the error rate of a test alone, as a share of its p-value: 1 for
    two-sided tests, 1/2 for one-sided ones.
    """

    least: FloatArray
    weight: FloatArray
    rate: FloatArray

    def adjusted(self, p: FloatArray) -> FloatArray:
        """Adjust p-values (k,) for all k tests; NaN stays NaN.

        The adjusted p-value is the probability that a test is at least as extreme in its share of the error rate. It is
        never below that of the test alone, and not above Bonferroni's, which is smaller only by the error of the draws.
        """
        with np.errstate(divide="ignore"):
            scaled = np.asarray(p) / self.weight
        at_least = np.searchsorted(self.least, scaled * (1 + _CONSTANT), side="right")
        bonferroni = np.minimum(float(self.weight @ self.rate) * scaled, 1.0)
        found = np.minimum((1 + at_least) / (1 + len(self.least)), bonferroni)
        return np.where(np.isnan(p), np.nan, np.maximum(found, p))

    def alphas(self, level: float) -> FloatArray:
        """Return the error rate (k,) of each test, with which all intervals cover with the probability `level`.

        No interval is narrower than that of a test alone, which has two sides.
        """
        if not self.weight.any():
            return np.full(len(self.weight), 1 - level)
        alone = (1 - level) / float(self.weight @ self.rate)
        # So many draws may be at most as large as a p-value that is below one minus the level after adjustment.
        below = int(np.ceil((1 - level) * (1 + len(self.least)) - 1e-9)) - 1
        together = self.least[below - 1] if 1 <= below <= len(self.least) else 0.0
        return np.minimum(self.weight * max(alone, float(together)), 1 - level)


def joint(covariance: FloatArray, weight: FloatArray | None = None, side: FloatArray | None = None) -> Joint:
    """Return the joint distribution of tests whose estimates have normal errors with covariances (k, k).

    Estimates that do not vary do not count. Tests are two-sided; those of a `side` (k,) of -1 or 1 reject only on this
    side, at the same two-sided p-value.
    """
    known = np.diag(covariance) > 0
    one_sided = np.zeros(len(known)) if side is None else np.asarray(side, np.float64)
    weights = np.where(known, 1.0 if weight is None else weight, 0.0)
    root = _root(covariance)[known] / np.sqrt(np.diag(covariance)[known])[:, None]
    draws = _independent_draws(covariance[np.ix_(known, known)], one_sided[known], weights[known])
    least = _least_p(root, draws, weights[known], one_sided[known])
    return Joint(least, weights, np.where(one_sided == 0, 1.0, 0.5))


def _root(covariance: FloatArray) -> FloatArray:
    """Return a matrix (k, m) that gives m independent normal numbers covariances (k, k); m numbers vary.

    It is the symmetric root of the correlations, which does not depend on the signs of eigenvectors, times the
    standard errors.
    """
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    known, found = error > 0, np.zeros((len(error), np.count_nonzero(error > 0)))
    scale = error[known]
    values, vectors = np.linalg.eigh(covariance[np.ix_(known, known)] / np.outer(scale, scale))
    # Roots of eigenvalues near 0 are rounding errors.
    root = (vectors * np.sqrt(np.where(values > 1e-10, values, 0.0))) @ vectors.T
    found[known] = root * scale[:, None]
    return found


def _independent_draws(covariance: FloatArray, *more: FloatArray) -> FloatArray:
    """Return (k, draws) independent normal numbers, always the same, for estimates with covariances (k, k).

    Each estimate has the same ones in whatever order the estimates are given, such as that of groups with other names:
    that of `more` (k,) about them, their variances, and their correlations with the others.
    """
    error = np.sqrt(np.diag(covariance))
    correlated = np.abs(covariance / np.outer(error, error)).sum(axis=0)
    # Numbers that differ by rounding errors are equal.
    order = np.lexsort(
        [np.array([float(f"{each:.9g}") for each in key]) for key in (correlated, error, *more)]
    )
    return _draws(len(error), _DRAWS)[np.argsort(order)]


@lru_cache(maxsize=8)
def _draws(k: int, n: int) -> FloatArray:
    """Return (k, n) independent normal numbers, always the same."""
    return np.ascontiguousarray(np.random.default_rng(0).standard_normal((n, k)).T)


def _least_p(
    root: FloatArray, draws: FloatArray, weight: FloatArray, one_sided: FloatArray | None = None
) -> FloatArray:
    """Return the smallest two-sided p-value over its weight (k,) of `root` (k, m) times draws (m, d), in order.

    Tests that are `one_sided` (k,), -1 or 1, reject only on this side.
    """
    side, least = np.zeros(len(weight)) if one_sided is None else one_sided, np.full(draws.shape[1], np.inf)
    some = np.flatnonzero(side)
    for part in batches(len(least), _TOGETHER):
        z = root @ draws[:, part]
        z[some] = np.maximum(side[some, None] * z[some], 0.0)
        np.abs(z, out=z)
        for each in np.unique(weight[weight > 0]):
            rows = weight == each
            largest = (z if rows.all() else z[rows]).max(axis=0)
            np.minimum(least[part], 2 * ndtr(-largest) / each, out=least[part])
    return np.sort(least)


def _interval(each: Estimate, error: float, reach: float, level: float) -> Interval:
    """Return the interval of an estimate, `reach` to both sides of its value, made on the scale of the estimate."""
    v = each.value - each.moved
    if not np.isfinite(reach):
        return Interval(each.value, np.nan, np.nan, level)
    if each.scale == "logit":
        if not 0 < v < 1:
            return Interval(each.value, np.nan, np.nan, level, error)
        low, high = expit(logit(v) - reach / (v * (1 - v))), expit(logit(v) + reach / (v * (1 - v)))
    elif each.scale == "log":
        if not v > 0:
            return Interval(each.value, np.nan, np.nan, level, error)
        with np.errstate(over="ignore"):
            low, high = v * np.exp(-reach / v), v * np.exp(reach / v)
    else:
        low, high = v - reach, v + reach
    return Interval(each.value, float(low) + each.moved, float(high) + each.moved, level, error)


def _quantile(alpha: FloatArray | float, freedom: FloatArray | float) -> FloatArray:
    """Return what a t statistic exceeds on either side with the probability alpha; NaN without freedom."""
    known = np.isfinite(freedom)
    of_t = stdtrit(np.where(known, freedom, 1.0), np.asarray(alpha) / 2)
    return np.asarray(
        np.where(np.isposinf(freedom), -ndtri(np.asarray(alpha) / 2), np.where(known, -of_t, np.nan))
    )


def _p(statistic: FloatArray, freedom: FloatArray) -> FloatArray:
    """Return two-sided p-values of statistics with t distributions; NaN without a standard error."""
    return np.asarray(2 * stdtr(freedom, -statistic), np.float64)


def _padded(parts: Sequence[FloatArray]) -> list[FloatArray]:
    """Return arrays of equal length, with zeros at the end of the shorter ones."""
    longest = max(map(len, parts), default=0)
    if all(len(part) == longest for part in parts):
        return list(parts)
    return [np.pad(part, (0, longest - len(part))) for part in parts]
