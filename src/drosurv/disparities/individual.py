"""Individual disparity: patients alike in features should have alike hazards (Keya et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from drosurv.disparities.hinge_scan import MAX_DISTANCE, feature_rows, hinge_sum, scan
from drosurv.disparities.pair_penalty import PairPenalty
from drosurv.target import FloatArray, IntArray

if TYPE_CHECKING:
    from drosurv.disparities.pair_tiles import PairTiles


@dataclass(frozen=True, eq=False)
class AllPairs:
    """Patients prepared for the hinge sum over all pairs.

    sum_{i<j} [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+

    Distances do not depend on h. Their total is taken once, in O(n^2) time and O(n) memory; from then on an evaluation
    sorts, counts all pairs by rank, and visits only the pairs that may be inside the hinge. `features` (d', n) come
    from :func:`drosurv.disparities.hinge_scan.feature_rows`.
    """

    patient: IntArray
    features: FloatArray
    total_distance: float

    @classmethod
    def of(cls, U: FloatArray) -> AllPairs:
        """Prepare patients with unit (or zero) feature rows U (n, d)."""
        features, n = feature_rows(U), len(U)
        # At equal hazards every pair is inside.
        _, total = scan(np.zeros(n), features, np.full(n, n), 1.0, False, np.zeros(n, dtype=np.int64))
        return cls(np.arange(n), features, total)

    def evaluate(self, h: FloatArray, scale: float) -> tuple[float, NDArray[np.int64]]:
        """The sum at hazards h (n,) and its gradient in h, which is a vector of integers (n,)."""
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


def pairwise_hinge_sum(h: FloatArray, U: FloatArray, scale: float) -> float:
    """How far hazards (n,) differ beyond what features explain, summed over pairs; exact, in O(n) memory.

    sum_{i<j} [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+

    The feature rows U (n, d) have length 1 or 0.

    >>> pairwise_hinge_sum(np.array([1.0, 3.0]), np.array([[1.0, 0.0], [-1.0, 0.0]]), scale=0.5)
    1.0
    """
    return AllPairs.of(U).evaluate(h, scale)[0]


class KeyaIndividual(PairPenalty):
    """Individual penalty of Keya et al.: the mean excess of hazard differences over feature distances.

    (1 / (n (n-1))) sum_{i<j} [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+

    with u the rows of X at length 1; 0 for a single patient. Reference as for :class:`KeyaGroup`.
    """

    needs_groups = False

    @cached_property
    def factor(self) -> float:
        """One over the ordered pairs."""
        return 1.0 / max(self.n * (self.n - 1), 1)

    @cached_property
    def _pair_sets(self) -> list[AllPairs]:
        return [AllPairs.of(self.U)]

    @cached_property
    def _pair_tiles(self) -> PairTiles:
        from drosurv.disparities.pair_tiles import PairTiles

        return PairTiles.of_all_pairs(self.U, self.scale)
