"""CVaR: the mean loss of the worst-off share alpha of the patients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from drosurv.objectives.balls import FromSums, register_ball, robust_value, torch_shares
from drosurv.objectives.objective import LossSums, WorstCase

if TYPE_CHECKING:
    from torch import Tensor

_ROUNDS = 200
# The search for the threshold narrows a bracket in at most this many rounds, or until it contains this share of the
# mass; then it sorts the losses in the bracket.
_NARROWINGS = 12
_SMALL_SHARE = 1e-3


def cvar(losses: Any, alpha: ArrayLike) -> Any:
    """Mean loss of the worst-off share alpha of the patients; for tensors differentiable, on any device.

    .. math:: min_eta  eta + mean [l - eta]_+ / alpha

    Parameters
    ----------
    losses, alpha
        As in :func:`chi_square`.

    Returns
    -------
    (...,) array or tensor
        The objective.

    Examples
    --------
    >>> from drosurv.objectives import cvar
    >>> cvar([1.0, 2.0, 3.0, 4.0], alpha=0.5)
    3.5
    """
    return robust_value(CVaR, losses, alpha)


class CVaR(FromSums):
    """Conditional value at risk of a batch of losses.

    .. math:: min_eta  eta + sum_i p_i [l_i - eta]_+ / alpha

    It is the exact worst case over all subpopulations of mass at least alpha. There is one alpha for all rows, or one
    for each (B,).
    """

    smooth = False

    def __init__(self, alpha: ArrayLike, tol: float = 1e-5) -> None:
        super().__init__(alpha)
        # The objective has kinks, so that each further digit needs another smoothed problem.
        self.tol = tol

    def from_sums(self, sums: LossSums, smoothing: float = 0.0, row: int = 0) -> WorstCase:
        """See :meth:`drosurv.objectives.Objective.from_sums`."""
        alpha = self.alpha_of_row(row)
        if alpha == 1.0:
            return WorstCase.mean(sums)._replace(eta=sums.lowest, border=1.0)
        return (_smoothed(sums, alpha, smoothing) if smoothing > 0.0 else None) or _plain(sums, alpha)

    def torch_evaluation(self, losses: Tensor, mass: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """See :meth:`RobustObjective.torch_evaluation`; equal losses have equal weights per mass."""
        alphas = self.torch_alpha(losses)
        # One row per alpha, if there are more alphas than rows of losses.
        rows = losses.expand(*alphas.shape, losses.shape[-1])
        # Sorting float32 takes half as long as sorting float64.
        descending, order = rows.sort(dim=-1, descending=True)
        values, descending, alphas = rows.double(), descending.double(), alphas.unsqueeze(-1)
        shares = torch_shares(values, mass)
        cumulative = shares.gather(-1, order).cumsum(-1)
        # The tolerance is for sums that equal alpha up to rounding.
        n_below = (cumulative < alphas * (1.0 - 1e-12)).sum(-1, keepdim=True)
        threshold = descending.gather(-1, n_below.clamp(max=values.shape[-1] - 1))
        above, equal = shares * (values > threshold), shares * (values == threshold)
        rest = (alphas - above.sum(-1, keepdim=True)) / equal.sum(-1, keepdim=True)
        weights = (above + equal * rest) / alphas
        return (weights * values).sum(-1), weights


register_ball("cvar", CVaR, "every subpopulation of at least mass alpha")


def _plain(sums: LossSums, alpha: float) -> WorstCase:
    """Return CVaR: the mass above the threshold is at most alpha, and the mass at or above it at least alpha."""
    eta = _value_at_risk(sums, alpha)
    m = sums.moments(eta, math.inf, eta)
    value = eta + m.first / alpha
    # Losses equal to the threshold share the remaining weight.
    at_threshold = sums.moments(-math.inf, eta, eta).above - m.mass
    border = (1.0 - m.mass / alpha) / at_threshold if at_threshold > 0.0 else 0.0
    return WorstCase(value, value, eta, 1.0 / alpha, 0.0, border=border)


def _value_at_risk(sums: LossSums, alpha: float) -> float:
    """Return the threshold: narrow a bracket by the mass above points in it, then sort the losses in the bracket."""
    # The tolerance is for sums that equal alpha up to rounding.
    enough = alpha * (1.0 - 1e-12)
    low, high, above_low, above_high = sums.lowest, sums.highest, 1.0, 0.0
    eta = sums.start
    for done in range(_NARROWINGS):
        if above_low - above_high <= _SMALL_SHARE:
            break
        if not low < eta < high:
            # Linear interpolation of the mass above, slightly beyond alpha on the side that is farther away.
            low_is_farther = above_low - alpha > alpha - above_high
            beyond = 0.25 * _SMALL_SHARE
            aim = alpha + beyond if low_is_farther else max(alpha - beyond, 0.5 * (alpha + above_high))
            interpolated = low + (high - low) * (above_low - aim) / (above_low - above_high)
            eta = 0.5 * (low + high) if done % 3 == 2 else interpolated
        if not low < eta < high:
            break
        above = sums.moments(eta, math.inf, eta).mass
        if above >= enough:
            low, above_low = eta, above
        else:
            high, above_high = eta, above
    lowest = low == sums.lowest
    losses, mass = sums.members(-math.inf if lowest else low, high)
    order = np.argsort(-losses)
    n_above = int((above_high + np.cumsum(mass[order]) < enough).sum())
    return float(losses[order[min(n_above, len(order) - 1)]])


def _smoothed(sums: LossSums, alpha: float, smoothing: float) -> WorstCase | None:
    """Return the smoothed CVaR with weights p_i clip(1 + (l_i - nu)/t, 0, 1/alpha); nu by bracketed Newton steps.

    None if the smoothing t is smaller than the rounding error of the losses.
    """
    cap = 1.0 / alpha
    low, high = sums.lowest, sums.highest + smoothing
    step = sums.start + smoothing if sums.may_start else sums.mean
    for _ in range(_ROUNDS):
        nu = step
        m = sums.moments(nu - smoothing, nu + (cap - 1.0) * smoothing, nu)
        total, slope = cap * m.above + m.mass + m.first / smoothing, m.mass / smoothing
        # The second term is the change of the total from nu to the next float: no nu is nearer.
        if abs(total - 1.0) <= 1e-14 + slope * math.ulp(nu):
            break
        low, high = (nu, high) if total > 1.0 else (low, nu)
        step = nu + (total - 1.0) / slope if slope > 0.0 else math.inf
        step = step if low < step < high else 0.5 * (low + high)
        if step == nu:
            break
    edge = nu + (cap - 1.0) * smoothing
    capped = sums.moments(edge, math.inf, nu)
    # Losses at the edge, (cap - 1) t above nu, have the largest weight.
    at_edge = m.above - capped.mass
    if not (total > 0.0 and nu - smoothing < edge):
        return None
    excess = cap * (capped.first + at_edge * (edge - nu)) + m.first + m.second / smoothing
    # The sum of p (ratio - 1)^2, where the ratio is 0 for losses without weight and cap for the largest.
    distance = (1.0 - m.above - m.mass) + m.above * (cap - 1.0) ** 2 + m.second / smoothing**2
    attained = nu + excess / total
    value, scale = attained - 0.5 * smoothing * distance, 1.0 / smoothing
    terms = ((-scale / m.mass, 1.0, 0.0),) if m.mass > 0.0 else ()
    return WorstCase(
        value,
        attained,
        nu - smoothing,
        0.0,
        1.0 / (smoothing * total),
        cap / total,
        scale if m.mass > 0.0 else 0.0,
        terms,
    )
