"""CVaR: the mean loss of the worst-off share alpha of the patients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
import numpy as np
from numpy.typing import ArrayLike

from drosurv.objectives.objective import Curvature, Evaluation, check_alpha
from drosurv.objectives.tensors import alphas_of, first_order, shares_of
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from torch import Tensor


class CVaR:
    """Conditional value at risk of a batch of losses.

    .. math:: min_eta  eta + sum_i p_i [l_i - eta]_+ / alpha

    the exact worst case over all subpopulations of mass at least alpha. With ``smoothing`` t > 0 the adversary
    pays (t/2) sum_i (q_i - p_i)^2 / p_i for leaving the whole population, which makes the objective
    differentiable; its weights are still those of an allowed subpopulation, so sum_i q_i l_i never exceeds CVaR.

    Parameters
    ----------
    alpha : float or (B,)
        Share of patients, one for all rows or one for each.
    smoothing : float
        Price t of the smoothed form; zero is CVaR itself.
    """

    smooth = False
    radius = None

    def __init__(self, alpha: ArrayLike, smoothing: float = 0.0) -> None:
        self.alpha = np.atleast_1d(check_alpha(alpha))
        self.smoothing = smoothing

    def smoothed(self, smoothing: float) -> CVaR:
        """The same objective with another price."""
        return CVaR(self.alpha, smoothing)

    def __call__(self, losses: FloatArray, mass: FloatArray) -> Evaluation:
        """Value, worst-case weights and threshold (the value at risk)."""
        batch = len(losses)
        value, eta, weights = np.empty(batch), np.empty(batch), np.empty_like(losses)
        alpha = np.broadcast_to(self.alpha, (batch,))
        if self.smoothing > 0.0:
            _smoothed(losses, mass, alpha, self.smoothing, value, eta, weights)
        else:
            _worst_share(losses, mass, alpha, value, eta, weights)
        return Evaluation(value, weights, eta)

    def torch(self, losses: Tensor, mass: Tensor) -> Tensor:
        """Values (..., B) at losses (..., B, n) and masses (..., 1, n), differentiable."""
        import torch

        value, weights, _ = torch_cvar(
            losses.detach(), torch.tensor(self.alpha).expand(losses.shape[:-1]), mass
        )
        return first_order(losses, value, weights)

    def curvature(self, losses: FloatArray, mass: FloatArray, at: Evaluation) -> Curvature | None:
        """Second derivative of the smoothed form: patients strictly between no weight and full weight share it."""
        if self.smoothing <= 0.0:
            return None
        # By the losses and not by the weights, which normalisation leaves a rounding away from the full weight.
        over = losses - at.eta[0]
        inside = mass * ((over > 0.0) & (over < self.smoothing / self.alpha[0]))
        share = float(inside.sum())
        if share <= 0.0:
            return None
        scale = 1.0 / self.smoothing
        return Curvature(scale * inside, np.array([-scale / share]), inside[None, :])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _worst_share(
    losses: FloatArray,
    mass: FloatArray,
    alpha: FloatArray,
    value: FloatArray,
    eta: FloatArray,
    weights: FloatArray,
) -> None:
    n = losses.shape[1]
    for b in range(losses.shape[0]):
        row, a = losses[b], alpha[b]
        order = np.argsort(-row)
        taken, k = 0.0, 0
        while k < n:
            # Patients of equal loss are taken together, sharing what is left of alpha.
            end, block = k, 0.0
            while end < n and row[order[end]] == row[order[k]]:
                block += mass[order[end]]
                end += 1
            share = 0.0
            if block > 0.0:
                share = min(1.0, (a - taken) / block) if end < n else (a - taken) / block
                eta[b] = row[order[k]]
            for i in range(k, end):
                weights[b, order[i]] = max(share, 0.0) * mass[order[i]] / a
            taken += block
            k = end
            if taken >= a:
                break
        for i in range(k, n):
            weights[b, order[i]] = 0.0
        total = 0.0
        for i in range(n):
            total += weights[b, i] * row[i]
        value[b] = total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _smoothed(
    losses: FloatArray,
    mass: FloatArray,
    alpha: FloatArray,
    price: float,
    value: FloatArray,
    eta: FloatArray,
    weights: FloatArray,
) -> None:
    # Optimal weights are p_i clip(1 + (l_i - nu)/t, 0, 1/alpha); their sum falls in nu, so nu is bracketed
    # and found by Newton steps on a piecewise linear function, which end exactly.
    n = losses.shape[1]
    for b in range(losses.shape[0]):
        row, cap = losses[b], 1.0 / alpha[b]
        low, high = row[0], row[0]
        for i in range(n):
            low, high = min(low, row[i]), max(high, row[i])
        high += price
        nu = 0.0
        for i in range(n):
            nu += mass[i] * row[i]
        for _ in range(200):
            total, slope = 0.0, 0.0
            for i in range(n):
                ratio = 1.0 + (row[i] - nu) / price
                if ratio >= cap:
                    total += mass[i] * cap
                elif ratio > 0.0:
                    total += mass[i] * ratio
                    slope += mass[i] / price
            if abs(total - 1.0) <= 1e-14:
                break
            if total > 1.0:
                low = nu
            else:
                high = nu
            step = nu + (total - 1.0) / slope if slope > 0.0 else np.inf
            if not (low < step < high):
                step = 0.5 * (low + high)
            if step == nu:
                break
            nu = step
        total, over, paid = 0.0, 0.0, 0.0
        for i in range(n):
            ratio = min(max(1.0 + (row[i] - nu) / price, 0.0), cap)
            weights[b, i] = mass[i] * ratio
            total += weights[b, i]
            over += weights[b, i] * (row[i] - nu)
            paid += mass[i] * (ratio - 1.0) ** 2
        for i in range(n):
            weights[b, i] /= total
        eta[b] = nu - price
        value[b] = nu + over / total - 0.5 * price * paid


def cvar(losses: Tensor, alpha: float | Tensor) -> Tensor:
    """Mean loss of the worst-off share alpha, differentiable, on any device.

    .. math:: min_eta  eta + mean [l - eta]_+ / alpha

    Parameters
    ----------
    losses : (..., n) tensor
        One loss per patient; leading axes are a batch.
    alpha : float or (...,) tensor
        Share of patients, in (0, 1].

    Returns
    -------
    (...,) tensor

    Examples
    --------
    >>> import torch
    >>> from drosurv.objectives import cvar
    >>> cvar(torch.tensor([1.0, 2.0, 3.0, 4.0]), alpha=0.5)
    tensor(3.5000)
    """
    value, weights, _ = torch_cvar(losses.detach(), alpha)
    return first_order(losses, value, weights)


def torch_cvar(
    losses: Tensor, alpha: float | Tensor, mass: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Value (...,), weights (..., n) and value at risk (...,) in float64; equal losses share their weight.

    ``mass`` as in :func:`torch_chi_square`.
    """
    import torch

    alphas = alphas_of(losses, alpha).unsqueeze(-1)
    # One row per alpha, where there are more of them than rows of losses.
    values = losses.double() + torch.zeros_like(alphas)
    shares = shares_of(values, mass)
    falling, order = values.sort(dim=-1, descending=True)
    held = shares.gather(-1, order).cumsum(-1)
    # A sum that rounding left just short of alpha has reached it.
    short = (held < alphas * (1.0 - 1e-12)).sum(-1, keepdim=True)
    threshold = falling.gather(-1, short.clamp(max=values.shape[-1] - 1))
    above, equal = shares * (values > threshold), shares * (values == threshold)
    rest = (alphas - above.sum(-1, keepdim=True)) / equal.sum(-1, keepdim=True)
    weights = (above + equal * rest) / alphas
    return (weights * values).sum(-1), weights, threshold.squeeze(-1)
