"""Censoring-aware disparities: the censored against those with a later event (Rahman & Purushotham, 2022)."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from drosurv.disparities.censored_event_pairs import CensoredEventPairs
from drosurv.disparities.pair_penalty import PairPenalty
from drosurv.target import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from drosurv.disparities.pair_tiles import PairTiles, Side


def censored_event_hinge_sum(
    h: FloatArray, U: FloatArray, event: BoolArray, time: FloatArray, scale: float
) -> float:
    """How far hazards of comparable censored and event patients differ beyond what features explain.

    sum over i censored, j with event, Y_i <= Y_j of [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+

    Exact, in O(n) memory; 0 without a comparable pair. The feature rows U (n, d) have length 1 or 0.

    >>> h, U = np.array([1.0, 3.0]), np.array([[1.0, 0.0], [-1.0, 0.0]])
    >>> censored_event_hinge_sum(h, U, np.array([False, True]), np.array([2.0, 5.0]), scale=0.5)
    1.0
    """
    everyone = np.zeros(len(h), dtype=np.intp)
    return censored_event_hinge_sum_within_groups(h, U, event, time, everyone, scale)


def censored_event_hinge_sum_within_groups(
    h: FloatArray, U: FloatArray, event: BoolArray, time: FloatArray, codes: IntArray, scale: float
) -> float:
    """:func:`censored_event_hinge_sum` over pairs of one group, by codes (n,), summed over groups.

    >>> h, U = np.array([1.0, 3.0]), np.array([[1.0, 0.0], [-1.0, 0.0]])
    >>> event, time = np.array([False, True]), np.array([2.0, 5.0])
    >>> censored_event_hinge_sum_within_groups(h, U, event, time, np.array([0, 1]), scale=0.5)
    0.0
    """
    sets = _pairs_within(U, event, time, codes)
    return float(sum(pairs.evaluate(h[pairs.patient], scale)[0] for pairs in sets))


def _pairs_within(
    U: FloatArray, event: BoolArray, time: FloatArray, codes: IntArray
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

    References
    ----------
    Rahman, Purushotham (2022). Fair and interpretable models for survival analysis. ACM SIGKDD Conference on
    Knowledge Discovery and Data Mining.
    """

    needs_groups = True

    @cached_property
    def factor(self) -> float:
        """One over the number of censored times that of events."""
        events = self.target.n_events
        return 1.0 / max(events * (self.n - events), 1)

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
    """Individual penalty of Rahman and Purushotham: :class:`RPGroup` with everyone in one group."""

    needs_groups = False
