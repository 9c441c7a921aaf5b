"""Censoring-aware disparities: censored patients against patients with a later event (Rahman, Purushotham, 2022)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from drosurv.paper.penalties.pairs import MAX_DISTANCE, PairPenalty, compiled, hinge_sum
from drosurv.patients.target import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from drosurv.paper.penalties.pair_tiles import PairTiles, Side


@dataclass(frozen=True, eq=False)
class CensoredEventPairs:
    """Patients prepared for the hinge sum over comparable pairs.

    sum over i censored, j with event, Y_i <= Y_j of [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+

    The sum of the distances of all pairs is computed once, in O(n^2) time and O(n) memory. An evaluation then counts
    all pairs in one pass over the sorted hazards, O(n log n), and visits only the pairs whose term may be zero.

    `patient` (m,) are the patients who are in a pair, sorted by time, censored before event at equal times: a censored
    patient and a patient with an event are a pair if the censored one comes first. Their `features` (m, d) are rows of
    length 1 or 0; `partners` (m,) is the number of pairs of each patient.
    """

    patient: IntArray
    event: BoolArray
    features: FloatArray
    partners: IntArray
    total_distance: float

    @classmethod
    def of(cls, U: FloatArray, event: BoolArray, time: FloatArray) -> CensoredEventPairs:
        """Prepare patients with unit (or zero) feature rows U (n, d), event flags (n,) and times (n,)."""
        patient = np.lexsort((event, time))
        event = event[patient]
        partners = np.where(event, np.cumsum(~event), event.sum() - np.cumsum(event))
        # Events before the first censoring, and patients censored after the last event, are in no pair.
        paired = partners > 0
        patient, event, partners = patient[paired], event[paired], partners[paired]
        features = U[patient]
        # With equal hazards every pair is inside, so that the scan sums all distances.
        m = len(patient)
        _, total = _scan(np.zeros(m), np.arange(m), event, features, 1.0, False, np.zeros(m, dtype=np.int64))
        return cls(patient, event, features, partners, total)

    def evaluate(self, h: FloatArray, scale: float) -> tuple[float, NDArray[np.int64]]:
        """Return the sum at the patients' hazards h (m,) and its gradient in h, a vector of integers (m,)."""
        if len(h) == 0:
            return 0.0, np.zeros(0, dtype=np.int64)
        order = np.argsort(h)
        net = _rank_balance(order, self.event, self.partners)
        ascending = h[order]
        complete = bool(ascending[-1] - ascending[0] <= scale * MAX_DISTANCE)
        n_inside, distance = _scan(h, order, self.event, self.features, scale, complete, net)
        active_distance = distance if complete else self.total_distance - distance
        # Every pair is counted for both its patients.
        n_active = int(self.partners.sum()) // 2 - n_inside
        return hinge_sum(ascending, net[order], scale, n_active, active_distance), net


@compiled
def _rank_balance(order: IntArray, event: BoolArray, partners: IntArray) -> NDArray[np.int64]:
    """Return for each patient the number of partners with lower hazard minus the number with higher hazard.

    Patients are added to two Fenwick trees over time in ascending order of hazard, one for the censored and one for
    events. The partners of an event with lower hazard are the earlier censored patients in the tree, those of a
    censored patient the later events.
    """
    n = len(order)
    net = np.empty(n, dtype=np.int64)
    # Column 0 counts the censored, column 1 the events.
    tree = np.zeros((n + 1, 2), dtype=np.int32)
    events = 0
    for patient in order:
        kind = 1 if event[patient] else 0
        below, node = 0, patient
        while node > 0:
            below += tree[node, 1 - kind]
            node -= node & -node
        if kind == 0:
            below = events - below
        events += kind
        net[patient] = 2 * below - partners[patient]
        node = patient + 1
        while node <= n:
            tree[node, kind] += 1
            node += node & -node
    return net


@compiled
def _scan(
    h: FloatArray,
    order: IntArray,
    event: BoolArray,
    features: FloatArray,
    scale: float,
    sum_active: bool,
    net: NDArray[np.int64],
) -> tuple[int, float]:
    """Remove the inside pairs from net sign counts, in place; return their number and the sum of their distances.

    If `sum_active`, return instead the sum of distances of the visited pairs that are not inside. Arrays are sorted by
    time, as in :class:`CensoredEventPairs`; `order` (m,) are the patients by ascending h. Distances are computed pair
    by pair, because most patients with similar hazards are not a pair.
    """
    columns = order[event[order]]
    h_columns = h[columns]
    reach, scale2 = scale * MAX_DISTANCE, scale * scale
    n_columns, n_features = len(columns), features.shape[1]
    n_inside, distance = 0, 0.0
    start = turn = stop = 0
    for row in order:
        if event[row]:
            turn += 1
            continue
        lowest, highest = h[row] - reach, h[row] + reach
        while start < turn and h_columns[start] < lowest:
            start += 1
        while stop < n_columns and h_columns[stop] <= highest:
            stop += 1
        u, taken = features[row], 0
        for c in range(start, stop):
            column = columns[c]
            if column < row:
                continue
            v, d2 = features[column], 0.0
            for k in range(n_features):
                d2 += (u[k] - v[k]) ** 2
            gap = h_columns[c] - h[row]
            inside = gap * gap <= scale2 * d2
            if inside:
                sign = 1 if c >= turn else -1
                net[column] -= sign
                taken += sign
                n_inside += 1
            if inside != sum_active:
                distance += np.sqrt(d2)
        net[row] += taken
    return n_inside, distance


def pairs_within(
    U: FloatArray, event: BoolArray, time: FloatArray, codes: IntArray
) -> list[CensoredEventPairs]:
    """Return the pairs of each group, prepared as by :meth:`CensoredEventPairs.of`, with the group codes (n,)."""
    sets = []
    for code in np.unique(codes):
        group = np.flatnonzero(codes == code)
        pairs = CensoredEventPairs.of(U[group], event[group], time[group])
        sets.append(replace(pairs, patient=group[pairs.patient]))
    return sets


class RPGroup(PairPenalty, name="rp_group"):
    """Group penalty of Rahman and Purushotham, over pairs of a censored patient and a later event of the same group.

    (1 / (n_c n_e)) sum over groups, i censored and j with event in the group, Y_i <= Y_j, of
    [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+

    with n_c censored patients and n_e patients with events in all groups together, and u the rows of X scaled to length
    1; 0 if n_c or n_e is 0. Rahman, Purushotham (2022), Fair and interpretable models for survival analysis, KDD.
    """

    needs_groups = True

    @cached_property
    def factor(self) -> float:
        """1 / (n_c n_e)."""
        events = self.target.n_events
        return 1.0 / max(events * (self.n - events), 1)

    @cached_property
    def _pair_sets(self) -> list[CensoredEventPairs]:
        return pairs_within(self.U, self.target.event, self.target.time, self.codes)

    @cached_property
    def _pair_tiles(self) -> PairTiles:
        from drosurv.paper.penalties.pair_tiles import PairTiles

        return PairTiles(self._side(event=False), self._side(event=True), self.scale)

    def _side(self, *, event: bool) -> Side:
        """Return the censored patients, or those with events, sorted by time."""
        from drosurv.paper.penalties.pair_tiles import Side

        rank = np.unique(self.target.time, return_inverse=True)[1]
        patients = np.flatnonzero(self.target.event == event)
        patients = patients[np.argsort(rank[patients], kind="stable")]
        return Side(patients, self.U[patients], rank[patients], self.codes[patients])


class RPIndividual(RPGroup, name="rp_individual"):
    """Individual penalty of Rahman and Purushotham: :class:`RPGroup` with everyone in one group."""

    needs_groups = False
