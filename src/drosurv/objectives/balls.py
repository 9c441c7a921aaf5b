"""The adversary's reach by name: which objective protects which subpopulations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drosurv.errors import require
from drosurv.objectives.chi_square import ChiSquare, radius_constant, torch_chi_square
from drosurv.objectives.cvar import CVaR, torch_cvar
from drosurv.objectives.mean import Mean
from drosurv.objectives.tilted import FromSums
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from torch import Tensor

BALLS = ("chi2", "paper", "cvar")
_CONSTANTS = {"chi2": "tight", "paper": "paper"}


def check_ball(ball: str, allowed: tuple[str, ...] = BALLS) -> None:
    """Reject a name that stands for no ball."""
    require(ball in allowed, "ball", f"be one of {allowed}", ball)


def ball_objective(ball: str, alphas: FloatArray) -> FromSums:
    """The objective that protects subpopulations of at least mass alpha, one for each row; the mean where all are 1."""
    if (alphas == 1.0).all():
        return Mean()
    return CVaR(alphas) if ball == "cvar" else ChiSquare(alphas, _CONSTANTS[ball])


def smallest_reach(ball: str, alpha: float) -> float:
    """Mass of the smallest subpopulation that the ball can put all weight on."""
    return alpha if ball == "cvar" else float(radius_constant(alpha, _CONSTANTS[ball])) ** -2


def alpha_of_reach(ball: str, mass: float) -> float:
    """The alpha at which the ball just reaches subpopulations of this mass: :func:`smallest_reach` solved for it."""
    return mass if ball != "paper" else 1.0 / (1.0 + float(np.sqrt(max(1.0 / mass - 1.0, 0.0) / 2.0)))


def worst_case_weights(losses: Tensor, alpha: float | Tensor, *, ball: str = "chi2") -> Tensor:
    """Weights of the subpopulation that an adversary would pick.

    Parameters
    ----------
    losses, alpha
        As in :func:`chi_square`.
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
    check_ball(ball)
    detached = losses.detach()
    if ball == "cvar":
        weights = torch_cvar(detached, alpha)[1]
    else:
        weights = torch_chi_square(detached, alpha, _CONSTANTS[ball])[1]
    return weights.to(losses.dtype)
