"""The search of `certify` in formulas: its critical value, its power, and what its bounds exclude.

The formulas were fitted to simulations of the search with independent columns of numbers. So were the two constants
here, by ``python -m experiments.studies.plan --what search``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

# Expected events that a group must have to be judged.
LEAST_EVENTS = 10.0
# The largest statistic of all subgroups is distributed like that of so many independent ones, times columns^2 / share.
_INDEPENDENT = 1.25
# The highest bound is that of a subgroup of average risk, whose statistic is the median of the largest among
# a columns^b, or that of the patients at lowest risk, with fewer events, whose statistic has this median.
_SMALL, _POWER, _LOWEST = 1.1, 2.65, 0.9


@dataclass(frozen=True)
class SubgroupSearch:
    """The search among all subgroups of at least a share of the patients that one or two conditions define.

    `lowest` is the event rate of that share of the patients with the lowest risks, over the rate of all patients.
    """

    n_columns: int
    share: float
    level: float
    lowest: float = 1.0

    @property
    def critical_value(self) -> float:
        """Value that the largest standardised deviation of a subgroup exceeds with probability (1 - level) / 2."""
        independent = max(_INDEPENDENT * self.n_columns**2 / self.share, 1.0)
        return float(norm.isf(-np.expm1(np.log((1 + self.level) / 2) / independent)))

    @property
    def _reaches(self) -> tuple[tuple[float, float], ...]:
        """Critical value plus deviation, and events over those of average risk, of subgroups with high bounds."""
        usual = norm.isf(-np.expm1(np.log(0.5) / max(_SMALL * self.n_columns**_POWER, 1.0)))
        return (self.critical_value + float(usual), 1.0), (self.critical_value + _LOWEST, self.lowest)

    def events_for_power(self, ratio: float, power: float) -> float:
        """Expected events of a subgroup that is found with this power if it has `ratio` times as many."""
        return max(events_for_power(ratio, power, self.critical_value), LEAST_EVENTS)

    def power(self, ratio: float, events: float) -> float:
        """Power to find a subgroup with `ratio` times the expected events; 0 with fewer than 10: it is not judged."""
        return 0.0 if events < LEAST_EVENTS else power_of(ratio, events, self.critical_value)

    def events_to_exclude_in_one(self, ratio: float) -> float:
        """Expected events with which a ratio above 1 is excluded in a subgroup where observed equal expected events."""
        return max(float((self.critical_value / (2 * (np.sqrt(ratio) - 1))) ** 2), LEAST_EVENTS)

    def bound_of_one(self, events: float) -> float:
        """Bound on observed / expected events of a subgroup where both are equal; infinite with fewer than 10."""
        if events < LEAST_EVENTS:
            return np.inf
        return float((1 + self.critical_value / (2 * np.sqrt(events))) ** 2)

    def bounds_of_one(self, events: float) -> tuple[float, float]:
        """Lower and upper bound on observed / expected events of such a subgroup."""
        if events < LEAST_EVENTS:
            return 0.0, np.inf
        root = max(1 - self.critical_value / (2 * np.sqrt(events)), 0.0)
        return float(root**2), self.bound_of_one(events)

    def events_to_exclude(self, ratio: float) -> float:
        """Expected events of a subgroup of average risk with which a ratio is excluded in all, for a right model."""
        root = 2 * (np.sqrt(ratio) - 1)
        needed = [max((reach / root) ** 2, LEAST_EVENTS) / share for reach, share in self._reaches]
        return float(max(needed))

    def bound(self, events: float) -> float:
        """Bound on observed / expected events in all subgroups of a right model, in the median.

        `events` are those of a subgroup of average risk.

        Subgroups with fewer than 10 expected events are not judged.
        """
        counts = [(reach, max(share * events, LEAST_EVENTS)) for reach, share in self._reaches]
        return float(max((1 + reach / (2 * np.sqrt(count))) ** 2 for reach, count in counts))


def events_for_power(ratio: float, power: float, critical_value: float) -> float:
    """Expected events with which a test finds `ratio` times as many; square roots of counts have variance 1/4."""
    return float(((critical_value + norm.ppf(power)) / (2 * (np.sqrt(ratio) - 1))) ** 2)


def power_of(ratio: float, events: float, critical_value: float) -> float:
    """Power of a test to find `ratio` times the expected events."""
    return float(norm.cdf(2 * np.sqrt(events) * abs(np.sqrt(ratio) - 1) - critical_value))
