"""Objectives with a price on leaving the whole population, which takes away their kinks.

    max over allowed q of  sum_i q_i l_i - (t/2) sum_i (q_i - p_i)^2 / p_i

Where the largest losses are equal, the plain objective does not say how to share the weight among them, and has no
gradient. There the price t decides. The weights stay allowed, so sum_i q_i l_i never exceeds the plain objective.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numba
import numpy as np

from drosurv.objectives.objective import Curvature, Evaluation, Objective
from drosurv.objectives.tilt import Moments, Spread, Tilt
from drosurv.target import FloatArray

if TYPE_CHECKING:
    pass

# Before the first losses, and of losses that are no numbers.
_NONE = Tilt(*(np.nan,) * 5)


class FromSums(Objective):
    """An objective that sums over the losses determine: nobody needs all of them in one place."""

    price = 0.0
    _last: tuple[Tilt, ...] = ()

    @abstractmethod
    def tilt(self, spread: Spread, price: float = 0.0, row: int = 0) -> Tilt:
        """The objective of one row of a batch, with a price on leaving the whole population."""

    def smoothed(self, smoothing: float) -> Objective:
        """The objective without its kinks, at a price."""
        return Tilted(self, smoothing)

    def __call__(self, losses: FloatArray, mass: FloatArray) -> Evaluation:
        """Value, weights and threshold; the last thresholds are where the next search starts."""
        last = self._last if len(self._last) == len(losses) else (_NONE,) * len(losses)
        self._last = tuple(self._tilt(losses[b], mass, last[b].eta, b) for b in range(len(losses)))
        weights = np.empty_like(losses)
        for tilt, row, own in zip(self._last, losses, weights, strict=True):
            np.multiply(mass, tilt.ratio(row), out=own)
            # At a small price the threshold's last digit decides about single losses: what it leaves is shared out.
            own /= own.sum()
        values, etas = np.array([(tilt.value, tilt.eta) for tilt in self._last]).T
        return Evaluation(values, weights, etas)

    def _tilt(self, losses: FloatArray, mass: FloatArray, start: float, row: int) -> Tilt:
        lowest, highest = _ends(losses, mass)
        if np.isnan(lowest):
            return _NONE

        def sums(low: float, high: float, base: float) -> Moments:
            return moments(losses, mass, low, high, base)

        def members(low: float, high: float) -> tuple[FloatArray, FloatArray]:
            inside = (losses > low) & (losses <= high)
            return losses[inside], mass[inside]

        return self.tilt(Spread(sums, members, lowest, highest, start), self.price, row)


class Tilted(FromSums):
    """An objective and a price t > 0, by its tilt: :mod:`drosurv.objectives.tilt`."""

    def __init__(self, plain: FromSums, price: float) -> None:
        self.plain, self.price = plain, price

    def smoothed(self, smoothing: float) -> Tilted:
        """The same objective with another price."""
        return Tilted(self.plain, smoothing)

    def tilt(self, spread: Spread, price: float = 0.0, row: int = 0) -> Tilt:
        """The plain objective's."""
        return self.plain.tilt(spread, price, row)

    def curvature(self, losses: FloatArray, mass: FloatArray, at: Evaluation) -> Curvature | None:
        """Second derivative in one row of losses: those strictly between no weight and full weight share it."""
        eta = float(at.eta[0])
        # Mostly it is asked where the value was.
        known = self._last and self._last[0].eta == eta
        return bend(self._last[0] if known else self._tilt(losses, mass, eta, 0), losses, mass)


def bend(tilt: Tilt, losses: FloatArray, mass: FloatArray) -> Curvature | None:
    """Second derivative of a tilt in its losses (n,) of masses (n,); None where no weight moves."""
    if tilt.scale == 0.0:
        return None
    over = losses - tilt.eta
    active = mass * ((over > 0.0) & (over < tilt.cap / tilt.slope))
    scales, by_active, by_along = zip(*tilt.terms, strict=True)
    vectors = np.outer(by_active, active)
    if any(by_along):
        vectors += np.outer(by_along, active * over)
    return Curvature(tilt.scale * active, np.array(scales), vectors)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _ends(losses: FloatArray, mass: FloatArray) -> tuple[float, float]:
    """Smallest and largest loss; an entry without mass must not pass for one. NaN where a loss is not finite."""
    lowest, highest, total = np.inf, -np.inf, 0.0
    for i in range(losses.shape[0]):
        if mass[i] > 0.0:
            lowest = losses[i] if losses[i] < lowest else lowest
            highest = losses[i] if losses[i] > highest else highest
            total += losses[i]
    return (lowest, highest) if np.isfinite(total) else (np.nan, np.nan)


def moments(losses: FloatArray, mass: FloatArray, low: float, high: float, base: float) -> Moments:
    """The moments of losses (n,) between two bounds about a base."""
    return Moments(*_moments(losses, mass, low, high, base))


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
