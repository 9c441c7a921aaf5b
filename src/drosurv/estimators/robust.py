"""What the distributionally robust estimators share: the ball, and what they report of the worst case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from drosurv.errors import warn_caller
from drosurv.estimators.fitted import Fitted
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.estimators.parameters import check_share
from drosurv.objectives import CVaR, Objective
from drosurv.objectives.balls import BALLS, ball_objective, check_ball
from drosurv.target import FloatArray


class RobustEstimator(NetworkEstimator):
    """Base of estimators that minimise the worst case over subpopulations of at least mass alpha."""

    alpha: float
    ball: str

    _batched: ClassVar[tuple[str, ...]] = ("lr", "alpha")
    _weighs_losses = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("alpha", self.alpha)
        check_ball(self.ball)

    def _objective(self, batch: Sequence[Self], masses: Sequence[FloatArray]) -> Objective:
        """The batch's objective, given the masses of the patients it is taken over, or the least, block by block."""
        alphas = np.array([estimator.alpha for estimator in batch], dtype=np.float64)
        if len(batch) == 1 and self.ball != "cvar" and self.alpha != 1.0:
            reach, smallest = (
                BALLS[self.ball].smallest_mass(self.alpha),
                [float(mass.min()) for mass in masses],
            )
            if reach <= max(smallest):
                least = BALLS[self.ball].alpha_of_mass(max(smallest))
                named = f"{least:.4g}" if float(f"{least:.4g}") >= least else f"{1.001 * least:.4g}"
                warn_caller(
                    f"alpha={self.alpha} protects groups smaller than one patient here, so only the single largest "
                    f"loss is trained on; use alpha > {named} or more patients."
                )
            if reach <= min(smallest):
                # The ball reaches every single patient, so the objective is the largest loss: CVaR of one patient.
                return CVaR(min(smallest), tol=1e-8)
        return ball_objective(self.ball, alphas)

    def _describe(self, fitted: Fitted) -> None:
        super()._describe(fitted)
        self.eta_ = fitted.eta
