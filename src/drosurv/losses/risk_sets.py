"""Risk sets: the log of the summed risks of everyone still at risk, and its transpose.

For patients sorted by time, the risk set of a time is a suffix of that order, so

    L_k = log sum_{j : Y_j >= t_k} w_j exp f_j

needs one backward sweep for all times t_1 <= ... <= t_K together, and the gradient of sum_k c_k L_k,

    g_j = w_j exp(f_j) sum_{k : t_k <= Y_j} c_k exp(-L_k),

one forward sweep. The wanted times cut the sorted patients into K blocks. Every exponent in a block is taken
relative to the largest score in it or after it, so nothing overflows and the largest term of every sum is one,
whatever the scores. Patients seen for less than the first wanted time are in no risk set and no block.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numpy.typing import NDArray

from drosurv.losses.elementary import exponentials, logarithms
from drosurv.losses.risk_hessian import in_one_pass, risk_hessian, weighted_gram
from drosurv.target import FloatArray, IntArray

if TYPE_CHECKING:
    from torch import Tensor

# Its exponential is near the largest number.
_HIGHEST = 700.0
# Scores within this span can share one level: neither the smallest risk nor a sum of risks leaves the floats.
FLAT = 500.0
# Patients worked through at a time where several passes follow each other: their numbers stay in the nearest cache.
_CHUNK = 1024


def distinct(ascending: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """Distinct values (K,) of ascending times (m,), and which of them each is, (m,)."""
    new = np.ones(len(ascending), dtype=np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    return ascending[new], np.cumsum(new) - 1


class RiskSums(ABC):
    """Log-sum-exp of scores over the patients at risk at each of K times, and derivatives at the last scores (B, n)."""

    _scores = _log_sums = np.empty((0, 0))
    # What the derivatives need of the last scores, one row for each of the batch.
    _saved: tuple[FloatArray, ...] | None = None
    _means: FloatArray | None = None

    @property
    def _last(self) -> tuple[FloatArray, ...]:
        assert self._saved is not None, "log_sums comes before its derivatives"
        return self._saved

    @abstractmethod
    def log_sums(self, scores: FloatArray) -> FloatArray:
        """Scores (B, n) to log sums (B, K); minus infinity where nobody is at risk."""

    @abstractmethod
    def pullback(self, cotangent: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Cotangents of the log sums (B, K) to the gradient in the scores (B, n), in `out`, where others are zero."""

    @abstractmethod
    def _find_means(self, X: FloatArray) -> FloatArray:
        """Risk-weighted means (K, d) of features (n, d), for the first row of the batch."""

    def means(self, X: FloatArray) -> FloatArray:
        """Risk-weighted means (K, d) of features (n, d) over each risk set, for the first row of the batch.

        They are kept until the next scores: the same X is expected until then.
        """
        if self._means is None:
            self._means = self._find_means(X)
        return self._means

    def curvature(self, cotangent: FloatArray, squared: FloatArray) -> FloatArray:
        """Second derivatives (B, n) of functions of the log sums, each in one patient's own score.

            sum_k c_k p_kj - s_k p_kj^2,   p_kj the share of patient j in the risk set of time k

        For log sums weighted by c (B, K), s is c as well. A patient of weight w counts as w patients, each with a share
        of their own.
        """
        # p^2 through a second sweep: one factor exp(f_j - L_k) there, one here, both relative to the highest score.
        top = self._scores.max(axis=1, keepdims=True)
        # An empty risk set has no pull, and must not make one of infinity.
        risen = np.exp(np.minimum(top - self._log_sums, _HIGHEST))
        own = self.pullback(squared * risen, np.zeros_like(self._scores))
        own *= np.exp(self._scores - top)
        bend = self.pullback(cotangent, np.zeros_like(self._scores))
        bend -= own
        return np.maximum(bend, 0.0, out=bend)

    def hessian(self, X: FloatArray, weights: FloatArray, centre: FloatArray | None = None) -> FloatArray:
        """Second derivative (d, d) of the log sums weighted by (K,), in the coefficients of linear scores, for one row.

        It is the difference of two sums of squares, of the features and of their means at risk. Features far from zero
        lose digits in it: taken from a centre (d,) they do not, and the derivative is the same. Weights are zero where
        nobody is at risk.
        """
        inside = self.pullback(weights[None, :], np.zeros((1, len(X))))[0]
        return weighted_gram(X, inside, centre) - weighted_gram(self.means(X), weights, centre)


