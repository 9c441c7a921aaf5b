"""Individual disparity: patients alike in features should have alike hazards (Keya et al., 2021)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from drosurv.disparities.all_pairs import AllPairs
from drosurv.disparities.pair_penalty import PairPenalty
from drosurv.target import FloatArray, Target

if TYPE_CHECKING:
    from drosurv.disparities.pair_tiles import PairTiles


def unit_rows(X: FloatArray) -> FloatArray:
    """Scale each row to length 1; rows of zeros stay zero.

    Parameters
    ----------
    X : (..., n, d) float

    Returns
    -------
    (..., n, d) float64

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv.disparities import unit_rows
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    X = np.asarray(X, dtype=np.float64)
    # Dividing by the largest entry first keeps the squares of very large or small entries in range.
    largest = np.abs(X).max(axis=-1, keepdims=True, initial=0.0)
    scaled = X / np.where(largest == 0.0, 1.0, largest)
    length = np.linalg.norm(scaled, axis=-1, keepdims=True)
    return np.asarray(scaled / np.where(length == 0.0, 1.0, length))


def pairwise_hinge_sum(h: FloatArray, U: FloatArray, scale: float) -> float:
    """How far hazards differ beyond what features explain, summed over pairs.

    sum_{i<j} [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+

    Exact, in O(n) memory.

    Parameters
    ----------
    h : (n,) float64
        Hazards.
    U : (n, d) float64
        Feature rows of length 1 or 0, from :func:`unit_rows`.
    scale : float
        Hazard difference allowed per unit of feature distance, not negative.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv.disparities import pairwise_hinge_sum
    >>> pairwise_hinge_sum(np.array([1.0, 3.0]), np.array([[1.0, 0.0], [-1.0, 0.0]]), scale=0.5)
    1.0
    """
    return AllPairs.of(U).evaluate(h, scale)[0]


class KeyaIndividual(PairPenalty):
    """Individual penalty of Keya et al.: the mean excess of hazard differences over feature distances.

    (1 / (n (n-1))) sum_{i<j} [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+

    with u the rows of X at length 1; 0 for a single patient.

    Parameters
    ----------
    X : (n, d) float64
        Standardised features.
    scale : float
        Hazard difference allowed per unit of feature distance.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv.disparities import KeyaIndividual
    >>> penalty = KeyaIndividual(np.array([[1.0, 0.0], [-1.0, 0.0]]), scale=0.5)
    >>> values, gradient = penalty(np.log([[1.0, 3.0]]))
    >>> values, gradient
    (array([0.5]), array([[-0.5,  1.5]]))

    Reference as for :class:`KeyaGroup`.
    """

    needs_groups = False

    def __init__(self, X: FloatArray, scale: float = 0.01) -> None:
        n = len(X)
        super().__init__(unit_rows(X), 1.0 / (n * (n - 1)) if n > 1 else 0.0, scale)

    @classmethod
    def prepare(
        cls, X: FloatArray, target: Target, codes: NDArray[np.int64] | None, n_groups: int, scale: float
    ) -> Self:
        """From a training set; target and groups play no part."""
        return cls(X, scale)

    def subset(self, rows: NDArray[Any]) -> Self:
        """The penalty of the given patients alone."""
        return type(self)(self.U[rows], self.scale)

    @cached_property
    def _pair_sets(self) -> list[AllPairs]:
        return [AllPairs.of(self.U)]

    @cached_property
    def _pair_tiles(self) -> PairTiles:
        from drosurv.disparities.pair_tiles import PairTiles

        return PairTiles.of_all_pairs(self.U, self.scale)
