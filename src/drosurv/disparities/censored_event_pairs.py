"""The hinge sum over pairs of a censored patient with one who had the event no earlier, with its gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from drosurv.disparities.hinge_scan import feature_rows, hinge_sum, reach_windows, scan
from drosurv.target import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class CensoredEventPairs:
    """Patients prepared for the hinge sum over comparable pairs.

    sum over i censored, j with event, Y_i <= Y_j of [ |h_i - h_j| - scale * ||u_i - u_j|| ]_+

    The total of the pairs' distances is taken once, in O(n^2) time and O(n) memory; from then on an
    evaluation counts all pairs in two sweeps over time, O(n log n), and visits only the pairs that may be
    inside the hinge.

    Parameters
    ----------
    event : (n,) bool
    time : (n,) float64
    features : (d', n) float64
        From :func:`drosurv.disparities.hinge_scan.feature_rows`.
    by_time : (n,) int
        Patients from the earliest to the latest, censored before event at equal times.
    n_pairs : int
    total_distance : float
        Sum of the distances of all pairs.
    """

    event: BoolArray
    time: FloatArray
    features: FloatArray
    by_time: IntArray
    n_pairs: int
    total_distance: float

    @classmethod
    def of(cls, U: FloatArray, event: BoolArray, time: FloatArray) -> CensoredEventPairs:
        """Prepare patients with unit (or zero) feature rows U (n, d), event flags (n,) and times (n,)."""
        features = feature_rows(U)
        rows, cols = np.flatnonzero(~event), np.flatnonzero(event)
        everyone = np.zeros((3, len(rows)), dtype=np.int64)
        everyone[2] = len(cols)
        # At equal hazards every pair is inside.
        n_pairs, total = scan(
            np.zeros(len(rows)),
            np.take(features, rows, axis=1),
            time[rows],
            np.zeros(len(cols)),
            np.take(features, cols, axis=1),
            time[cols],
            everyone,
            1.0,
            False,
            np.zeros(len(rows), dtype=np.int64),
            np.zeros(len(cols), dtype=np.int64),
        )
        return cls(event, time, features, np.lexsort((event, time)), n_pairs, total)

    def evaluate(self, h: FloatArray, scale: float) -> tuple[float, NDArray[np.int64]]:
        """The sum at hazards h (n,) and its gradient in h, which is a vector of integers (n,)."""
        if self.n_pairs == 0:
            return 0.0, np.zeros(len(h), dtype=np.int64)
        order = np.argsort(h)
        event = self.event[order]
        rows, cols = order[~event], order[event]
        rank = np.empty(len(h), dtype=np.int64)
        rank[order] = np.arange(len(h))
        net = _rank_balance(self.by_time, self.event, rank)
        net_rows, net_cols = net[rows], net[cols]
        turn = np.cumsum(event, dtype=np.int64)[~event]
        windows, complete = reach_windows(h[rows], h[cols], turn, scale)
        n_inside, distance = scan(
            h[rows],
            np.take(self.features, rows, axis=1),
            self.time[rows],
            h[cols],
            np.take(self.features, cols, axis=1),
            self.time[cols],
            windows,
            scale,
            complete,
            net_rows,
            net_cols,
        )
        net[rows], net[cols] = net_rows, net_cols
        active_distance = distance if complete else self.total_distance - distance
        value = hinge_sum(h[order], net[order], scale, self.n_pairs - n_inside, active_distance)
        return value, net


@numba.njit(cache=True, nogil=True)
def _rank_balance(by_time: IntArray, event: BoolArray, rank: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each patient, its partners of lower rank less those of higher rank.

    Forwards in time every event meets the censored patients already passed; backwards, every censored patient
    meets the events. A Fenwick tree over ranks counts those below.
    """
    n = len(by_time)
    net = np.zeros(n, dtype=np.int64)
    for forwards in (True, False):
        tree = np.zeros(n + 1, dtype=np.int64)
        passed = 0
        for step in range(n):
            patient = by_time[step] if forwards else by_time[n - 1 - step]
            node = rank[patient] + 1
            if event[patient] == forwards:
                below = 0
                while node > 0:
                    below += tree[node]
                    node -= node & -node
                net[patient] = 2 * below - passed
            else:
                passed += 1
                while node <= n:
                    tree[node] += 1
                    node += node & -node
    return net
