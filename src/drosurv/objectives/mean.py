"""The mean: every patient weighs the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drosurv.objectives.objective import Curvature, Evaluation
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from torch import Tensor


class Mean:
    """Weighted mean of the losses, sum_i mass_i l_i."""

    smooth = True
    radius = None

    def smoothed(self, smoothing: float) -> Mean:
        """The mean itself: it has no kinks to smooth."""
        return self

    def __call__(self, losses: FloatArray, mass: FloatArray) -> Evaluation:
        """Value, weights and (for a uniform surface) the value again as threshold."""
        value = losses @ mass
        return Evaluation(value, np.broadcast_to(mass, losses.shape), value)

    def torch(self, losses: Tensor, mass: Tensor) -> Tensor:
        """Values (..., B) at losses (..., B, n) and masses (..., 1, n), differentiable."""
        weights = mass.to(losses.dtype)
        return (losses * weights).sum(-1) / weights.sum(-1).clamp(min=1e-30)

    def curvature(self, losses: FloatArray, mass: FloatArray, at: Evaluation) -> Curvature | None:
        """None: the mean is linear in the losses."""
        return None
