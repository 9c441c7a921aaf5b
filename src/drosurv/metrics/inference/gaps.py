"""Differences between groups and between models: intervals, bootstrap and permutation tests, multiple testing."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, TypeVar

import numpy as np

from drosurv.errors import as_whole, require
from drosurv.groups import Groups, ratio_by_group
from drosurv.metrics.inference.intervals import (
    Draws,
    Interval,
    Resample,
    Statistic,
    bootstrap,
    in_parallel,
    interval_of,
    no_difference_p_value,
    replicate_rng,
    seed_sequence,
)
from drosurv.target import FloatArray, IntArray


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's method, which controls the family-wise error rate; NaN stays NaN and does not count."""
    adjusted = list(p_values)
    known = sorted((p, index) for index, p in enumerate(p_values) if not isnan(p))
    largest = 0.0
    for rank, (p, index) in enumerate(known):
        largest = min(max(largest, p * (len(known) - rank)), 1.0)
        adjusted[index] = largest
    return adjusted


def shared_level(level: float, n_tests: float) -> float:
    """Level of each of `n_tests` intervals whose simultaneous coverage is `level` (Bonferroni)."""
    return 1 - (1 - level) / max(n_tests, 1)


def adjusted_p(p: float, n_tests: int) -> float:
    """Return a p-value adjusted for `n_tests` tests (Bonferroni), as intervals of `shared_level` are; NaN stays NaN."""
    return p if isnan(p) else min(p * max(n_tests, 1), 1.0)


Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Gap(Interval):
    """A gap between groups, with interval and p-value adjusted for all gaps of its family.

    `test` is "permutation", "bootstrap", or "" if the gap was not tested.
    """

    test: str = ""


def judge_gaps(
    gaps: Mapping[Key, Draws], *, level: float = 0.95, p_values: Mapping[Key, float] | None = None
) -> dict[Key, Gap]:
    """Intervals and tests of a family of gaps: those of one metric over several attributes.

    `p_values` are those of permutation tests; gaps without one are tested by the bootstrap. If the test does not
    reject, the lower end of the interval is 0, so that test and interval agree.
    """
    permuted = {} if p_values is None else p_values
    raw = {key: permuted.get(key, gap.p) for key, gap in gaps.items()}
    n_tests = int(np.count_nonzero(~np.isnan([*raw.values()])))
    found = {}
    for key, gap in gaps.items():
        interval, p = gap.interval(shared_level(level, n_tests)), adjusted_p(raw[key], n_tests)
        low = 0.0 if interval.low > 0 and p >= 1 - level else interval.low
        test = "" if np.isnan(p) else "permutation" if key in permuted else "bootstrap"
        found[key] = Gap(**vars(replace(interval, low=low, p=p, level=level)), test=test)
    return found


def largest_gap(values: FloatArray) -> FloatArray:
    """Largest difference along the last axis, (..., k) -> (...), ignoring NaN; NaN for fewer than two values."""
    # fmax and fmin ignore NaN.
    spread = np.fmax.reduce(values, axis=-1) - np.fmin.reduce(values, axis=-1)
    enough = np.count_nonzero(~np.isnan(values), axis=-1) >= 2
    return np.where(enough, spread, np.nan)


def largest_difference(estimate: FloatArray, draws: FloatArray, largest: float = np.inf) -> Draws:
    """Largest difference between two of k groups, from their values (k,) and replicates (replicates, k)."""
    # The error of a difference is the difference of two groups' errors, so the largest is the range of all errors.
    return Draws(
        float(largest_gap(estimate)),
        largest_gap(draws),
        lowest=0.0,
        highest=largest,
        largest_errors=largest_gap(draws - estimate),
    )


def largest_deviation(
    estimate: FloatArray, centre: float, draws: FloatArray, centre_draws: FloatArray
) -> Draws:
    """Largest distance of k groups' values from a common centre; shapes as in `largest_difference`."""
    deviation, drawn = estimate - centre, draws - centre_draws[:, None]
    # fmax ignores NaN.
    largest, all_largest, errors = (
        np.fmax.reduce(np.abs(values), axis=-1, initial=np.nan)
        for values in (deviation, drawn, drawn - deviation)
    )
    return Draws(float(largest), all_largest, lowest=0.0, largest_errors=errors)


@dataclass(frozen=True)
class PairedComparison:
    """Difference of two models on the same patients, first minus second, with a two-sided bootstrap test."""

    first: float
    second: float
    difference: Interval
    p: float


