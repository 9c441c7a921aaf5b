"""A number with its interval: gains of patients, and ratios of observed to expected events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from drosurv.metrics.inference import observed_over_expected
from drosurv.target import FloatArray


@dataclass(frozen=True)
class Estimate:
    """A number with its interval: a mean (Student's t) or a ratio of events (Poisson)."""

    value: float
    low: float
    high: float

    @classmethod
    def mean(cls, values: FloatArray, level: float) -> Estimate:
        """Return the mean of the values; NaN for fewer than two."""
        n = len(values)
        if n < 2:
            return cls(np.nan, np.nan, np.nan)
        mean = float(values.mean())
        half_width = float(stats.t.ppf((1 + level) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))
        return cls(mean, mean - half_width, mean + half_width)

    @classmethod
    def ratio(cls, events: float, expected: float, level: float) -> Estimate:
        """Return observed over expected events, with the exact interval of a Poisson count; NaN if 0 are expected."""
        found = observed_over_expected(events, expected, level=level)
        return cls(found.estimate, found.low, found.high)

    def named(self, name: str) -> dict[str, float]:
        """Return value and interval as entries of a row: ``name``, ``name_low`` and ``name_high``."""
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}

    def __str__(self) -> str:
        return f"{self.value:+.3f} ({self.low:+.3f} to {self.high:+.3f})"
