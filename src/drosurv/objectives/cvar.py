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
# Rounds that narrow down the threshold at most, and the share of the patients among whom it is then looked up.
_NARROWINGS = 12
_FEW = 1e-3


def cvar(losses: Any, alpha: ArrayLike) -> Any:
    """Mean loss of the worst-off share alpha; of tensors differentiable, on any device.

    .. math:: min_eta  eta + mean [l - eta]_+ / alpha

    Parameters
    ----------
    losses, alpha
        As in :func:`chi_square`.

    Returns
    -------
    (...,) array or tensor

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

    the exact worst case over all subpopulations of mass at least alpha, one for all rows or one for each (B,).
    """

    smooth = False

    def __init__(self, alpha: ArrayLike, tol: float = 1e-5) -> None:
        super().__init__(alpha)
        # The objective has kinks, so that each further digit needs another stage of smoothing.
        self.tol = tol

    def from_sums(self, sums: LossSums, smoothing: float = 0.0, row: int = 0) -> WorstCase:
        """See :meth:`drosurv.objectives.Objective.from_sums`."""
        alpha = self.alpha_of_row(row)
        if alpha == 1.0:
            return WorstCase.mean(sums)._replace(eta=sums.lowest, border=1.0)
        return (_smoothed(sums, alpha, smoothing) if smoothing > 0.0 else None) or _plain(sums, alpha)

    def torch_evaluation(self, losses: Tensor, mass: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """See :meth:`RobustObjective.torch_evaluation`; equal losses share their weight."""
        alphas = self.torch_alpha(losses)
        # One row per alpha, where there are more of them than rows of losses.
        rows = losses.expand(*alphas.shape, losses.shape[-1])
        # Sorting float32 takes half as long as sorting float64.
        falling, order = rows.sort(dim=-1, descending=True)
        values, falling, alphas = rows.double(), falling.double(), alphas.unsqueeze(-1)
        shares = torch_shares(values, mass)
        reached = shares.gather(-1, order).cumsum(-1)
        # A sum that rounding left just short of alpha has reached it.
        short = (reached < alphas * (1.0 - 1e-12)).sum(-1, keepdim=True)
        threshold = falling.gather(-1, short.clamp(max=values.shape[-1] - 1))
        above, equal = shares * (values > threshold), shares * (values == threshold)
        rest = (alphas - above.sum(-1, keepdim=True)) / equal.sum(-1, keepdim=True)
        weights = (above + equal * rest) / alphas
        return (weights * values).sum(-1), weights


register_ball("cvar", CVaR, "every subpopulation of at least mass alpha")


def _plain(sums: LossSums, alpha: float) -> WorstCase:
    """Return CVaR: the threshold is the loss with a mass of at most alpha above it, and at least alpha with it."""
    eta = _value_at_risk(sums, alpha)
    m = sums.moments(eta, math.inf, eta)
    value = eta + m.first / alpha
    # Losses equal to the threshold share the remaining weight.
    at_threshold = sums.moments(-math.inf, eta, eta).above - m.mass
    border = (1.0 - m.mass / alpha) / at_threshold if at_threshold > 0.0 else 0.0
    return WorstCase(value, value, eta, 1.0 / alpha, 0.0, border=border)


def _value_at_risk(sums: LossSums, alpha: float) -> float:
    """Return the threshold: narrowed down by the mass above, then looked up among the few losses that are left."""
    # A sum that rounding left just short of alpha has reached it.
    reached = alpha * (1.0 - 1e-12)
    low, high, over_low, over_high = sums.lowest, sums.highest, 1.0, 0.0
    eta = sums.start
    for done in range(_NARROWINGS):
        if over_low - over_high <= _FEW:
            break
        if not low < eta < high:
            # By linear interpolation, just beyond alpha on the side that is farther away.
            ahead = over_low - alpha > alpha - over_high
            aim = alpha + 0.25 * _FEW if ahead else max(alpha - 0.25 * _FEW, 0.5 * (alpha + over_high))
            even = low + (high - low) * (over_low - aim) / (over_low - over_high)
            eta = 0.5 * (low + high) if done % 3 == 2 else even
        if not low < eta < high:
            break
        over = sums.moments(eta, math.inf, eta).mass
        if over >= reached:
            low, over_low = eta, over
        else:
            high, over_high = eta, over
    lowest = low == sums.lowest
    losses, mass = sums.members(-math.inf if lowest else low, high)
    order = np.argsort(-losses)
    short = int((over_high + np.cumsum(mass[order]) < reached).sum())
    return float(losses[order[min(short, len(order) - 1)]])


def _smoothed(sums: LossSums, alpha: float, smoothing: float) -> WorstCase | None:
    """Return the smoothed CVaR with weights p_i clip(1 + (l_i - nu)/t, 0, 1/alpha); nu by bracketed Newton steps.

    None where the smoothing is below the last digit of the largest losses and changes nothing.
    """
    cap = 1.0 / alpha
    low, high = sums.lowest, sums.highest + smoothing
    step = sums.start + smoothing if sums.may_start else sums.mean
    for _ in range(_ROUNDS):
        nu = step
        m = sums.moments(nu - smoothing, nu + (cap - 1.0) * smoothing, nu)
        total, slope = cap * m.above + m.mass + m.first / smoothing, m.mass / smoothing
        if abs(total - 1.0) <= 1e-14:
            break
        low, high = (nu, high) if total > 1.0 else (low, nu)
        step = nu + (total - 1.0) / slope if slope > 0.0 else math.inf
        step = step if low < step < high else 0.5 * (low + high)
        if step == nu:
            break
    edge = nu + (cap - 1.0) * smoothing
    capped = sums.moments(edge, math.inf, nu)
    # Losses at the edge have full weight and lie (cap - 1) t above nu.
    at_edge = m.above - capped.mass
    if not (total > 0.0 and nu - smoothing < edge):
        return None
    over = cap * (capped.first + at_edge * (edge - nu)) + m.first + m.second / smoothing
    # sum p (ratio - 1)^2: one for losses without weight, (cap - 1)^2 for those with full weight.
    distance = (1.0 - m.above - m.mass) + m.above * (cap - 1.0) ** 2 + m.second / smoothing**2
    attained = nu + over / total
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
