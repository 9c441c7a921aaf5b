"""Group DRO for Cox regression: the average loss of the worst of known groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from drosurv.errors import ArgumentError, arg, check_count, check_share
from drosurv.estimators.capabilities import Capabilities
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.estimators.subgroup_robust_cox import averaged_problem, describe_subgroups
from drosurv.objectives.cvar import CVaR
from drosurv.solvers import Problem, Result, TrainingData
from drosurv.solvers.neighborhoods import Partitions


@dataclass(eq=False, repr=False)
class GroupDROCox(NetworkEstimator):
    """Cox model trained on the average loss of the worst of known groups.

    With strata, each stratum has its own baseline hazard; a group may have patients of several strata.

    Parameters
    ----------
    alpha : float, optional
        Share of patients in the worst groups, whose mean loss is minimised; by default that of the smallest group, so
        that only the worst group counts.
    regret : bool
        True compares groups by their mean regret, the full-likelihood loss minus that of the null model, so that a
        high-risk group does not count as badly predicted; False compares groups by their mean loss.
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
    >>> data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    >>> model = GroupDROCox().fit(data.X, data.y, sensitive_features=data.sensitive_features)
    >>> len(set(model.subgroup_regret_.round(9)))
    2
    """

    alpha: float | None = None
    regret: bool = True
    _: KW_ONLY
    n_intervals: int = 20

    capabilities = Capabilities(
        score="log hazard",
        exp_coef="hazard ratio",
        own_curves=False,
        no_recalibration="",
        row_arguments=("entry", "strata", "clusters", "offset"),
        no_row_arguments="features change between the rows of a patient, who then belongs to no single group",
        objective="worst case",
        no_ties="a full likelihood",
        convex=True,
        devices="cpu",
    )

    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sensitive_features": None}

    @property
    def _compares_groups(self) -> str:
        return type(self).__name__

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_intervals", self.n_intervals)
        if self.alpha is not None:
            check_share("alpha", self.alpha)

    def _problem(self, data: TrainingData, batch: Sequence[Self]) -> Problem:
        assert data.codes is not None, "groups are required"
        if data.n_groups < 2:
            raise ArgumentError(
                "sensitive_features",
                f"{arg('sensitive_features')} has a single group, but GroupDROCox compares groups. Use CoxPH.",
            )
        share = np.bincount(data.codes, data.mass).min() if self.alpha is None else self.alpha
        groups = Partitions(data.codes[None], data.weight)
        return averaged_problem(data, self.n_intervals, CVaR(share), groups, regret=self.regret)

    def _describe(self, result: Result) -> None:
        super()._describe(result)
        describe_subgroups(
            self, result, "Losses of small groups are mostly noise: merge them, or raise alpha."
        )
