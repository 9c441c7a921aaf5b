"""The Poisson deviance of each patient: a full-likelihood loss that knows no unit of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from drosurv.losses.intervals import NO_FOLLOW_UP, cumulative_baseline
from drosurv.losses.loss import NOTHING
from drosurv.losses.on_intervals import OnIntervals
from drosurv.target import FloatArray

if TYPE_CHECKING:
    import torch


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
