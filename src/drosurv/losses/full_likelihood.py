"""The full likelihood of a proportional hazards model whose baseline hazard is constant on intervals.

Beside it the Poisson deviance, which knows no unit of time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drosurv.losses.intervals import NO_FOLLOW_UP, cumulative_baseline
from drosurv.losses.loss import NOTHING, ConvexLoss
from drosurv.losses.on_intervals import OnIntervals
from drosurv.losses.tie_blocks import block_sums
from drosurv.target import FloatArray, IntArray

if TYPE_CHECKING:
    import torch


def full_likelihood(
    log_risk: torch.Tensor,
    psi: torch.Tensor,
    event: torch.Tensor,
    time: torch.Tensor,
    cut_points: torch.Tensor,
) -> torch.Tensor:
    """Full-likelihood loss of each patient under a piecewise-constant baseline hazard; differentiable.

        l_i = -d_i (f_i + psi_k(i)) + exp(f_i) sum_m E_im exp(psi_m)

    Parameters
    ----------
    log_risk : (..., n)
        Log risks f_i.
    psi : (..., K)
        Log baseline hazards on the K intervals (c_{m-1}, c_m], with c_0 = 0 and c_K infinite.
    event : (n,)
        True (or 1) where the event was observed.
    time : (n,)
        Times of event or censoring, not negative.
    cut_points : (K-1,)
        Increasing positive boundaries between the intervals.

    Returns
    -------
    (..., n)
        One loss per patient.

    Examples
    --------
    >>> import torch
    >>> from drosurv.losses import full_likelihood
    >>> event, time = torch.tensor([True, False]), torch.tensor([2.0, 3.0])
    >>> full_likelihood(torch.zeros(2), torch.zeros(2), event, time, torch.tensor([2.5]))
    tensor([2., 3.])
    """
    import torch

    base, index = cumulative_baseline(psi, time, cut_points)
    # A patient seen for no time has no hazard; exp(-inf) keeps its gradient finite, exp(f) * 0 may not.
    followed = base > 0
    log_base = torch.where(followed, base, 1.0).log()
    hazard = torch.where(followed, log_risk + log_base, -torch.inf).exp()
    return hazard - torch.where(event.bool(), log_risk + psi[..., index], 0.0)


class PiecewiseExponential(OnIntervals, ConvexLoss):
    """Full-likelihood loss of each patient, prepared for repeated evaluation on one target.

        l_i = -d_i (f_i + psi_k(i)) + exp(f_i) sum_m E_im exp(psi_m)

    f is the log risk, psi_m the log baseline hazard on interval m, k(i) the interval that holds the time Y_i
    and E_im the time patient i spent in interval m. With linear f it is jointly convex in (theta, psi).
    Every evaluation takes O(n + K) time and memory.

    Parameters and attributes as in :class:`~drosurv.losses.on_intervals.OnIntervals`.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv.losses import PiecewiseExponential
    >>> from drosurv.target import Target
    >>> loss = PiecewiseExponential(Target(np.array([True, False]), np.array([2.0, 3.0])))
    >>> loss(np.zeros((1, 2)), loss.start[None]).round(3)
    array([[2.009, 0.6  ]])
    """

    in_torch = staticmethod(full_likelihood)

    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Losses (..., n) of the log risks ``scores`` (..., n) and log baseline hazards ``extra`` (..., K)."""
        scores, _ = self._log_hazards(scores, extra)
        return self._hazard - self._event * (scores + extra[..., self._index])

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient of sum_i weights_i l_i at the last call, by score (..., n) and by psi (..., K)."""
        curvature, events = self.curvature(weights), weights * self._event
        by_psi = self._through_psi(curvature) - block_sums(events, self._index, self.n_intervals)
        return curvature - events, by_psi

    def hessian(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Second derivatives (d + K, d + K) in (theta, psi) of the losses weighted by (1, n), for scores X theta."""
        curvature, d = self.curvature(weights), X.shape[1]
        size = d + self.n_intervals
        hessian = np.zeros((size, size))
        hessian[:d, :d] = (curvature[0][:, None] * X).T @ X
        for j in range(d):
            hessian[j, d:] = hessian[d:, j] = self._through_psi(curvature * X[:, j])[0]
        hessian[range(d, size), range(d, size)] = self._through_psi(curvature)[0]
        return hessian

    def jacobian(self, X: FloatArray, which: IntArray) -> FloatArray:
        """Gradients (len(which), d + K) of the chosen losses in (theta, psi) for scores X theta.

        The one wide array of this loss; for the first row of the batch.
        """
        hazard, base, event = self._hazard[0, which], self._base[0, which], self._event[which]
        rate = np.divide(hazard, base, out=np.zeros_like(hazard), where=base > 0)
        index = self._index[which]
        by_psi = self._spent.take(which).exposures() * self._rates[0] * rate[:, None]
        by_psi[np.arange(len(which)), index] -= event
        return np.concatenate([(hazard - event)[:, None] * X[which], by_psi], axis=1)

    def curvature(self, weights: FloatArray) -> FloatArray:
        """Weight times hazard: a patient without weight contributes nothing, however large the hazard."""
        return np.multiply(weights, self._hazard, out=np.zeros_like(self._hazard), where=weights != 0)


