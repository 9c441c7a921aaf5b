"""Losses of scores and a baseline together, and how a loss of scores alone becomes one."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np

from drosurv.solvers.composite import Loss
from drosurv.target import FloatArray, IntArray


class BaselineLoss(Protocol):
    """One loss for each of n patients, given their scores and K log baseline hazards."""

    null_psi: FloatArray
    """Log baseline hazards (K,) of the null model, where training starts."""

    @property
    def n_intervals(self) -> int:
        """K; 0 for a loss without a baseline."""
        ...

    def __call__(self, scores: FloatArray, psi: FloatArray) -> FloatArray:
        """Scores (B, n) and log hazards (B, K) to losses (B, n)."""
        ...

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradients, by score (B, n) and by log hazard (B, K), of the losses weighted by (B, n) at the last call."""
        ...


class ConvexBaselineLoss(BaselineLoss, Protocol):
    """A loss that is jointly convex in the log hazards and the coefficients of linear scores."""

    @property
    def event_share(self) -> float:
        """Share of the patients who had the event."""
        ...

    def jacobian(self, X: FloatArray) -> FloatArray:
        """Gradients (n, d + K) of each loss in coefficients and log hazards, for one row."""
        ...

    def hessian(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Second derivatives (1, d + K, d + K) of the losses weighted by (1, n)."""
        ...

    def take(self, rows: IntArray) -> Self:
        """The same loss among fewer patients."""
        ...


class WithoutBaseline:
    """A partial likelihood as a loss of every patient: zero for those it gives none, and no baseline beside it.

    Parameters
    ----------
    loss : Loss
        Such as :class:`drosurv.losses.CoxPartial` or :class:`drosurv.losses.CoxSplit`.
    """

    n_intervals = 0

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.null_psi: FloatArray = np.zeros(0)

    @property
    def event_share(self) -> float:
        """Share of the patients who have a loss: those with an event."""
        return len(self.loss.rows) / self.loss.n

    def null_losses(self) -> FloatArray:
        """Losses (n,) of the null model, equal scores for everybody."""
        losses: FloatArray = self(np.zeros((1, self.loss.n)), self.null_psi[None])[0]
        return losses

    def __call__(self, scores: FloatArray, psi: FloatArray) -> FloatArray:
        """Losses (B, n) at scores (B, n); there is no psi to read."""
        losses = np.zeros((len(scores), self.loss.n))
        losses[:, self.loss.rows] = self.loss(scores)
        return losses

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient by score (B, n), and nothing (B, 0) by psi."""
        return self.loss.pullback(weights[:, self.loss.rows]), np.zeros((len(weights), 0))

    def jacobian(self, X: FloatArray) -> FloatArray:
        """Gradients (n, d) of each patient's loss in the coefficients of linear scores."""
        gradients = np.zeros(X.shape)
        gradients[self.loss.rows] = self.loss.jacobian(X, np.arange(len(self.loss.rows)))
        return gradients

    def hessian(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Second derivatives (1, d, d) of the losses weighted by (1, n)."""
        return self.loss.hessian(weights[:, self.loss.rows], X)[None]

    def take(self, rows: IntArray) -> WithoutBaseline:
        """The same loss among fewer patients."""
        return WithoutBaseline(self.loss.take(rows))
