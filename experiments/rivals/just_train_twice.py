"""Just train twice: patients for whom a plain model predicts worst get larger weights in a second training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from drosurv.errors import check_number, check_share
from drosurv.patients.target import FloatArray
from drosurv.solvers import Problem, TrainingData, solve
from experiments.rivals.any_loss import AnyLoss


@dataclass(eq=False, repr=False)
class JustTrainTwice(AnyLoss):
    """A plain Cox model, trained again with larger weights for the patients for whom it predicted worst.

    Parameters
    ----------
    share : float
        Share of the patients who get larger weights: those with the largest loss minus that of the null model.
    upweight : float
        Weight of each of them in the second training, relative to the others.
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
    >>> round(float(model.worst_case_weights_.sum()), 6)
    1.0
    """

    share: float = 0.2
    upweight: float = 5.0

    # Both trainings are of plain models.
    capabilities = replace(AnyLoss.capabilities, convex=True)
    batched = ()

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
        """Return 1 for the patients with the largest regrets who make up the share, and a fraction at its border.

        Patients with equal regrets, such as all censored patients under the partial likelihood, have the same fraction,
        so that the order of the rows does not matter. Regrets are rounded because sums depend on the order of the rows.
        """
        _, tied = np.unique(-np.round(regrets, 9), return_inverse=True)
        tied_mass = np.bincount(tied, mass)
        larger = np.cumsum(tied_mass) - tied_mass
        fraction: FloatArray = np.clip((self.share - larger) / tied_mass, 0.0, 1.0)[tied]
        return fraction
