"""The calibrated family R_p between CVaR (p = 1) and the entropic value at risk (p to infinity)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drosurv.errors import as_number, require
from drosurv.objectives.chi_square import chi_square
from drosurv.objectives.cvar import cvar
from drosurv.objectives.objective import alphas_of, first_order

if TYPE_CHECKING:
    from torch import Tensor


def power(losses: Tensor, alpha: float | Tensor, p: float = 2.0) -> Tensor:
    """Robust objective of order p, differentiable, on any device.

    .. math:: R_p = min_eta  eta + ( mean [l - eta]_+^p / alpha )^{1/p}

    p = 1 is CVaR and p = 2 the tight chi-square objective. Each bounds the mean loss of every subpopulation of
    mass at least alpha, and R_p grows with p.

    Parameters
    ----------
    losses, alpha
        As in :func:`chi_square`.
    p : float
        Order, at least 1.

    Returns
    -------
    (...,) tensor

    Examples
    --------
    >>> import torch
    >>> from drosurv.objectives import chi_square, power
    >>> losses = torch.tensor([1.0, 2.0, 3.0, 4.0])
    >>> bool(torch.isclose(power(losses, 0.3, p=2), chi_square(losses, 0.3)))
    True
    """
    import torch

    require(
        1.0 <= as_number(p) < float("inf"), "p", "be at least 1 and finite, as the order of the objective", p
    )
    if p == 1.0:
        return cvar(losses, alpha)
    if p == 2.0:
        return chi_square(losses, alpha)
    values = losses.detach().double()
    alphas = alphas_of(losses, alpha).unsqueeze(-1)
    highest = values.max(-1, keepdim=True).values
    scale = (highest - values.min(-1, keepdim=True).values).clamp(min=torch.finfo(torch.float64).tiny)
    unit = (values - highest) / scale
    # In units where losses span [-1, 0], bisection on the slope of the convex function of eta, whose
    # minimiser moves away from the losses in proportion to p.
    low = torch.full_like(highest, -1.0) - p / (1.0 - alphas).clamp(min=1e-12)
    high = torch.zeros_like(highest)
    for _ in range(200):
        middle = (low + high) / 2
        rising = _slope(unit, middle, alphas, p) > 0
        low, high = torch.where(rising, low, middle), torch.where(rising, middle, high)
    eta = (low + high) / 2
    over = (unit - eta).clamp(min=0)
    farthest = over.max(-1, keepdim=True).values
    # Scaled as in the slope.
    ratio = over / farthest.clamp(min=1e-300)
    size = farthest * (ratio.pow(p).mean(-1, keepdim=True) / alphas).pow(1 / p)
    weights = ratio.pow(p - 1)
    top = (values == highest).double()
    weights = torch.where(size > 1e-15, weights, top)
    weights = weights / weights.sum(-1, keepdim=True)
    is_mean = alphas == 1.0
    weights = torch.where(is_mean, torch.full_like(weights, 1.0 / values.shape[-1]), weights)
    value = torch.where(is_mean, values.mean(-1, keepdim=True), highest + scale * (eta + size))
    return first_order(losses, value.squeeze(-1), weights)


def _slope(unit: Tensor, eta: Tensor, alphas: Tensor, p: float) -> Tensor:
    """Derivative in eta of eta + ( mean [l - eta]_+^p / alpha )^{1/p}."""
    over = (unit - eta).clamp(min=0)
    # Scaled by the largest excess, so that high orders neither overflow nor vanish.
    ratio = over / over.max(-1, keepdim=True).values.clamp(min=1e-300)
    lower = ratio.pow(p - 1).mean(-1, keepdim=True)
    upper = ratio.pow(p).mean(-1, keepdim=True)
    return 1.0 - alphas.pow(-1 / p) * lower * upper.pow(1 / p - 1)
