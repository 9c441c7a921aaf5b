"""The mean: every patient weighs the same."""

from __future__ import annotations

import numpy as np

from drosurv.objectives.objective import Curvature, Evaluation
from drosurv.target import FloatArray


class Mean:
    """Weighted mean of the losses, sum_i mass_i l_i."""

    smooth = True

    def smoothed(self, smoothing: float) -> Mean:
        """The mean itself: it has no kinks to smooth."""
        return self

    def __call__(self, losses: FloatArray, mass: FloatArray) -> Evaluation:
        """Value, weights and (for a uniform surface) the value again as threshold."""
        value = losses @ mass
        return Evaluation(value, np.broadcast_to(mass, losses.shape), value)

    def curvature(self, losses: FloatArray, mass: FloatArray, at: Evaluation) -> Curvature | None:
        """None: the mean is linear in the losses."""
        return None
