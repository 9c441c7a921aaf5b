"""Exact thresholds and worst-case weights of the robust objectives, on tensors of any device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drosurv.objectives.chi_square import CONSTANTS
from drosurv.objectives.objective import check_alpha

if TYPE_CHECKING:
    from torch import Tensor

BALLS = ("chi2", "paper", "cvar")


def first_order(losses: Tensor, value: Tensor, weights: Tensor) -> Tensor:
    """A scalar with the given value whose gradient in the losses is the given weights (Danskin)."""
    return value.to(losses.dtype) + (weights.to(losses.dtype) * (losses - losses.detach())).sum(-1)


def worst_case_weights(losses: Tensor, alpha: float | Tensor, *, ball: str = "chi2") -> Tensor:
    """Weights of the subpopulation that an adversary would pick.

    Parameters
    ----------
    losses : (..., n) tensor
        One loss per patient.
    alpha : float or (...,) tensor
        Smallest protected share of patients, in (0, 1].
    ball : {"chi2", "paper", "cvar"}
        The adversary's reach: chi-square ball with the tight or the published constant, or every
        subpopulation of at least mass alpha.

    Returns
    -------
    (..., n) tensor
        Not negative, summing to one: the gradient of the objective in the losses.

    Examples
    --------
    >>> import torch
    >>> from drosurv.objectives import worst_case_weights
    >>> worst_case_weights(torch.tensor([1.0, 2.0, 3.0, 4.0]), alpha=0.5, ball="cvar")
    tensor([0.0000, 0.0000, 0.5000, 0.5000])
    """
    detached = losses.detach()
    if ball == "cvar":
        weights = torch_cvar(detached, alpha)[1]
    elif ball in ("chi2", "paper"):
        weights = torch_chi_square(detached, alpha, "tight" if ball == "chi2" else "paper")[1]
    else:
        raise ValueError(f"ball must be one of {BALLS}, got {ball!r}.")
    return weights.to(losses.dtype)


def torch_chi_square(
    losses: Tensor, alpha: float | Tensor, constant: str, mass: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Value (...,), weights (..., n) and eta (...,) in float64, by sorting (see chi_square.py).

    ``mass`` (..., n) are the patients' positive masses, of any sum; None weighs all alike.
    """
    import torch

    if constant not in CONSTANTS:
        raise ValueError(f"constant must be one of {CONSTANTS}, got {constant!r}.")
    alphas = _alpha_like(losses, alpha)
    square = (1.0 / alphas if constant == "tight" else 2.0 * (1.0 / alphas - 1.0) ** 2 + 1.0).unsqueeze(-1)
    values = losses.double()
    shares = _shares(values, mass)
    # Every prefix holds the largest loss: centred on it, the sums of squares cancel in none of them.
    highest = values.max(-1, keepdim=True).values
    lowered = values - highest
    falling, order = lowered.sort(dim=-1, descending=True)
    parts = shares.gather(-1, order)
    held = parts.cumsum(-1)
    mean = (parts * falling).cumsum(-1) / held
    variance = ((parts * falling.square()).cumsum(-1) / held - mean.square()).clamp(min=0)
    room = square * held - 1.0
    usable = room > 1e-12
    eta = mean - torch.sqrt(variance / torch.where(usable, room, torch.ones_like(room)))
    below = torch.cat([falling[..., 1:], torch.full_like(falling[..., :1], -torch.inf)], -1)
    miss = torch.maximum(below - eta, eta - falling).clamp(min=0)
    pick = torch.where(usable, miss, torch.full_like(miss, torch.inf)).argmin(-1, keepdim=True)
    threshold = eta.gather(-1, pick)

    at_top = shares * (values == highest)
    top_share = at_top.sum(-1, keepdim=True)
    filled = square * top_share >= 1.0 - 1e-12
    is_mean = (square == 1.0) & ~filled
    over = (lowered - threshold).clamp(min=0)
    threshold = threshold + highest
    root = (shares * over.square()).sum(-1, keepdim=True).sqrt()
    weights = shares * over
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
    weights = torch.where(filled, at_top / top_share, weights)
    weights = torch.where(is_mean, shares, weights)
    value = torch.where(filled, highest, square.sqrt() * root + threshold)
    value = torch.where(is_mean, (shares * values).sum(-1, keepdim=True), value)
    threshold = torch.where(is_mean, torch.full_like(threshold, -torch.inf), threshold)
    return value.squeeze(-1), weights, torch.where(filled, highest, threshold).squeeze(-1)


def torch_cvar(
    losses: Tensor, alpha: float | Tensor, mass: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Value (...,), weights (..., n) and value at risk (...,) in float64; equal losses share their weight.

    ``mass`` as in :func:`torch_chi_square`.
    """
    import torch

    alphas = _alpha_like(losses, alpha).unsqueeze(-1)
    # One row per alpha, where there are more of them than rows of losses.
    values = losses.double() + torch.zeros_like(alphas)
    shares = _shares(values, mass)
    falling, order = values.sort(dim=-1, descending=True)
    held = shares.gather(-1, order).cumsum(-1)
    # A sum that rounding left just short of alpha has reached it.
    short = (held < alphas * (1.0 - 1e-12)).sum(-1, keepdim=True)
    threshold = falling.gather(-1, short.clamp(max=values.shape[-1] - 1))
    above, equal = shares * (values > threshold), shares * (values == threshold)
    rest = (alphas - above.sum(-1, keepdim=True)) / equal.sum(-1, keepdim=True)
    weights = (above + equal * rest) / alphas
    return (weights * values).sum(-1), weights, threshold.squeeze(-1)


def _shares(values: Tensor, mass: Tensor | None) -> Tensor:
    """Masses (..., n) that sum to one."""
    import torch

    if mass is None:
        return torch.full_like(values, 1.0 / values.shape[-1])
    return (mass.double() / mass.double().sum(-1, keepdim=True)).expand(values.shape)


def _alpha_like(losses: Tensor, alpha: float | Tensor) -> Tensor:
    import torch

    check_alpha(alpha.detach().cpu().numpy() if isinstance(alpha, torch.Tensor) else alpha)
    wanted = torch.as_tensor(alpha, dtype=torch.float64, device=losses.device)
    return wanted.expand(losses.shape[:-1]) if wanted.ndim == 0 else wanted
