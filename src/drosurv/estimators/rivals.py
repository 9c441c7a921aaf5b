"""The rivals of robust training: models that weigh patients in other ways, over any loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from drosurv.errors import Argument, ArgumentError, as_number, require
from drosurv.estimators.baseline import cox_baseline, piecewise
from drosurv.estimators.fitting import train
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.estimators.parameters import check_number, check_share
from drosurv.estimators.recipe import Recipe
from drosurv.estimators.training import Training
from drosurv.losses import CoxPartial, Loss, PiecewiseExponential
from drosurv.objectives import Adversary, DroppedOutliers, ball_objective
from drosurv.objectives.balls import check_ball
from drosurv.standardise import standardise
from drosurv.target import FloatArray, Target

LOSSES = ("partial", "full")


@dataclass(eq=False, repr=False, kw_only=True)
class AnyLoss(NetworkEstimator):
    """Base of the rivals: one loss per patient, whichever, under weights of their own."""

    loss: str | Callable[[Target, FloatArray | None], Loss] = "partial"

    _convex = False
    _weighs_losses = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not callable(self.loss) and self.loss not in LOSSES:
            wanted = f"be one of {LOSSES} or a function (target, weight) -> Loss"
            raise ArgumentError.must("loss", wanted, self.loss)

    def _plain(self, training: Training, weight: FloatArray | None, **parts: Any) -> Recipe:
        """The recipe of the plain model, patients weighed in risk sets as told."""
        if self.loss == "full":
            full = PiecewiseExponential(training.target, sample_weight=weight)
            return Recipe(full, baseline=partial(piecewise, full), **parts)
        # Curves are those of the patients as they are, whomever the training weighed up.
        curves = partial(cox_baseline, training.likelihood(self.ties))
        if callable(self.loss):
            return Recipe(self.loss(training.target, weight), baseline=curves, **parts)
        return Recipe(CoxPartial(training.target, self.ties, weight), baseline=curves, **parts)


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
    >>> from drosurv import AdversarialReweighting, datasets
    >>> data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    >>> AdversarialReweighting(max_iter=50, random_state=0).fit(data.X, data.y).n_iter_
    50
    """

    adversary_lr: float = 0.01
    early_stopping: bool | str = False

    _batched = ()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("adversary_lr", self.adversary_lr, positive=True)
        for name in ("batch_size", "early_stopping"):
            if getattr(self, name):
                raise ArgumentError(
                    f"{Argument(name, getattr(self, name))} would show the adversary other patients at every step; "
                    "train on everybody."
                )

    def _recipe(self, training: Training, batch: Sequence[Self]) -> Recipe:
        (X,) = standardise(training.X, weight=training.weight)
        return self._plain(training, training.weight, objective=Adversary(X, self.adversary_lr))


@dataclass(eq=False, repr=False)
class JustTrainTwice(AnyLoss):
    """A plain model, and then the same again with the patients it served worst weighed up.

    Parameters
    ----------
    share : float
        Share of the patients who count as badly served: those whose loss rose most over the null model's.
    upweight : float
        How many times each of them counts in the second training.
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
    >>> from drosurv import JustTrainTwice, datasets
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

    def _recipe(self, training: Training, batch: Sequence[Self]) -> Recipe:
        schedule = replace(self._schedule([self]), verbose=False)
        plain = self._plain(training, training.weight)
        ((first,),) = train([plain], [training], schedule)
        losses = plain.loss.everyone(plain.loss(first.scores[None], first.extra[None]))[0]
        worst = self._worst(losses - plain.loss.null_losses(), training.mass)
        given = np.ones(len(worst)) if training.weight is None else training.weight
        weight = (1.0 + (self.upweight - 1.0) * worst) * given
        return self._plain(training, weight, mass=weight / weight.sum())

    def _worst(self, regrets: FloatArray, mass: FloatArray) -> FloatArray:
        """One for the patients with the largest regrets who make up the share, a part for the one at its border."""
        order = np.argsort(-regrets, kind="stable")
        reached = np.cumsum(mass[order]) - mass[order]
        worst = np.empty_like(mass)
        worst[order] = np.clip((self.share - reached) / mass[order], 0.0, 1.0)
        return worst


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
    >>> from drosurv import DroppedOutlierDRO, datasets
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

    def _recipe(self, training: Training, batch: Sequence[Self]) -> Recipe:
        inner = ball_objective(self.ball, np.array([self.alpha], dtype=np.float64))
        return self._plain(training, training.weight, objective=DroppedOutliers(inner, self.epsilon))
