"""What the distributionally robust estimators share: the ball, and what they report of the worst case."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from drosurv.estimators.base import CoxEstimator
from drosurv.estimators.parameters import check_share
from drosurv.estimators.training import Training
from drosurv.objectives import ChiSquare, CVaR, Evaluation, Mean, Objective
from drosurv.objectives.chi_square import radius_constant
from drosurv.objectives.objective import check_alpha
from drosurv.objectives.threshold import first_order, torch_chi_square, torch_cvar
from drosurv.target import FloatArray

if TYPE_CHECKING:
    from torch import Tensor

BALLS = ("chi2", "paper", "cvar")


class RobustEstimator(CoxEstimator):
    """Base of estimators that minimise the worst case over subpopulations of at least mass alpha."""

    alpha: float
    ball: str

    _batched = ("lr", "alpha")
    _per_patient = ("worst_case_weights_",)

    @property
    def _tol(self) -> float:  # type: ignore[override]
        return 1e-5 if self.ball == "cvar" else 1e-8

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("alpha", self.alpha)
        check_alpha(self.alpha)
        if self.ball not in BALLS:
            raise ValueError(f"ball must be one of {BALLS}, got {self.ball!r}.")

    def _objective(self, batch: Sequence[Any], training: Training) -> Callable[[], Objective]:
        alphas = np.array([estimator.alpha for estimator in batch], dtype=np.float64)
        if (alphas == 1.0).all():
            return Mean
        if self.ball == "cvar":
            return lambda: CVaR(alphas)
        constant = "tight" if self.ball == "chi2" else "paper"
        if len(batch) == 1:
            reach = float(radius_constant(alphas, constant)[0]) ** -2
            smallest = [float(mass.min()) for mass in self._masses(training)]
            if reach <= max(smallest):
                self._warn_largest_loss(constant, max(smallest))
            if reach <= min(smallest):
                # The ball reaches every single patient, so the objective is the largest loss: CVaR of one patient.
                return lambda: CVaR(min(smallest))
        return lambda: ChiSquare(alphas, constant)

    def _device_scalar(self, batch: Sequence[Any], losses: Tensor, mass: Tensor) -> Tensor:
        import torch

        # On the processor, so that checking them does not wait for the device.
        alphas = torch.tensor([estimator.alpha for estimator in batch], dtype=torch.float64)
        alphas = alphas.expand(losses.shape[:-1])
        if self.ball == "cvar":
            value, weights, _ = torch_cvar(losses.detach(), alphas, mass)
        else:
            constant = "tight" if self.ball == "chi2" else "paper"
            value, weights, _ = torch_chi_square(losses.detach(), alphas, constant, mass)
        return first_order(losses, value, weights)

    def _masses(self, training: Training) -> list[FloatArray]:
        """Masses, summing to one, of the patients that each objective is taken over."""
        return [training.mass]

    def _warn_largest_loss(self, constant: str, mass: float) -> None:
        # C^2 < 1/mass, solved for alpha under either constant.
        least = mass if constant == "tight" else 1.0 / (1.0 + np.sqrt(max(1.0 / mass - 1.0, 0.0) / 2.0))
        named = f"{least:.4g}"
        if float(named) < least:
            named = f"{1.001 * least:.4g}"
        warnings.warn(
            f"alpha={self.alpha} protects groups smaller than one patient here, so only the single largest loss is "
            f"trained on; use alpha > {named} or more patients.",
            UserWarning,
            stacklevel=6,
        )

    def _finish(self, training: Training, scores: FloatArray, at: Evaluation, weights: FloatArray) -> None:
        super()._finish(training, scores, at, weights)
        self.eta_ = self._eta(at)
        self.worst_case_weights_ = training.spread(weights / weights.sum())

    def _eta(self, at: Evaluation) -> Any:
        return float(at.eta[0])
