"""What the penalties over pairs of patients share: a sorted scan on the CPU, tiles on other devices."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from drosurv.disparities.hinge_scan import unit_rows
from drosurv.disparities.penalty import Penalty
from drosurv.target import FloatArray, IntArray

if TYPE_CHECKING:
    from torch import Tensor

    from drosurv.disparities.pair_tiles import PairTiles


class PairSet(Protocol):
    """Pairs among some patients, prepared for repeated evaluation."""

    @property
    def patient(self) -> IntArray:
        """Who they are, (m,)."""

    def evaluate(self, h: FloatArray, scale: float) -> tuple[float, NDArray[np.int64]]:
        """The hinge sum at the patients' hazards h (m,) and its gradient in h, a vector of integers (m,)."""


class PairPenalty(Penalty):
    """A factor times sums over pairs of [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+, with u the rows of X at length 1.

    On the CPU an evaluation takes near-linear time when scores are spread; elsewhere it goes through dense
    tiles, all models together. Both are exact and neither holds an array of all pairs, except distances on the
    device while they fit the cap of :mod:`drosurv.disparities.pair_tiles`.
    """

    @cached_property
    def U(self) -> FloatArray:
        """Rows of X at length 1."""
        return unit_rows(self.X)

    @property
    @abstractmethod
    def factor(self) -> float:
        """One over the number of comparisons; anything where there is none."""

    @property
    @abstractmethod
    def _pair_sets(self) -> Sequence[PairSet]:
        """Prepared pairs of disjoint sets of patients; the disparity is the sum over these sets."""

    @property
    @abstractmethod
    def _pair_tiles(self) -> PairTiles:
        """The same pairs for dense work."""

    def value_and_gradient(self, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values (B,) and gradients in h (B, n) at hazards h (B, n)."""
        values, gradient = np.zeros(len(h)), np.zeros_like(h)
        for pairs in self._pair_sets:
            for model, hazards in enumerate(h):
                value, net = pairs.evaluate(hazards[pairs.patient], self.scale)
                values[model] += value
                gradient[model, pairs.patient] = net
        return values * self.factor, gradient * self.factor

    def torch(self, scores: Tensor) -> Tensor:
        """Differentiable values (*batch,) at scores (*batch, n)."""
        import torch

        from drosurv.disparities.pair_tiles import ValueWithGradient

        self.check_scores(tuple(scores.shape))
        with torch.no_grad():
            if scores.device.type == "cpu":
                pair = self(scores.detach().to(torch.float64).numpy())
                values, gradient = (torch.as_tensor(part, dtype=scores.dtype) for part in pair)
            else:
                values, gradient = self.tiled(scores)
        attached: Tensor = ValueWithGradient.apply(scores, values, gradient)  # type: ignore[no-untyped-call]
        return attached

    def tiled(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Values and gradients in the scores by dense tiles, on any device; shapes as for :meth:`torch`."""
        h = scores.detach().exp().reshape(-1, self.n)
        values, gradient = self._pair_tiles.value_and_gradient(h)
        gradient *= h * self.factor
        return (values * self.factor).reshape(scores.shape[:-1]), gradient.reshape(scores.shape)