def poisson_deviance(
    log_risk: torch.Tensor,
    psi: torch.Tensor,
    event: torch.Tensor,
    time: torch.Tensor,
    cut_points: torch.Tensor,
) -> torch.Tensor:
    """Poisson deviance of each patient under a piecewise-constant baseline hazard; differentiable.

        l_i = 2 ( Lam_i - d_i - d_i log Lam_i ),    Lam_i = exp(f_i) sum_m E_im exp(psi_m)

    Times of 0 count as half the smallest positive time.

    Parameters
    ----------
    log_risk, psi, event, time, cut_points
        As in :func:`full_likelihood`; the times are not all 0.

    Returns
    -------
    (..., n)
        One loss per patient.

    Examples
    --------
    >>> import torch
    >>> from drosurv.losses import poisson_deviance
    >>> event, time = torch.tensor([True, False]), torch.tensor([1.0, 4.0])
    >>> poisson_deviance(torch.zeros(2), torch.zeros(2), event, time, torch.tensor([2.0]))
    tensor([0., 8.])
    """
    import torch

    positive = time[time > 0]
    if len(positive) == 0:
        raise ValueError(NO_FOLLOW_UP)
    return _of_followed(log_risk, psi, event, torch.where(time > 0, time, positive.min() / 2), cut_points)


def _of_followed(
    log_risk: torch.Tensor,
    psi: torch.Tensor,
    event: torch.Tensor,
    time: torch.Tensor,
    cut_points: torch.Tensor,
) -> torch.Tensor:
    """The same where all times are positive."""
    import torch

    log_hazard = log_risk + cumulative_baseline(psi, time, cut_points)[0].log()
    return 2 * (log_hazard.exp() - torch.where(event.bool(), 1 + log_hazard, 0.0))


class PoissonDeviance(OnIntervals):
    """Deviance loss of each patient, prepared for repeated evaluation on one target.

        l_i = 2 ( Lam_i - d_i - d_i log Lam_i ),    Lam_i = exp(f_i) sum_m E_im exp(psi_m)

    The plain full likelihood holds the log of a rate, so its worst patients change when days become years;
    Lam_i is a pure number. The price: the loss is convex in f alone, not in psi. A death at time 0 would have
    an infinite deviance and counts as one at half the smallest positive time.

    Parameters and attributes as in :class:`~drosurv.losses.on_intervals.OnIntervals`.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv.losses import PoissonDeviance
    >>> from drosurv.target import Target
    >>> loss = PoissonDeviance(Target(np.array([True, False]), np.array([2.0, 4.0])))
    >>> loss(np.zeros((1, 2)), np.log([[0.5]])).tolist()
    [[0.0, 4.0]]
    """

    signed = False
    in_torch = staticmethod(_of_followed)

    def _followed(self, time: FloatArray) -> FloatArray:
        positive = time[time > 0]
        if len(positive) == 0:
            raise ValueError(NO_FOLLOW_UP)
        return np.where(time > 0, time, positive.min() / 2)

    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Losses (..., n) of the log risks ``scores`` (..., n) and log baseline hazards ``extra`` (..., K)."""
        _, log_hazard = self._log_hazards(scores, extra)
        return 2 * (self._hazard - self._event * (1 + log_hazard))

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient of sum_i weights_i l_i at the last call, by score (..., n) and by psi (..., K)."""
        by_score = 2 * weights * (self._hazard - self._event)
        return by_score, self._through_psi(by_score)

    def curvature(self, weights: FloatArray) -> FloatArray:
        """Second derivatives (..., n) of the losses weighted by (..., n), each in its own score."""
        return 2 * weights * self._hazard
