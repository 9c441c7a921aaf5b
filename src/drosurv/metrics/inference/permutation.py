"""Permutation tests that a gap between groups is zero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from drosurv.errors import as_whole, require
from drosurv.groups import Groups, ratio_by_group
from drosurv.metrics.inference.resampling import in_parallel, replicate_rng, seed_sequence
from drosurv.target import FloatArray


@dataclass(frozen=True)
class PermutationTest:
    """The largest difference between two groups, and its p-value by random permutations of the labels.

    Their statistic is the gap itself, or the largest difference in standard errors. The p-value is the share of
    permutations with at least that of the groups, the identity counted among them and those without a value left out.
    """

    gap: float
    statistic: float
    p_value: float
    permutations: int


def permutation_test(
    statistic: Callable[[Groups], float],
    groups: Groups,
    *,
    permutations: int = 999,
    random_state: Any = None,
    threads: int | None = None,
) -> PermutationTest:
    """Test a gap between groups by random permutations of the labels.

    It tests that labels are exchangeable: that the groups do not differ in any way the statistic sees.

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
    threads : int, optional
        Permutations computed at once; by default one per processor core, one alone for few patients. The result does
        not depend on it.

    Returns
    -------
    PermutationTest
        NaN p-value if the statistic is undefined on the groups themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv.groups import parse_groups
    >>> values = np.arange(20.0)
    >>> def gap_of_means(groups):
    ...     means = groups.sums(values) / groups.sizes
    ...     return abs(means[0] - means[1])
    >>> permutation_test(gap_of_means, parse_groups(values > 9), random_state=0).p_value
    0.001
    """
    require(as_whole(permutations) >= 1, "permutations", "be a whole number, at least 1", permutations)
    observed, streams = float(statistic(groups)), seed_sequence(random_state)
    if np.isnan(observed):
        return PermutationTest(observed, observed, float("nan"), permutations)

    def permute(k: int) -> float:
        codes = replicate_rng(streams, k).permutation(groups.codes)
        return statistic(Groups(codes, groups.labels, groups.name))

    found = in_parallel(permute, permutations, threads, len(groups.codes))
    permuted: FloatArray = np.fromiter(found, float, permutations)
    known = permuted[~np.isnan(permuted)]
    # Sums taken in another order may differ in the last digits from the value they equal.
    at_least = 1 + int((known >= observed - 1e-12 * abs(observed)).sum())
    return PermutationTest(observed, observed, at_least / (1 + len(known)), permutations)


def studentized_ratio(numerator: FloatArray, denominator: FloatArray | float) -> Callable[[Groups], float]:
    """Statistic of a ratio of sums in every group, such as a mean of per-patient values (n,)."""
    below = np.broadcast_to(np.asarray(denominator, dtype=np.float64), numerator.shape)

    def statistic(groups: Groups) -> float:
        values = ratio_by_group(groups, numerator, below)
        with np.errstate(invalid="ignore"):
            influence = (numerator - values[groups.codes] * below) / groups.sums(below)[groups.codes]
        return in_standard_errors(values, np.diag(groups.sums(influence**2)))

    return statistic


def in_standard_errors(values: FloatArray, covariance: FloatArray) -> float:
    """Largest difference of groups' values (k,) in its standard errors, from (k, k) moments; NaN if there is none."""
    variances = np.diag(covariance)
    difference = np.abs(values[:, None] - values[None, :])
    variance = variances[:, None] + variances[None, :] - 2 * covariance
    # A group differs from itself by 0, with a variance of 0.
    usable = np.isfinite(difference) & (variance > 0)
    return float((difference[usable] / np.sqrt(variance[usable])).max()) if usable.any() else float("nan")
