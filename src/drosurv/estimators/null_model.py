"""The null model: what can be said of patients without looking at them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from drosurv.estimators.averaged import piecewise_baseline
from drosurv.estimators.base import CoxEstimator
from drosurv.estimators.baseline import follow_up
from drosurv.estimators.parameters import check_count
from drosurv.losses import PiecewiseExponential


class NullModel(CoxEstimator):
    """The same survival curve for everybody: the model that every other one is measured against.

    Its hazard is constant on intervals and equals events over time at risk in each of them, which maximises the full
    likelihood without covariates. A group that a model serves worse than this one is harmed by it.

    Parameters
    ----------
    n_intervals : int
        Intervals of the hazard, cut at quantiles of the event times.

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

    # What the other estimators let a user choose, and a model without covariates has no use for.
    network = "linear"
    hidden = ()
    l2 = 0.0
    ties = "breslow"
    device = "cpu"
    random_state = 0

    _per_patient = ("null_loss_",)

    def __init__(self, n_intervals: int = 20) -> None:
        self.n_intervals = n_intervals

    def _check_parameters(self) -> None:
        check_count("n_intervals", self.n_intervals)

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the hazard; parameters as in :meth:`drosurv.CoxPH.fit`, of X only the shape and names are kept."""
        training = self._check_training(X, y, sample_weight)
        loss = PiecewiseExponential(training.target, self.n_intervals, training.weight)
        losses = loss.null_losses()
        self.coef_ = np.zeros(training.X.shape[1])
        self.objective_ = float(training.mass @ losses)
        self.null_loss_ = training.spread(losses)
        self._baseline = piecewise_baseline(training, loss, np.zeros(loss.n_intervals))
        self.n_patients_, self.n_events_ = len(training.target), training.target.n_events
        self.follow_up_ = follow_up(training.target)
        return self
