"""Competing causes: the full likelihoods of all causes together, one number per patient."""

from __future__ import annotations

import numpy as np

from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.losses.stratified_likelihood import StratifiedLikelihood
from drosurv.losses.summed_parts import SummedParts
from drosurv.target import CompetingTarget, FloatArray, IntArray


class CompetingRisks(SummedParts):
    """Sum over the causes k of the full-likelihood losses, with every other cause counted as censoring.

        l_i = sum_k [ -1{D_i = k} (f_ki + psi_k,m(i)) + exp(f_ki) sum_m E_im exp(psi_km) ]

    Each cause has its own score of a patient, and its own baseline hazard (one for each stratum) on its own quantile
    intervals. Scores are (B, n, causes); the extra parameters are the log baseline hazards of one cause after the
    other; coefficients of linear scores likewise. Parameters are as in :class:`~drosurv.losses.PiecewiseExponential`;
    an offset is added to the scores of every cause.
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
        self.n_outputs = target.n_causes
        losses = [likelihood(target.of_cause(k), *rest) for k in causes]
        self._build(len(target), losses, [np.arange(len(target))] * target.n_causes)
        self.shift = np.zeros((self.n_outputs, self.n_extra))
        for part in self.parts:
            self.shift[part.output, part.psi] = 1.0

    @property
    def compared(self) -> IntArray | None:
        """Stratum (n,) of each patient, -1 where no cause has a hazard; None without strata."""
        sets = [own for part in self.parts if (own := part.loss.compared) is not None]
        return np.maximum.reduce(sets) if sets else None
