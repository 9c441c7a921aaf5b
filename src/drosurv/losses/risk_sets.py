"""Sums over risk sets: the log of the summed risks of all patients at risk, and its derivatives.

For patients sorted by time, the risk set of a time is a suffix of that order, so

    L_k = log sum_{j : Y_j >= t_k} w_j exp f_j

takes one backward pass for all times t_1 <= ... <= t_K together, and the gradient of sum_k c_k L_k,

    g_j = w_j exp(f_j) sum_{k : t_k <= Y_j} c_k exp(-L_k),

one forward pass. The event times divide the sorted patients into K blocks. Every exponent in a block is taken relative
to the largest score in this or a later block (its level): nothing overflows, and the largest term of every sum is one.
Patients with a time before the first event time are in no risk set and no block.

With the risks r_j, their sums S_k and the risk-weighted means m_k of the features, the second derivative is

    sum_k c_k ( sum_j r_j x_j x_j' / S_k - m_k m_k' ) = sum_j r_j x_j ( a_j x_j - u_j )'

    a_j = sum_{k : t_k <= Y_j} c_k / S_k,    u_j = sum_{k : t_k <= Y_j} c_k m_k / S_k

The right side needs one outer product per patient, the left side another one per event time. With few event times the
left side is faster, because its matrices are symmetric.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from copy import copy
from typing import Self

import numba
import numpy as np

from drosurv.patients.target import BoolArray, FloatArray, IntArray

# exp(700) is near the largest float.
_HIGHEST = 700.0
# Scores that differ by less can share one level: neither their risks underflow nor the sums of risks overflow.
FLAT = 500.0
# Patients per chunk in several passes over the same numbers, which then stay in the L1 cache.
_CHUNK = 1024
# Second derivatives: with at most this many features, symmetric products are not faster.
_FEW = 8
# The Hessian in one pass (the right side above) is faster with more than 24 and fewer than 100 features.
_NARROW, _WIDE = 24, 100
# Patients per matrix product, whose features then stay in the cache, and patients whose features are read at a time.
_PATIENTS = 100
_READ = 4000
# Exponentials and logarithms.
_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
# Below this, exp(x) is not a normal floating-point number.
_UNDERFLOW = -708.0
_SQRT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)


class RiskSums(ABC):
    """Log-sum-exp of scores over the patients at risk at each of K event times, with derivatives at the last scores."""

    _scores = _log_sums = np.empty((0, 0))
    # What the derivatives need from the last call, one row for each row of the batch.
    _saved: tuple[FloatArray, ...] = ()
    _means: FloatArray | None = None

    @abstractmethod
    def without(self, left_out: BoolArray) -> Self:
        """Return the same risk sets without some patients (n,); nobody may be at risk at some of the event times."""

    def forget(self) -> None:
        """Free the memory of the last scores."""
        self._scores = self._log_sums = np.empty((0, 0))
        self._saved, self._means = (), None

    @abstractmethod
    def log_sums(self, scores: FloatArray) -> FloatArray:
        """Return the log sums (B, K) of scores (B, n); minus infinity where nobody is at risk."""

    @abstractmethod
    def pullback(self, cotangent: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Return the gradient (B, n) in the scores of the log sums weighted by (B, K), written to `out` if given."""

    @abstractmethod
    def means(self, X: FloatArray) -> FloatArray:
        """Return the risk-weighted means (K, d) of features (n, d) over each risk set, for the first row of the batch.

        They are kept until the next call of `log_sums`; pass the same X until then.
        """

    def curvature(self, cotangent: FloatArray, squared: FloatArray) -> FloatArray:
        """Return second derivatives (B, n) of functions of the log sums, each in one patient's score.

            sum_k c_k p_kj - s_k p_kj^2,   p_kj the share of patient j in the risk set of time k

        For log sums weighted by c (B, K), s equals c. A patient of weight w counts as w patients.
        """
        # p^2 has two factors exp(f_j - L_k): one from a pullback, one multiplied here, relative to the highest score.
        top = self._scores.max(axis=1, keepdims=True)
        # The bound keeps empty risk sets, with log sums of minus infinity, from adding infinity times zero.
        inverse = np.exp(np.minimum(top - self._log_sums, _HIGHEST))
        squares = self.pullback(squared * inverse, np.zeros_like(self._scores))
        squares *= np.exp(self._scores - top)
        second = self.pullback(cotangent, np.zeros_like(self._scores))
        second -= squares
        return np.maximum(second, 0.0, out=second)

    def hessian(self, X: FloatArray, weights: FloatArray, centre: FloatArray | None = None) -> FloatArray:
        """Return the Hessian (d, d) of the log sums weighted by (K,) for linear scores, first row of the batch.

        It is the difference of two sums of squares: of the features, and of their means over risk sets. Subtracting a
        `centre` (d,) from the features only reduces rounding errors. Weights are zero where nobody is at risk.
        """
        inside = self.pullback(weights[None, :], np.zeros((1, len(X))))[0]
        return weighted_gram(X, inside, centre) - weighted_gram(self.means(X), weights, centre)


