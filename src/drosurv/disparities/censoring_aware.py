"""Censoring-aware disparities: the censored against those with a later event (Rahman & Purushotham, 2022)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from drosurv.disparities.censored_event_pairs import CensoredEventPairs
from drosurv.disparities.individual import unit_rows
from drosurv.disparities.pair_penalty import PairPenalty
from drosurv.disparities.penalty import take_patients
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
    X : (n, d) or (R, n, d) float64
        Standardised features.
    target : Target
        Its arrays (n,), or (R, n).
    codes : (n,) or (R, n) int
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
        U = unit_rows(X)
        self.target = target
        self.codes = np.asarray(codes)
        for name, part in (("target", target.time), ("codes", self.codes)):
            if part.shape != U.shape[:-1]:
                raise ValueError(
                    f"{name} must have one entry per row of X, shape {U.shape[:-1]}; got {part.shape}."
                )
        n_comparisons = np.sum(target.event, axis=-1) * np.sum(~target.event, axis=-1)
        super().__init__(U, np.where(n_comparisons > 0, 1.0 / np.maximum(n_comparisons, 1), 0.0), scale)

    @classmethod
    def prepare(
        cls, X: FloatArray, target: Target, codes: NDArray[np.int64] | None, n_groups: int, scale: float
    ) -> Self:
        """From a training set with groups."""
        if codes is None:
            raise ValueError("codes is None: this penalty compares patients within groups; pass their codes.")
        return cls(X, target, codes, scale)

    def alone(self, r: int) -> Self:
        """The penalty of training set r alone."""
        return self._like(self.U[r], Target(self.target.event[r], self.target.time[r]), self.codes[r])

    def subset(self, rows: NDArray[Any]) -> Self:
        """The penalty of the given patients alone."""
        U, event, time, codes = (
            take_patients(part, rows, self.shape)
            for part in (self.U, self.target.event, self.target.time, self.codes)
        )
        return self._like(U, Target(event, time), codes)

    def _like(self, U: FloatArray, target: Target, codes: NDArray[np.int64]) -> Self:
        return type(self)(U, target, codes, self.scale)

    def _pair_sets(self) -> list[CensoredEventPairs]:
        return _pairs_within(self.U, self.target.event, self.target.time, self.codes)

    def _pair_tiles(self) -> PairTiles:
        from drosurv.disparities.pair_tiles import PairTiles

        return PairTiles(self._side(event=False), self._side(event=True), self.scale)

    def _side(self, *, event: bool) -> Side:
        """Censored or event patients of every training set by time, filled up to the longest set's length."""
        from drosurv.disparities.pair_tiles import Side

        U, chosen, time, codes = (
            part.reshape(-1, self.shape[-1], *part.shape[len(self.shape) :])
            for part in (self.U, self.target.event == event, self.target.time, self.codes)
        )
        length = int(chosen.sum(axis=1).max())
        shape = (len(U), length)
        # Fillers pair with nobody: no event comes after the last time, no censoring before the first.
        side = Side(
            patient=np.zeros(shape, dtype=np.int64),
            features=np.zeros((*shape, U.shape[-1])),
            key=np.full(shape, -1 if event else U.shape[1], dtype=np.int64),
            code=np.zeros(shape, dtype=np.int64),
        )
        for r in range(len(U)):
            rank = np.unique(time[r], return_inverse=True)[1]
            patients = np.flatnonzero(chosen[r])
            patients = patients[np.argsort(rank[patients], kind="stable")]
            # Keys ascend: low fillers stand first, high ones last.
            place = slice(length - len(patients), length) if event else slice(len(patients))
            side.patient[r, place] = patients
            side.features[r, place] = U[r, patients]
            side.key[r, place] = rank[patients]
            side.code[r, place] = codes[r, patients]
        return side


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

    def _like(self, U: FloatArray, target: Target, codes: NDArray[np.int64]) -> Self:
        return type(self)(U, target, self.scale)
