"""Censoring-aware disparities: the censored against those with a later event (Rahman & Purushotham, 2022)."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from drosurv.disparities.censored_event_pairs import CensoredEventPairs
from drosurv.disparities.individual import unit_rows
from drosurv.disparities.pair_penalty import PairPenalty
from drosurv.target import BoolArray, FloatArray, Target

if TYPE_CHECKING:
    from drosurv.disparities.pair_tiles import PairTiles, Side


def censored_event_hinge_sum(
    h: FloatArray, U: FloatArray, event: BoolArray, time: FloatArray, scale: float
) -> float:
    """How far hazards of comparable censored and event patients differ beyond what features explain.

    sum over i censored, j with event, Y_i <= Y_j of [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+

    Exact, in O(n) memory; 0 without a comparable pair.

    Parameters
    ----------
    h, U, scale
        As in :func:`pairwise_hinge_sum`.
    event : (n,) bool
    time : (n,) float64

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv.disparities import censored_event_hinge_sum
    >>> h, U = np.array([1.0, 3.0]), np.array([[1.0, 0.0], [-1.0, 0.0]])
    >>> censored_event_hinge_sum(h, U, np.array([False, True]), np.array([2.0, 5.0]), scale=0.5)
    1.0
    """
    pairs = CensoredEventPairs.of(U, event, time)
    return pairs.evaluate(h[pairs.patient], scale)[0]


def censored_event_hinge_sum_within_groups(
    h: FloatArray,
    U: FloatArray,
    event: BoolArray,
    time: FloatArray,
    codes: NDArray[np.int64],
    scale: float,
) -> float:
    """:func:`censored_event_hinge_sum` over pairs of one group, summed over groups.

    Parameters
    ----------
    h, U, event, time, scale
        As there.
    codes : (n,) int
        Group of each patient.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv.disparities import censored_event_hinge_sum_within_groups
    >>> h, U = np.array([1.0, 3.0]), np.array([[1.0, 0.0], [-1.0, 0.0]])
    >>> event, time = np.array([False, True]), np.array([2.0, 5.0])
    >>> censored_event_hinge_sum_within_groups(h, U, event, time, np.array([0, 1]), scale=0.5)
    0.0
    """
    sets = _pairs_within(U, event, time, codes)
    return float(sum(pairs.evaluate(h[pairs.patient], scale)[0] for pairs in sets))


def _pairs_within(
    U: FloatArray, event: BoolArray, time: FloatArray, codes: NDArray[np.int64]
) -> list[CensoredEventPairs]:
    sets = []
    for code in np.unique(codes):
        group = np.flatnonzero(codes == code)
        pairs = CensoredEventPairs.of(U[group], event[group], time[group])
        sets.append(replace(pairs, patient=group[pairs.patient]))
    return sets


class RPGroup(PairPenalty):
    """Group penalty of Rahman and Purushotham: comparable censored and event patients of one group.

    (1 / (n_c n_e)) sum over groups, i censored and j with event in the group, Y_i <= Y_j, of
    [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+

    with n_c censored and n_e event patients in all groups together, u the rows of X at length 1; 0 where
    either count is 0.

    Parameters
    ----------
    X : (n, d) float64
        Standardised features.
    target : Target
    codes : (n,) int
        Group of each patient.
    scale : float
        Hazard difference allowed per unit of feature distance.

    References
    ----------
    Rahman, Purushotham (2022). Fair and interpretable models for survival analysis. ACM SIGKDD Conference on
    Knowledge Discovery and Data Mining.
    """

    needs_groups = True

    def __init__(self, X: FloatArray, target: Target, codes: NDArray[np.int64], scale: float = 0.01) -> None:
        self.target = target
        self.codes = np.asarray(codes)
        for name, part in (("target", target.time), ("codes", self.codes)):
            if part.shape != (len(X),):
                raise ValueError(
                    f"{name} must have one entry per row of X, shape ({len(X)},); got {part.shape}."
                )
        n_comparisons = int(target.event.sum()) * int((~target.event).sum())
        super().__init__(unit_rows(X), 1.0 / n_comparisons if n_comparisons else 0.0, scale)

    @classmethod
    def prepare(
        cls, X: FloatArray, target: Target, codes: NDArray[np.int64] | None, n_groups: int, scale: float
    ) -> Self:
        """From a training set with groups."""
        if codes is None:
            raise ValueError("codes is None: this penalty compares patients within groups; pass their codes.")
        return cls(X, target, codes, scale)

    def subset(self, rows: NDArray[Any]) -> Self:
        """The penalty of the given patients alone."""
        return type(self)(self.U[rows], self.target.take(rows), self.codes[rows], self.scale)

    @cached_property
    def _pair_sets(self) -> list[CensoredEventPairs]:
        return _pairs_within(self.U, self.target.event, self.target.time, self.codes)

    @cached_property
    def _pair_tiles(self) -> PairTiles:
        from drosurv.disparities.pair_tiles import PairTiles

        return PairTiles(self._side(event=False), self._side(event=True), self.scale)

    def _side(self, *, event: bool) -> Side:
        """Censored or event patients by time."""
        from drosurv.disparities.pair_tiles import Side

        rank = np.unique(self.target.time, return_inverse=True)[1]
        patients = np.flatnonzero(self.target.event == event)
        patients = patients[np.argsort(rank[patients], kind="stable")]
        return Side(patients, self.U[patients], rank[patients], self.codes[patients])


class RPIndividual(RPGroup):
    """Individual penalty of Rahman and Purushotham: comparable censored and event patients.

    (1 / (n_c n_e)) sum over i censored, j with event, Y_i <= Y_j of [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+

    with n_c censored and n_e event patients, u the rows of X at length 1: :class:`RPGroup` with everyone in
    one group.

    Parameters and reference as for :class:`RPGroup`.
    """

    needs_groups = False

    def __init__(self, X: FloatArray, target: Target, scale: float = 0.01) -> None:
        super().__init__(X, target, np.zeros(np.shape(target.time), dtype=np.int64), scale)

    @classmethod
    def prepare(
        cls, X: FloatArray, target: Target, codes: NDArray[np.int64] | None, n_groups: int, scale: float
    ) -> Self:
        """From a training set; groups play no part."""
        return cls(X, target, scale)

    def subset(self, rows: NDArray[Any]) -> Self:
        """The penalty of the given patients alone."""
        return type(self)(self.U[rows], self.target.take(rows), self.scale)
