"""Base class of objectives, which combine losses into one number; the mean, and sums over blocks of patients."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from drosurv.errors import OnProcessorOnly, arg
from drosurv.patients.target import FloatArray, IntArray

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Evaluation:
    """An objective evaluated at a batch of losses (B, n): its `value` (B,), `weights` (B, n) and threshold `eta` (B,).

    The weights are the gradient in the losses, not negative and summing to one: the worst-case weights of a robust
    objective. Only losses above the threshold have weight; for the mean, it is the objective itself.
    """

    value: FloatArray
    weights: FloatArray
    eta: FloatArray


@dataclass(frozen=True, eq=False)
class Curvature:
    """Second derivative of an objective in its losses: diag(diagonal) + sum_r scale_r vector_r vector_r'."""

    diagonal: FloatArray
    scales: FloatArray
    vectors: FloatArray


class Objective(ABC):
    """A function of losses (B, n) and the masses of the patients (n,), with one value per row of losses.

    Attributes
    ----------
    smooth : bool
        Whether the objective is differentiable almost everywhere, so that a solver may try Newton's method.
    tol : float
        Relative gap at which the convex solver stops by default.
    by_patient : bool
        Whether the objective needs every patient's loss, so that patients with loss zero must not be merged.
    radius : (B,) float64 or None
        Constants C of a chi-square ball, for the compiled solver; None for other objectives.
    """

    smooth: bool = True
    tol: float = 1e-8
    by_patient: bool = False
    radius: FloatArray | None = None

    @abstractmethod
    def __call__(self, losses: FloatArray, mass: FloatArray) -> Evaluation:
        """Return value, weights and threshold at the losses."""

    def curvature(self, losses: FloatArray, mass: FloatArray, at: Evaluation) -> Curvature | None:
        """Return the second derivative at one row of losses (n,); None if it is zero or undefined."""
        return None

    def smoothed(self, smoothing: float) -> Objective:
        """Return a differentiable objective that is at most this one, and converges to it as `smoothing` goes to 0."""
        return self

    def torch(self, losses: Tensor, mass: Tensor) -> Tensor:
        """Return differentiable values (..., B) at tensors of losses (..., B, n) and masses (..., 1, n) of any sum."""
        raise self._needs_cpu()

    def from_sums(self, sums: LossSums, smoothing: float = 0.0, row: int = 0) -> WorstCase:
        """Return the objective of one row of a batch, computed only from sums over the losses.

        Training on accelerators and clusters uses it, because no machine has all losses.
        """
        raise self._needs_cpu()

    def _needs_cpu(self) -> OnProcessorOnly:
        name = type(self).__name__
        return OnProcessorOnly(
            "device", f"{arg('device')} must be 'auto' or 'cpu': {name} runs only on the CPU."
        )


class Moments(NamedTuple):
    """Moments of losses: the mass at or above an upper bound; and mass, first and second moment between two bounds.

    The moments are about a base: sums of mass times (loss - base) and of mass times (loss - base)^2.
    """

    above: float
    mass: float
    first: float
    second: float


class LossSums(NamedTuple):
    """Sums over the losses, from which robust objectives find their threshold.

    ``moments(low, high, base)`` returns the moments of the losses strictly between two bounds; ``members(low, high)``
    returns the losses in (low, high] with their masses. `lowest` and `highest` are the smallest and largest loss.
    `start` is the threshold of the last evaluation, NaN before the first.
    """

    moments: Callable[[float, float, float], Moments]
    members: Callable[[float, float], tuple[FloatArray, FloatArray]]
    lowest: float
    highest: float
    start: float = math.nan

    @classmethod
    def of(cls, losses: FloatArray, mass: FloatArray, start: float = math.nan) -> LossSums:
        """Return the sums over losses (n,) with given masses (n,), all of which are in this process."""
        order = np.argsort(losses)
        ascending, masses = losses[order], mass[order]
        # The mass of the losses from each position on, summed from the largest loss.
        above = np.append(np.cumsum(masses[::-1])[::-1], 0.0)

        def moments(low: float, high: float, base: float) -> Moments:
            first, end = np.searchsorted(ascending, low, side="right"), np.searchsorted(ascending, high)
            part, off = masses[first:end], ascending[first:end] - base
            weighted = part * off
            return Moments(float(above[end]), float(part.sum()), float(weighted.sum()), float(weighted @ off))

        def members(low: float, high: float) -> tuple[FloatArray, FloatArray]:
            inside = slice(*np.searchsorted(ascending, [low, high], side="right"))
            return ascending[inside], masses[inside]

        return cls(moments, members, float(ascending[0]), float(ascending[-1]), start)

    @property
    def may_start(self) -> bool:
        """Whether the last threshold lies between the smallest and the largest loss."""
        return self.lowest < self.start < self.highest

    @property
    def mean(self) -> float:
        """The average loss."""
        m = self.moments(-math.inf, math.inf, self.lowest)
        return self.lowest + m.first / m.mass


