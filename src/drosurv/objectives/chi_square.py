"""The chi-square robust objective: worst case over a chi-square ball around the patients.

    L(l) = min over eta of  C sqrt( sum_i p_i [l_i - eta]_+^2 ) + eta

The minimising eta is exact. For a fixed set of losses above eta, with mass P, mean m and variance v (under p), the
minimiser is m - sqrt(v / a) with a = C^2 P - 1. Alternating between set and threshold usually converges after a few
passes; where it does not, a bracket of the minimum is halved.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numpy.typing import ArrayLike

from drosurv.errors import check_alpha, check_choice
from drosurv.objectives.balls import (
    FromSums,
    curvature_of,
    moments,
    register_ball,
    robust_value,
    torch_shares,
)
from drosurv.objectives.objective import Curvature, Evaluation, LossSums, Moments, WorstCase
from drosurv.patients.target import FloatArray

if TYPE_CHECKING:
    from torch import Tensor

CONSTANTS = ("tight", "paper")
_ROUNDS = 200
# Losses that differ by less are equal: the square of the difference underflows.
_EQUAL = 1e-150


def chi_square(losses: Any, alpha: ArrayLike, *, constant: str = "tight") -> Any:
    """Chi-square robust objective of a batch of losses; for tensors differentiable, on any device.

    .. math:: min_eta  C sqrt( mean [l - eta]_+^2 ) + eta

    The gradient is the vector of worst-case weights (Danskin's theorem).

    Parameters
    ----------
    losses : (..., n) array or tensor
        One loss per patient; leading axes are a batch.
    alpha : float or (...,) array or tensor
        Smallest protected share of patients, in (0, 1].
    constant : {"tight", "paper"}
        C = 1/sqrt(alpha), or the published sqrt(2 (1/alpha - 1)^2 + 1).

    Returns
    -------
    (...,) array or tensor
        The objective.

    Examples
    --------
    >>> from drosurv.objectives import chi_square
    >>> chi_square([0.0, 0.0, 0.0, 4.0], alpha=1.0)
    1.0
    >>> chi_square([0.0, 0.0, 0.0, 4.0], alpha=0.25)
    4.0
    """
    return robust_value(partial(ChiSquare, constant=constant), losses, alpha)


def radius_constant(alpha: ArrayLike, constant: str) -> FloatArray:
    """Return the factor C that protects every subpopulation of at least mass alpha.

    "tight" is 1/sqrt(alpha): such a subpopulation has a chi-square divergence of at most 1/alpha - 1. "paper" is
    the published sqrt(2 (1/alpha - 1)^2 + 1), for reproduction.
    """
    return np.asarray(np.sqrt(_squared(check_alpha(alpha), constant)))


def _squared(alphas: Any, constant: str) -> Any:
    """Return C^2 of alphas, a number, a NumPy array or a tensor."""
    check_choice("constant", constant, CONSTANTS)
    return 1.0 / alphas if constant == "tight" else 2.0 * (1.0 / alphas - 1.0) ** 2 + 1.0


class ChiSquare(FromSums):
    """Chi-square robust objective over a batch of losses, with the constant C of :func:`radius_constant`.

    `alpha` is the smallest protected mass, one for all rows or one for each (B,).
    """

    def __init__(self, alpha: ArrayLike, constant: str = "tight") -> None:
        super().__init__(alpha)
        self.constant = constant
        self.radius: FloatArray = np.atleast_1d(radius_constant(self.alpha, constant))
        self._start: FloatArray = np.full(1, -np.inf)

    def __call__(self, losses: FloatArray, mass: FloatArray) -> Evaluation:
        """Return value, worst-case weights and exact eta; the search for eta starts at the last one."""
        if self.smoothing > 0.0:
            return super().__call__(losses, mass)
        batch = len(losses)
        if len(self._start) != batch:
            self._start = np.full(batch, -np.inf)
        eta, value, weights = self._start.copy(), np.empty(batch), np.empty_like(losses)
        for b in range(batch):
            c = self.radius[b % len(self.radius)]
            eta[b], value[b] = minimise_row(losses[b], mass, c, eta[b], weights[b])
        self._start = eta
        return Evaluation(value, weights, eta)

    def curvature(self, losses: FloatArray, mass: FloatArray, at: Evaluation) -> Curvature | None:
        """Return the second derivative at one row of losses, including the change of eta; None at a kink."""
        if self.smoothing > 0.0:
            return super().curvature(losses, mass, at)
        radius, eta = float(self.radius[0]), float(at.eta[0])
        if radius == 1.0:
            return None
        above = moments(losses, mass, eta, math.inf, eta)
        if above.second <= 0.0:
            return None
        return curvature_of(_at_threshold(eta, above, radius), losses, mass)

    def from_sums(self, sums: LossSums, smoothing: float = 0.0, row: int = 0) -> WorstCase:
        """See :meth:`drosurv.objectives.Objective.from_sums`."""
        radius = float(self.radius[row % len(self.radius)])
        if radius == 1.0:
            return WorstCase.mean(sums)
        plain = _plain(sums, radius)
        if smoothing == 0.0:
            return plain
        over = sums.moments(plain.eta, math.inf, plain.eta)
        if over.first >= smoothing:
            return plain._replace(value=plain.value - 0.5 * smoothing * (radius**2 - 1.0))
        return _smoothed(sums, smoothing) or plain

    def torch_evaluation(self, losses: Tensor, mass: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """See :meth:`RobustObjective.torch_evaluation`; the losses are sorted."""
        return _torch_by_sorting(losses, _squared(self.torch_alpha(losses), self.constant), mass)


register_ball("chi2", ChiSquare, "smallest chi-square ball that contains every subpopulation of mass alpha")
register_ball(
    "paper",
    partial(ChiSquare, constant="paper"),
    "chi-square ball with the published constant, which contains far smaller subpopulations",
    smallest_mass=lambda alpha: float(radius_constant(alpha, "paper")) ** -2,
    alpha_of_mass=lambda mass: 1.0 / (1.0 + math.sqrt(max(1.0 / mass - 1.0, 0.0) / 2.0)),
)


# Sums in any order are vectorised.
@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def minimise_row(
    row: FloatArray, mass: FloatArray, c: float, start: float, weights: FloatArray
) -> tuple[float, float]:
    """Return the exact eta and value of one row of losses, and write the worst-case weights to ``weights``."""
    n = row.shape[0]
    highest, at_top, total, spread = -np.inf, 0.0, 0.0, 0.0
    for i in range(n):
        # A loss without mass does not count.
        if row[i] >= highest and mass[i] > 0.0:
            at_top = mass[i] if row[i] > highest else at_top + mass[i]
            highest = row[i]
    filled = c * c * at_top >= 1.0 - 1e-12
    if c == 1.0 and not filled:
        # The mean: the minimising eta is minus infinity.
        for i in range(n):
            weights[i] = mass[i]
            total += mass[i] * row[i]
        return -np.inf, total
    # As in `_plain`, iterate to the minimiser for the losses above eta, with a bracket of the minimum.
    eta, low, high = highest if filled else start, -np.inf, highest
    for _ in range(0 if filled else _ROUNDS):
        base = eta if eta > -np.inf else highest
        share = first = second = 0.0
        for i in range(n):
            part = mass[i] if row[i] > eta else 0.0
            off = row[i] - base
            share += part
            first += part * off
            second += part * off * off
        excess, following = c * c * share - 1.0, np.nan
        if excess > 0.0:
            mean = first / share
            variance = second / share - mean * mean
            following = base + mean - math.sqrt(variance / excess if variance > 0.0 else 0.0)
        if abs(following - eta) <= 1e-14 * (highest - following):
            eta = following
            break
        if eta > -np.inf:
            if c * first > math.sqrt(second):
                low = eta
            else:
                high = eta
        if not low < following < high:
            if low > -np.inf:
                following = 0.5 * (low + high)
            elif start > -np.inf:
                # The start was too high: start again with all losses.
                start, following, high = -np.inf, -np.inf, highest
            else:
                # All losses are equal, or the change is a rounding error.
                following = highest if eta == -np.inf else eta
        if following == eta:
            break
        eta = following
    for i in range(n):
        over = row[i] - eta if row[i] > eta else 0.0
        part = mass[i] * over
        weights[i] = part
        total += part
        spread += part * over
    if total > 0.0:
        # At the optimum C / sqrt(spread), the factor of the weights, equals 1 / total, which has less rounding error.
        scale = 1.0 / total
        for i in range(n):
            weights[i] *= scale
        return eta, c * math.sqrt(spread) + eta
    # All weight is on the largest losses, or all losses are equal: eta and value are the maximum.
    for i in range(n):
        weights[i] = mass[i] / at_top if row[i] == highest else 0.0
    return highest, highest


def _plain(sums: LossSums, radius: float) -> WorstCase:
    """Return the worst case without smoothing."""
    moments, highest = sums.moments, sums.highest
    at_top = moments(math.inf, highest, 0.0).above
    if radius**2 * at_top >= 1.0 - 1e-12 or highest - sums.lowest < _EQUAL:
        # All weight is on the largest losses, or all losses are equal.
        return WorstCase(highest, highest, highest, 1.0 / at_top, 0.0, border=1.0 / at_top)
    # Iterate to the minimiser for the losses above eta. The iteration may cycle, so keep a bracket of the minimum.
    low, high, base = -math.inf, highest, highest
    start = sums.start if sums.may_start else -math.inf
    eta = start
    for _ in range(_ROUNDS):
        m = moments(eta, math.inf, base)
        excess = radius**2 * m.mass - 1.0
        centre = m.first / m.mass if m.mass > 0.0 else math.nan
        variance = max(m.second / m.mass - centre**2, 0.0) if m.mass > 0.0 else math.nan
        following = base + centre - math.sqrt(variance / excess) if excess > 0.0 else math.nan
        if eta > -math.inf:
            # The objective is convex in eta: the sign of its derivative says on which side the minimum is.
            first = m.first + m.mass * (base - eta)
            second = m.second + 2.0 * (base - eta) * m.first + m.mass * (base - eta) ** 2
            if radius * first > math.sqrt(max(second, 0.0)):
                low = eta
            else:
                high = eta
        if not low < following < high:
            if start > -math.inf and following != eta and not math.isfinite(low):
                # The start was too high: start again with all losses.
                high, start, eta = highest, -math.inf, -math.inf
                continue
            if following == eta or not math.isfinite(low):
                break
            following = 0.5 * (low + high)
        if abs(following - eta) <= 1e-15 * (highest - following) or following in (low, high):
            eta = following
            break
        eta = following
    return _at_threshold(eta, moments(eta, math.inf, eta), radius)


def _at_threshold(eta: float, m: Moments, radius: float) -> WorstCase:
    """Return the worst case at its threshold eta, given the moments about eta of the losses above it."""
    # At the optimum C / sqrt(second) equals 1 / first, which has less rounding error.
    root = math.sqrt(m.second)
    scale, left = radius / root, m.mass - m.first**2 / m.second
    terms = [(-scale / m.second, 0.0, 1.0)]
    if left > 1e-12 * m.mass:
        terms.append((-scale / left, 1.0, -m.first / m.second))
    value = radius * root + eta
    return WorstCase(value, eta + m.second / m.first, eta, 0.0, 1.0 / m.first, math.inf, scale, tuple(terms))


def _smoothed(sums: LossSums, smoothing: float) -> WorstCase | None:
    """Return the smoothed worst case with weights p_i [l_i - eta]_+ / t, with the exact eta by Newton's method.

    None if the smoothing t is smaller than the rounding error of the losses.
    """
    following = sums.mean - smoothing
    for _ in range(_ROUNDS):
        eta = following
        m = sums.moments(eta, math.inf, eta)
        following = eta + (m.first - smoothing) / m.mass if m.mass > 0.0 else eta
        if not following > eta:
            break
    total = m.first / smoothing
    if not total > 0.0:
        return None
    # The sum of p (ratio - 1)^2 over all losses, with ratio = [l - eta]_+ / t.
    distance = m.second / smoothing**2 - 2.0 * total + 1.0
    attained = eta + m.second / smoothing / total
    value, scale = attained - 0.5 * smoothing * distance, 1.0 / smoothing
    return WorstCase(
        value, attained, eta, 0.0, 1.0 / (smoothing * total), math.inf, scale, ((-scale / m.mass, 1.0, 0.0),)
    )


def _torch_by_sorting(losses: Tensor, square: Tensor, mass: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return value and weights for C^2 (...,), by trying the k largest losses for every k.

    Optimal is the set whose eta lies just below it.
    """
    import torch

    if mass is not None:
        # A loss without mass does not count.
        losses = torch.where(mass > 0, losses, losses.amin(-1, keepdim=True))
    # Sorting float32 takes half as long as sorting float64.
    sorted_losses, order = losses.sort(dim=-1, descending=True)
    values, square = losses.double(), square.unsqueeze(-1)
    shares = torch_shares(values, mass)
    # Every set contains the largest loss: differences from it keep sums of squares exact.
    highest = sorted_losses[..., :1].double()
    differences = values - highest
    descending = sorted_losses.double() - highest
    parts = shares.gather(-1, order)
    cumulative = parts.cumsum(-1)
    mean = (parts * descending).cumsum(-1) / cumulative
    variance = ((parts * descending.square()).cumsum(-1) / cumulative - mean.square()).clamp(min=0)
    excess = square * cumulative - 1.0
    usable = excess > 1e-12
    eta = mean - torch.sqrt(variance / torch.where(usable, excess, torch.ones_like(excess)))
    below = torch.cat([descending[..., 1:], torch.full_like(descending[..., :1], -torch.inf)], -1)
    miss = torch.maximum(below - eta, eta - descending).clamp(min=0)
    best = torch.where(usable, miss, torch.full_like(miss, torch.inf)).argmin(-1, keepdim=True)
    threshold = eta.gather(-1, best)

    at_top = shares * (values == highest)
    top_share = at_top.sum(-1, keepdim=True)
    filled = square * top_share >= 1.0 - 1e-12
    is_mean = (square == 1.0) & ~filled
    over = (differences - threshold).clamp(min=0)
    root = (shares * over.square()).sum(-1, keepdim=True).sqrt()
    weights = shares * over
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
    weights = torch.where(filled, at_top / top_share, weights)
    weights = torch.where(is_mean, shares, weights)
    value = torch.where(filled, highest, square.sqrt() * root + threshold + highest)
    value = torch.where(is_mean, (shares * values).sum(-1, keepdim=True), value)
    return value.squeeze(-1), weights
