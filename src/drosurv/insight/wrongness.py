"""How wrong a model is about the patients of a rule: Bayes factors of level and effects from sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np

from drosurv.target import FloatArray

# Prior standard deviation of a log hazard ratio that differs, per standard deviation of its column.
TAU = 0.5


@dataclass(frozen=True, eq=False)
class Residuals:
    """What a model expected of n patients and what happened.

    `events` (n,) are 1 where the event was seen; `expected` (n,) is the cumulative hazard at the patient's own time,
    from a model that was not fitted on him; `columns` (n, p) are what effects may differ in: ones, the model's log
    risk, and features, centred and scaled.
    """

    events: FloatArray
    expected: FloatArray
    columns: FloatArray

    def after(self, r: FloatArray) -> Residuals:
        """The same patients after their hazards were multiplied by exp(r)."""
        return Residuals(self.events, self.expected * np.exp(r), self.columns)

    @property
    def n_effects(self) -> int:
        """Columns besides the level."""
        return int(self.columns.shape[1]) - 1


@dataclass(frozen=True, eq=False)
class Limits:
    """Who may be called a group, and what an effect must show.

    A group has at least `min_group` patients and `min_events` events, both observed and expected. `tau` is the prior
    standard deviation of effects that differ; `level_only` looks at observed against expected events alone.
    """

    min_group: int
    min_events: int
    tau: float = TAU
    level_only: bool = False

    def inclusion(self, n_effects: int) -> float:
        """Prior probability that one of so many effects differs: few do, which is what makes many columns work."""
        return min(0.25, 2.0 / max(n_effects, 1))


class Wrongness:
    r"""Log Bayes factor that level or effects differ from the model's, from score statistics: a search criterion.

    .. math:: U_0 = \sum M, \quad V_0 = \sum E, \quad
              U_j = \sum M z_j - \frac{\sum E z_j}{V_0} U_0, \quad
              V_j = \sum E z_j^2 - \frac{(\sum E z_j)^2}{V_0}

    .. math:: \log B = \frac{U^2}{2 (V + \tau^{-2})} - \tfrac12 \log(1 + \tau^2 V), \qquad
              \mathrm{score} = \log\bigl(\tfrac12 + \tfrac12 B_0\bigr) + \sum_j \log(1 - \pi + \pi B_j)

    over the rule's patients, with M = d - E the martingale residuals. The sparse prior pi is what makes many
    columns work.
    """

    def __init__(self, residuals: Residuals, limits: Limits) -> None:
        self.residuals, self.limits = residuals, limits

    @cached_property
    def values(self) -> FloatArray:
        """Counts, events, and for each column z: M z, E z, E z^2; (n, 2 + 3 p)."""
        at, z = self.residuals, self.residuals.columns[:, : 1 if self.limits.level_only else None]
        residual, expected = (at.events - at.expected)[:, None], at.expected[:, None]
        ones = np.ones(len(z))
        return np.column_stack([ones, at.events, residual * z, expected * z, expected * z * z])

    def scores(self, sums: FloatArray) -> FloatArray:
        """The score of each rule, (1, A)."""
        limits = self.limits
        pi = limits.inclusion(self.residuals.n_effects)
        return _scores(sums, limits.tau, pi, limits.min_group, limits.min_events)[None]


def log_bayes_factor(score: FloatArray, information: FloatArray, tau: float) -> FloatArray:
    """Of an effect drawn from N(0, tau^2) against none, from its score U and information V."""
    return score**2 / (2 * (information + tau**-2)) - 0.5 * np.log1p(tau**2 * information)


@numba.njit(cache=True, nogil=True)
def _scores(sums: FloatArray, tau: float, pi: float, min_group: int, min_events: int) -> FloatArray:
    p = (sums.shape[1] - 2) // 3
    out = np.full(len(sums), -np.inf)
    for a in range(len(sums)):
        n, events, u0, v0 = sums[a, 0], sums[a, 1], sums[a, 2], sums[a, 2 + p]
        # Sums that were subtracted from one another are whole only up to rounding.
        if n < min_group - 1e-6 or events < min_events - 1e-6 or v0 < min_events:
            continue
        total, product = 0.0, 1.0
        for j in range(p):
            if j == 0:
                u, v, share = u0, v0, 0.5
            else:
                e = sums[a, 2 + p + j]
                u = sums[a, 2 + j] - e / v0 * u0
                v = max(sums[a, 2 + 2 * p + j] - e * e / v0, 0.0)
                share = pi
            exponent = 0.5 * u * u / (v + 1.0 / (tau * tau))
            # Products instead of sums of logarithms, which would take most of the search's time.
            if exponent < 50.0:
                product *= 1.0 - share + share * np.exp(exponent) / np.sqrt(1.0 + tau * tau * v)
            else:
                total += np.log(share) + exponent - 0.5 * np.log(1.0 + tau * tau * v)
            if product > 1e100 or product < 1e-100:
                total += np.log(product)
                product = 1.0
        out[a] = total + np.log(product)
    return out
