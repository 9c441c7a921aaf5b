"""Just train twice: the patients whom a plain model serves worst are weighed up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from drosurv.errors import check_number, check_share
from drosurv.solvers import Problem, TrainingData, solve
from drosurv.target import FloatArray
from experiments.rivals.any_loss import AnyLoss


@dataclass(eq=False, repr=False)
class JustTrainTwice(AnyLoss):
    """A plain model, and then the same again with the patients it served worst weighed up.

    Parameters
    ----------
    share : float
        Share of the patients who count as badly served: those whose loss rose most over the null model's.
    upweight : float
        How many times each of them counts in the second data.
    loss : {"partial", "full"} or callable
        Cox's partial or full likelihood, or a function (target, weight) -> :class:`drosurv.losses.Loss`.

    Attributes
    ----------
    worst_case_weights_ : (n,) float64
        Weight of each patient in the second training; sums to one.

    References
    ----------
    Liu et al., Just Train Twice: Improving Group Robustness without Training Group Information, ICML 2021.

    Examples
    --------
    >>> from drosurv import datasets
    >>> from experiments.rivals import JustTrainTwice
    >>> data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    >>> model = JustTrainTwice(share=0.2, upweight=5.0).fit(data.X, data.y)
    >>> len(set(model.worst_case_weights_.round(9)))
    2
    """

    share: float = 0.2
    upweight: float = 5.0

    # Both trainings are of plain models.
    _convex = True
    _batched = ()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("share", self.share)
        check_number("upweight", self.upweight, positive=True)

    def _problem(self, data: TrainingData, batch: Sequence[Self]) -> Problem:
        options = replace(self._options([self]), verbose=False)
        plain = self._plain(data, data.weight)
        first = solve(plain, options)
        losses = plain.loss.everyone(plain.loss(first.scores[None], first.extra[None]))[0]
        worst = self._worst(losses - plain.loss.null_losses(), data.mass)
        given = np.ones(len(worst)) if data.weight is None else data.weight
        weight = (1.0 + (self.upweight - 1.0) * worst) * given
        return self._plain(data, weight, mass=weight / weight.sum())

    def _worst(self, regrets: FloatArray, mass: FloatArray) -> FloatArray:
        """One for the patients with the largest regrets who make up the share, a part for the one at its border."""
        order = np.argsort(-regrets, kind="stable")
        reached = np.cumsum(mass[order]) - mass[order]
        worst = np.empty_like(mass)
        worst[order] = np.clip((self.share - reached) / mass[order], 0.0, 1.0)
        return worst
