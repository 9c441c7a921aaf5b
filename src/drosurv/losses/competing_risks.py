"""Competing causes: the full likelihoods of all causes together, one number per patient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.losses.loss import NOTHING, ConvexLoss
from drosurv.losses.stratified_likelihood import StratifiedLikelihood
from drosurv.target import CompetingTarget, FloatArray, IntArray


class CompetingRisks(ConvexLoss):
    """Sum over the causes k of the full-likelihood losses, with every other cause counted as censoring.

        l_i = sum_k [ -1{D_i = k} (f_ki + psi_k,m(i)) + exp(f_ki) sum_m E_im exp(psi_km) ]

    Each cause has its own score of a patient, and its own baseline hazard (one for each stratum) on its own quantile
    intervals. Scores are (B, n, causes); the extra parameters are the log baseline hazards of one cause after the
    other; coefficients of linear scores likewise.

    Parameters
    ----------
    target : CompetingTarget
        n patients.
    n_intervals : int
        Quantile intervals of each cause's event times.
    sample_weight : (n,) float64, optional
        Weights of patients in the quantiles and in the null model.
    offset : (n,) float64, optional
        Added to the scores of every cause.
    """

    def __init__(
        self,
        target: CompetingTarget,
        n_intervals: int = 20,
        sample_weight: FloatArray | None = None,
        offset: FloatArray | None = None,
    ) -> None:
        causes = range(1, target.n_causes + 1)
        likelihood = PiecewiseExponential if target.stratum is None else StratifiedLikelihood
        rest = n_intervals, sample_weight, offset
        self._build([likelihood(target.of_cause(k), *rest) for k in causes])

    def _build(self, parts: Sequence[PiecewiseExponential | StratifiedLikelihood]) -> None:
        self.parts = parts
        self.n, self.rows = parts[0].n, parts[0].rows
        self.n_outputs = len(parts)
        self.start = np.concatenate([part.start for part in parts])
        # One number added to all scores is worth another in each cause's hazards only: centre the features instead.
        self.shift = None
        self._ends = np.cumsum([part.n_extra for part in parts])

    @property
    def compared(self) -> IntArray | None:
        """Stratum (n,) of each patient, -1 where no cause has a hazard; None without strata."""
        sets = [part.compared for part in self.parts if part.compared is not None]
        return np.maximum.reduce(sets) if sets else None

    @property
    def event_share(self) -> float:
        """Share of the patients who had an event of any cause."""
        return sum(part.event_share for part in self.parts)

    def split(self, extra: FloatArray) -> list[FloatArray]:
        """The log baseline hazards (..., K_k) of each cause, given those of all (..., K)."""
        return np.split(extra, self._ends[:-1], axis=-1)

    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Losses (B, n) of the scores (B, n, causes) and log baseline hazards (B, K)."""
        psi = self.split(extra)
        losses: FloatArray = np.sum(
            [part(scores[..., k], psi[k]) for k, part in enumerate(self.parts)], axis=0
        )
        return losses

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient of the losses weighted by (B, n): by score (B, n, causes) and by extra (B, K)."""
        by_score, by_extra = zip(*(part.pullback(weights) for part in self.parts), strict=True)
        return np.stack(by_score, axis=-1), np.concatenate(by_extra, axis=-1)

    def jacobian(self, X: FloatArray, which: IntArray) -> FloatArray:
        """Gradients (len(which), causes d + K) of the chosen losses."""
        d = X.shape[1]
        own = [part.jacobian(X, which) for part in self.parts]
        return np.concatenate([*(part[:, :d] for part in own), *(part[:, d:] for part in own)], axis=1)

    def hessian(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Second derivatives (causes d + K, causes d + K): causes share no parameter."""
        d = X.shape[1]
        theta = len(self.parts) * d
        out = np.zeros((theta + self.n_extra, theta + self.n_extra))
        for k, part in enumerate(self.parts):
            psi = np.arange(self._ends[k] - part.n_extra, self._ends[k])
            place = np.concatenate([np.arange(k * d, (k + 1) * d), theta + psi])
            out[np.ix_(place, place)] = part.hessian(weights, X)
        return out

    def take(self, rows: IntArray) -> Self:
        """The same loss, intervals and null model among fewer patients."""
        other = type(self).__new__(type(self))
        other._build([part.take(rows) for part in self.parts])
        return other
