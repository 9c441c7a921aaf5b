"""What robust objectives share: evaluation from sums over the losses, smoothing, and their form in torch.

A robust objective has kinks where the largest losses are equal: it does not determine how to share the weight among
them. The smoothed objective

    max over allowed q of  sum_i q_i l_i - (t/2) sum_i (q_i - p_i)^2 / p_i

with t > 0 does. Its weights are allowed too, so that sum_i q_i l_i never exceeds the plain objective.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numba
import numpy as np
from numpy.typing import ArrayLike

from drosurv.errors import check_alpha
from drosurv.objectives.objective import (
    Curvature,
    Evaluation,
    LossSums,
    Moments,
    Objective,
    WorstCase,
)
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from torch import Tensor, device

# Before the first losses, and for losses that are not finite.
_UNKNOWN = WorstCase(*(np.nan,) * 5)


class RobustObjective(Objective):
    """Worst case over the subpopulations that a ball around the patients allows.

    A new ball is a subclass with ``__call__`` for arrays and ``torch_evaluation`` for tensors, registered with
    :func:`drosurv.objectives.register_ball`. `alpha` is the smallest share of patients to protect, one for all rows of
    a batch or one for each.
    """

    def __init__(self, alpha: ArrayLike) -> None:
        self.alpha = check_alpha(alpha)
        self._alpha_on: dict[device, Tensor] = {}

    def alpha_of_row(self, row: int) -> float:
        """Return the alpha of one row of a batch."""
        return float(self.alpha.flat[row % self.alpha.size])

    @abstractmethod
    def torch_evaluation(self, losses: Tensor, mass: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return value (...,) and weights (..., n) in float64 at detached losses (..., n).

        `mass` (..., n) are the patients' masses, of any sum; None for equal masses.
        """

    def torch(self, losses: Tensor, mass: Tensor | None = None) -> Tensor:
        """See :meth:`Objective.torch`. The gradient is the vector of weights (Danskin's theorem)."""
        value, weights = self.torch_evaluation(losses.detach(), mass)
        return value.to(losses.dtype) + (weights.to(losses.dtype) * (losses - losses.detach())).sum(-1)

    def torch_alpha(self, losses: Tensor) -> Tensor:
        """Return alpha (...,) in float64 on the device of losses (..., n), one for each of their rows.

        It is copied to a device once, as a training step must not wait for it.
        """
        import torch

        if losses.device not in self._alpha_on:
            self._alpha_on[losses.device] = torch.tensor(
                self.alpha, dtype=torch.float64, device=losses.device
            )
        alpha = self._alpha_on[losses.device]
        shape = torch.broadcast_shapes(losses.shape[:-1], alpha.shape)  # type: ignore[no-untyped-call]
        return alpha.expand(shape)


def torch_shares(values: Tensor, mass: Tensor | None) -> Tensor:
    """Return masses (..., n) that sum to one, like the values (..., n)."""
    import torch

    if mass is None:
        return torch.full_like(values, 1.0 / values.shape[-1])
    return (mass.double() / mass.double().sum(-1, keepdim=True)).expand(values.shape)


