"""A number with its interval: gains of patients, and ratios of observed to expected events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from drosurv.metrics.inference import observed_over_expected
from drosurv.target import FloatArray, IntArray


@dataclass(frozen=True)
class Estimate:
    """A number with its interval: a mean (Student's t) or a ratio of events (Poisson)."""

    value: float
    low: float
    high: float

    @classmethod
    def mean(cls, values: FloatArray, level: float, cluster: IntArray | None = None) -> Estimate:
        """Return the mean of the values; NaN for fewer than two. Its error is that of sums over clusters, if given."""
        n, k = len(values), len(values) if cluster is None else len(np.unique(cluster))
        if k < 2:
            return cls(np.nan, np.nan, np.nan)
        mean = float(values.mean())
        sums = values - mean if cluster is None else np.bincount(cluster, values - mean)
        error = np.sqrt(k / (k - 1) * float((sums**2).sum())) / n
        half_width = float(stats.t.ppf((1 + level) / 2, k - 1) * error)
        return cls(mean, mean - half_width, mean + half_width)

    @classmethod
    def ratio(cls, events: float, expected: float, level: float) -> Estimate:
        """Return observed over expected events, with the exact interval of a Poisson count; NaN if 0 are expected."""
        found = observed_over_expected(events, expected, level=level)
        return cls(found.estimate, found.low, found.high)

    @classmethod
    def ratio_in_clusters(
        cls, events: FloatArray, expected: FloatArray, cluster: IntArray, level: float
    ) -> Estimate:
        """Return observed over expected events of rows, with an interval from the residuals' sums over clusters.

        The interval is symmetric on the log scale, with Student's t of one degree of freedom less than clusters.
        """
        observed, total, k = float(events.sum()), float(expected.sum()), len(np.unique(cluster))
        if observed == 0 or total == 0 or k < 2:
            return cls.ratio(observed, total, level)
        value = observed / total
        sums = np.bincount(cluster, events - value * expected)
        error = np.sqrt(k / (k - 1) * float((sums**2).sum())) / observed
        factor = float(np.exp(stats.t.ppf((1 + level) / 2, k - 1) * error))
        return cls(value, value / factor, value * factor)

    def named(self, name: str) -> dict[str, float]:
        """Return value and interval as entries of a row: ``name``, ``name_low`` and ``name_high``."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}

    def __str__(self) -> str:
        return f"{self.value:+.3f} ({self.low:+.3f} to {self.high:+.3f})"