class RiskSets(RiskSums):
    """Those of patients who are all at risk from the start.

    Wanted are the risk sets { j : time_j >= at_k } of ascending times `at` (K,), with each patient's `weight` (n,)
    inside the sums. `order` (m,) are the patients who fill them, from the shortest to the longest time; None is
    everybody.
    """

    def __init__(
        self,
        time: FloatArray,
        at: FloatArray,
        weight: FloatArray | None = None,
        order: IntArray | None = None,
    ) -> None:
        self.order: IntArray = np.argsort(time) if order is None else order
        self.first: IntArray = np.searchsorted(time[self.order], at, side="left")
        self.sorted_weight = np.ones(0) if weight is None else weight[self.order]

    def log_sums(self, scores: FloatArray) -> FloatArray:
        """As of every risk sum."""
        batch, n = len(scores), len(self.order)
        if self._saved is None or self._saved[0].shape[0] != batch:
            times = len(self.first)
            self._saved = np.empty((batch, n)), np.empty((batch, times)), np.empty((batch, times))
        risks, levels, sums = self._saved
        out = np.empty_like(sums)
        self._scores, self._log_sums, self._means = np.ascontiguousarray(scores), out, None
        log_sums(self._scores, self.order, self.first, self.sorted_weight, risks, levels, sums, out)
        return out

    def pullback(self, cotangent: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """As of every risk sum, written at the members."""
        risks, levels, sums = self._last
        out = np.empty_like(risks) if out is None else out
        pull_back(cotangent, self.order, self.first, risks, levels, sums, out)
        return out

    def _find_means(self, X: FloatArray) -> FloatArray:
        risks, levels, sums = (saved[0] for saved in self._last)
        means = np.empty((len(self.first), X.shape[1]))
        _risk_means(X, self.order, self.first, risks, levels, sums, means)
        return means

    def hessian(self, X: FloatArray, weights: FloatArray, centre: FloatArray | None = None) -> FloatArray:
        """As of every risk sum, in one pass where that is faster."""
        if self._means is not None or not in_one_pass(len(self.order), X.shape[1], len(self.first)):
            return super().hessian(X, weights, centre)
        inside = self.pullback(weights[None, :], np.zeros((1, len(X))))[0]
        risks, levels, sums = (saved[0] for saved in self._last)
        middle = np.zeros(X.shape[1]) if centre is None else centre
        return risk_hessian(X, self.order, self.first, risks, levels, sums, weights, inside, middle)


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
    """Kernel of :meth:`RiskSets.log_sums`; also writes the risks, levels and sums that its transpose needs."""
    n, times = order.shape[0], first.shape[0]
    start = first[0] if times else n
    scratch = np.empty(_CHUNK, np.int64)
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
                    highest = max(highest, risk[i])
                for i in range(first[k], end):
                    risk[i] -= highest
                levels[b, k] = highest
                end = first[k]
        for low in range(start, n, _CHUNK):
            part = risk[low : min(low + _CHUNK, n)]
            if flat:
                for i in range(part.shape[0]):
                    part[i] -= highest
            exponentials(part, scratch)
            if weight.shape[0]:
                for i in range(part.shape[0]):
                    part[i] *= weight[low + i]
        total, level, end = 0.0, -np.inf, n
        for k in range(times - 1, -1, -1):
            if levels[b, k] != level:
                total = total * math.exp(level - levels[b, k]) if total > 0.0 else 0.0
                level = levels[b, k]
            for i in range(first[k], end):
                total += risk[i]
            sums[b, k] = total
            end = first[k]
        for low in range(0, times, _CHUNK):
            high = min(low + _CHUNK, times)
            logarithms(sums[b, low:high], levels[b, low:high], out[b, low:high])


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
    for b in range(cotangent.shape[0]):
        risk, row = risks[b], out[b]
        for i in range(first[0] if times else n):
            row[order[i]] = 0.0
        # `mass` is sum_k c_k exp(level - L_k), where exp(L_k - level) is the saved sum at its own level;
        # levels fall with time, so rescaling only ever shrinks it.
        mass, level = 0.0, np.inf
        for k in range(times):
            if levels[b, k] != level:
                mass = mass * math.exp(levels[b, k] - level) if mass != 0.0 else 0.0
                level = levels[b, k]
            # Where nobody is at risk the sum is zero, and so is what may be pulled back through it.
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
    out: FloatArray,
) -> None:
    """Kernel of :meth:`RiskSets.means`."""
    d = X.shape[1]
    total, at, end = np.zeros(d), -np.inf, order.shape[0]
    for k in range(first.shape[0] - 1, -1, -1):
        if level[k] != at:
            total *= math.exp(at - level[k])
            at = level[k]
        for i in range(first[k], end):
            # Read once, so that the loop over the features has nothing else to look up.
            row, own = order[i], risk[i]
            for j in range(d):
                total[j] += own * X[row, j]
        end = first[k]
        size = 1.0 / sums[k] if sums[k] > 0.0 else 0.0
        for j in range(d):
            out[k, j] = total[j] * size


def weighted_log_risk(log_risk: Tensor, weight: Tensor | None) -> Tensor:
    """Log of weight times risk, (..., n); a weight of zero gives a finite number that no sum of risks notices."""
    import torch

    if weight is None:
        return log_risk
    counted = weight > 0
    # Minus infinity would be the exact value, but the gradient of a sum of nothing is then not a number.
    nothing = torch.full_like(log_risk, torch.finfo(log_risk.dtype).min / 4)
    return torch.where(counted, log_risk + torch.where(counted, weight, 1.0).log(), nothing)