class RiskSets(RiskSums):
    """Risk sets { j : time_j >= event_times_k } of patients who are all at risk from time zero.

    `event_times` (K,) are ascending, `weight` (n,) are the patients' weights in the sums. `order` (m,) lists the
    patients who belong to risk sets, from the shortest to the longest time; None for all patients.
    """

    def __init__(
        self,
        time: FloatArray,
        event_times: FloatArray,
        weight: FloatArray | None = None,
        order: IntArray | None = None,
    ) -> None:
        self.order: IntArray = np.argsort(time) if order is None else order
        self.first: IntArray = first_at(time[self.order], event_times)
        self.sorted_weight = np.ones(0) if weight is None else weight[self.order]

    def moved(self, position: IntArray) -> Self:
        """Return the same risk sets of patients whose numbers (n,) have changed."""
        part = copy(self)
        part.order = position[self.order]
        return part

    def without(self, left_out: BoolArray) -> Self:
        """See :meth:`RiskSums.without`: they have weight zero. Both share the memory for what derivatives need."""
        part, kept = copy(self), (~left_out[self.order]).astype(np.float64)
        part.sorted_weight = kept * self.sorted_weight if len(self.sorted_weight) else kept
        return part

    def log_sums(self, scores: FloatArray) -> FloatArray:
        """See :meth:`RiskSums.log_sums`."""
        batch, n = len(scores), len(self.order)
        if not self._saved or self._saved[0].shape[0] != batch:
            times = len(self.first)
            self._saved = np.empty((batch, n)), np.empty((batch, times)), np.empty((batch, times))
        risks, levels, sums = self._saved
        out = np.empty_like(sums)
        self._scores, self._log_sums, self._means = np.ascontiguousarray(scores), out, None
        log_sums(self._scores, self.order, self.first, self.sorted_weight, risks, levels, sums, out)
        return out

    def pullback(self, cotangent: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """See :meth:`RiskSums.pullback`; patients outside of the risk sets keep their value in `out`."""
        risks, levels, sums = self._saved
        if out is None:
            out = (
                np.empty_like(risks)
                if len(self.order) == self._scores.shape[1]
                else np.zeros_like(self._scores)
            )
        pull_back(cotangent, self.order, self.first, risks, levels, sums, out)
        return out

    def means(self, X: FloatArray) -> FloatArray:
        """See :meth:`RiskSums.means`."""
        if self._means is None:
            risks, levels, sums = self._saved
            X, d = by_rows(X), X.shape[1]
            self._means = np.empty((len(self.first), d))
            _risk_means(X, self.order, self.first, risks[0], levels[0], sums[0], np.zeros(d), self._means)
        return self._means

    def hessian(self, X: FloatArray, weights: FloatArray, centre: FloatArray | None = None) -> FloatArray:
        """See :meth:`RiskSums.hessian`; in one pass where that is faster."""
        (n, d), times = X.shape, len(self.first)
        inside = self.pullback(weights[None, :], np.zeros((1, n)))[0]
        fast = _NARROW < d < _WIDE and 4 * times > len(self.order)
        # Means over all risk sets take more memory than rows that are computed when they are read.
        if self._means is not None or (isinstance(X, np.ndarray) and not fast):
            return weighted_gram(X, inside, centre) - weighted_gram(self.means(X), weights, centre)
        risks, levels, sums = self._saved
        middle = np.zeros(d) if centre is None else centre
        out, total, k, base = np.zeros((d, d)), np.zeros(d), times - 1, -np.inf
        for high in range(len(self.order), self.first[0], -_READ):
            low = max(high - _READ, self.first[0])
            rows, risk = self.order[low:high], risks[0, low:high]
            k, base = _add_to_hessian(
                by_rows(X[rows]), risk, inside[rows], middle, low, self.first, levels[0], sums[0], weights,
                total, k, base, out,
            )  # fmt: skip
        return (out + out.T) / 2


@numba.njit(cache=True, nogil=True)
def first_at(ascending: FloatArray, values: FloatArray) -> IntArray:
    """Return the position (K,) of the first number that is at least as large as each of the ascending values (K,)."""
    out, i = np.empty(len(values), dtype=np.intp), 0
    for k in range(len(values)):
        while i < len(ascending) and ascending[i] < values[k]:
            i += 1
        out[k] = i
    return out


@numba.njit(cache=True, nogil=True, error_model="numpy")
def log_sums(
    scores: FloatArray,
    order: IntArray,
    first: IntArray,
    weight: FloatArray,
    risks: FloatArray,
    levels: FloatArray,
    sums: FloatArray,
    out: FloatArray,
) -> None:
    """Kernel of :meth:`RiskSets.log_sums`; also writes the risks, levels and sums that derivatives need."""
    n, times = order.shape[0], first.shape[0]
    start, running = first[0] if times else n, np.empty(_CHUNK)
    for b in range(scores.shape[0]):
        row, risk = scores[b], risks[b]
        lowest, highest = np.inf, -np.inf
        for i in range(start, n):
            value = row[order[i]]
            risk[i] = value
            lowest = value if value < lowest else lowest
            highest = value if value > highest else highest
        flat = highest - lowest < FLAT
        if flat:
            levels[b, :] = highest
        else:
            highest, end = -np.inf, n
            for k in range(times - 1, -1, -1):
                for i in range(first[k], end):
                    highest = risk[i] if risk[i] > highest else highest
                for i in range(first[k], end):
                    risk[i] -= highest
                levels[b, k] = highest
                end = first[k]
            highest = 0.0
        for low in range(start, n, _CHUNK):
            part = risk[low : low + _CHUNK]
            exponentials(part, highest)
            if weight.shape[0]:
                for i in range(part.shape[0]):
                    part[i] *= weight[low + i]
        total, level, end, k = 0.0, -np.inf, n, times - 1
        if flat:
            while k >= 0 and first[k] == n:
                sums[b, k] = 0.0
                k -= 1
            # First sums from all patients on: loops over the patients between two event times are too short to be fast.
            for high in range(n, start, -_CHUNK):
                low = max(high - _CHUNK, start)
                for i in range(high - 1, low - 1, -1):
                    total += risk[i]
                    running[i - low] = total
                while k >= 0 and first[k] >= low:
                    sums[b, k] = running[first[k] - low]
                    k -= 1
        for k in range(-1 if flat else times - 1, -1, -1):
            if levels[b, k] != level:
                total = total * math.exp(level - levels[b, k]) if total > 0.0 else 0.0
                level = levels[b, k]
            for i in range(first[k], end):
                total += risk[i]
            sums[b, k] = total
            end = first[k]
        logarithms(sums[b], levels[b], out[b])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def pull_back(
    cotangent: FloatArray,
    order: IntArray,
    first: IntArray,
    risks: FloatArray,
    levels: FloatArray,
    sums: FloatArray,
    out: FloatArray,
) -> None:
    """Kernel of :meth:`RiskSets.pullback`."""
    n, times = order.shape[0], first.shape[0]
    added = np.empty(_CHUNK)
    for b in range(cotangent.shape[0]):
        risk, row = risks[b], out[b]
        for i in range(first[0] if times else n):
            row[order[i]] = 0.0
        # `mass` is sum_k c_k exp(level - L_k), where exp(L_k - level_k) is the saved sum.
        # Levels decrease with time, so rescaling never overflows.
        mass, level, k = 0.0, np.inf, 0
        flat = times > 0 and levels[b, 0] == levels[b, times - 1]
        for low in range(first[0] if flat else n, n, _CHUNK):
            high = min(low + _CHUNK, n)
            added[:] = 0.0
            while k < times and first[k] < high:
                added[first[k] - low] += cotangent[b, k] / sums[b, k] if sums[b, k] > 0.0 else 0.0
                k += 1
            for i in range(low, high):
                mass += added[i - low]
                row[order[i]] = risk[i] * mass
        for k in range(times if flat else 0, times):
            if levels[b, k] != level:
                mass = mass * math.exp(levels[b, k] - level) if mass != 0.0 else 0.0
                level = levels[b, k]
            # Where nobody is at risk the sum is zero and adds nothing.
            mass += cotangent[b, k] / sums[b, k] if sums[b, k] > 0.0 else 0.0
            for i in range(first[k], first[k + 1] if k + 1 < times else n):
                row[order[i]] = risk[i] * mass


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _risk_means(
    X: FloatArray,
    order: IntArray,
    first: IntArray,
    risk: FloatArray,
    level: FloatArray,
    sums: FloatArray,
    total: FloatArray,
    out: FloatArray,
) -> None:
    """Kernel of :meth:`RiskSets.means`; `total` (d,) is zero."""
    d, base, end = X.shape[1], -np.inf, order.shape[0]
    for k in range(first.shape[0] - 1, -1, -1):
        if level[k] != base:
            shrink, base = math.exp(base - level[k]), level[k]
            for j in range(d):
                total[j] *= shrink
        for i in range(first[k], end):
            # Read outside of the loop over the features.
            row, r = order[i], risk[i]
            for j in range(d):
                total[j] += r * X[row, j]
        end = first[k]
        size = 1.0 / sums[k] if sums[k] > 0.0 else 0.0
        for j in range(d):
            out[k, j] = total[j] * size


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_to_hessian(
    X: FloatArray,
    risk: FloatArray,
    inside: FloatArray,
    centre: FloatArray,
    begin: int,
    first: IntArray,
    level: FloatArray,
    sums: FloatArray,
    weights: FloatArray,
    total: FloatArray,
    k: int,
    base: float,
    out: FloatArray,
) -> tuple[int, float]:
    """Add some patients' terms to the Hessian (d, d) of log sums weighted by c (K,), by the right side in the module.

    They are the patients from `begin` on in the order of :class:`RiskSets`, with features X (m, d), of which the
    `centre` (d,) is subtracted, risks (m,), and `inside` (m,), their gradient in the scores, r_j a_j. Those with the
    longest times are added first. `total` (d,) is the sum of the risk-weighted features of all who were added, `base`
    its level, and k the last event time that was not passed; k and the level after this call are returned.
    """
    d = X.shape[1]
    features, pulled = np.empty((_PATIENTS + 1, d)), np.empty((_PATIENTS + 1, d))
    share, height = np.empty(_PATIENTS), np.empty(_PATIENTS + 1)
    product, u = np.empty((d, d)), np.empty(d)
    for high in range(X.shape[0], 0, -_PATIENTS):
        low = max(high - _PATIENTS, 0)
        size = high - low
        # All later patients are treated as one patient, whose features are their risk-weighted sum.
        np.positive(total, features[size])
        height[size] = base
        for i in range(size):
            for j in range(d):
                features[i, j] = X[low + i, j] - centre[j]
        # Backwards: sums over the patients at risk, and the term of each event time in u.
        for i in range(size - 1, -1, -1):
            place = begin + low + i
            while first[k] > place:
                k -= 1
            if level[k] != base:
                total *= math.exp(base - level[k])
                base = level[k]
            r, pull = risk[low + i], 0.0
            for j in range(d):
                total[j] += r * features[i, j]
            if first[k] == place and sums[k] > 0.0:
                inverse, same = 1.0 / sums[k], k
                while same >= 0 and first[same] == place:
                    pull += weights[same] * inverse
                    same -= 1
                # Divide before multiplying: the square of a sum of small risks may underflow.
                for j in range(d):
                    pulled[i, j] = total[j] * inverse * pull
            share[i], height[i] = pull, base
        # Forwards: accumulate u from the first of these event times on.
        u[:] = 0.0
        for i in range(size):
            if share[i] != 0.0:
                for j in range(d):
                    u[j] += pulled[i, j]
            both, r = inside[low + i], risk[low + i]
            for j in range(d):
                pulled[i, j] = both * features[i, j] - r * u[j]
            if height[i + 1] != height[i]:
                u *= math.exp(height[i + 1] - height[i])
        np.negative(u, pulled[size])
        np.dot(features[: size + 1].T, pulled[: size + 1], product)
        out += product
    return k, base


def by_rows(X: FloatArray) -> FloatArray:
    """Return features (n, d) stored by row, which loops over patients read faster, and writeable.

    numba would compile these loops again for arrays stored otherwise.
    """
    return np.require(X, requirements=["C", "A", "W"])


def weighted_gram(X: FloatArray, weights: FloatArray, centre: FloatArray | None = None) -> FloatArray:
    """Return X' diag(weights) X (d, d), with the features centred at (d,)."""
    n, d = X.shape
    # As many rows at a time as fit into the cache.
    rows, gram = max(1024, 65536 // max(d, 1)), np.zeros((d, d))
    if centre is None and d <= _FEW:
        for low in range(0, n, rows):
            part = X[low : low + rows]
            gram += part.T @ (weights[low : low + rows, None] * part)
        return gram
    if weights.min(initial=0.0) < 0.0:
        above = weighted_gram(X, np.maximum(weights, 0.0), centre)
        return above - weighted_gram(X, np.maximum(-weights, 0.0), centre)
    centre = np.zeros(d) if centre is None else centre
    scratch = np.empty((min(rows, n), d))
    for low in range(0, n, rows):
        part = scratch[: n - low]
        _scale(by_rows(X[low : low + rows]), weights[low : low + rows], centre, part)
        # BLAS computes the product of a matrix with its own transpose in half the time.
        gram += part.T @ part
    return gram


@numba.njit(cache=True, nogil=True)
def _scale(X: FloatArray, weights: FloatArray, centre: FloatArray, out: FloatArray) -> None:
    """Write the centred rows of X, multiplied by the square roots of their weights."""
    for i in range(out.shape[0]):
        root = np.sqrt(weights[i])
        for j in range(out.shape[1]):
            out[i, j] = root * (X[i, j] - centre[j])


@numba.njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def exponentials(x: FloatArray, highest: float) -> None:
    """Replace x <= highest by exp(v) with v = x - highest, in a form that the compiler can vectorise.

    With k = round(v / ln 2) and r = v - k ln 2, exp(v) = 2^k exp(r); the exponent field of a float is 2^k and
    a polynomial of degree 12 gives exp(r) to the last bit for |r| <= ln(2)/2.
    """
    for i in range(x.shape[0]):
        v = x[i] - highest
        v = v if v > _UNDERFLOW else _UNDERFLOW
        k = np.floor(v * _LOG2E + 0.5)
        r = (v - k * _LN2_HIGH) - k * _LN2_LOW
        # Estrin's scheme: the multiplications of the polynomial do not depend on each other.
        r2 = r * r
        r4 = r2 * r2
        low = (1.0 + r) + r2 * (1.0 / 2.0 + r * (1.0 / 6.0))
        middle = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0))
        high = (1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (1.0 / 3628800.0 + r * (1.0 / 39916800.0))
        power = np.int64((np.int64(k) + 1023) << 52).view(np.float64)
        x[i] = (low + r4 * (middle + r4 * (high + r4 * (1.0 / 479001600.0)))) * power


@numba.njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def logarithms(x: FloatArray, level: FloatArray, out: FloatArray) -> None:
    """Write log(x) + level for x >= 0, in a form that the compiler can vectorise.

    With x = 2^e m, m between sqrt(1/2) and sqrt(2), and s = (m - 1)/(m + 1): log m = 2 (s + s^3/3 + s^5/5 + ...).
    """
    for i in range(x.shape[0]):
        bits = np.float64(x[i]).view(np.int64)
        e = (bits - _SQRT_HALF) >> 52
        m = np.int64(bits - (e << 52)).view(np.float64)
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        p = 1.0 / 21.0
        p = p * z + 1.0 / 19.0
        p = p * z + 1.0 / 17.0
        p = p * z + 1.0 / 15.0
        p = p * z + 1.0 / 13.0
        p = p * z + 1.0 / 11.0
        p = p * z + 1.0 / 9.0
        p = p * z + 1.0 / 7.0
        p = p * z + 1.0 / 5.0
        p = p * z + 1.0 / 3.0
        log_mantissa = 2.0 * s + (2.0 * s) * z * p
        value = (e * _LN2_HIGH + level[i]) + (e * _LN2_LOW + log_mantissa)
        out[i] = value if x[i] > 0.0 else -np.inf
