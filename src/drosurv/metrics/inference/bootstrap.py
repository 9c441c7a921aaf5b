"""Bootstrap intervals for any metric.

Patients are drawn with replacement. A replicate is one vector of whole-number weights (how often each patient
was drawn), or the drawn rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from drosurv.errors import as_number, as_whole, require
from drosurv.metrics.inference.interval import Interval
from drosurv.metrics.inference.resampling import in_parallel, replicate_rng, seed_sequence
from drosurv.target import FloatArray

Statistic = Callable[[Any], Any]
Method = Literal["percentile", "basic"]
Resample = Literal["weights", "rows"]


class Draws(NamedTuple):
    """A number on the patients themselves and on the replicates (replicates,), NaN where undefined.

    Its interval is cut at the lowest and the highest value possible.
    """

    estimate: float
    draws: FloatArray
    lowest: float = -np.inf
    highest: float = np.inf
    method: Method = "percentile"

    def interval(self, level: float) -> Interval:
        """Bootstrap interval; its ends are NaN without replicates."""
        found = interval_of(self.estimate, self.draws, level, self.method).where_replicates_differ()
        low, high = np.clip([found.low, found.high], self.lowest, self.highest).tolist()
        return replace(found, low=low, high=high)


@dataclass(frozen=True, eq=False)
class Replicates:
    """A statistic of k values: on the patients (k,), and on replicates (replicates, k), NaN where undefined."""

    estimate: FloatArray
    draws: FloatArray

    def interval(self, column: int = 0, *, level: float = 0.95, method: Method = "percentile") -> Interval:
        """Interval of one of the values: quantiles of the replicates, or, if basic, those mirrored at the estimate."""
        return Draws(float(self.estimate[column]), self.draws[:, column], method=method).interval(level)

    def difference(self, first: int, second: int, *, level: float = 0.95) -> Interval:
        """Interval of the difference of two of the values on the same replicates."""
        estimate = float(self.estimate[first] - self.estimate[second])
        return interval_of(estimate, self.draws[:, first] - self.draws[:, second], level)


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
    require(as_whole(replicates) >= 2, "replicates", "be a whole number, at least 2", replicates)
    require(resample in ("weights", "rows"), "resample", "be 'weights' or 'rows'", resample)
    everyone = np.ones(n) if resample == "weights" else np.arange(n)
    estimate = np.atleast_1d(np.asarray(statistic(everyone), dtype=np.float64))
    streams = seed_sequence(random_state)

    def draw(replicate: int) -> FloatArray:
        rows = replicate_rng(streams, replicate).integers(n, size=n)
        drawn = np.bincount(rows, minlength=n).astype(np.float64) if resample == "weights" else rows
        return np.atleast_1d(np.asarray(statistic(drawn), dtype=np.float64))

    return Replicates(estimate, np.stack(list(in_parallel(draw, replicates, threads))))


def interval_of(estimate: float, draws: FloatArray, level: float, method: Method = "percentile") -> Interval:
    """Interval of one value from its replicates (replicates,), of which those that are NaN are left out."""
    require(0 < as_number(level) < 1, "level", "lie between 0 and 1", level)
    require(method in ("percentile", "basic"), "method", "be 'percentile' or 'basic'", method)
    defined = draws[~np.isnan(draws)]
    undefined = len(draws) - len(defined)
    if len(defined) < 2 or np.isnan(estimate):
        nan = float("nan")
        return Interval(estimate, nan, nan, level, nan, len(draws), undefined)
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2]).tolist()
    if method == "basic":
        low, high = 2 * estimate - high, 2 * estimate - low
    return Interval(estimate, low, high, level, float(defined.std(ddof=1)), len(draws), undefined)


def no_difference_p_value(estimate: float, errors: FloatArray) -> float:
    """Two-sided p-value of "no difference": how often replicates are off by more than the estimate is from 0.

    The errors (replicates,) are the distances of the replicates' differences from the estimate. NaN if it, or all of
    them, are undefined.
    """
    known = errors[~np.isnan(errors)]
    if len(known) == 0 or np.isnan(estimate):
        return float("nan")
    return (1 + int((known >= abs(estimate)).sum())) / (1 + len(known))
