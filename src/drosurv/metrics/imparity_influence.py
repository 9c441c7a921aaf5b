"""How much each patient moves the concordance fractions: their standard errors without resampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drosurv.metrics.groups import Groups, Missing, parse_grouped
from drosurv.metrics.imparity import ratio_by_group, warn_of_groups_without_pairs
from drosurv.metrics.pair_order import PairCounts, PairOrder
from drosurv.target import FloatArray


@dataclass(frozen=True, eq=False)
class ImparityInfluence:
    r"""Concordance fractions of groups and their derivatives in every patient's weight.

    A patient moves CF(a) as a member of a and as the partner of a's members:

    .. math:: \psi_k(a) = \frac{1[A_k = a] (N_k - CF(a) D_k) + N_k^a - CF(a) D_k^a}{D(a)}

    with :math:`N_k^a, D_k^a` the counts of k against members of a only. The sum over patients of the square
    of
    :math:`\psi_k(a) - \psi_k(b)` estimates the variance of CF(a) - CF(b).

    Parameters
    ----------
    fractions : (n_groups,) float64
        Concordance fraction of each group; NaN without a comparable pair.
    influence : (n, n_groups) float64
        The derivatives.
    """

    fractions: FloatArray
    influence: FloatArray

    @classmethod
    def of(cls, order: PairOrder, counts: PairCounts, groups: Groups) -> ImparityInfluence:
        """From the order of the sweep and the counts of unit weights against everybody."""
        fractions = ratio_by_group(groups, counts.numerator, counts.denominator)
        totals = groups.sums(counts.denominator)
        influence = np.empty((len(groups.codes), len(groups)))
        ones = np.ones(len(groups.codes))
        for k in range(len(groups)):
            member = (groups.codes == k).astype(np.float64)
            against = order.imparity_counts(ones, partner_weight=member)
            own = member * (counts.numerator - fractions[k] * counts.denominator)
            with np.errstate(invalid="ignore", divide="ignore"):
                influence[:, k] = (own + against.numerator - fractions[k] * against.denominator) / totals[k]
        return cls(fractions, influence)

    def standard_errors(self) -> FloatArray:
        """Standard error of each group's fraction, (n_groups,)."""
        errors: FloatArray = np.sqrt((self.influence**2).sum(axis=0))
        return errors

    def largest_studentized_difference(self) -> float:
        """Largest difference of two groups' fractions in its standard errors; NaN if there is none."""
        moments = self.influence.T @ self.influence
        own = np.diag(moments)
        variance = own[:, None] + own[None, :] - 2 * moments
        difference = np.abs(self.fractions[:, None] - self.fractions[None, :])
        usable = np.isfinite(difference) & (variance > 0)
        if not usable.any():
            return float("nan")
        return float((difference[usable] / np.sqrt(variance[usable])).max())


def concordance_fraction_errors(
    y: Any, risk: Any, groups: Any, *, missing: Missing = "group"
) -> dict[Any, float]:
    """Standard error of every group's concordance fraction, by the infinitesimal jackknife.

    Parameters
    ----------
    y, risk, groups, missing
        As in :func:`~drosurv.metrics.concordance_fractions`.

    Returns
    -------
    dict
        Label to standard error; NaN, with a warning that names it, for a group without a comparable pair.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0])
    >>> errors = concordance_fraction_errors(y, [4.0, 1.0, 3.0, 2.0], ["a", "b", "a", "b"])
    >>> sorted(errors)
    ['a', 'b']
    """
    scored, parsed = parse_grouped(y, risk, groups, missing=missing)
    order = PairOrder.for_imparity(scored.target, scored.risk)
    influence = ImparityInfluence.of(order, order.imparity_counts(scored.weight), parsed)
    warn_of_groups_without_pairs(parsed, influence.fractions)
    return dict(zip(parsed.labels, influence.standard_errors().tolist(), strict=True))
