"""Normally distributed log risks: their concordance index, their variance at the events, and the error of the index.

Patients have hazards exp(s Z) times a constant, Z standard normal, and are all followed until one time, at which the
wanted share of them has had the event. A plan needs no more than this of a model that does not exist yet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from drosurv.metrics.concordance import concordance_counts
from drosurv.patients.target import FloatArray, Surv

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# Largest standard deviation of log risks that is looked for: a c-index of about 0.98.
_MOST = 8.0
# Points at which the distribution of the lowest risks is read.
_POINTS = 200
# Patients of the cohort from which the standard error of the c-index is computed.
_COHORT = 10_000


@dataclass(frozen=True)
class NormalLogRisks:
    """Log risks with a normal distribution and their standard `deviation`; `event_rate` is the share of events."""

    deviation: float
    event_rate: float

    @classmethod
    def with_c_index(cls, c_index: float, event_rate: float) -> NormalLogRisks:
        """Return the log risks whose c-index is given, above 1/2."""
        return cls._solved(lambda risks: risks.c_index - c_index, event_rate)

    @classmethod
    def with_spread(cls, spread: float, event_rate: float) -> NormalLogRisks:
        """Return the log risks whose standard deviation, weighted by expected events, is given."""
        return cls._solved(lambda risks: risks.variance_at_events - spread**2, event_rate)

    @classmethod
    def _solved(cls, excess: Callable[[NormalLogRisks], float], event_rate: float) -> NormalLogRisks:
        # The highest variance at the events is reached before the largest deviation if events are frequent.
        grid = np.linspace(0.01, _MOST, 100)
        above = np.flatnonzero([excess(cls(float(s), event_rate)) >= 0 for s in grid])
        if len(above) == 0:
            return cls(_MOST, event_rate)
        if above[0] == 0:
            return cls(0.01, event_rate)
        low, high = grid[above[0] - 1], grid[above[0]]
        return cls(float(brentq(lambda s: excess(cls(float(s), event_rate)), low, high)), event_rate)

    @cached_property
    def hazard(self) -> FloatArray:
        """Cumulative hazards at the end of follow-up, at the nodes of the quadrature; their events have the rate."""
        relative = np.exp(self.deviation * _NODES)

        def excess(log_scale: float) -> float:
            return float(_WEIGHTS @ -np.expm1(-np.exp(log_scale) * relative)) - self.event_rate

        scale: FloatArray = np.exp(brentq(excess, -60.0, 60.0)) * relative
        return scale

    @cached_property
    def c_index(self) -> float:
        """Harrell's c-index: how often the patient with the higher risk has the event first, within the follow-up."""
        first, other = self.hazard[:, None], self.hazard[None, :]
        both = first + other
        # Probability that the event of the first patient comes before that of the other and before the end.
        earlier = _WEIGHTS[:, None] * _WEIGHTS * first / both * -np.expm1(-both)
        concordant = earlier[first > other].sum() + earlier[first == other].sum() / 2
        return float(concordant / earlier.sum())

    @cached_property
    def variance_at_events(self) -> float:
        """Variance of the log risks, weighted by expected events."""
        weight = _WEIGHTS * -np.expm1(-self.hazard)
        weight, log_risk = weight / weight.sum(), self.deviation * _NODES
        return float(weight @ (log_risk - weight @ log_risk) ** 2)

    def lowest(self, share: float) -> float:
        """Return the event rate of the share of patients with the lowest risks, over the rate of all patients."""
        quantiles = norm.ppf(share * (np.arange(_POINTS) + 0.5) / _POINTS)
        hazard = self.hazard[len(_NODES) // 2] * np.exp(self.deviation * quantiles)
        return float(-np.expm1(-hazard).mean() / self.event_rate)

    @cached_property
    def c_index_error(self) -> float:
        """Standard error of the c-index, times the square root of the number of events."""
        rng = np.random.default_rng(0)
        log_risk = self.deviation * rng.standard_normal(_COHORT)
        end = self.hazard[len(_NODES) // 2]
        reached = rng.exponential(size=_COHORT) / np.exp(log_risk)
        y = Surv.from_arrays(reached <= end, np.minimum(reached, end))
        concordant, comparable = concordance_counts(y, log_risk, rule="harrell")
        c_index = concordant.sum() / comparable.sum()
        # Every pair is counted for both of its patients.
        influence = 2 * (concordant - c_index * comparable) / comparable.sum()
        return float(np.sqrt((influence**2).sum() * y["event"].sum()))
