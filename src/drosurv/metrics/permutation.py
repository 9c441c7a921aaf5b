"""Permutation tests that a gap between groups is zero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from drosurv.metrics.groups import Groups, Missing, parse_grouped
from drosurv.metrics.imparity import largest_gap, ratio_by_group, warn_of_groups_without_pairs
from drosurv.metrics.imparity_influence import ImparityInfluence
from drosurv.metrics.pair_order import PairOrder
from drosurv.metrics.resampling import in_threads, replicate_rng, seed_sequence
from drosurv.target import FloatArray


@dataclass(frozen=True)
class PermutationTest:
    """Result of a permutation test.

    Parameters
    ----------
    gap : float
        The largest difference between two groups.
    statistic : float
        What was compared with its permutations: the gap, or the largest difference in standard errors.
    p_value : float
        Share of label permutations with at least the statistic, the identity counted among them and those
        without a value left out.
    permutations : int
        Number of random permutations.
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
    """Compare a gap between groups with what random labels would give.

    It tests that labels are exchangeable: that the groups do not differ in any way the statistic sees.

    Parameters
    ----------
    statistic : callable
        Takes groups, returns the gap between them.
    groups : Groups
        The groups of all patients (see :func:`~drosurv.metrics.parse_groups`).
    permutations : int
        Number of random permutations of the labels.
    random_state : int, Generator or None
        Seed of the permutations.
    threads : int, optional
        Permutations computed at once; by default one per processor core. The result does not depend on it.

    Returns
    -------
    PermutationTest
        NaN p-value if the statistic is undefined on the groups themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv.metrics import parse_groups
    >>> values = np.arange(20.0)
    >>> def gap_of_means(groups):
    ...     means = groups.sums(values) / groups.sizes
    ...     return abs(means[0] - means[1])
    >>> permutation_test(gap_of_means, parse_groups(values > 9), random_state=0).p_value
    0.001
    """
    observed = float(statistic(groups))
    p_value = _share_at_least(statistic, observed, groups, permutations, random_state, threads)
    return PermutationTest(observed, observed, p_value, permutations)


def concordance_imparity_test(
    y: Any,
    risk: Any,
    groups: Any,
    *,
    studentized: bool = True,
    permutations: int = 999,
    missing: Missing = "group",
    random_state: Any = None,
    threads: int | None = None,
) -> PermutationTest:
    """Test that all groups have the same concordance fraction.

    Parameters
    ----------
    y, risk, groups, missing
        As in :func:`~drosurv.metrics.concordance_imparity`.
    studentized : bool
        Whether each difference is divided by its standard error, on the data and in every permutation.
        Groups such as the young and the old differ in much besides their concordance; with the standard
        error the test is then still right for large samples, without it the test is of exchangeable groups
        only (and faster).
    permutations, random_state, threads
        As in :func:`permutation_test`.

    Returns
    -------
    PermutationTest

    References
    ----------
    Chung, Romano (2013), Exact and asymptotically robust permutation tests, Annals of Statistics 41.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv import Surv
    >>> rng = np.random.default_rng(0)
    >>> y = Surv.from_arrays(rng.random(200) < 0.7, rng.exponential(size=200))
    >>> test = concordance_imparity_test(y, rng.normal(size=200), rng.integers(2, size=200), random_state=0)
    >>> test.p_value > 0.05
    True
    """
    scored, parsed = parse_grouped(y, risk, groups, missing=missing)
    order = PairOrder.for_imparity(scored.target, scored.risk)
    counts = order.imparity_counts(scored.weight)

    def gap(groups: Groups) -> float:
        return float(largest_gap(ratio_by_group(groups, counts.numerator, counts.denominator)))

    def in_standard_errors(groups: Groups) -> float:
        return ImparityInfluence.of(order, counts, groups).largest_studentized_difference()

    statistic = in_standard_errors if studentized else gap
    observed = statistic(parsed)
    warn_of_groups_without_pairs(parsed, ratio_by_group(parsed, counts.numerator, counts.denominator))
    p_value = _share_at_least(statistic, observed, parsed, permutations, random_state, threads)
    return PermutationTest(gap(parsed), observed, p_value, permutations)


def _share_at_least(
    statistic: Callable[[Groups], float],
    observed: float,
    groups: Groups,
    permutations: int,
    random_state: Any,
    threads: int | None,
) -> float:
    if permutations < 1:
        raise ValueError(f"permutations must be at least 1, got {permutations}.")
    if np.isnan(observed):
        return float("nan")
    streams = seed_sequence(random_state)
    permuted: FloatArray = np.empty(permutations)

    def permute(k: int) -> None:
        codes = replicate_rng(streams, k).permutation(groups.codes)
        permuted[k] = statistic(Groups(codes, groups.labels, groups.name))

    in_threads(permute, permutations, threads)
    known = permuted[~np.isnan(permuted)]
    # Sums taken in another order may differ in the last digits from the value they equal.
    return (1 + int((known >= observed - 1e-12 * abs(observed)).sum())) / (1 + len(known))
