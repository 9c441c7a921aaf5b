"""Adversarially reweighted learning: an adversary weighs up where the model fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from drosurv.errors import ArgumentError, check_number
from drosurv.estimators.network_settings import as_network
from drosurv.solvers import Options, Problem, TrainingData
from drosurv.solvers.neighborhoods import standardise
from experiments.rivals.adversary import Adversary
from experiments.rivals.any_loss import AnyLoss


@dataclass(eq=False, repr=False)
class AdversarialReweighting(AnyLoss):
    """A model against an adversary that weighs patients up, by a logistic function of their features, where it fails.

    Parameters
    ----------
    adversary_lr : float
        Learning rate of the adversary.
    loss : {"partial", "full"} or callable
        Cox's partial or full likelihood, or a function (target, weight) -> :class:`drosurv.losses.Loss`.
    solver : {"auto", "adam"}
        Both are Adam: it is a game.

    References
    ----------
    Lahoti et al., Fairness without Demographics through Adversarially Reweighted Learning, NeurIPS 2020.

    Examples
    --------
    >>> from drosurv import datasets
    >>> from experiments.rivals import AdversarialReweighting
    >>> data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    >>> AdversarialReweighting(max_iter=50, random_state=0).fit(data.X, data.y).n_iter_
    50
    """

    adversary_lr: float = 0.01

    batched = ()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("adversary_lr", self.adversary_lr, positive=True)
        network = as_network(self.network)
        for name in ("batch_size", "early_stopping"):
            if (given := getattr(network, name, None)) not in (None, False, "auto"):
                raise ArgumentError(
                    name,
                    f"{name}={given!r} would show the adversary other patients at every step; "
                    "train on everybody.",
                )

    def _options(self, batch: Sequence[Self]) -> Options:
        return replace(super()._options(batch), early_stopping=False)

    def _problem(self, data: TrainingData, batch: Sequence[Self]) -> Problem:
        (X,) = standardise(data.X, weight=data.weight)
        return self._plain(data, data.weight, objective=Adversary(X, self.adversary_lr))
