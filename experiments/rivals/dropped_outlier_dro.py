"""DORO: the worst case among patients without the largest losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from drosurv.errors import as_number, check_share, require
from drosurv.objectives.balls import ball_objective, check_ball
from drosurv.solvers import Problem, TrainingData
from experiments.rivals.any_loss import AnyLoss
from experiments.rivals.dropped_outliers import DroppedOutliers


@dataclass(eq=False, repr=False)
class DroppedOutlierDRO(AnyLoss):
    """The worst case over every subpopulation of at least mass alpha, among patients without the largest losses.

    Parameters
    ----------
    alpha : float
        Smallest share of patients to protect, in (0, 1].
    epsilon : float
        Share of patients with the largest losses to drop at every step, in [0, 1).
    ball : {"cvar", "chi2", "paper"}
        As in :class:`drosurv.DROCox`.
    loss : {"partial", "full"} or callable
        Cox's partial or full likelihood, or a function (target, weight) -> :class:`drosurv.losses.Loss`.
    solver : {"auto", "adam"}
        Both are Adam: the criterion is not convex.

    References
    ----------
    Zhai, Dan, Kolter and Ravikumar, DORO: Distributional and Outlier Robust Optimization, ICML 2021.

    Examples
    --------
    >>> from drosurv import datasets
    >>> from experiments.rivals import DroppedOutlierDRO
    >>> data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    >>> DroppedOutlierDRO(alpha=0.5, max_iter=50, random_state=0).fit(data.X, data.y).n_iter_
    50
    """

    alpha: float = 0.2
    epsilon: float = 0.05
    ball: str = "cvar"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("alpha", self.alpha)
        check_ball(self.ball)
        require(0 <= as_number(self.epsilon) < 1, "epsilon", "lie in [0, 1)", self.epsilon)

    def _problem(self, data: TrainingData, batch: Sequence[Self]) -> Problem:
        inner = ball_objective(self.ball, np.array([self.alpha], dtype=np.float64))
        return self._plain(data, data.weight, objective=DroppedOutliers(inner, self.epsilon))
