"""Disparities over pairs of patients: similar patients should have similar hazards (Keya et al., 2021).

They are sums over pairs of the hinge ``[|h_i - h_j| - g ||u_i - u_j||]_+`` with a small ``g``. A pair is *inside* if
``|h_i - h_j| <= g ||u_i - u_j||``, otherwise *active*. The term of an inside pair is 0, and so is its gradient. Rows of
length 1 are at most 2 apart, so that only patients with similar ``h`` can be inside. The sum over all pairs is computed
from the ranks of the hazards; only pairs that may be inside are visited to correct it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numpy.typing import NDArray

from drosurv.patients.target import FloatArray, IntArray
from drosurv.solvers.penalty import Penalty

if TYPE_CHECKING:
    from torch import Tensor

    from drosurv.paper.penalties.pair_tiles import PairTiles

# Largest distance between two rows of length 1 (or 0), with a margin for rounding in the row lengths.
MAX_DISTANCE = 2.0 * (1.0 + 1e-12)

# Columns per chunk, so that the work arrays stay in the L1 cache.
_CHUNK = 512

# Features per step of the distance loop: three are twice as fast as one, more are not faster.
_STRIDE = 3


def unit_rows(X: FloatArray) -> FloatArray:
    """Return each row of (..., n, d) scaled to length 1; rows of zeros stay zero.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    X = np.asarray(X, dtype=np.float64)
    # Dividing by the largest entry first keeps the squares of very large or small entries in range.
    largest = np.abs(X).max(axis=-1, keepdims=True, initial=0.0)
    scaled = X / np.where(largest == 0.0, 1.0, largest)
    length = np.linalg.norm(scaled, axis=-1, keepdims=True)
    return np.asarray(scaled / np.where(length == 0.0, 1.0, length))


# Reassociation and contraction let the compiler vectorise; neither assumes that numbers are finite.
compiled = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


# The loops below are separate functions, with loads before selections: only then does the compiler vectorise them.
@compiled
def _add_squares(
    d2: FloatArray, u: FloatArray, v: FloatArray, w: FloatArray, a: float, b: float, c: float
) -> None:
    # Differences are as fast as 2 - 2 u.v, and exactly 0 for equal rows.
    for j in range(len(d2)):
        x, y, z = u[j] - a, v[j] - b, w[j] - c
        d2[j] += x * x + y * y + z * z


@compiled
def _take_inside(d2: FloatArray, h_above: FloatArray, h: float, scale2: float, net: NDArray[np.int64]) -> int:
    count = 0
    for j in range(len(d2)):
        gap = h_above[j] - h
        one = 1 if gap * gap <= scale2 * d2[j] else 0
        count += one
        net[j] -= one
    return count


@compiled
def _sum_distances(d2: FloatArray, h_above: FloatArray, h: float, scale2: float, active: bool) -> float:
    total = 0.0
    for j in range(len(d2)):
        x, gap = d2[j], h_above[j] - h
        total += np.sqrt(x if (gap * gap <= scale2 * x) != active else 0.0)
    return total


@compiled
def scan(
    h: FloatArray,
    features: FloatArray,
    stop: IntArray,
    scale: float,
    sum_active: bool,
    net: NDArray[np.int64],
) -> tuple[int, float]:
    """Remove the inside pairs from net sign counts, in place; return their number and the sum of their distances.

    If `sum_active`, return instead the sum of distances of the visited pairs that are active. Hazards ``h`` (n,) are
    ascending. Initially ``net[i]`` is the number of patients below i minus the number above; at the end it counts only
    active pairs, so that ``net`` (n,) is the gradient of the hinge sum in ``h``.

    `features` (d', n) are those of :class:`AllPairs` in the same order; patients i + 1 to ``stop[i] - 1`` may be inside
    with i; `scale` is g.
    """
    n_features, n = features.shape
    squared = np.empty(_CHUNK)
    scale2 = scale * scale
    n_inside = 0
    distance = 0.0
    for i in range(n):
        for begin in range(i + 1, stop[i], _CHUNK):
            end = min(begin + _CHUNK, stop[i])
            d2 = squared[: end - begin]
            d2[:] = 0.0
            for k in range(0, n_features, _STRIDE):
                _add_squares(
                    d2,
                    features[k, begin:end],
                    features[k + 1, begin:end],
                    features[k + 2, begin:end],
                    features[k, i],
                    features[k + 1, i],
                    features[k + 2, i],
                )
            inside = _take_inside(d2, h[begin:end], h[i], scale2, net[begin:end])
            net[i] += inside
            n_inside += inside
            wanted = len(d2) - inside if sum_active else inside
            if wanted > 0:
                distance += _sum_distances(d2, h[begin:end], h[i], scale2, sum_active)
    return n_inside, distance


