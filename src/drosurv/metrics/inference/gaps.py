"""Gaps: differences between groups, of which the largest is biased upward, and how sure they are."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

import numpy as np

from drosurv.errors import ArgumentError
from drosurv.groups import Missing, parse_groups, ratio_by_group
from drosurv.metrics.inference.bootstrap import (
    Draws,
    Replicates,
    bootstrap,
    interval_of,
    no_difference_p_value,
)
from drosurv.metrics.inference.interval import Interval
from drosurv.metrics.inference.multiplicity import holm, is_beyond_chance, shared_level
from drosurv.target import FloatArray

Key = TypeVar("Key", bound=Hashable)


class Extreme(NamedTuple):
    r"""A largest difference between groups, NaN if fewer than two have a value, and its replicates.

    The largest difference in each replicate, `draws` (replicates,), is biased upward, so that its quantiles give no
    interval. With :math:`d_{ab}` the difference of two groups, `errors` (replicates,) are
    :math:`\max_{ab} |d^*_{ab} - d_{ab}|`. Every true difference lies within their `level` quantile c of its estimate at
    once, and so does the largest: the interval is gap - c to gap + c, cut at 0 and at the largest difference possible.
    """

    estimate: float
    draws: FloatArray
    errors: FloatArray
    largest: float = np.inf

    def interval(self, level: float) -> Interval:
        """The estimate and what all differences at once lie within of theirs, cut at 0 and at the largest possible."""
        spread = interval_of(self.estimate, self.draws, level).where_replicates_differ()
        if np.isnan(spread.low) or np.isnan(self.errors).all():
            return replace(spread, low=float("nan"), high=float("nan"))
        reach = float(np.nanquantile(self.errors, level))
        low, high = max(0.0, self.estimate - reach), min(self.estimate + reach, self.largest)
        return replace(spread, low=low, high=high)

    @property
    def p_value(self) -> float:
        """Share of replicates that are further from the estimate than no difference is; NaN without any."""
        return no_difference_p_value(self.estimate, self.errors)


#: A number with its replicates: plain, or the largest of several differences.
Number = Draws | Extreme


@dataclass(frozen=True)
class Gap(Interval):
    """A gap between groups and all that is said about how sure it is; by default it was not tested.

    The adjusted p-value and ends hold together with those of all tested gaps of its family, of which there are `looks`;
    the others are of this gap on its own. The test is "permutation", "bootstrap" or, without a p-value, "".
    """

    p_adjusted: float = np.nan
    low_adjusted: float = np.nan
    high_adjusted: float = np.nan
    test: str = ""
    looks: int = 0

    @property
    def beyond_chance(self) -> bool:
        """Whether the gap is more than chance explains, allowing for the family; False if it was not tested."""
        return is_beyond_chance(self.p_adjusted, self.level)


def judge_gaps(
    gaps: Mapping[Key, Extreme], *, level: float = 0.95, p_values: Mapping[Key, float] | None = None
) -> dict[Key, Gap]:
    """Intervals and tests of a family of gaps: those of one metric over several attributes.

    p-values are those of permutation tests; the bootstrap tests gaps without one.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(0).normal(size=(500, 2))
    >>> sex = largest_difference(np.array([0.7, 0.6]), [0.7, 0.6] + 0.02 * noise)
    >>> race = largest_difference(np.array([0.65, 0.64]), [0.65, 0.64] + 0.02 * noise)
    >>> found = judge_gaps({"sex": sex, "race": race})
    >>> found["sex"].beyond_chance, found["race"].beyond_chance, found["race"].low_adjusted
    (True, False, 0.0)
    """
    permuted = {} if p_values is None else p_values
    own = [permuted.get(key, gap.p_value) for key, gap in gaps.items()]
    looks = int(np.count_nonzero(~np.isnan(own)))
    found = {}
    for (key, gap), p_value, adjusted in zip(gaps.items(), own, holm(own), strict=True):
        alone, together = gap.interval(level), gap.interval(shared_level(level, looks))
        test = "permutation" if key in permuted else "bootstrap"
        found[key] = Gap(
            **vars(replace(alone, low=_lower_end(alone.low, p_value, level), p_value=p_value)),
            p_adjusted=adjusted,
            low_adjusted=_lower_end(together.low, adjusted, level),
            high_adjusted=together.high,
            test="" if np.isnan(p_value) else test,
            looks=looks,
        )
    return found


def _lower_end(low: float, p_value: float, level: float) -> float:
    """The lower end of a gap's interval: 0 where the test does not find the gap, so that the two agree."""
    return 0.0 if low > 0 and p_value >= 1 - level else low


