"""The worst averages of full-likelihood losses over subgroups that covariates define."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from drosurv.errors import ArgumentError
from drosurv.estimators.parameters import check_count, check_share
from drosurv.estimators.recipe import Recipe
from drosurv.estimators.subgroups import SubgroupEstimator
from drosurv.estimators.training import Training
from drosurv.objectives.balls import ball_objective, check_ball
from drosurv.solvers.neighborhoods import (
    Neighborhoods,
    as_neighborhoods,
    chosen_columns,
    forest,
    nearest_neighbors,
    subgroup_columns,
)
from drosurv.target import FloatArray

KERNELS = ("forest", "neighbors")


@dataclass(eq=False, repr=False)
class SubgroupRobustCox(SubgroupEstimator):
    """Cox model trained on the worst average regret over covariate-defined subgroups.

    DRO-COX guards against every set of patients, also "everyone who happened to die early", which no model can
    serve. Here a patient's loss is the full likelihood's regret against the null model, averaged over patients
    with similar covariates before the worst share alpha is taken. The linear problem stays convex. Fitted with
    strata, the model and the null model have a baseline hazard for each of them; neighbourhoods are of all patients.

    Parameters
    ----------
    alpha : float
        Share of patients whose neighbourhoods fare worst to protect, in (0, 1].
    kernel : {"forest", "neighbors"} or callable
        Who is averaged with whom: leaves of a forest that predicts the plain model's regret, nearest neighbours, or
        a function (X, regret) -> row-stochastic matrix or object with ``average`` and ``adjoint``.
    min_group : int or "auto"
        Smallest leaf of a tree's own half, or number of neighbours. "auto" is min(50, max(20, n / 80)) of n patients;
        ``min_group_`` tells which it was.
    subgroup_features : sequence of names or positions, optional
        The only columns that may define subgroups; all by default.
    ball : {"cvar", "chi2"}
        Worst share exactly, or the chi-square ball around it.
    n_intervals : int
        Intervals of the piecewise-constant baseline hazard, cut at quantiles of the event times (of each stratum's own
        where there are strata).
    n_trees : int
        Trees of the forest.
    cross_fit : bool
        Whether a tree places only patients it was not grown on.
    tol : float, optional
        As in :class:`drosurv.CoxPH`, relative to the share of events: 1e-5 by default, or 1e-8 for ``ball="chi2"``.

    Attributes
    ----------
    min_group_ : int
        The ``min_group`` that was used.
    subgroup_regret_ : (n,) float64
        Average regret of each training patient's neighbourhood; negative means better served than by no model.
    worst_case_weights_ : (n,) float64
        Weight of each training patient in the worst case; sums to one.
    null_loss_ : (n,) float64
        Loss of each training patient under the null model.
    coef_, network_, objective_, gap_, ...
        As in :class:`drosurv.CoxPH`.

    Examples
    --------
    >>> from drosurv import SubgroupRobustCox, datasets
    >>> data = datasets.make_hidden_minority(n_samples=1000, random_state=0)
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

    _when_null = "Raise min_group or alpha: averages over fewer patients are mostly chance."

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("alpha", self.alpha)
        check_ball(self.ball, ("cvar", "chi2"))
        if not callable(self.kernel) and self.kernel not in KERNELS:
            raise ArgumentError.must("kernel", f"be one of {KERNELS} or a callable", self.kernel)
        if self.min_group != "auto":
            check_count("min_group", self.min_group)
        check_count("n_trees", self.n_trees)

    def _recipe(self, training: Training, batch: Sequence[Self]) -> Recipe:
        n = len(training.X)
        least = min(50, max(20, n // 80)) if isinstance(self.min_group, str) else int(self.min_group)
        for estimator in batch:
            estimator.min_group_ = least
        columns = self._columns(training)
        return self._averaged(
            training,
            ball_objective(self.ball, np.array([self.alpha], dtype=np.float64)),
            lambda regret: self._neighborhoods(training, columns, regret),
            regret=True,
        )

    def _columns(self, training: Training) -> FloatArray:
        """The covariates (n, d') that define subgroups, checked before any training begins."""
        names = training.names
        if callable(self.kernel):
            return chosen_columns(training.X, self.subgroup_features, names)
        least, n = self.min_group_, len(training.X)
        share = self.alpha * n
        if share < least:
            enough = math.ceil(1000 * least / n - 1e-9) / 1000
            larger = f", or alpha={enough!r} or more" if least <= n else ""
            raise ArgumentError(
                "alpha",
                f"alpha={self.alpha!r} of {n} patients is {share:.4g}, fewer than "
                f"min_group={least!r}: no group that small can be told apart. Use "
                f"min_group={max(int(share), 1)!r} or less{larger}.",
            )
        return subgroup_columns(training.X, self.subgroup_features, names)

    def _neighborhoods(self, training: Training, columns: FloatArray, regret: FloatArray) -> Neighborhoods:
        if callable(self.kernel):
            return as_neighborhoods(self.kernel(columns, regret), len(columns))
        if self.kernel == "neighbors":
            return nearest_neighbors(columns, n_neighbors=self.min_group_, sample_weight=training.weight)
        return forest(
            columns,
            regret,
            min_group=self.min_group_,
            n_trees=self.n_trees,
            cross_fit=self.cross_fit,
            sample_weight=training.weight,
            random_state=np.random.default_rng(training.seed),
        )
