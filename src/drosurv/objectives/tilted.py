"""Objectives with a price on leaving the whole population, which takes away their kinks.

    max over allowed q of  sum_i q_i l_i - (t/2) sum_i (q_i - p_i)^2 / p_i

Where the largest losses are equal, the plain objective does not say how to share the weight among them, and has no
gradient. There the price t decides. The weights stay allowed, so sum_i q_i l_i never exceeds the plain objective.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numba
import numpy as np

from drosurv.objectives.objective import Curvature, Evaluation, Objective
from drosurv.objectives.tilt import Moments, Spread, Tilt
from drosurv.target import FloatArray


class Tilted(Objective):
    """An objective and a price t > 0, by its tilt: :mod:`drosurv.objectives.tilt`.

    Parameters
    ----------
    tilts : sequence of callables
        Spread of the losses and ``price`` to the tilt: one for all rows, or one for each.
    price : float
        The price t.
    """

    def __init__(self, tilts: Sequence[Callable[..., Tilt]], price: float) -> None:
        self._tilts, self.price = tilts, price
        self._first = Tilt(*(np.nan,) * 5)

    def smoothed(self, smoothing: float) -> Tilted:
        """The same objective with another price."""
        return Tilted(self._tilts, smoothing)

    def __call__(self, losses: FloatArray, mass: FloatArray) -> Evaluation:
        """Value, weights and threshold."""
        found = [self._tilt(row, mass, b) for b, row in enumerate(losses)]
        self._first = found[0]
        weights = np.stack([_weights(tilt, row, mass) for tilt, row in zip(found, losses, strict=True)])
        return Evaluation(
            np.array([tilt.value for tilt in found]), weights, np.array([tilt.eta for tilt in found])
        )

    def curvature(self, losses: FloatArray, mass: FloatArray, at: Evaluation) -> Curvature | None:
        """Second derivative in one row of losses: those strictly between no weight and full weight share it."""
        # Mostly it is asked where the value was.
        tilt = self._first if self._first.eta == at.eta[0] else self._tilt(losses, mass, 0)
        if tilt.scale == 0.0:
            return None
        over = losses - tilt.eta
        active = mass * ((over > 0.0) & (over * tilt.slope < tilt.cap))
        scales, by_active, by_along = np.array(tilt.terms).T
        vectors = active * (by_active[:, None] + by_along[:, None] * over)
        return Curvature(tilt.scale * active, scales, vectors)

    def _tilt(self, losses: FloatArray, mass: FloatArray, row: int) -> Tilt:
        # An entry without mass must not pass for the largest loss.
        held = losses if mass.all() else losses[mass > 0]

        def members(low: float, high: float) -> tuple[FloatArray, FloatArray]:
            inside = (losses > low) & (losses <= high)
            return losses[inside], mass[inside]

        spread = Spread(
            lambda low, high, base: Moments(*_moments(losses, mass, low, high, base)),
            members,
            float(held.min()),
            float(held.max()),
        )
        return self._tilts[row % len(self._tilts)](spread, price=self.price)


def _weights(tilt: Tilt, losses: FloatArray, mass: FloatArray) -> FloatArray:
    weights = mass * tilt.ratio(losses)
    # At a small price the threshold's last digit decides about single losses: what it leaves is shared out.
    shares: FloatArray = weights / weights.sum()
    return shares


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _moments(
    losses: FloatArray, mass: FloatArray, low: float, high: float, base: float
) -> tuple[float, float, float, float]:
    above = share = first = second = 0.0
    for i in range(losses.shape[0]):
        # Selections in place of branches: only so does the compiler give the loop vector lanes.
        part = mass[i] if low < losses[i] < high else 0.0
        off = losses[i] - base
        above += mass[i] if losses[i] >= high else 0.0
        share += part
        first += part * off
        second += part * off * off
    return above, share, first, second
