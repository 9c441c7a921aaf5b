"""Two models on the same patients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from drosurv.metrics.inference.bootstrap import (
    Draws,
    Resample,
    Statistic,
    bootstrap,
    interval_of,
    no_difference_p_value,
)
from drosurv.metrics.inference.gaps import Number
from drosurv.metrics.inference.interval import Interval
from drosurv.metrics.inference.multiplicity import shared_level
from drosurv.target import FloatArray, IntArray


@dataclass(frozen=True)
class PairedComparison:
    """Two models' values on the same patients, first less second, and the two-sided bootstrap test of no difference."""

    first: float
    second: float
    difference: Interval
    p_value: float


def paired_comparison(
    first: Statistic,
    second: Statistic,
    n: int,
    *,
    level: float = 0.95,
    resample: Resample = "weights",
    replicates: int = 1000,
    random_state: Any = None,
    threads: int | None = None,
) -> PairedComparison:
    """Difference of two models' values on the same patients, with an interval and a test.

    Both statistics see the same replicates, so that what the patients have in common cancels; separate
    intervals that overlap say little. The p-value is the share of replicates whose difference is further
    from the estimate than the estimate is from 0.

    Parameters
    ----------
    first, second : callable
        Statistic of either model, as in :func:`bootstrap`.
    n : int
        Number of patients.
    level : float
        Nominal coverage of the difference's interval.
    resample, replicates, random_state, threads
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
    >>> found.p_value < 0.01
    True
    """

    def both(drawn: FloatArray | IntArray) -> list[float]:
        return [float(first(drawn)), float(second(drawn))]

    draws = bootstrap(
        both, n, resample=resample, replicates=replicates, random_state=random_state, threads=threads
    )
    own, other = map(Draws, draws.estimate.tolist(), draws.draws.T)
    return compare_draws(own, other, level)


def compare_draws(first: Number, second: Number, level: float) -> PairedComparison:
    """Compare two numbers that were drawn on the same replicates."""
    estimate, draws = first.estimate - second.estimate, first.draws - second.draws
    p_value = no_difference_p_value(estimate, np.abs(draws - estimate))
    difference = interval_of(estimate, draws, level)
    return PairedComparison(first.estimate, second.estimate, difference, p_value)


def differences_together(pairs: Sequence[tuple[Number, Number]], level: float) -> list[Interval]:
    """Differences of numbers drawn on the same replicates, with intervals that all hold together.

    Errors of a paired difference are near normal, and quantiles so far out would need many more replicates: an interval
    is the standard error times the normal quantile of Bonferroni's level.
    """
    reach = NormalDist().inv_cdf((1 + shared_level(level, len(pairs))) / 2)
    found = []
    for first, second in pairs:
        alone = compare_draws(first, second, level).difference
        margin = reach * alone.standard_error
        found.append(replace(alone, low=alone.estimate - margin, high=alone.estimate + margin))
    return found