class WorstCase(NamedTuple):
    """A robust objective at some losses: a few numbers that determine its value, weights and second derivative.

    A loss l_i > eta of mass p_i has the weight q_i = p_i level or q_i = p_i min(slope (l_i - eta), cap), and `level` or
    `slope` is zero. A loss l_i = eta has the weight q_i = p_i border. `attained` is sum_i q_i l_i, which is larger than
    the value of a smoothed objective.

    For the losses whose weights change, the second derivative has p_i scale on the diagonal; in addition, each of the
    `terms` (scale, by_active, by_excess) adds scale v v' with v_i = p_i (by_active + by_excess (l_i - eta)).
    """

    value: float
    attained: float
    eta: float
    level: float
    slope: float
    cap: float = math.inf
    scale: float = 0.0
    terms: tuple[tuple[float, float, float], ...] = ()
    border: float = 0.0

    @classmethod
    def mean(cls, sums: LossSums) -> WorstCase:
        """Return the average loss."""
        value = sums.mean
        return cls(value, value, -math.inf, 1.0, 0.0)

    def ratio(self, losses: Any) -> Any:
        """Return q_i / p_i of losses, a NumPy or torch array."""
        if self.slope > 0.0:
            return (self.slope * (losses - self.eta)).clip(0.0, self.cap)
        ratio = self.level * (losses > self.eta)
        return ratio + self.border * (losses == self.eta) if self.border > 0.0 else ratio


class Mean(Objective):
    """Weighted mean of the losses, sum_i mass_i l_i."""

    def __call__(self, losses: FloatArray, mass: FloatArray) -> Evaluation:
        """Return value and weights, with the value as threshold."""
        value = losses @ mass
        # For one model, the usual case, a view is much faster than a broadcast.
        weights = mass[None] if len(losses) == 1 else np.broadcast_to(mass, losses.shape)
        return Evaluation(value, weights, value)

    def from_sums(self, sums: LossSums, smoothing: float = 0.0, row: int = 0) -> WorstCase:
        """See :meth:`Objective.from_sums`; the mean has no kinks to smooth."""
        return WorstCase.mean(sums)

    def torch(self, losses: Tensor, mass: Tensor) -> Tensor:
        """See :meth:`Objective.torch`."""
        weights = mass.to(losses.dtype)
        return (losses * weights).sum(-1) / weights.sum(-1).clamp(min=1e-30)


class Blocks(Objective):
    """The sum over disjoint blocks of patients of one objective of each block's losses."""

    def __init__(self, objective: Objective, rows: Sequence[IntArray]) -> None:
        self.smooth, self.tol, self.rows = objective.smooth, objective.tol, list(rows)
        # Copies, because an objective stores its last threshold.
        self.parts = [copy.copy(objective) for _ in self.rows]
        self._mass: FloatArray | None = None
        self._shares: list[FloatArray] = []

    def smoothed(self, smoothing: float) -> Blocks:
        """Return the sum with every block's objective smoothed."""
        return Blocks(self.parts[0].smoothed(smoothing), self.rows)

    def __call__(self, losses: FloatArray, mass: FloatArray) -> Evaluation:
        """Return the summed value, weights that sum to one in each block, and the thresholds (B, blocks)."""
        weights = np.zeros_like(losses)
        values, etas = np.zeros(len(losses)), []
        for part, rows, share in zip(self.parts, self.rows, self.shares(mass), strict=True):
            here = part(losses.take(rows, axis=1), share)
            values += here.value
            weights[:, rows] = here.weights
            etas.append(here.eta)
        return Evaluation(values, weights, np.stack(etas, axis=-1))

    def shares(self, mass: FloatArray) -> list[FloatArray]:
        """Return the masses in each block, summing to one; they are cached for the last `mass`."""
        if mass is not self._mass:
            self._mass, self._shares = mass, [mass[rows] / mass[rows].sum() for rows in self.rows]
        return self._shares

    def curvature(self, losses: FloatArray, mass: FloatArray, at: Evaluation) -> Curvature | None:
        """Return the second derivatives of all blocks."""
        n = len(losses)
        diagonal, scales, vectors = np.zeros(n), [np.zeros(0)], [np.zeros((0, n))]
        for j, (part, rows) in enumerate(zip(self.parts, self.rows, strict=True)):
            block = Evaluation(at.value, at.weights[:, rows], at.eta[:, j])
            here = part.curvature(losses[rows], self.shares(mass)[j], block)
            if here is not None:
                diagonal[rows] = here.diagonal
                wide = np.zeros((len(here.scales), n))
                wide[:, rows] = here.vectors
                scales.append(here.scales)
                vectors.append(wide)
        return Curvature(diagonal, np.concatenate(scales), np.concatenate(vectors))


def uniform_mass(n: int) -> FloatArray:
    """Return equal masses of n patients, summing to one."""
    return np.full(n, 1.0 / n)
