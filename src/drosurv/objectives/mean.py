"""The mean: every patient weighs the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drosurv.objectives.objective import Evaluation
from drosurv.objectives.tilt import Spread, Tilt, mean
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from torch import Tensor
from drosurv.objectives.tilted import FromSums


class Mean(FromSums):
    """Weighted mean of the losses, sum_i mass_i l_i."""

    def __call__(self, losses: FloatArray, mass: FloatArray) -> Evaluation:
        """Value, weights and (for a uniform surface) the value again as threshold."""
        value = losses @ mass
        # One model is the usual case, and a plain view is much quicker than a broadcast.
        weights = mass[None] if len(losses) == 1 else np.broadcast_to(mass, losses.shape)
        return Evaluation(value, weights, value)

    def tilt(self, spread: Spread, price: float = 0.0, row: int = 0) -> Tilt:
        """From sums alone; a price changes nothing."""
        return mean(spread)

    def smoothed(self, smoothing: float) -> Mean:
        """The mean, which has no kinks."""
        return self

    def torch(self, losses: Tensor, mass: Tensor) -> Tensor:
        """Values (..., B) at losses (..., B, n) and masses (..., 1, n), differentiable."""
        weights = mass.to(losses.dtype)
        return (losses * weights).sum(-1) / weights.sum(-1).clamp(min=1e-30)
