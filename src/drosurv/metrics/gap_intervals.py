"""Bootstrap intervals for groups and for the gaps between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from drosurv.metrics.extremes import largest_difference
from drosurv.metrics.groups import Groups, Missing, parse_grouped, parse_groups
from drosurv.metrics.imparity import ratio_by_group, warn_of_groups_without_pairs
from drosurv.metrics.intervals import Interval, Method, Replicates, bootstrap
from drosurv.metrics.pair_order import PairOrder
from drosurv.target import FloatArray


@dataclass(frozen=True)
class GapIntervals:
    """Intervals of a metric's value in every group and of the gaps between them.

    Parameters
    ----------
    gap : Interval
        The largest difference between two groups.
    by_group : dict
        Label to the interval of the group's own value.
    differences : dict
        Pair of labels (a, b) to the interval of the value of a less that of b.
    """

    gap: Interval
    by_group: dict[Any, Interval]
    differences: dict[tuple[Any, Any], Interval]


def gap_intervals(
    draws: Replicates, labels: Sequence[Any], *, level: float = 0.95, method: Method = "percentile"
) -> GapIntervals:
    r"""Intervals for groups and gaps, from replicates with one value per group.

    The largest gap over groups is biased upward, in replicates even more, so its interval is not taken from
    its own quantiles. With :math:`d_{ab}` the difference of two groups and c the `level` quantile, over
    replicates, of :math:`\max_{ab} |d^*_{ab} - d_{ab}|`, every true difference lies within c of its estimate
    at once, and so does the largest: the interval is gap - c to gap + c, cut at 0.

    Parameters
    ----------
    draws : Replicates
        With k = number of groups.
    labels : sequence
        The groups' labels.
    level : float
        Nominal coverage.
    method : "percentile" or "basic"
        For the intervals of groups and of differences.

    Returns
    -------
    GapIntervals

    Examples
    --------
    >>> import numpy as np
    >>> draws = Replicates(np.array([0.7, 0.5]), np.array([[0.72, 0.49], [0.69, 0.52], [0.7, 0.5]]))
    >>> round(gap_intervals(draws, ["a", "b"]).differences["a", "b"].estimate, 3)
    0.2
    """
    if len(labels) != len(draws.estimate):
        raise ValueError(
            f"labels names {len(labels)} groups, the replicates hold {len(draws.estimate)} values."
        )
    return GapIntervals(
        gap=largest_difference(draws.estimate, draws.draws).interval(level),
        by_group={label: draws.interval(k, level=level, method=method) for k, label in enumerate(labels)},
        differences={
            (labels[a], labels[b]): draws.difference(a, b, level=level, method=method)
            for a, b in combinations(range(len(labels)), 2)
        },
    )


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
        As in :func:`bootstrap`.

    Returns
    -------
    GapIntervals

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
        counts = order.imparity_counts(weight)
        return ratio_by_group(parsed, counts.numerator, counts.denominator)

    draws = bootstrap(
        fractions, len(scored), replicates=replicates, random_state=random_state, threads=threads
    )
    warn_of_groups_without_pairs(parsed, draws.estimate)
    return gap_intervals(draws, parsed.labels, level=level)


def ratio_intervals(
    numerator: Any,
    denominator: Any,
    groups: Any,
    *,
    level: float = 0.95,
    replicates: int = 1000,
    missing: Missing = "group",
    random_state: Any = None,
    threads: int | None = None,
) -> GapIntervals:
    r"""Bootstrap intervals of a ratio of sums in every group, such as a mean of per-patient values.

    .. math:: v(a) = \frac{\sum_{i: A_i = a} w_i p_i}{\sum_{i: A_i = a} w_i q_i}

    For a mean pass ``denominator=1``: likelihood gains, Brier contributions. For Brier skill pass
    ``null - model`` and ``null``.

    Parameters
    ----------
    numerator : (n,) array
        The p of each patient.
    denominator : (n,) array or float
        The q of each patient.
    groups : (n,) labels, or (n, J) for intersections
        Group of each patient; one group only is allowed here, and has no gap.
    level : float
        Nominal coverage.
    missing : "group" or "drop"
        Patients without a label: a group of their own, or left out altogether.
    replicates, random_state, threads
        As in :func:`bootstrap`.

    Returns
    -------
    GapIntervals

    Examples
    --------
    >>> found = ratio_intervals([0.1, 0.3, -0.2, -0.4], 1.0, ["a", "a", "b", "b"], random_state=0)
    >>> {label: round(interval.estimate, 4) for label, interval in found.by_group.items()}
    {'a': 0.2, 'b': -0.3}
    """
    above = np.asarray(numerator, dtype=np.float64)
    below = np.broadcast_to(np.asarray(denominator, dtype=np.float64), above.shape)
    parsed = parse_groups(groups, len(above), missing=missing, at_least=1)
    kept = parsed.kept
    above, below, parsed = above[kept], below[kept], Groups(parsed.codes[kept], parsed.labels, parsed.name)
    draws = bootstrap(
        lambda weight: ratio_by_group(parsed, weight * above, weight * below),
        len(above),
        replicates=replicates,
        random_state=random_state,
        threads=threads,
    )
    return gap_intervals(draws, parsed.labels, level=level)
