"""Base of the rivals of robust training: patients weighed in other ways, over any loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from drosurv.errors import ArgumentError
from drosurv.estimators.baseline import cox_baseline, piecewise
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.estimators.recipe import Recipe
from drosurv.estimators.training import Training
from drosurv.losses import CoxPartial, Loss, PiecewiseExponential
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
