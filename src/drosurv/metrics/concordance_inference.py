"""How sure differences of concordance between groups are: standard errors, intervals and tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from drosurv.groups import Groups, Missing, ratio_by_group
from drosurv.metrics.imparity import warn_of_groups_without_pairs
from drosurv.metrics.inference.bootstrap import bootstrap
from drosurv.metrics.inference.gaps import GapIntervals, gap_intervals, largest_gap
from drosurv.metrics.inference.permutation import PermutationTest, in_standard_errors, permutation_test
from drosurv.metrics.pair_order import PairCounts, PairOrder
from drosurv.metrics.scores import parse_grouped
from drosurv.target import FloatArray


def imparity_influence(order: PairOrder, counts: PairCounts, groups: Groups) -> tuple[FloatArray, FloatArray]:
    r"""Concordance fractions of groups (k,) and their derivatives in every patient's weight (n, k).

    A patient moves CF(a) as a member of a and as the partner of a's members:

    .. math:: \psi_k(a) = \frac{1[A_k = a] (N_k - CF(a) D_k) + N_k^a - CF(a) D_k^a}{D(a)}

    with :math:`N_k^a, D_k^a` the counts of k against members of a only, from the counts of unit weights against
    everybody. The sum over patients of the square of :math:`\psi_k(a) - \psi_k(b)` estimates the variance of
    CF(a) - CF(b). Fractions are NaN without a comparable pair.
    """
    fractions = ratio_by_group(groups, *counts)
    totals = groups.sums(counts.denominator)
    influence = np.empty((len(groups.codes), len(groups)))
    ones = np.ones(len(groups.codes))
    for k in range(len(groups)):
        member = (groups.codes == k).astype(np.float64)
        against = order.counts(ones, partner_weight=member)
        own = member * (counts.numerator - fractions[k] * counts.denominator)
        with np.errstate(invalid="ignore", divide="ignore"):
            influence[:, k] = (own + against.numerator - fractions[k] * against.denominator) / totals[k]
    return fractions, influence


def concordance_fraction_errors(
    y: Any, risk: Any, groups: Any, *, missing: Missing = "group"
) -> dict[Any, float]:
    """Standard error of every group's concordance fraction, by the infinitesimal jackknife.

    Parameters as in :func:`~drosurv.metrics.concordance_fractions`.

    Returns
    -------
    dict
        Label to standard error; NaN, with a warning that names it, for a group without a comparable pair.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0])
    >>> errors = concordance_fraction_errors(y, [4.0, 1.0, 3.0, 2.0], ["a", "b", "a", "b"])
    >>> sorted(errors)
    ['a', 'b']
    """
    scored, parsed = parse_grouped(y, risk, groups, missing=missing)
    order = PairOrder.for_imparity(scored.target, scored.risk)
    fractions, influence = imparity_influence(order, order.counts(scored.weight), parsed)
    warn_of_groups_without_pairs(parsed, fractions)
    errors = np.sqrt((influence**2).sum(axis=0))
    return dict(zip(parsed.labels, errors.tolist(), strict=True))


def concordance_imparity_intervals(
    y: Any,
    risk: Any,
    groups: Any,
    *,
    level: float = 0.95,
    replicates: int = 1000,
    missing: Missing = "group",
    random_state: Any = None,
    threads: int | None = None,
) -> GapIntervals:
    """Bootstrap intervals of concordance imparity and of every group's concordance fraction.

    Every replicate reruns the O(n log n) sweep with the drawn weights, because both patients of a pair are
    drawn; resampling the per-patient counts instead would give half the true standard error in places.

    Parameters
    ----------
    y, risk, groups, missing
        As in :func:`~drosurv.metrics.concordance_imparity`.
    level : float
        Nominal coverage.
    replicates, random_state, threads
        As in :func:`~drosurv.metrics.bootstrap`.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv import Surv
    >>> rng = np.random.default_rng(0)
    >>> y = Surv.from_arrays(rng.random(200) < 0.7, rng.exponential(size=200))
    >>> sex = np.array(["f", "m"])[rng.integers(2, size=200)]
    >>> found = concordance_imparity_intervals(y, rng.normal(size=200), sex, replicates=200, random_state=0)
    >>> found.gap.low, sorted(found.by_group)
    (0.0, ['f', 'm'])
    """
    scored, parsed = parse_grouped(y, risk, groups, missing=missing)
    order = PairOrder.for_imparity(scored.target, scored.risk)

    def fractions(weight: FloatArray) -> FloatArray:
        return ratio_by_group(parsed, *order.counts(weight))

    draws = bootstrap(
        fractions, len(scored), replicates=replicates, random_state=random_state, threads=threads
    )
    warn_of_groups_without_pairs(parsed, draws.estimate)
    return gap_intervals(draws, parsed.labels, level=level, largest=1.0)


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
        As in :func:`~drosurv.metrics.permutation_test`.

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
    counts = order.counts(scored.weight)

    def gap(groups: Groups) -> float:
        return float(largest_gap(ratio_by_group(groups, *counts)))

    statistic = studentized_imparity(order) if studentized else gap
    warn_of_groups_without_pairs(parsed, ratio_by_group(parsed, *counts))
    found = permutation_test(
        statistic, parsed, permutations=permutations, random_state=random_state, threads=threads
    )
    return replace(found, gap=gap(parsed))


def studentized_imparity(order: PairOrder) -> Callable[[Groups], float]:
    """Statistic of the groups' concordance fractions against everybody, from the order for imparity."""
    counts = order.counts(np.ones(len(order.rows)))

    def statistic(groups: Groups) -> float:
        fractions, influence = imparity_influence(order, counts, groups)
        return in_standard_errors(fractions, influence.T @ influence)

    return statistic


def studentized_concordance(order: PairOrder) -> Callable[[Groups], float]:
    """Statistic of the groups' own c-indices, from the order for Harrell's pairs."""

    def statistic(groups: Groups) -> float:
        values, variances = np.full((2, len(groups)), np.nan)
        for k in range(len(groups)):
            counts = order.counts((groups.codes == k).astype(np.float64))
            # Every pair is counted for both its patients.
            pairs = counts.denominator.sum() / 2
            if pairs > 0:
                values[k] = counts.numerator.sum() / 2 / pairs
                influence = (counts.numerator - values[k] * counts.denominator) / pairs
                variances[k] = influence @ influence
        return in_standard_errors(values, np.diag(variances))

    return statistic
