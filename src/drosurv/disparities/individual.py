"""Individual disparity: patients alike in features should have alike hazards (Keya et al., 2021)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from drosurv.disparities.all_pairs import AllPairs
from drosurv.disparities.pair_penalty import PairPenalty
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from drosurv.disparities.pair_tiles import PairTiles


def pairwise_hinge_sum(h: FloatArray, U: FloatArray, scale: float) -> float:
    """How far hazards (n,) differ beyond what features explain, summed over pairs; exact, in O(n) memory.

    sum_{i<j} [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+

    The feature rows U (n, d) have length 1 or 0.

    >>> import numpy as np
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