def largest_gap(values: FloatArray) -> FloatArray:
    """Largest difference along the last axis among the values that are defined, (..., k) -> (...).

    NaN where fewer than two are.
    """
    # fmax and fmin pass over NaN.
    spread = np.fmax.reduce(values, axis=-1) - np.fmin.reduce(values, axis=-1)
    enough = np.count_nonzero(~np.isnan(values), axis=-1) >= 2
    return np.where(enough, spread, np.nan)


def largest_difference(estimate: FloatArray, draws: FloatArray, largest: float = np.inf) -> Extreme:
    """Largest difference between two of k groups, from their values (k,) and replicates (replicates, k)."""
    # A difference is off by the difference of its two groups' errors: the largest by the range of all errors.
    return Extreme(float(largest_gap(estimate)), largest_gap(draws), largest_gap(draws - estimate), largest)


def largest_deviation(
    estimate: FloatArray, centre: float, draws: FloatArray, centre_draws: FloatArray
) -> Extreme:
    """Largest distance of k groups' values from a common centre; shapes as in `largest_difference`."""
    deviation, drawn = estimate - centre, draws - centre_draws[:, None]
    # fmax passes over NaN.
    largest, all_largest, errors = (
        np.fmax.reduce(np.abs(values), axis=-1, initial=np.nan)
        for values in (deviation, drawn, drawn - deviation)
    )
    return Extreme(float(largest), all_largest, errors)


@dataclass(frozen=True)
class GapIntervals:
    """Intervals of the largest difference between two groups, of each group's value, and of every difference.

    Groups are found by their label, the value of a less that of b by the pair of labels (a, b).
    """

    gap: Interval
    by_group: dict[Any, Interval]
    differences: dict[tuple[Any, Any], Interval]


def gap_intervals(
    draws: Replicates, labels: Sequence[Any], *, level: float = 0.95, largest: float = np.inf
) -> GapIntervals:
    """Intervals for groups and gaps, from replicates with one value for each of the labels.

    The gap's interval is as in `Extreme`, and cut at the largest possible.

    Examples
    --------
    >>> import numpy as np
    >>> draws = Replicates(np.array([0.7, 0.5]), np.array([[0.72, 0.49], [0.69, 0.52], [0.7, 0.5]]))
    >>> round(gap_intervals(draws, ["a", "b"]).differences["a", "b"].estimate, 3)
    0.2
    """
    if len(labels) != len(draws.estimate):
        raise ArgumentError(
            "labels", f"labels names {len(labels)} groups, the replicates hold {len(draws.estimate)} values."
        )
    return GapIntervals(
        gap=largest_difference(draws.estimate, draws.draws, largest).interval(level),
        by_group={label: draws.interval(k, level=level) for k, label in enumerate(labels)},
        differences={
            (labels[a], labels[b]): draws.difference(a, b, level=level)
            for a, b in combinations(range(len(labels)), 2)
        },
    )


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

    with the p (n,) of each patient and the q, (n,) or one number. For a mean pass ``denominator=1``: likelihood gains,
    Brier contributions. For Brier skill pass ``null - model`` and ``null``. Groups are as in
    :func:`~drosurv.metrics.concordance_fractions`, but one alone is allowed, and has no gap; the rest is as in
    :func:`bootstrap`.

    Examples
    --------
    >>> found = ratio_intervals([0.1, 0.3, -0.2, -0.4], 1.0, ["a", "a", "b", "b"], random_state=0)
    >>> {label: round(interval.estimate, 4) for label, interval in found.by_group.items()}
    {'a': 0.2, 'b': -0.3}
    """
    above = np.asarray(numerator, dtype=np.float64)
    below = np.broadcast_to(np.asarray(denominator, dtype=np.float64), above.shape)
    parsed = parse_groups(groups, len(above), missing=missing, at_least=1)
    above, below, parsed = above[parsed.kept], below[parsed.kept], parsed.of_kept()
    draws = bootstrap(
        lambda weight: ratio_by_group(parsed, weight * above, weight * below),
        len(above),
        replicates=replicates,
        random_state=random_state,
        threads=threads,
    )
    return gap_intervals(draws, parsed.labels, level=level)
