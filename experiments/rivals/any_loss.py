"""Base of the rivals of robust training: patients weighed in other ways, over any loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from drosurv.errors import ArgumentError
from drosurv.estimators.base import cox_baseline, piecewise
from drosurv.estimators.capabilities import Capabilities
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.losses import Loss
from drosurv.losses.cox_partial import CoxPartial
from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.patients.target import FloatArray, Target
from drosurv.solvers import Problem, TrainingData

LOSSES = ("partial", "full")


@dataclass(eq=False, repr=False, kw_only=True)
class AnyLoss(NetworkEstimator, abstract=True):
    """Base of the rivals: one loss per patient, whichever, under weights of their own."""

    loss: str | Callable[[Target, FloatArray | None], Loss] = "partial"

    #: Parameters in which models that are trained in one batch may differ.
    batched: ClassVar[tuple[str, ...]] = ("lr",)
    capabilities = Capabilities(
        score="log hazard",
        exp_coef="hazard ratio",
        own_curves=False,
        no_recalibration="",
        row_arguments=("clusters",),
        no_row_arguments="its loss does not support it",
        objective="reweighted losses",
        no_ties="",
        convex=False,
        devices="accelerator",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not callable(self.loss) and self.loss not in LOSSES:
            wanted = f"be one of {LOSSES} or a function (target, weight) -> Loss"
            raise ArgumentError.must("loss", wanted, self.loss)

    def _plain(self, data: TrainingData, weight: FloatArray | None, **parts: Any) -> Problem:
        """Return the problem of the plain model, with the given weights in risk sets."""
        if self.loss == "full":
            full = PiecewiseExponential(data.target, sample_weight=weight)
            return Problem(data, full, curves=partial(piecewise, full), **parts)
        # Curves are those of the patients as they are, whomever the training weighed up.
        curves = partial(cox_baseline, data.cox_loss(self.ties))
        if callable(self.loss):
            return Problem(data, self.loss(data.target, weight), curves=curves, **parts)
        return Problem(data, CoxPartial(data.target, self.ties, weight), curves=curves, **parts)
