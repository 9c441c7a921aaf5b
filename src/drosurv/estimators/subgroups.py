"""The worst averages of full-likelihood losses over subgroups: those that covariates define, or known ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from drosurv.errors import Argument, ArgumentError
from drosurv.estimators.baseline import piecewise
from drosurv.estimators.device import resolve_device
from drosurv.estimators.fitted import Fitted, warn_if_null
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.estimators.parameters import check_count, check_share
from drosurv.estimators.recipe import Recipe, Schedule
from drosurv.estimators.training import Training
from drosurv.losses import PiecewiseExponential, StratifiedLikelihood
from drosurv.neighborhoods import (
    Neighborhoods,
    as_neighborhoods,
    chosen_columns,
    forest,
    known_groups,
    nearest_neighbors,
    subgroup_columns,
)
from drosurv.objectives import CVaR, Objective
from drosurv.objectives.balls import ball_objective, check_ball
from drosurv.target import FloatArray

KERNELS = ("forest", "neighbors")


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
            larger = f", or {Argument('alpha', enough)} or more" if least <= n else ""
            raise ArgumentError(
                f"{Argument('alpha', self.alpha)} of {n} patients is {share:.4g}, fewer than "
                f"{Argument('min_group', least)}: no group that small can be told apart. Use "
                f"{Argument('min_group', max(int(share), 1))} or less{larger}."
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


@dataclass(eq=False, repr=False)
class GroupDROCox(SubgroupEstimator):
    """Cox model trained on the average loss of the worst of known groups.

    Fitted with strata, it has a baseline hazard for each of them; groups may go across strata.

    Parameters
    ----------
    alpha : float, optional
        Share of patients in the worst groups to train on; by default the single worst group.
    regret : bool
        True compares groups by their regret against the null model, so that a group with a high risk is not taken
        for a badly served one; False by the plain full-likelihood loss.
    n_intervals : int
        Intervals of the piecewise-constant baseline hazard, as in :class:`drosurv.SubgroupRobustCox`.

    Attributes
    ----------
    subgroup_regret_ : (n,) float64
        Average regret (or loss) of each training patient's group.
    worst_case_weights_, null_loss_, coef_, ...
        As in :class:`drosurv.SubgroupRobustCox`.

    Examples
    --------
    >>> from drosurv import GroupDROCox, datasets
    >>> data = datasets.make_hidden_minority(n_samples=1000, random_state=0)
    >>> model = GroupDROCox().fit(data.X, data.y, sensitive_features=data.sensitive_features)
    >>> len(set(model.subgroup_regret_.round(9)))
    2
    """

    _when_null = "Small groups follow chance: merge them, or raise alpha."

    alpha: float | None = None
    regret: bool = True
    _: KW_ONLY
    n_intervals: int = 20

    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sensitive_features": None}

    @property
    def _compares_groups(self) -> str:
        return type(self).__name__

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.alpha is not None:
            check_share("alpha", self.alpha)

    def _recipe(self, training: Training, batch: Sequence[Self]) -> Recipe:
        assert training.codes is not None, "groups are required"
        if training.n_groups < 2:
            raise ArgumentError(
                f"{Argument('sensitive_features')} holds a single group: there is nothing to compare. Use CoxPH."
            )
        share = np.bincount(training.codes, training.mass).min() if self.alpha is None else self.alpha
        groups = known_groups(training.codes, sample_weight=training.weight)
        return self._averaged(training, CVaR(share), groups, regret=self.regret)
