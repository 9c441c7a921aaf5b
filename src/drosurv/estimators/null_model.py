"""The null model: the same survival curve for every patient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from drosurv.errors import check_count
from drosurv.estimators.base import SolvedModel
from drosurv.estimators.capabilities import Capabilities
from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.solvers import Options, Problem, Result, TrainingData


@dataclass(eq=False, repr=False)
class NullModel(SolvedModel):
    """The same survival curve for every patient: the reference that other models are compared with.

    The curve is the Nelson-Aalen estimate. ``null_loss_`` are the losses of a piecewise-constant hazard, events divided
    by time at risk in each interval, which maximises the full likelihood without covariates. A model harms a group if
    it predicts the group worse than the null model.

    Parameters
    ----------
    n_intervals : int
        Intervals of the piecewise-constant hazard, cut at quantiles of the event times.

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

    capabilities = Capabilities(
        score="log hazard",
        exp_coef="hazard ratio",
        own_curves=False,
        no_recalibration="",
        row_arguments=("clusters",),
        no_row_arguments="its loss does not support it",
        objective="other",
        no_ties="the Nelson-Aalen estimate",
        convex=True,
        devices="cpu",
    )

    def _check_parameters(self) -> None:
        check_count("n_intervals", self.n_intervals)

    def _problem(self, data: TrainingData, batch: Sequence[Self]) -> Problem:
        # With equal scores Breslow's baseline is the Nelson-Aalen estimate, the null model of evaluate().
        return Problem(data, PiecewiseExponential(data.target, self.n_intervals, data.weight))

    def _options(self, batch: Sequence[Self]) -> Options:
        return Options("none", type(self).__name__)

    def _describe(self, result: Result) -> None:
        self.null_loss_ = result.problem.data.in_given_rows(result.problem.loss.null_losses())
