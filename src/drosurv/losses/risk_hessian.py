"""Second derivative of log sums over risk sets; where these are many, in one pass over the features.

With the risks r_j, their sums S_k and the risk-weighted means m_k of the features,

    sum_k c_k ( sum_j r_j x_j x_j' / S_k - m_k m_k' ) = sum_j r_j x_j ( a_j x_j - u_j )'

    a_j = sum_{k : t_k <= Y_j} c_k / S_k,    u_j = sum_{k : t_k <= Y_j} c_k m_k / S_k

so that every patient adds one product, where the left side has another one per time. Where times are few, the left
side is faster: two sums over rows of the outer products of their features.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from drosurv.target import FloatArray, IntArray

# With so few features there is nothing to save by symmetry.
_FEW = 8
# With fewer features the sums cost more than the products; with more of them, the left side's are cheaper by symmetry.
_NARROW, _WIDE = 24, 100
# Patients worked through at a time: their features stay in a near cache, and a product of them needs no second thread.
_PATIENTS = 100


def in_one_pass(n_patients: int, n_features: int, n_times: int) -> bool:
    """Whether one pass is faster than two sums of squares."""
    return _NARROW < n_features < _WIDE and 4 * n_times > n_patients


@numba.njit(cache=True, nogil=True, error_model="numpy")
def risk_hessian(
    X: FloatArray,
    order: IntArray,
    first: IntArray,
    risk: FloatArray,
    level: FloatArray,
    sums: FloatArray,
    weights: FloatArray,
    inside: FloatArray,
    centre: FloatArray,
) -> FloatArray:
    """The second derivative (d, d) of log sums weighted by c (K,), the features taken from a centre (d,).

    Order, first, risk, level and sums are those of :class:`drosurv.losses.risk_sets.RiskSets`; inside (n,) is the
    gradient in the scores, r_j a_j.
    """
    d, k, at = X.shape[1], first.shape[0] - 1, -np.inf
    features, pulled = np.empty((_PATIENTS + 1, d)), np.empty((_PATIENTS + 1, d))
    share, height = np.empty(_PATIENTS), np.empty(_PATIENTS + 1)
    out, product = np.zeros((d, d)), np.empty((d, d))
    total, held = np.zeros(d), np.empty(d)
    for high in range(order.shape[0], first[0], -_PATIENTS):
        low = max(high - _PATIENTS, first[0])
        size = high - low
        # All later patients join these as one, whose features are their sum.
        np.positive(total, features[size])
        height[size] = at
        for i in range(size):
            row = order[low + i]
            for j in range(d):
                features[i, j] = X[row, j] - centre[j]
        # Backwards the sums over the patients at risk, and what each time adds to u.
        for i in range(size - 1, -1, -1):
            while first[k] > low + i:
                k -= 1
            if level[k] != at:
                total *= math.exp(at - level[k])
                at = level[k]
            own, pull = risk[low + i], 0.0
            for j in range(d):
                total[j] += own * features[i, j]
            if first[k] == low + i and sums[k] > 0.0:
                inverse, same = 1.0 / sums[k], k
                while same >= 0 and first[same] == low + i:
                    pull += weights[same] * inverse
                    same -= 1
                # First the mean: a sum of small risks may be too small for its square.
                for j in range(d):
                    pulled[i, j] = total[j] * inverse * pull
            share[i], height[i] = pull, at
        # Forwards u itself, from the first of these times on.
        held[:] = 0.0
        for i in range(size):
            if share[i] != 0.0:
                for j in range(d):
                    held[j] += pulled[i, j]
            both, own = inside[order[low + i]], risk[low + i]
            for j in range(d):
                pulled[i, j] = both * features[i, j] - own * held[j]
            if height[i + 1] != height[i]:
                held *= math.exp(height[i + 1] - height[i])
        np.negative(held, pulled[size])
        np.dot(features[: size + 1].T, pulled[: size + 1], product)
        out += product
    return (out + out.T) / 2


def weighted_gram(X: FloatArray, weights: FloatArray, centre: FloatArray | None = None) -> FloatArray:
    """X' diag(weights) X (d, d), with the features taken from a centre (d,)."""
    n, d = X.shape
    # So many rows at a time, that their numbers stay in a near cache.
    rows, gram = max(1024, 65536 // max(d, 1)), np.zeros((d, d))
    if centre is None and d <= _FEW:
        for low in range(0, n, rows):
            own = X[low : low + rows]
            gram += own.T @ (weights[low : low + rows, None] * own)
        return gram
    if weights.min(initial=0.0) < 0.0:
        above = weighted_gram(X, np.maximum(weights, 0.0), centre)
        return above - weighted_gram(X, np.maximum(-weights, 0.0), centre)
    centre = np.zeros(d) if centre is None else centre
    held = np.empty((min(rows, n), d))
    for low in range(0, n, rows):
        part = held[: n - low]
        _scale(X, weights, centre, low, part)
        # The product of a matrix with its own transpose is symmetric, and half the work.
        gram += part.T @ part
    return gram


@numba.njit(cache=True, nogil=True)
def _scale(X: FloatArray, weights: FloatArray, centre: FloatArray, low: int, out: FloatArray) -> None:
    """Write the rows of X from low on, times the roots of their weights."""
    for i in range(out.shape[0]):
        root = np.sqrt(weights[low + i])
        for j in range(out.shape[1]):
            out[i, j] = root * (X[low + i, j] - centre[j])
