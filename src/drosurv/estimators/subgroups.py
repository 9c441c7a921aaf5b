"""The worst averages of full-likelihood losses over subgroups: those that covariates define, or known ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

from drosurv.errors import ArgumentError
from drosurv.estimators.baseline import piecewise
from drosurv.estimators.device import resolve_device
from drosurv.estimators.fitted import Fitted, warn_if_null
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.estimators.parameters import check_count
from drosurv.estimators.recipe import Recipe, Schedule
from drosurv.estimators.training import Training
from drosurv.losses import PiecewiseExponential, StratifiedLikelihood
from drosurv.objectives import Objective


class SubgroupEstimator(NetworkEstimator):
    """Base of estimators that average full-likelihood losses over subgroups and minimise the worst averages."""

    n_intervals: int
    _when_null: str

    _batched = ()
    _observes = ("entry", "strata", "clusters", "offset")
    _undefined = "features change between the rows of a patient, who then belongs to no one subgroup"
    _no_ties = "a full likelihood"
    _weighs_losses = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_intervals", self.n_intervals)
        if resolve_device(self.device, worthwhile=False) != "cpu":
            raise ArgumentError.must(
                "device", f"be 'auto' or 'cpu': {type(self).__name__} trains on the processor", self.device
            )

    def _schedule(self, batch: Sequence[Self]) -> Schedule:
        return replace(super()._schedule(batch), device="cpu")

    def _averaged(self, training: Training, objective: Objective, neighborhoods: Any, **parts: Any) -> Recipe:
        """The recipe of full-likelihood losses averaged over neighbourhoods."""
        likelihood = PiecewiseExponential if training.target.stratum is None else StratifiedLikelihood
        offset = training.observation.offset
        loss = likelihood(training.target, self.n_intervals, training.weight, offset)
        return Recipe(
            loss, objective, neighborhoods=neighborhoods, baseline=partial(piecewise, loss), **parts
        )

    def _describe(self, fitted: Fitted) -> None:
        if self._uses_convex:
            warn_if_null(type(self).__name__, fitted, self._when_null)
        super()._describe(fitted)
        self.eta_ = fitted.eta
        self.subgroup_regret_ = fitted.training.spread(fitted.entries[0])
        self.null_loss_ = fitted.training.spread(fitted.recipe.loss.null_losses())
