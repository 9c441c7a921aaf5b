"""DRO-COX: the worst case over every large enough subpopulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from drosurv.estimators.over_slabs import SolvedOverSlabs
from drosurv.estimators.recipe import Recipe
from drosurv.estimators.robust import RobustEstimator
from drosurv.estimators.training import EVERYTHING, Training


@dataclass(eq=False, repr=False)
class DROCox(SolvedOverSlabs, RobustEstimator):
    """Cox model trained on the worst-case loss over every subpopulation of at least mass alpha.

    Parameters
    ----------
    alpha : float
        Smallest share of patients to protect, in (0, 1]; 1 is plain Cox.
    ball : {"chi2", "paper", "cvar"}
        The subpopulations' shape: a chi-square ball with the tight constant or the published one, or exactly
        all subpopulations of mass alpha.
    tol : float, optional
        As in :class:`drosurv.CoxPH`: 1e-8 by default, or 1e-5 for ``ball="cvar"``.

    Attributes
    ----------
    eta_ : float
        Losses above this carry weight.
    worst_case_weights_ : (n,) float64
        Who the adversary picks among the training patients; sums to one.
    coef_, network_, objective_, n_iter_, converged_, ...
        As in :class:`drosurv.CoxPH`.

    Notes
    -----
    ``sample_weight`` at fit counts patients. The loss of an event grows with the number at risk, that of a censored
    patient is zero, so weights that sum to one would leave the adversary nothing but the censored.

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

    alpha: float = 0.2
    ball: str = "chi2"

    _observes = EVERYTHING

    def _recipe(self, training: Training, batch: Sequence[Self]) -> Recipe:
        return Recipe(training.likelihood(self.ties), self._objective(batch, [training.mass]))
