"""Subgroup-robust Cox regression: minimise the worst average loss over subgroups defined by covariates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from drosurv.errors import ArgumentError, arg, check_count, require, warn_caller
from drosurv.estimators.base import piecewise
from drosurv.estimators.capabilities import Capabilities
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.losses.summed_likelihood import StratifiedLikelihood
from drosurv.objectives import Objective
from drosurv.objectives.balls import ball_objective, check_ball
from drosurv.patients.target import FloatArray
from drosurv.solvers import Problem, Result, TrainingData
from drosurv.solvers.neighborhoods import (
    Neighborhoods,
    as_neighborhoods,
    chosen_columns,
    forest,
    nearest_neighbors,
    subgroup_columns,
)

KERNELS = ("forest", "neighbors")
# If the worst-off share gains less than this per event, the optimum counts as the null model.
_NO_GAIN = 1e-4


@dataclass(eq=False, repr=False)
class SubgroupRobustCox(NetworkEstimator):
    """Cox model trained on the worst average regret over covariate-defined subgroups.

    DRO-COX protects every set of patients, even those who died early, whom no model can identify. This model protects
    subgroups that covariates define: a patient's regret is the full-likelihood loss minus that of the null model, and
    regrets are averaged over patients with similar covariates before the worst share alpha is taken. The linear problem
    is convex. With strata, the model and the null model have a baseline hazard for each stratum; neighbourhoods contain
    patients of all strata.

    Parameters
    ----------
    alpha : float
        Share of patients with the worst neighbourhoods to protect, in (0, 1].
    kernel : {"forest", "neighbors"} or callable
        Neighbourhoods: leaves of a forest that predicts the plain model's regret, nearest neighbours, or a function
        (X, regret) -> row-stochastic matrix or object with ``average`` and ``adjoint``.
    min_group : int or "auto"
        Smallest number of patients in a leaf of a tree, counted among the half of the patients to which it is fitted;
        or number of neighbours. "auto" is min(50, max(20, n / 80)) for n patients; see ``min_group_``.
    subgroup_features : sequence of names or positions, optional
        Columns that define subgroups; all by default.
    ball : {"cvar", "chi2"}
        The worst share alpha exactly, or the smallest chi-square ball that contains it.
    n_intervals : int
        Number of intervals of the piecewise-constant baseline hazard, cut at quantiles of the event times (of each
        stratum).
    n_trees : int
        Number of trees of the forest.
    cross_fit : bool
        Whether a tree defines neighbourhoods only for patients to whom it was not fitted.
    tol : float, optional
        As in :class:`drosurv.CoxPH`, relative to the share of events; by default 1e-5, or 1e-8 for ``ball="chi2"``.

    Attributes
    ----------
    min_group_ : int
        The ``min_group`` that was used.
    subgroup_regret_ : (n,) float64
        Average regret of each training patient's neighbourhood; negative means better than the null model.
    worst_case_weights_ : (n,) float64
        Weight of each training patient in the worst case; sums to one.
    null_loss_ : (n,) float64
        Loss of each training patient under the null model.
    coef_, network_, objective_, gap_, ...
        As in :class:`drosurv.CoxPH`.

    Examples
    --------
    >>> from drosurv import SubgroupRobustCox, datasets
    >>> data = datasets.make_hidden_minority(n_samples=400, random_state=0)
    >>> model = SubgroupRobustCox(alpha=0.1, random_state=0).fit(data.X, data.y)
    >>> model.converged_
    True
    """

    alpha: float = 0.1
    kernel: str | Callable[[FloatArray, FloatArray], Any] = "forest"
    min_group: int | str = "auto"
    subgroup_features: Sequence[str | int] | None = None
    ball: str = "cvar"
    _: KW_ONLY
    n_intervals: int = 20
    n_trees: int = 30
    cross_fit: bool = False

    capabilities = Capabilities(
        score="log hazard",
        exp_coef="hazard ratio",
        own_curves=False,
        no_recalibration="",
        row_arguments=("entry", "strata", "clusters", "offset"),
        no_row_arguments="features change between the rows of a patient, who then belongs to no single subgroup",
        objective="worst case",
        no_ties="a full likelihood",
        convex=True,
        devices="cpu",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_ball(self.ball, ("cvar", "chi2"))
        check_count("n_intervals", self.n_intervals)
        known = callable(self.kernel) or self.kernel in KERNELS
        require(known, "kernel", f"be one of {KERNELS} or a callable", self.kernel)
        if self.min_group != "auto":
            check_count("min_group", self.min_group)
        check_count("n_trees", self.n_trees)

    def _problem(self, data: TrainingData, batch: Sequence[Self]) -> Problem:
        n = len(data.X)
        least = min(50, max(20, n // 80)) if isinstance(self.min_group, str) else int(self.min_group)
        for estimator in batch:
            estimator.min_group_ = least
        columns = self._columns(data)
        return averaged_problem(
            data,
            self.n_intervals,
            ball_objective(self.ball, np.array([self.alpha], dtype=np.float64)),
            lambda regret: self._neighborhoods(data, columns, regret),
            regret=True,
        )

    def _describe(self, result: Result) -> None:
        super()._describe(result)
        describe_subgroups(
            self, result, f"Raise {arg('min_group')} or alpha: averages over few patients are mostly noise."
        )

    def _columns(self, data: TrainingData) -> FloatArray:
        """Return the covariates (n, d') that define subgroups; raise if there can be no subgroup."""
        names = data.names
        if callable(self.kernel):
            return chosen_columns(data.X, self.subgroup_features, names)
        least, n = self.min_group_, len(data.X)
        share = self.alpha * n
        if share < least:
            enough = math.ceil(1000 * least / n - 1e-9) / 1000
            larger = f", or {arg('alpha', enough)} or more" if least <= n else ""
            raise ArgumentError(
                "alpha",
                f"{arg('alpha', self.alpha)} of {n} patients is {share:.4g}, fewer than "
                f"{arg('min_group', least)}: no subgroup can be that small. Use "
                f"{arg('min_group', max(int(share), 1))} or less{larger}.",
            )
        return subgroup_columns(data.X, self.subgroup_features, names)

    def _neighborhoods(self, data: TrainingData, columns: FloatArray, regret: FloatArray) -> Neighborhoods:
        """Return the neighborhood of each patient: a forest's cells, nearest neighbors, or what the kernel returns."""
        if callable(self.kernel):
            return as_neighborhoods(self.kernel(columns, regret), len(columns))
        if self.kernel == "neighbors":
            return nearest_neighbors(columns, n_neighbors=self.min_group_, sample_weight=data.weight)
        return forest(
            columns,
            regret,
            min_group=self.min_group_,
            n_trees=self.n_trees,
            cross_fit=self.cross_fit,
            sample_weight=data.weight,
            random_state=np.random.default_rng(data.seed),
            order=data.order,
        )


def averaged_problem(
    data: TrainingData, n_intervals: int, objective: Objective, neighborhoods: Any, *, regret: bool
) -> Problem:
    """Return the problem of full-likelihood losses (or regrets) that are averaged over neighbourhoods."""
    likelihood = PiecewiseExponential if data.target.stratum is None else StratifiedLikelihood
    loss = likelihood(data.target, n_intervals, data.weight, data.rows.offset)
    curves = partial(piecewise, loss)
    return Problem(data, loss, objective, regret=regret, neighborhoods=neighborhoods, curves=curves)


def describe_subgroups(model: Any, result: Result, remedy: str) -> None:
    """Set the attributes about subgroups, and warn if the optimum is the null model."""
    if model._uses_convex:
        warn_if_null(type(model).__name__, result, remedy)
    data, loss = result.problem.data, result.problem.loss
    model.subgroup_regret_ = data.in_given_rows(result.losses[0])
    model.null_loss_ = data.in_given_rows(loss.null_losses())


def warn_if_null(name: str, result: Result, remedy: str) -> None:
    """Warn if a model trained on regrets is the null model: the worst-off share gains nothing over it."""
    problem = result.problem
    if problem.regret and result.evaluation.value[0] > -_NO_GAIN * problem.loss.event_share:
        warn_caller(
            f"{name} is the null model: every other model predicts the worst-off share of the patients no better than "
            f"the null model does. {remedy}"
        )
