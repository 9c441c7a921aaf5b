"""The null model: what can be said of patients without looking at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from drosurv.estimators.base import SurvivalEstimator
from drosurv.estimators.fitted import Fitted
from drosurv.estimators.parameters import check_count
from drosurv.estimators.recipe import Recipe, Schedule
from drosurv.estimators.training import Training
from drosurv.losses import PiecewiseExponential


@dataclass(eq=False, repr=False)
class NullModel(SurvivalEstimator):
    """The same survival curve for everybody: the model that every other one is measured against.

    Its curve is the Nelson-Aalen estimate, so that evaluation finds no gain in it over no model. Its losses are
    those of a hazard that is constant on intervals, events over time at risk in each, which maximises the full
    likelihood without covariates. A group that a model serves worse than this one is harmed by it.

    Parameters
    ----------
    n_intervals : int
        Intervals of the losses' hazard, cut at quantiles of the event times.

    Attributes
    ----------
    null_loss_ : (n,) float64
        Full-likelihood loss of each training patient, as in :class:`drosurv.SubgroupRobustCox`.
    objective_ : float
        Their mean.
    coef_ : (d,) float64
        Zeros.

    Examples
    --------
    >>> from drosurv import NullModel, datasets
    >>> data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    >>> model = NullModel().fit(data.X, data.y)
    >>> model.score(data.X, data.y)
    0.5
    """

    n_intervals: int = 20

    def _check_parameters(self) -> None:
        check_count("n_intervals", self.n_intervals)

    def _recipe(self, training: Training, batch: Sequence[Self]) -> Recipe:
        # Of equal scores Breslow's baseline is Nelson's and Aalen's estimate: evaluation's own null model.
        return Recipe(PiecewiseExponential(training.target, self.n_intervals, training.weight))

    def _schedule(self, batch: Sequence[Self]) -> Schedule:
        return Schedule("start", type(self).__name__)

    def _describe(self, fitted: Fitted) -> None:
        self.null_loss_ = fitted.training.spread(fitted.recipe.loss.null_losses())