def paired_comparison(
    first: Statistic,
    second: Statistic,
    n: int,
    *,
    level: float = 0.95,
    resample: Resample = "weights",
    replicates: int = 1000,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> PairedComparison:
    """Difference of two models' values on the same patients, with an interval and a test.

    Both statistics are computed on the same replicates, so that the difference varies less than either. The p-value is
    the share of replicates whose difference is further from the estimate than the estimate is from 0.

    Parameters
    ----------
    first, second : callable
        Statistic of either model, as in :func:`bootstrap`.
    n : int
        Number of patients.
    level : float
        Nominal coverage of the difference's interval.
    resample, replicates, random_state, n_jobs
        As in :func:`bootstrap`.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv import Surv
    >>> from drosurv.metrics import concordance_index
    >>> rng = np.random.default_rng(0)
    >>> good, bad = rng.normal(size=(2, 200))
    >>> y = Surv.from_arrays(rng.random(200) < 0.7, rng.exponential(np.exp(-good)))
    >>> found = paired_comparison(
    ...     lambda w: concordance_index(y, good, w),
    ...     lambda w: concordance_index(y, bad, w),
    ...     n=200,
    ...     random_state=0,
    ... )
    >>> found.p < 0.01
    True
    """

    def both(drawn: FloatArray | IntArray) -> list[float]:
        return [float(first(drawn)), float(second(drawn))]

    draws = bootstrap(
        both, n, resample=resample, replicates=replicates, random_state=random_state, n_jobs=n_jobs
    )
    of_first, of_second = map(Draws, draws.estimate.tolist(), draws.draws.T)
    return compare_draws(of_first, of_second, level)


def compare_draws(first: Draws, second: Draws, level: float) -> PairedComparison:
    """Compare two numbers from their values on the same replicates."""
    estimate, draws = first.estimate - second.estimate, first.draws - second.draws
    p = no_difference_p_value(estimate, np.abs(draws - estimate))
    difference = interval_of(estimate, draws, level)
    return PairedComparison(first.estimate, second.estimate, difference, p)


@dataclass(frozen=True)
class PermutationTest:
    """The largest difference between two groups, or that in standard errors (`statistic`), and its p-value.

    The p-value is the share of random permutations of the labels whose statistic is at least as large. The observed
    labels count as one permutation; permutations with an undefined statistic do not count.
    """

    statistic: float
    p: float
    permutations: int


def permutation_test(
    statistic: Callable[[Groups], float],
    groups: Groups,
    *,
    permutations: int = 999,
    random_state: Any = None,
    n_jobs: int | None = None,
    of_sample: tuple[Callable[[Groups], float], int] | None = None,
) -> PermutationTest:
    """Test a gap between groups by random permutations of the labels.

    The null hypothesis is that the labels are exchangeable.

    Parameters
    ----------
    statistic : callable
        Takes groups, returns the gap between them.
    groups : Groups
        The groups of all patients (see :func:`~drosurv.groups.parse_groups`).
    permutations : int
        Number of random permutations of the labels.
    random_state : int, Generator or None
        Seed of the permutations.
    n_jobs : int, optional
        Number of threads; by default one per processor core, or a single one for few patients. The result does not
        depend on it.
    of_sample : pair of callable and int, optional
        The statistic of a random sample of very many patients, and its size: permuted labels are those of the sample.
        Only for a statistic in standard errors, whose distribution hardly depends on the number of patients.

    Returns
    -------
    PermutationTest
        The p-value is NaN if the statistic of the observed groups is undefined.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv.groups import parse_groups
    >>> values = np.arange(20.0)
    >>> def gap_of_means(groups):
    ...     means = groups.sums(values) / groups.sizes
    ...     return abs(means[0] - means[1])
    >>> permutation_test(gap_of_means, parse_groups(values > 9), random_state=0).p
    0.001
    """
    require(as_whole(permutations) >= 1, "permutations", "be a whole number, at least 1", permutations)
    observed, seed = float(statistic(groups)), seed_sequence(random_state)
    if np.isnan(observed):
        return PermutationTest(observed, float("nan"), permutations)

    permuted_statistic, size = (statistic, len(groups.codes)) if of_sample is None else of_sample

    def permute(k: int) -> float:
        rng, n = replicate_rng(seed, k), len(groups.codes)
        # To draw a few of very many labels is faster than to permute all.
        codes = (
            rng.permutation(groups.codes) if size == n else groups.codes[rng.choice(n, size, replace=False)]
        )
        return permuted_statistic(Groups(codes, groups.labels, groups.name))

    found = in_parallel(permute, permutations, n_jobs, size)
    permuted: FloatArray = np.fromiter(found, float, permutations)
    known = permuted[~np.isnan(permuted)]
    # Sums in another order may differ by rounding from a value that they equal.
    at_least = 1 + int((known >= observed - 1e-12 * abs(observed)).sum())
    return PermutationTest(observed, at_least / (1 + len(known)), permutations)


def studentized_ratio(numerator: FloatArray, denominator: FloatArray | float) -> Callable[[Groups], float]:
    """Largest difference between groups of a ratio of sums of per-patient values (n,), in standard errors."""
    below = np.broadcast_to(np.asarray(denominator, dtype=np.float64), numerator.shape)

    def statistic(groups: Groups) -> float:
        values = ratio_by_group(groups, numerator, below)
        with np.errstate(invalid="ignore"):
            influence = (numerator - values[groups.codes] * below) / groups.sums(below)[groups.codes]
        return in_standard_errors(values, np.diag(groups.sums(influence**2)))

    return statistic


def ratio_spread(numerator: FloatArray, denominator: FloatArray | float) -> float:
    """Standard error of a ratio of sums of per-patient values (n,), times the root of n."""
    below = np.broadcast_to(np.asarray(denominator, dtype=np.float64), numerator.shape)
    residual = numerator - numerator.sum() / below.sum() * below
    return float(np.sqrt((residual**2).mean()) / below.mean())


def in_standard_errors(values: FloatArray, covariance: FloatArray) -> float:
    """Largest difference of groups' values (k,) in standard errors, from their covariance (k, k); NaN if undefined."""
    variances = np.diag(covariance)
    difference = np.abs(values[:, None] - values[None, :])
    variance = variances[:, None] + variances[None, :] - 2 * covariance
    # A group differs from itself by 0, with a variance of 0.
    usable = np.isfinite(difference) & (variance > 0)
    return float((difference[usable] / np.sqrt(variance[usable])).max()) if usable.any() else float("nan")
