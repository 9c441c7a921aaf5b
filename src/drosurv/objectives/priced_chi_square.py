"""The chi-square robust objective with a price on leaving the whole population, which takes away its kinks.

    max over q in the ball of  sum_i q_i l_i - (t/2) sum_i (q_i - p_i)^2 / p_i

Where the largest losses are equal and alone fill the ball, the plain objective is their maximum, and has no
gradient. There the price t decides how the adversary spreads: q_i = p_i [l_i - eta]_+ / t, with eta such that they
sum to one. Elsewhere the ball decides, the weights are the plain ones, and the price is a constant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
import numpy as np

from drosurv.objectives.objective import Curvature, Evaluation
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from drosurv.objectives.chi_square import ChiSquare


class PricedChiSquare:
    """A chi-square objective and a price t > 0.

    Its weights are in the ball, so sum_i q_i l_i never exceeds the plain objective.

    Parameters
    ----------
    plain : ChiSquare
        The objective without a price.
    price : float
        The price t.
    """

    smooth = True

    def __init__(self, plain: ChiSquare, price: float) -> None:
        self.plain, self.price = plain, price

    def smoothed(self, smoothing: float) -> PricedChiSquare:
        """The same objective with another price."""
        return PricedChiSquare(self.plain, smoothing)

    def __call__(self, losses: FloatArray, mass: FloatArray) -> Evaluation:
        """Value, weights and threshold."""
        at = self.plain(losses, mass)
        value, eta, weights = at.value.copy(), at.eta.copy(), at.weights
        room = np.broadcast_to(self.plain.constant**2 - 1.0, value.shape)
        _charge(losses, mass, room, self.price, value, eta, weights)
        return Evaluation(value, weights, eta)

    def curvature(self, losses: FloatArray, mass: FloatArray, at: Evaluation) -> Curvature | None:
        """Second derivative in one row of losses: that of the plain objective unless the price decides."""
        excess = np.maximum(losses - at.eta[0], 0.0)
        # Inside the ball the weights are p [l - eta]_+ / t, and their divergence tells that they are inside.
        if float(mass @ excess**2) >= (1.0 - 1e-9) * (float(self.plain.constant[0]) * self.price) ** 2:
            return self.plain.curvature(losses, mass, at)
        active = mass * (losses > at.eta[0])
        scale = 1.0 / self.price
        return Curvature(scale * active, np.array([-scale / active.sum()]), active[None, :])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _charge(
    losses: FloatArray,
    mass: FloatArray,
    room: FloatArray,
    price: float,
    value: FloatArray,
    eta: FloatArray,
    weights: FloatArray,
) -> None:
    n = losses.shape[1]
    for b in range(losses.shape[0]):
        row, threshold = losses[b], eta[b]
        total = mean = 0.0
        for i in range(n):
            total += mass[i] * max(row[i] - threshold, 0.0)
            mean += mass[i] * row[i]
        if total >= price:
            value[b] -= 0.5 * price * room[b]
            continue
        # Newton's method from below on a convex, falling, piecewise linear function ends exactly.
        threshold = mean - price
        for _ in range(200):
            total, share = 0.0, 0.0
            for i in range(n):
                if row[i] > threshold:
                    total += mass[i] * (row[i] - threshold)
                    share += mass[i]
            following = threshold + (total - price) / share if share > 0.0 else threshold
            if not following > threshold:
                break
            threshold = following
        total = reached = paid = 0.0
        for i in range(n):
            ratio = max(row[i] - threshold, 0.0) / price
            weights[b, i] = mass[i] * ratio
            total += mass[i] * ratio
            reached += mass[i] * ratio * (row[i] - threshold)
            paid += mass[i] * (ratio - 1.0) ** 2
        for i in range(n):
            weights[b, i] /= total
        eta[b] = threshold
        value[b] = threshold + reached / total - 0.5 * price * paid
