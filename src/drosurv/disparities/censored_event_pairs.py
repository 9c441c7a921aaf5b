"""The hinge sum over pairs of a censored patient with one who had the event no earlier, with its gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drosurv.disparities.hinge_scan import MAX_DISTANCE, compiled, hinge_sum
from drosurv.target import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class CensoredEventPairs:
    """Patients prepared for the hinge sum over comparable pairs.

    sum over i censored, j with event, Y_i <= Y_j of [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+

    The total of the pairs' distances is taken once, in O(n^2) time and O(n) memory; from then on an
    evaluation counts all pairs in one sweep over the sorted hazards, O(n log n), and visits only the pairs that
    may be inside the hinge.

    `patient` (m,) are those with a partner, from the earliest to the latest, censored before event at equal times: a
    censored and an event patient are a pair where the censored one stands first. Their `features` (m, d) are unit (or
    zero) rows; `partners` (m,) counts how many each has.
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
        # Events before the first censoring and whoever is censored after the last event never count.
        paired = partners > 0
        patient, event, partners = patient[paired], event[paired], partners[paired]
        features = U[patient]
        # At equal hazards every pair is inside.
        m = len(patient)
        _, total = _scan(np.zeros(m), np.arange(m), event, features, 1.0, False, np.zeros(m, dtype=np.int64))
        return cls(patient, event, features, partners, total)

    def evaluate(self, h: FloatArray, scale: float) -> tuple[float, NDArray[np.int64]]:
        """The sum at the patients' hazards h (m,) and its gradient in h, which is a vector of integers (m,)."""
        if len(h) == 0:
            return 0.0, np.zeros(0, dtype=np.int64)
        order = np.argsort(h)
        net = _rank_balance(order, self.event, self.partners)
        ascending = h[order]
        complete = bool(ascending[-1] - ascending[0] <= scale * MAX_DISTANCE)
        n_inside, distance = _scan(h, order, self.event, self.features, scale, complete, net)
        active_distance = distance if complete else self.total_distance - distance
        # Every pair has two partners.
        n_active = int(self.partners.sum()) // 2 - n_inside
        return hinge_sum(ascending, net[order], scale, n_active, active_distance), net


@compiled
def _rank_balance(order: IntArray, event: BoolArray, partners: IntArray) -> NDArray[np.int64]:
    """For each patient, its partners that sort below it less those above.

    In ascending order of hazard every event meets the earlier of the censored already passed, every censored
    patient the later of the events. Two Fenwick trees over time count them.
    """
    n = len(order)
    net = np.empty(n, dtype=np.int64)
    # Column 0 counts the censored, column 1 the events.
    tree = np.zeros((n + 1, 2), dtype=np.int32)
    events = 0
    for patient in order:
        own = 1 if event[patient] else 0
        below, node = 0, patient
        while node > 0:
            below += tree[node, 1 - own]
            node -= node & -node
        if own == 0:
            below = events - below
        events += own
        net[patient] = 2 * below - partners[patient]
        node = patient + 1
        while node <= n:
            tree[node, own] += 1
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
    """Take the inside pairs out of net sign counts, in place, and add up distances: how many, and their sum.

    Most of those within reach are no pair, because the event came first; the others' distances are computed one by
    one. All is by time, as in :class:`CensoredEventPairs`, but `order` (m,): patients by ascending h. `sum_active`
    adds up the distances of the active pairs within reach instead of the inside ones.
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
