"""Events that share a time: sums over them, and what Efron's form adds."""

from __future__ import annotations

import math

import numba
import numpy as np

from drosurv.target import FloatArray, IntArray


class EfronTies:
    """What Efron's form adds to the log sum of a tie block, and its derivative.

    With rho the share of the block's events in the risk of its risk set, the term is
    mean_k log(1 - k/m rho), k = 0..m-1.
    """

    def __init__(self, rows: IntArray, block: IntArray, weight: FloatArray | None) -> None:
        self.rows, self.block = rows, block
        self.count, self.step = np.bincount(block), tie_shares(block)
        self.log_weight = 0.0 if weight is None else np.log(weight[rows])
        self._share: FloatArray = np.empty(0)
        self._slope: FloatArray = np.empty(0)

    def correction(self, scores: FloatArray, log_sums: FloatArray) -> FloatArray:
        """What is added (B, K) to the log sums (B, K) of scores (B, n)."""
        self._share = np.exp(scores[:, self.rows] + self.log_weight - log_sums[:, self.block])
        rho = block_sums(self._share, self.block, len(self.count))
        value = np.zeros_like(rho)
        self._slope = np.zeros_like(rho)
        _efron_terms(rho, self.count, value, self._slope)
        return value

    def means(self, X: FloatArray, means: FloatArray) -> FloatArray:
        """Gradients (K, d) of the corrected log sums, given those of the plain ones."""
        corrected: FloatArray = means + self._slope[0][:, None] * self._rise(X, means)
        return corrected

    def terms(self, X: FloatArray, means: FloatArray) -> FloatArray:
        """Gradients (E, d) of the single terms log(S - k/m D), one per event."""
        slope = -self.step / self.left
        return means[self.block] + slope[:, None] * self._rise(X, means)[self.block]

    @property
    def left(self) -> FloatArray:
        """Part (E,) of the risk at the event's time that is left in its term, 1 - k/m rho, for the first row."""
        left: FloatArray = 1.0 - self.step * self._rho[self.block]
        return left

    @property
    def _rho(self) -> FloatArray:
        (rho,) = block_sums(self._share[:1], self.block, len(self.count))
        return np.asarray(rho)

    def _rise(self, X: FloatArray, means: FloatArray) -> FloatArray:
        """Gradient (K, d) of rho, for the first row of the batch."""
        tied = np.zeros_like(means)
        np.add.at(tied, self.block, self._share[0][:, None] * X[self.rows])
        return tied - self._rho[:, None] * means

    def pullback(self, pull: FloatArray) -> FloatArray:
        """Gradient through rho: returned for the events' own scores, subtracted from ``pull`` for log S."""
        through = pull * self._slope
        own = through[:, self.block] * self._share
        pull -= through * block_sums(self._share, self.block, len(self.count))
        return own


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _efron_terms(rho: FloatArray, count: IntArray, value: FloatArray, slope: FloatArray) -> None:
    for b in range(rho.shape[0]):
        for j in range(rho.shape[1]):
            m = count[j]
            for k in range(1, m):
                left = 1.0 - k / m * rho[b, j]
                value[b, j] += np.log(left) / m
                slope[b, j] -= k / m / left / m


def tie_shares(block: IntArray) -> FloatArray:
    """Shares k/m (E,), k = 0..m-1, of the m events of each tie block (E,): each event stands for one of its m terms."""
    _, first, count = np.unique(block, return_index=True, return_counts=True)
    shares: FloatArray = (np.arange(len(block)) - np.repeat(first, count)) / np.repeat(count, count)
    return shares


def block_sums(values: FloatArray, block: IntArray, n_blocks: int) -> FloatArray:
    """Sums (..., K) of values (..., E) over the block (E,) of each: the events of a tie, the rows of a patient."""
    out = np.zeros((math.prod(values.shape[:-1]), n_blocks))
    add_by_block(values.reshape(len(out), len(block)), block, out)
    return out.reshape(*values.shape[:-1], n_blocks)


@numba.njit(cache=True, nogil=True)
def add_by_block(values: FloatArray, block: IntArray, out: FloatArray) -> None:
    """Add values (B, E) to the blocks (B, K) they belong to."""
    for b in range(values.shape[0]):
        for e in range(block.shape[0]):
            out[b, block[e]] += values[b, e]
