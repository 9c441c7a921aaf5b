"""Cox models with a fairness penalty: the baselines of Keya et al. and of Rahman and Purushotham."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from drosurv.errors import check_choice, check_number
from drosurv.estimators.capabilities import ROW_ARGUMENTS, Capabilities
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.paper.penalties import PENALTIES
from drosurv.solvers import Problem, TrainingData
from drosurv.solvers.neighborhoods import standardise


@dataclass(eq=False, repr=False)
class RegularizedCox(NetworkEstimator):
    """Cox model whose loss, averaged over events, is penalised by a disparity of the predicted hazards.

    Sample weights apply to the losses; the disparity counts each row once.

    Parameters
    ----------
    penalty : {"keya_individual", "keya_group", "keya_intersectional", "rp_individual", "rp_group"}
        Which disparity; the group and intersectional ones need ``sensitive_features`` at fit.
    weight : float
        Factor of the penalty.
    scale : float
        Difference of hazards that is allowed per unit of distance between features.
    solver : {"auto", "adam"}
        Both are Adam, because the penalties are not convex; ``tol`` has no effect.

    References
    ----------
    Keya et al., Equitable Allocation of Healthcare Resources with Fair Survival Models, SDM 2021.
    Rahman and Purushotham, Fair and Interpretable Models for Survival Analysis, KDD 2022.

    Examples
    --------
    >>> from drosurv import RegularizedCox, datasets
    >>> data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    >>> groups = data.sensitive_features["membership"]
    >>> model = RegularizedCox("keya_group", max_iter=50, random_state=0)
    >>> model.fit(data.X, data.y, sensitive_features=groups).n_iter_
    50
    """

    penalty: str = "keya_individual"
    weight: float = 1.0
    scale: float = 0.01

    capabilities = Capabilities(
        score="log hazard",
        exp_coef="hazard ratio",
        own_curves=False,
        no_recalibration="",
        row_arguments=ROW_ARGUMENTS,
        no_row_arguments="",
        objective="other",
        no_ties="",
        convex=False,
        devices="accelerator",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("penalty", self.penalty, tuple(sorted(PENALTIES)))
        check_number("weight", self.weight)
        check_number("scale", self.scale)

    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sensitive_features": None}

    @property
    def _compares_groups(self) -> str | None:
        return f"penalty={self.penalty!r}" if PENALTIES[self.penalty].needs_groups else None

    def _problem(self, data: TrainingData, batch: Sequence[Self]) -> Problem:
        # Only events have mass: these methods average over events, not over patients.
        mass = data.mass * data.target.event
        return Problem(
            data,
            data.cox_loss(self.ties),
            mass=mass / mass.sum(),
            penalty=PENALTIES[self.penalty](
                standardise(data.X)[0], data.target, data.codes, data.n_groups, self.scale
            ),
            penalty_weight=np.array([estimator.weight for estimator in batch], dtype=np.float64),
        )
