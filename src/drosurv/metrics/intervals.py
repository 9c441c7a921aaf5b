"""Bootstrap intervals for any metric and for gaps between groups.

Patients are drawn with replacement. A replicate is one vector of whole-number weights (how often each patient
was drawn), or the drawn rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from drosurv.metrics.groups import Groups, Missing, parse_grouped, parse_groups
from drosurv.metrics.imparity import largest_gap, ratio_by_group
from drosurv.metrics.pair_order import PairOrder
from drosurv.metrics.resampling import in_threads, replicate_rng, seed_sequence
from drosurv.target import FloatArray

Statistic = Callable[[Any], Any]
Method = Literal["percentile", "basic"]
Resample = Literal["weights", "rows"]


@dataclass(frozen=True)
class Interval:
    """A value with its bootstrap interval.

    Parameters
    ----------
    estimate : float
        The value on the patients themselves.
    low, high : float
        Ends of the interval.
    level : float
        Its nominal coverage.
    standard_error : float
        Standard deviation of the replicates.
    replicates : int
        Number of replicates drawn.
    undefined : int
        How many of them had no value (NaN) and were left out.
    """

    estimate: float
    low: float
    high: float
    level: float
    standard_error: float
    replicates: int
    undefined: int = 0


@dataclass(frozen=True, eq=False)
class Replicates:
    """A statistic of k values on the patients and on every bootstrap replicate.

    Parameters
    ----------
    estimate : (k,) float64
        On the patients themselves.
    draws : (replicates, k) float64
        On the replicates; NaN where undefined.
    """

    estimate: FloatArray
    draws: FloatArray

    def interval(self, column: int = 0, *, level: float = 0.95, method: Method = "percentile") -> Interval:
        """Interval of one of the values.

        Parameters
        ----------
        column : int
            Which of the k values.
        level : float
            Nominal coverage.
        method : "percentile" or "basic"
            Quantiles of the replicates, or those quantiles mirrored at the estimate.
        """
        return _interval(float(self.estimate[column]), self.draws[:, column], level, method)

    def difference(
        self, first: int, second: int, *, level: float = 0.95, method: Method = "percentile"
    ) -> Interval:
        """Interval of the difference of two of the values on the same replicates."""
        estimate = float(self.estimate[first] - self.estimate[second])
        return _interval(estimate, self.draws[:, first] - self.draws[:, second], level, method)


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


def bootstrap(
    statistic: Statistic,
    n: int,
    *,
    resample: Resample = "weights",
    replicates: int = 1000,
    random_state: Any = None,
    threads: int | None = None,
) -> Replicates:
    """Values of a statistic on bootstrap replicates of n patients.

    Parameters
    ----------
    statistic : callable
        Takes patient weights (n,), or drawn rows (n,) if ``resample="rows"``; returns a float or k floats.
    n : int
        Number of patients.
    resample : "weights" or "rows"
        What the statistic takes. Weights are much faster where a metric takes ``sample_weight``.
    replicates : int
        Number of replicates.
    random_state : int, Generator or None
        Seed of the draws.
    threads : int, optional
        Replicates computed at once; by default one per processor core. The result does not depend on it.

    Returns
    -------
    Replicates

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv import Surv
    >>> from drosurv.metrics import concordance_index
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.normal(size=200)
    >>> y = Surv.from_arrays(rng.random(200) < 0.7, rng.exponential(np.exp(-risk)))
    >>> draws = bootstrap(lambda w: concordance_index(y, risk, w), 200, replicates=200, random_state=0)
    >>> interval = draws.interval(level=0.9)
    >>> bool(interval.low < interval.estimate < interval.high)
    True
    """
    if replicates < 2:
        raise ValueError(f"replicates must be at least 2, got {replicates}.")
    if resample not in ("weights", "rows"):
        raise ValueError(f"resample must be 'weights' or 'rows', got {resample!r}.")
    everyone = np.ones(n) if resample == "weights" else np.arange(n)
    estimate = np.atleast_1d(np.asarray(statistic(everyone), dtype=np.float64))
    draws = np.empty((replicates, len(estimate)))
    streams = seed_sequence(random_state)

    def draw(replicate: int) -> None:
        rows = replicate_rng(streams, replicate).integers(n, size=n)
        drawn = np.bincount(rows, minlength=n).astype(np.float64) if resample == "weights" else rows
        draws[replicate] = statistic(drawn)

    in_threads(draw, replicates, threads)
    return Replicates(estimate, draws)


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
    """
    if len(labels) != len(draws.estimate):
        raise ValueError(
            f"labels names {len(labels)} groups, the replicates hold {len(draws.estimate)} values."
        )
    pairs = list(combinations(range(len(labels)), 2))
    first, second = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    estimated = draws.estimate[first] - draws.estimate[second]
    error = np.abs(draws.draws[:, first] - draws.draws[:, second] - estimated)
    reach = np.where(np.isnan(error), -np.inf, error).max(axis=1, initial=-np.inf)
    reach[np.isinf(reach)] = np.nan
    gap = float(largest_gap(draws.estimate))
    spread = _interval(gap, largest_gap(draws.draws), level, method)
    width = float(np.nanquantile(reach, level)) if not np.isnan(reach).all() else np.nan
    return GapIntervals(
        gap=Interval(
            gap,
            max(0.0, gap - width),
            gap + width,
            level,
            spread.standard_error,
            len(reach),
            spread.undefined,
        ),
        by_group={label: draws.interval(k, level=level, method=method) for k, label in enumerate(labels)},
        differences={
            (labels[a], labels[b]): draws.difference(a, b, level=level, method=method) for a, b in pairs
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


def _interval(estimate: float, draws: FloatArray, level: float, method: Method) -> Interval:
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}.")
    if method not in ("percentile", "basic"):
        raise ValueError(f"method must be 'percentile' or 'basic', got {method!r}.")
    defined = draws[~np.isnan(draws)]
    undefined = len(draws) - len(defined)
    if len(defined) < 2 or np.isnan(estimate):
        nan = float("nan")
        return Interval(estimate, nan, nan, level, nan, len(draws), undefined)
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2]).tolist()
    if method == "basic":
        low, high = 2 * estimate - high, 2 * estimate - low
    return Interval(estimate, low, high, level, float(defined.std(ddof=1)), len(draws), undefined)