def hinge_sum(
    h: FloatArray, net: NDArray[np.int64], scale: float, n_active: int, active_distance: float
) -> float:
    """Return the hinge sum from its active pairs: sum_i net_i h_i - scale * (sum of their distances).

    Hazards (n,) are ascending; `net` (n,) are the net sign counts of active pairs. Without an active pair the sum is
    exactly 0.
    """
    if n_active == 0:
        return 0.0
    # The counts sum to 0, so h may be shifted, which reduces rounding errors for nearly equal hazards.
    value = net.astype(np.float64) @ (h - h[len(h) // 2]) - scale * active_distance
    return float(np.maximum(value, 0.0))


class PairPenalty(Penalty):
    """A factor times sums over pairs of [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+, with u the rows of X at length 1.

    On the CPU patients are sorted, which takes nearly linear time if hazards vary; an accelerator computes all pairs in
    tiles, for all models together. Both are exact. Neither stores an array of all pairs, except distances on the
    accelerator up to the limit of :mod:`drosurv.paper.penalties.pair_tiles`.
    """

    @cached_property
    def U(self) -> FloatArray:
        """Rows of X scaled to length 1."""
        return unit_rows(self.X)

    @property
    @abstractmethod
    def factor(self) -> float:
        """One over the number of comparisons."""

    @property
    @abstractmethod
    def _pair_sets(self) -> Sequence[Any]:
        """Pairs within disjoint sets of patients, as :class:`AllPairs`; the disparity is the sum over these sets."""

    @property
    @abstractmethod
    def _pair_tiles(self) -> PairTiles:
        """The same pairs for accelerators."""

    def value_and_gradient(self, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """See :meth:`Penalty.value_and_gradient`."""
        values, gradient = np.zeros(len(h)), np.zeros_like(h)
        for pairs in self._pair_sets:
            for model, hazards in enumerate(h):
                value, net = pairs.evaluate(hazards[pairs.patient], self.scale)
                values[model] += value
                gradient[model, pairs.patient] = net
        return values * self.factor, gradient * self.factor

    def torch(self, scores: Tensor) -> Tensor:
        """See :meth:`Penalty.torch`."""
        import torch

        from drosurv.paper.penalties.pair_tiles import ValueWithGradient

        with torch.no_grad():
            if scores.device.type == "cpu":
                pair = self(scores.detach().to(torch.float64).numpy())
                values, gradient = (torch.as_tensor(part, dtype=scores.dtype) for part in pair)
            else:
                values, gradient = self.tiled(scores)
        return ValueWithGradient.apply(scores, values, gradient)

    def tiled(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return values (*batch,) and gradients in the scores (*batch, n), computed in tiles on any device."""
        h = scores.detach().exp().reshape(-1, self.n)
        values, gradient = self._pair_tiles.value_and_gradient(h)
        gradient *= h * self.factor
        return (values * self.factor).reshape(scores.shape[:-1]), gradient.reshape(scores.shape)


@dataclass(frozen=True, eq=False)
class AllPairs:
    """Patients prepared for the hinge sum over all pairs.

    sum_{i<j} [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+

    Distances do not depend on h. Their sum is computed once, in O(n^2) time and O(n) memory. An evaluation then sorts
    the hazards, counts all pairs by rank, and visits only the pairs that may be inside. `features` (d', n) are the
    transposed rows, padded with rows of zeros to a multiple of `_STRIDE`.
    """

    patient: IntArray
    features: FloatArray
    total_distance: float

    @classmethod
    def of(cls, U: FloatArray) -> AllPairs:
        """Prepare patients with unit (or zero) feature rows U (n, d)."""
        n, d = U.shape
        features = np.zeros((max(_STRIDE, -(-d // _STRIDE) * _STRIDE), n))
        features[:d] = U.T
        # With equal hazards every pair is inside, so that the scan sums all distances.
        _, total = scan(np.zeros(n), features, np.full(n, n), 1.0, False, np.zeros(n, dtype=np.int64))
        return cls(np.arange(n), features, total)

    def evaluate(self, h: FloatArray, scale: float) -> tuple[float, NDArray[np.int64]]:
        """Return the sum at hazards h (n,) and its gradient in h, a vector of integers (n,)."""
        n = len(h)
        if n < 2:
            return 0.0, np.zeros(n, dtype=np.int64)
        order = np.argsort(h)
        h = h[order]
        reach = scale * MAX_DISTANCE
        complete = bool(h[-1] - h[0] <= reach)
        stop = np.full(n, n) if complete else np.searchsorted(h, h + reach, side="right")
        net = 2 * np.arange(n, dtype=np.int64) - (n - 1)
        n_inside, distance = scan(h, np.take(self.features, order, axis=1), stop, scale, complete, net)
        active_distance = distance if complete else self.total_distance - distance
        value = hinge_sum(h, net, scale, n * (n - 1) // 2 - n_inside, active_distance)
        gradient = np.empty(n, dtype=np.int64)
        gradient[order] = net
        return value, gradient


class KeyaIndividual(PairPenalty, name="keya_individual"):
    """Individual penalty of Keya et al.: the mean excess of hazard differences over feature distances.

    (1 / (n (n-1))) sum_{i<j} [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+

    with u the rows of X scaled to length 1; 0 for a single patient. Reference as for :class:`KeyaGroup`.
    """

    needs_groups = False

    @cached_property
    def factor(self) -> float:
        """What the sum over pairs of n patients is multiplied by, 1 / (n (n - 1))."""
        return 1.0 / max(self.n * (self.n - 1), 1)

    @cached_property
    def _pair_sets(self) -> list[AllPairs]:
        return [AllPairs.of(self.U)]

    @cached_property
    def _pair_tiles(self) -> PairTiles:
        from drosurv.paper.penalties.pair_tiles import PairTiles

        return PairTiles.of_all_pairs(self.U, self.scale)
