"""The worst average of full-likelihood losses over known groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from drosurv.errors import ArgumentError
from drosurv.estimators.parameters import check_share
from drosurv.estimators.recipe import Recipe
from drosurv.estimators.subgroups import SubgroupEstimator
from drosurv.estimators.training import Training
from drosurv.objectives import CVaR
from drosurv.solvers.neighborhoods import (
    known_groups,
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
                "sensitive_features",
                "sensitive_features holds a single group: there is nothing to compare. Use CoxPH.",
            )
        share = np.bincount(training.codes, training.mass).min() if self.alpha is None else self.alpha
        groups = known_groups(training.codes, sample_weight=training.weight)
        return self._averaged(training, CVaR(share), groups, regret=self.regret)
