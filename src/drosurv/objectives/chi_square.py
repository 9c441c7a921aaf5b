"""The chi-square robust objective: worst case over a ball of reweighted populations.

    L(l) = min over eta of  C sqrt( sum_i p_i [l_i - eta]_+^2 ) + eta

The minimising eta is found exactly. While the losses above eta are a fixed set A of mass P, mean m and variance
v (under p), the minimiser is m - sqrt(v / a) with a = C^2 P - 1, so jumping between the set and its threshold
stops after a few passes; where it does not, sorting the losses lists every possible set.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numpy.typing import ArrayLike

from drosurv.errors import require
from drosurv.objectives.objective import (
    Curvature,
    Evaluation,
    Placed,
    alphas_of,
    check_alpha,
    first_order,
    shares_of,
)
from drosurv.objectives.tilt import Spread, Tilt, chi_square_at
from drosurv.objectives.tilt import chi_square as tilt_chi_square
from drosurv.objectives.tilted import FromSums, bend, moments
from drosurv.radix import stable_order
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from torch import Tensor

CONSTANTS = ("tight", "paper")
_PASSES = 40


def radius_constant(alpha: ArrayLike, constant: str) -> FloatArray:
    """The factor C that protects every subpopulation of at least mass alpha.

    "tight" is 1/sqrt(alpha): such a subpopulation has a chi-square divergence of at most 1/alpha - 1. "paper" is
    the published sqrt(2 (1/alpha - 1)^2 + 1), kept for reproduction.
    """
    return np.asarray(np.sqrt(_squared(check_alpha(alpha), constant)))


def _squared(alphas: Any, constant: str) -> Any:
    """C^2 of checked alphas of NumPy or torch."""
    require(constant in CONSTANTS, "constant", f"be one of {CONSTANTS}", constant)
    return 1.0 / alphas if constant == "tight" else 2.0 * (1.0 / alphas - 1.0) ** 2 + 1.0


class ChiSquare(FromSums):
    """Chi-square robust objective over a batch of losses, with the constant C of :func:`radius_constant`.

    `alpha` is the smallest protected mass, one for all rows or one for each (B,).
    """

    def __init__(self, alpha: ArrayLike, constant: str = "tight") -> None:
        self.radius = self.constant = np.atleast_1d(radius_constant(alpha, constant))
        self._squares = Placed(self.constant**2)
        self._start: FloatArray = np.full(1, -np.inf)

    def tilt(self, spread: Spread, price: float = 0.0, row: int = 0) -> Tilt:
        """From sums alone, for the constant of one row."""
        return tilt_chi_square(spread, float(self.constant[row % len(self.constant)]), price)

    def __call__(self, losses: FloatArray, mass: FloatArray) -> Evaluation:
        """Value, worst-case weights and exact eta; the last eta is where the next search starts."""
        batch = len(losses)
        if len(self._start) != batch:
            self._start = np.full(batch, -np.inf)
        eta, value, weights = self._start.copy(), np.empty(batch), np.empty_like(losses)
        _minimise(losses, mass, self.constant, eta, value, weights)
        self._start = eta
        return Evaluation(value, weights, eta)

    def torch(self, losses: Tensor, mass: Tensor) -> Tensor:
        """Values (..., B) at losses (..., B, n) and masses (..., 1, n), differentiable."""
        squares = self._squares.beside(losses).expand(losses.shape[:-1])
        return first_order(losses, *_by_prefixes(losses.detach(), squares, mass))

    def curvature(self, losses: FloatArray, mass: FloatArray, at: Evaluation) -> Curvature | None:
        """Second derivative in one row of losses, the threshold eliminated; None at the kink where it is undefined."""
        constant, eta = float(self.constant[0]), float(at.eta[0])
        if constant == 1.0:
            return None
        above = moments(losses, mass, eta, math.inf, eta)
        if above.second <= 0.0:
            return None
        return bend(chi_square_at(eta, above, constant), losses, mass)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _minimise(
    losses: FloatArray,
    mass: FloatArray,
    constant: FloatArray,
    eta: FloatArray,
    value: FloatArray,
    weights: FloatArray,
) -> None:
    for b in range(losses.shape[0]):
        c = constant[b % constant.shape[0]]
        eta[b], value[b] = minimise_row(losses[b], mass, c, eta[b], weights[b])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def minimise_row(
    row: FloatArray, mass: FloatArray, c: float, start: float, weights: FloatArray
) -> tuple[float, float]:
    """Exact eta and value for one row of losses; the worst-case weights are written to ``weights``."""
    n = row.shape[0]
    highest, at_top = -np.inf, 0.0
    for i in range(n):
        # An entry without mass must not pass for the largest.
        if row[i] >= highest and mass[i] > 0.0:
            at_top = mass[i] if row[i] > highest else at_top + mass[i]
            highest = row[i]
    filled = c * c * at_top >= 1.0 - 1e-12
    if c == 1.0 and not filled:
        # The mean itself: the minimising eta runs off to minus infinity.
        np.positive(mass, weights)
        return -np.inf, float((mass * row).sum())
    spread, total = 0.0, 0.0
    if not filled:
        threshold = _threshold(row, mass, c, start, highest)
        for i in range(n):
            over = row[i] - threshold if row[i] > threshold else 0.0
            part = mass[i] * over
            weights[i] = part
            total += part
            spread += part * over
    if total > 0.0:
        # By optimality the weights' factor C / sqrt(spread) is 1 / total; the sum leaves less rounding.
        weights *= 1.0 / total
        return threshold, c * math.sqrt(spread) + threshold
    # The losses at the maximum alone fill the ball, or nearly so: eta, value and maximum coincide. This is also the
    # mean (C = 1) of losses that are all equal.
    for i in range(n):
        weights[i] = mass[i] / at_top if row[i] == highest else 0.0
    return highest, highest


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _threshold(row: FloatArray, mass: FloatArray, c: float, start: float, highest: float) -> float:
    """The minimising eta, below the highest loss: by jumps from the start, by sorting where they do not settle."""
    threshold = start
    for _ in range(_PASSES):
        following = _jump(row, mass, c, threshold)
        if not following < highest:
            break
        if following == threshold or abs(following - threshold) <= 1e-14 * (highest - following):
            return following
        threshold = following
    return _by_sorting(row, mass, c)


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _jump(row: FloatArray, mass: FloatArray, c: float, threshold: float) -> float:
    """Minimiser of the objective with the set of losses above the threshold held fixed; NaN if it has none."""
    base = threshold if threshold > -np.inf else row[0]
    share = first = second = 0.0
    for i in range(row.shape[0]):
        part = mass[i] if row[i] > threshold else 0.0
        off = row[i] - base
        share += part
        first += part * off
        second += part * off * off
    room = c * c * share - 1.0
    if room <= 0.0:
        return np.nan
    mean = first / share
    return float(base + mean - math.sqrt(max(second / share - mean * mean, 0.0) / room))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _by_sorting(row: FloatArray, mass: FloatArray, c: float) -> float:
    """Try the set of the k largest losses for every k; the one whose threshold separates it is optimal."""
    n = row.shape[0]
    order = stable_order(-row)
    base = row[order[0]]
    share = first = second = 0.0
    best, best_miss = base, np.inf
    for k in range(n):
        i = order[k]
        off = row[i] - base
        share += mass[i]
        first += mass[i] * off
        second += mass[i] * off * off
        room = c * c * share - 1.0
        if room <= 0.0:
            continue
        mean = first / share
        eta = base + mean - math.sqrt(max(second / share - mean * mean, 0.0) / room)
        below = row[order[k + 1]] if k + 1 < n else -np.inf
        miss = max(below - eta, eta - row[i], 0.0)
        if miss < best_miss:
            best, best_miss = eta, miss
        if miss == 0.0:
            break
    return float(best)


def chi_square(losses: Tensor, alpha: float | Tensor, *, constant: str = "tight") -> Tensor:
    """Chi-square robust objective of a batch of losses, differentiable, on any device.

    .. math:: min_eta  C sqrt( mean [l - eta]_+^2 ) + eta

    The gradient is the vector of worst-case weights (Danskin's theorem).

    Parameters
    ----------
    losses : (..., n) tensor
        One loss per patient; leading axes are a batch.
    alpha : float or (...,) tensor
        Smallest protected share of patients, in (0, 1].
    constant : {"tight", "paper"}
        C = 1/sqrt(alpha), or the published constant.

    Returns
    -------
    (...,) tensor

    Examples
    --------
    >>> import torch
    >>> from drosurv.objectives import chi_square
    >>> chi_square(torch.tensor([0.0, 0.0, 0.0, 4.0]), alpha=1.0)
    tensor(1.)
    >>> chi_square(torch.tensor([0.0, 0.0, 0.0, 4.0]), alpha=0.25)
    tensor(4.)
    """
    return first_order(losses, *torch_chi_square(losses.detach(), alpha, constant))


def torch_chi_square(
    losses: Tensor, alpha: float | Tensor, constant: str, mass: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Value (...,) and weights (..., n) in float64, by sorting.

    ``mass`` (..., n) are the patients' masses, of any sum; None weighs all alike.
    """
    return _by_prefixes(losses, _squared(alphas_of(losses, alpha), constant), mass)


def _by_prefixes(losses: Tensor, square: Tensor, mass: Tensor | None) -> tuple[Tensor, Tensor]:
    """The same, given C^2 (...,): of all sets of largest losses the one that its own threshold separates."""
    import torch

    if mass is not None:
        # An entry without mass must not pass for the largest.
        losses = torch.where(mass > 0, losses, losses.amin(-1, keepdim=True))
    # Sorted before they are doubles, which take twice as long.
    sorted_losses, order = losses.sort(dim=-1, descending=True)
    values, square = losses.double(), square.unsqueeze(-1)
    shares = shares_of(values, mass)
    # Every prefix holds the largest loss: centred on it, the sums of squares cancel in none of them.
    highest = sorted_losses[..., :1].double()
    lowered = values - highest
    falling = sorted_losses.double() - highest
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
    root = (shares * over.square()).sum(-1, keepdim=True).sqrt()
    weights = shares * over
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
    weights = torch.where(filled, at_top / top_share, weights)
    weights = torch.where(is_mean, shares, weights)
    value = torch.where(filled, highest, square.sqrt() * root + threshold + highest)
    value = torch.where(is_mean, (shares * values).sum(-1, keepdim=True), value)
    return value.squeeze(-1), weights
