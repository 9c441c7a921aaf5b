"""The hinge sum over all pairs of patients, with its gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drosurv.disparities.hinge_scan import MAX_DISTANCE, feature_rows, hinge_sum, scan
from drosurv.target import FloatArray, IntArray


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
