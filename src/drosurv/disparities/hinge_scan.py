"""Pairs inside the hinge's reach: the exact correction to a sum over all pairs, near-linear on spread scores.

The pairwise disparities are sums over pairs of ``[|h_i - h_j| - g ||u_i - u_j||]_+`` with a small ``g``. A
pair is *inside* when ``|h_i - h_j| <= g ||u_i - u_j||``: it adds nothing, in value and (by convention, at
equality too) in gradient. Unit rows are at most 2 apart, so with patients sorted by ``h`` only a short run of
neighbours can be inside.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from drosurv.target import FloatArray, IntArray

# Largest distance between two rows of length 1 (or 0), with room for rounding in the row lengths.
MAX_DISTANCE = 2.0 * (1.0 + 1e-12)

# Columns handled at once: the work arrays stay in the innermost cache.
_CHUNK = 512

# The distance loop takes three features at a time, which halves its traffic; more gains nothing.
_STRIDE = 3


def unit_rows(X: FloatArray) -> FloatArray:
    """Each row of (..., n, d) scaled to length 1; rows of zeros stay zero.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    X = np.asarray(X, dtype=np.float64)
    # Dividing by the largest entry first keeps the squares of very large or small entries in range.
    largest = np.abs(X).max(axis=-1, keepdims=True, initial=0.0)
    scaled = X / np.where(largest == 0.0, 1.0, largest)
    length = np.linalg.norm(scaled, axis=-1, keepdims=True)
    return np.asarray(scaled / np.where(length == 0.0, 1.0, length))


def feature_rows(features: FloatArray) -> FloatArray:
    """Features (n, d) as contiguous rows (d', n): d is rounded up to what :func:`scan` takes at a time.

    Added features are 0 and change no distance.
    """
    n, d = features.shape
    padded = np.zeros((max(_STRIDE, -(-d // _STRIDE) * _STRIDE), n))
    padded[:d] = features.T
    return padded


# Reassociation only lets the sums run in vector lanes and contraction only spares roundings; neither assumes
# away NaN or infinity, and counts are integers.
compiled = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


# The loops below stand in functions of their own, loads before selections: only so does the compiler give
# them vector lanes.
@compiled
def _add_squares(
    d2: FloatArray, u: FloatArray, v: FloatArray, w: FloatArray, a: float, b: float, c: float
) -> None:
    # Differences rather than 2 - 2 u.v: as fast here, and exactly 0 for equal rows.
    for j in range(len(d2)):
        x, y, z = u[j] - a, v[j] - b, w[j] - c
        d2[j] += x * x + y * y + z * z


@compiled
def _take_inside(d2: FloatArray, h_above: FloatArray, h: float, scale2: float, net: NDArray[np.int64]) -> int:
    count = 0
    for j in range(len(d2)):
        gap = h_above[j] - h
        one = 1 if gap * gap <= scale2 * d2[j] else 0
        count += one
        net[j] -= one
    return count


@compiled
def _sum_distances(d2: FloatArray, h_above: FloatArray, h: float, scale2: float, active: bool) -> float:
    total = 0.0
    for j in range(len(d2)):
        x, gap = d2[j], h_above[j] - h
        total += np.sqrt(x if (gap * gap <= scale2 * x) != active else 0.0)
    return total


@compiled
def scan(
    h: FloatArray,
    features: FloatArray,
    stop: IntArray,
    scale: float,
    sum_active: bool,
    net: NDArray[np.int64],
) -> tuple[int, float]:
    """Take the inside pairs out of net sign counts, and add up distances: how many are inside, and the sum.

    On entry ``net[i]`` (n,) is the number of patients that sort below i less those that sort above; on return it
    counts active pairs only, so that ``net`` is the gradient of the hinge sum in ``h`` (n,), ascending.

    `features` (d', n), C-contiguous, come from :func:`feature_rows` in the same order; patients i + 1 to ``stop[i] -
    1`` are those above i that may be inside with it; `scale` is the hinge's g. `sum_active` adds up the distances of
    the visited pairs that are active instead of the inside ones: square roots are most of the work, and a block of
    columns without a pair of the wanted kind needs none.
    """
    n_features, n = features.shape
    squared = np.empty(_CHUNK)
    scale2 = scale * scale
    n_inside = 0
    distance = 0.0
    for i in range(n):
        for begin in range(i + 1, stop[i], _CHUNK):
            end = min(begin + _CHUNK, stop[i])
            d2 = squared[: end - begin]
            d2[:] = 0.0
            for k in range(0, n_features, _STRIDE):
                _add_squares(
                    d2,
                    features[k, begin:end],
                    features[k + 1, begin:end],
                    features[k + 2, begin:end],
                    features[k, i],
                    features[k + 1, i],
                    features[k + 2, i],
                )
            inside = _take_inside(d2, h[begin:end], h[i], scale2, net[begin:end])
            net[i] += inside
            n_inside += inside
            wanted = len(d2) - inside if sum_active else inside
            if wanted > 0:
                distance += _sum_distances(d2, h[begin:end], h[i], scale2, sum_active)
    return n_inside, distance


def hinge_sum(
    h: FloatArray, net: NDArray[np.int64], scale: float, n_active: int, active_distance: float
) -> float:
    """The hinge sum from its active pairs: sum_i net_i h_i - scale * (sum of their distances).

    Hazards (n,) are ascending; `net` (n,) counts signs of active pairs in the same order. Without an active pair the
    sum is exactly 0.
    """
    if n_active == 0:
        return 0.0
    # The counts sum to 0, so h may be shifted: near-equal hazards then lose no digits.
    value = net.astype(np.float64) @ (h - h[len(h) // 2]) - scale * active_distance
    return float(np.maximum(value, 0.0))
