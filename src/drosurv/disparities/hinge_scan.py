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

from drosurv.target import FloatArray

# Largest distance between two rows of length 1 (or 0), with room for rounding in the row lengths.
MAX_DISTANCE = 2.0 * (1.0 + 1e-12)

# Columns handled at once: the work arrays stay in the innermost cache.
_CHUNK = 512

# The distance loop takes three features at a time, which halves its traffic; more gains nothing.
_STRIDE = 3


def feature_rows(features: FloatArray) -> FloatArray:
    """Features as contiguous rows, padded with zero features to what :func:`scan` takes at a time.

    Parameters
    ----------
    features : (n, d) float64

    Returns
    -------
    (d', n) float64
        d' is d rounded up; added features are 0 and change no distance.
    """
    n, d = features.shape
    padded = np.zeros((max(_STRIDE, -(-d // _STRIDE) * _STRIDE), n))
    padded[:d] = features.T
    return padded


# Reassociation only lets the sums run in vector lanes and contraction only spares roundings; neither assumes
# away NaN or infinity, and counts are integers.
_compiled = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


# The loops below stand in functions of their own, loads before selections: only so does the compiler give
# them vector lanes.
@_compiled
def _add_squares(
    d2: FloatArray, u: FloatArray, v: FloatArray, w: FloatArray, a: float, b: float, c: float
) -> None:
    # Differences rather than 2 - 2 u.v: as fast here, and exactly 0 for equal rows.
    for j in range(len(d2)):
        x, y, z = u[j] - a, v[j] - b, w[j] - c
        d2[j] += x * x + y * y + z * z


@_compiled
def _unpair(d2: FloatArray, keys: FloatArray, key: float) -> None:
    # Nothing is inside a distance of minus infinity, not even at scale 0.
    for j in range(len(d2)):
        x = d2[j]
        d2[j] = x if keys[j] >= key else -np.inf


@_compiled
def _take_inside(
    d2: FloatArray, h_cols: FloatArray, h: float, scale2: float, net: NDArray[np.int64], sign: int
) -> int:
    count = 0
    for j in range(len(d2)):
        gap = h_cols[j] - h
        one = sign if gap * gap <= scale2 * d2[j] else 0
        count += one
        net[j] -= one
    return count


@_compiled
def _sum_inside(d2: FloatArray, h_cols: FloatArray, h: float, scale2: float) -> float:
    total = 0.0
    for j in range(len(d2)):
        x, gap = d2[j], h_cols[j] - h
        total += np.sqrt(x if gap * gap <= scale2 * x else 0.0)
    return total


@_compiled
def _sum_active(d2: FloatArray, h_cols: FloatArray, h: float, scale2: float) -> float:
    total = 0.0
    for j in range(len(d2)):
        x, gap = d2[j], h_cols[j] - h
        x = x if x > 0.0 else 0.0
        total += np.sqrt(x if gap * gap > scale2 * x else 0.0)
    return total


@_compiled
def scan(
    h_rows: FloatArray,
    rows: FloatArray,
    key_rows: FloatArray,
    h_cols: FloatArray,
    cols: FloatArray,
    key_cols: FloatArray,
    windows: NDArray[np.int64],
    scale: float,
    sum_active: bool,
    net_rows: NDArray[np.int64],
    net_cols: NDArray[np.int64],
) -> tuple[int, float]:
    """Take the inside pairs out of net sign counts, and add up distances.

    A pair is a row i with a column j of its window for which ``key_cols[j] >= key_rows[i]``. On entry
    ``net_rows[i]`` is the number of i's partners that sort below i less those that sort above, and likewise
    ``net_cols``; on return both count active pairs only, so that ``net`` is the gradient of the hinge sum in
    ``h``.

    Parameters
    ----------
    h_rows, h_cols : (r,), (c,) float64
        Ascending.
    rows, cols : (d', r), (d', c) float64
        Features in the same order, from :func:`feature_rows`, C-contiguous.
    key_rows, key_cols : (r,), (c,) float64
        Or both empty, where every row and column of a window is a pair.
    windows : (3, r) int64
        Start, turn and stop: columns start..turn sort below the row, turn..stop above it.
    scale : float
        The hinge's g.
    sum_active : bool
        Add up the distances of the windows' active pairs instead of the inside ones. Square roots are most of
        the work, and a block of columns without a pair of the wanted kind needs none.
    net_rows, net_cols : (r,), (c,) int64
        Updated in place.

    Returns
    -------
    n_inside : int
    distance : float
        Sum of the distances of the inside pairs (or of the active ones).
    """
    n_features, n_rows = rows.shape
    squared = np.empty(_CHUNK)
    scale2 = scale * scale
    keyed = len(key_rows) > 0
    n_inside = 0
    distance = 0.0
    for i in range(n_rows):
        h = h_rows[i]
        for side in range(2):
            sign = 2 * side - 1
            stop = windows[side + 1, i]
            for begin in range(windows[side, i], stop, _CHUNK):
                end = min(begin + _CHUNK, stop)
                d2 = squared[: end - begin]
                d2[:] = 0.0
                for k in range(0, n_features, _STRIDE):
                    _add_squares(
                        d2,
                        cols[k, begin:end],
                        cols[k + 1, begin:end],
                        cols[k + 2, begin:end],
                        rows[k, i],
                        rows[k + 1, i],
                        rows[k + 2, i],
                    )
                if keyed:
                    _unpair(d2, key_cols[begin:end], key_rows[i])
                inside = _take_inside(d2, h_cols[begin:end], h, scale2, net_cols[begin:end], sign)
                net_rows[i] += inside
                inside = abs(inside)
                n_inside += inside
                if not sum_active:
                    if inside > 0:
                        distance += _sum_inside(d2, h_cols[begin:end], h, scale2)
                elif inside < len(d2):
                    distance += _sum_active(d2, h_cols[begin:end], h, scale2)
    return n_inside, distance


def hinge_sum(
    h: FloatArray, net: NDArray[np.int64], scale: float, n_active: int, active_distance: float
) -> float:
    """The hinge sum from its active pairs: sum_i net_i h_i - scale * (sum of their distances).

    Parameters
    ----------
    h, net : (n,)
        Hazards and net sign counts of active pairs, in one order.
    scale : float
    n_active : int
        Number of active pairs; without one the sum is exactly 0.
    active_distance : float
    """
    if n_active == 0:
        return 0.0
    # The counts sum to 0, so h may be shifted: near-equal hazards then lose no digits.
    value = net.astype(np.float64) @ (h - h[len(h) // 2]) - scale * active_distance
    return float(np.maximum(value, 0.0))


def reach_windows(
    h_rows: FloatArray, h_cols: FloatArray, turn: NDArray[np.int64], scale: float
) -> tuple[NDArray[np.int64], bool]:
    """Windows for :func:`scan`: the columns whose h is so near the row's that the pair may be inside.

    Parameters
    ----------
    h_rows, h_cols : (r,), (c,) float64
        Ascending.
    turn : (r,) int64
        How many columns sort below each row.
    scale : float

    Returns
    -------
    windows : (3, r) int64
    complete : bool
        Whether the windows hold all columns, because all hazards are that near to each other.
    """
    reach = scale * MAX_DISTANCE
    windows = np.empty((3, len(turn)), dtype=np.int64)
    windows[1] = turn
    complete = bool(max(h_rows[-1], h_cols[-1]) - min(h_rows[0], h_cols[0]) <= reach)
    if complete:
        windows[0], windows[2] = 0, len(h_cols)
    else:
        windows[0] = np.minimum(np.searchsorted(h_cols, h_rows - reach, side="left"), turn)
        windows[2] = np.maximum(np.searchsorted(h_cols, h_rows + reach, side="right"), turn)
    return windows, complete
