"""DRO-COX: Cox regression on the worst case over all subpopulations of a minimum size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from drosurv.estimators.capabilities import ROW_ARGUMENTS, Capabilities
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.objectives.balls import lists_balls
from drosurv.solvers import Problem, TrainingData


@lists_balls
@dataclass(eq=False, repr=False)
class DROCox(NetworkEstimator):
    """Cox model trained on the worst-case loss over every subpopulation of at least mass alpha.

    Parameters
    ----------
    alpha : float
        Smallest share of patients to protect, in (0, 1]; 1 is plain Cox.
    ball : {balls}
        Set of weights over which the worst case is taken. {described}.
    tol : float, optional
        As in :class:`drosurv.CoxPH`; by default 1e-8, or 1e-5 for ``ball="cvar"``.

    Attributes
    ----------
    eta_ : float
        Only losses above this threshold have weight in the worst case.
    worst_case_weights_ : (n,) float64
        Weights of the training patients in the worst case; they sum to one.
    coef_, network_, objective_, n_iter_, converged_, ...
        As in :class:`drosurv.CoxPH`.

    Notes
    -----
    ``sample_weight`` in fit counts patients and must not be scaled to sum to one: the loss of an event increases with
    the summed weight at risk, while that of a censored patient is always zero.

    References
    ----------
    Hu and Chen, Distributionally Robust Survival Analysis: A Novel Fairness Loss Without Demographics, ML4H 2022.

    Examples
    --------
    >>> from drosurv import DROCox, datasets
    >>> data = datasets.make_hidden_minority(n_samples=500, random_state=0)
    >>> model = DROCox(alpha=0.3).fit(data.X, data.y)
    >>> round(float(model.worst_case_weights_.sum()), 6)
    1.0
    """

    alpha: float = 0.5
    ball: str = "chi2"

    capabilities = Capabilities(
        score="log hazard",
        exp_coef="hazard ratio",
        own_curves=False,
        no_recalibration="",
        row_arguments=ROW_ARGUMENTS,
        no_row_arguments="",
        objective="worst case",
        no_ties="",
        convex=True,
        devices="cluster",
    )

    def _problem(self, data: TrainingData, batch: Sequence[Self]) -> Problem:
        return Problem(data, data.cox_loss(self.ties), self._objective(batch, [data.mass]))
