"""CVaR: the mean loss of the worst-off share alpha of the patients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from drosurv.objectives.objective import Placed, alphas_of, check_alpha, first_order, shares_of
from drosurv.objectives.tilt import Spread, Tilt
from drosurv.objectives.tilt import cvar as tilt_cvar
from drosurv.objectives.tilted import FromSums

if TYPE_CHECKING:
    from torch import Tensor


class CVaR(FromSums):
    """Conditional value at risk of a batch of losses.

    .. math:: min_eta  eta + sum_i p_i [l_i - eta]_+ / alpha

    the exact worst case over all subpopulations of mass at least alpha, one for all rows or one for each (B,).
    """

    smooth = False

    def __init__(self, alpha: ArrayLike, tol: float = 1e-5) -> None:
        # Kinks make every further digit a stage of its own.
        self.tol = tol
        self.alpha = np.atleast_1d(check_alpha(alpha))
        self._alphas = Placed(self.alpha)

    def tilt(self, spread: Spread, price: float = 0.0, row: int = 0) -> Tilt:
        """From sums alone, for the alpha of one row."""
        return tilt_cvar(spread, float(self.alpha[row % len(self.alpha)]), price)

    def torch(self, losses: Tensor, mass: Tensor) -> Tensor:
        """Values (..., B) at losses (..., B, n) and masses (..., 1, n), differentiable."""
        alphas = self._alphas.beside(losses).expand(losses.shape[:-1])
        return first_order(losses, *_worst_sorted(losses.detach(), alphas, mass))


def cvar(losses: Tensor, alpha: float | Tensor) -> Tensor:
    """Mean loss of the worst-off share alpha, differentiable, on any device.

    .. math:: min_eta  eta + mean [l - eta]_+ / alpha

    Parameters
    ----------
    losses, alpha
        As in :func:`chi_square`.

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
    return first_order(losses, *torch_cvar(losses.detach(), alpha))


def torch_cvar(losses: Tensor, alpha: float | Tensor, mass: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Value (...,) and weights (..., n) in float64; equal losses share their weight.

    ``mass`` as in :func:`torch_chi_square`.
    """
    return _worst_sorted(losses, alphas_of(losses, alpha), mass)


def _worst_sorted(losses: Tensor, alphas: Tensor, mass: Tensor | None) -> tuple[Tensor, Tensor]:
    """The same, of checked alphas (...,) on the losses' device."""
    # One row per alpha, where there are more of them than rows of losses.
    rows = losses.expand(*alphas.shape, losses.shape[-1])
    # Sorted before they are doubles, which take twice as long.
    falling, order = rows.sort(dim=-1, descending=True)
    values, falling, alphas = rows.double(), falling.double(), alphas.unsqueeze(-1)
    shares = shares_of(values, mass)
    held = shares.gather(-1, order).cumsum(-1)
    # A sum that rounding left just short of alpha has reached it.
    short = (held < alphas * (1.0 - 1e-12)).sum(-1, keepdim=True)
    threshold = falling.gather(-1, short.clamp(max=values.shape[-1] - 1))
    above, equal = shares * (values > threshold), shares * (values == threshold)
    rest = (alphas - above.sum(-1, keepdim=True)) / equal.sum(-1, keepdim=True)
    weights = (above + equal * rest) / alphas
    return (weights * values).sum(-1), weights