class FromSums(RobustObjective):
    """A robust objective that sums over the losses determine; a subclass implements ``from_sums``."""

    smoothing = 0.0
    _last: tuple[WorstCase, ...] = ()

    def smoothed(self, smoothing: float) -> Objective:
        """Return the objective without kinks."""
        return Smoothed(self, smoothing)

    def __call__(self, losses: FloatArray, mass: FloatArray) -> Evaluation:
        """Return value, weights and threshold; the next search starts at the last thresholds."""
        last = self._last if len(self._last) == len(losses) else (_UNKNOWN,) * len(losses)
        self._last = tuple(self._worst_case(losses[b], mass, last[b].eta, b) for b in range(len(losses)))
        weights = np.empty_like(losses)
        for found, row, out in zip(self._last, losses, weights, strict=True):
            np.multiply(mass, found.ratio(row), out=out)
            # With little smoothing the threshold's last digit decides about single losses: normalise.
            out /= out.sum()
        values, etas = np.array([(found.value, found.eta) for found in self._last]).T
        return Evaluation(values, weights, etas)

    def _worst_case(self, losses: FloatArray, mass: FloatArray, start: float, row: int) -> WorstCase:
        lowest, highest = _ends(losses, mass)
        if np.isnan(lowest):
            return _UNKNOWN

        def moments_of(low: float, high: float, base: float) -> Moments:
            return moments(losses, mass, low, high, base)

        def members(low: float, high: float) -> tuple[FloatArray, FloatArray]:
            inside = (losses > low) & (losses <= high)
            return losses[inside], mass[inside]

        return self.from_sums(LossSums(moments_of, members, lowest, highest, start), self.smoothing, row)


class Smoothed(FromSums):
    """A robust objective with smoothing t > 0."""

    def __init__(self, plain: FromSums, smoothing: float) -> None:
        super().__init__(plain.alpha)
        self.plain, self.smoothing = plain, smoothing

    def smoothed(self, smoothing: float) -> Smoothed:
        """Return the same objective with another smoothing."""
        return Smoothed(self.plain, smoothing)

    def from_sums(self, sums: LossSums, smoothing: float = 0.0, row: int = 0) -> WorstCase:
        """See :meth:`Objective.from_sums`."""
        return self.plain.from_sums(sums, smoothing, row)

    def torch_evaluation(self, losses: Tensor, mass: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Raise: the convex solver alone smooths, on the processor."""
        raise self._needs_processor()

    def curvature(self, losses: FloatArray, mass: FloatArray, at: Evaluation) -> Curvature | None:
        """Return the second derivative at one row of losses (n,)."""
        eta = float(at.eta[0])
        # Usually it is wanted at the losses of the last call.
        known = self._last and self._last[0].eta == eta
        found = self._last[0] if known else self._worst_case(losses, mass, eta, 0)
        return curvature_of(found, losses, mass)


def curvature_of(found: WorstCase, losses: FloatArray, mass: FloatArray) -> Curvature | None:
    """Return the second derivative of a worst case in its losses (n,) of masses (n,); None where no weight changes."""
    if found.scale == 0.0:
        return None
    over = losses - found.eta
    active = mass * ((over > 0.0) & (over < found.cap / found.slope))
    scales, by_active, by_excess = zip(*found.terms, strict=True)
    vectors = np.outer(by_active, active)
    if any(by_excess):
        vectors += np.outer(by_excess, active * over)
    return Curvature(found.scale * active, np.array(scales), vectors)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _ends(losses: FloatArray, mass: FloatArray) -> tuple[float, float]:
    """Return the smallest and largest loss with positive mass; NaN where a loss is not finite."""
    lowest, highest, total = np.inf, -np.inf, 0.0
    for i in range(losses.shape[0]):
        if mass[i] > 0.0:
            lowest = losses[i] if losses[i] < lowest else lowest
            highest = losses[i] if losses[i] > highest else highest
            total += losses[i]
    return (lowest, highest) if np.isfinite(total) else (np.nan, np.nan)


def moments(losses: FloatArray, mass: FloatArray, low: float, high: float, base: float) -> Moments:
    """Return the moments of losses (n,) between two bounds about a base."""
    return Moments(*_moments(losses, mass, low, high, base))


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _moments(
    losses: FloatArray, mass: FloatArray, low: float, high: float, base: float
) -> tuple[float, float, float, float]:
    above = share = first = second = 0.0
    for i in range(losses.shape[0]):
        # Selections in place of branches: only then does the compiler vectorise the loop.
        part = mass[i] if low < losses[i] < high else 0.0
        off = losses[i] - base
        above += mass[i] if losses[i] >= high else 0.0
        share += part
        first += part * off
        second += part * off * off
    return above, share, first, second
