"""Accelerated failure time models: covariates stretch or shrink time itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from drosurv.estimators.baseline import checked_times
from drosurv.estimators.fitting import Fitted
from drosurv.estimators.parameters import check_choice
from drosurv.estimators.recipe import Recipe
from drosurv.estimators.robust import RobustEstimator
from drosurv.estimators.training import Training
from drosurv.losses import LogTime
from drosurv.losses.log_time import DISTRIBUTIONS, log_survival
from drosurv.target import FloatArray


@dataclass(eq=False, repr=False)
class AcceleratedFailureTime(RobustEstimator):
    """Log time is a location plus noise, log Y = mu(x) + sigma e: Weibull, log-normal or log-logistic times.

    With ``alpha=1`` it maximises the likelihood, as R's ``survreg`` does. Below, it minimises the worst case over
    every subpopulation of at least mass alpha of the likelihood of log times, which no unit of time changes.

    Parameters
    ----------
    distribution : {"weibull", "lognormal", "loglogistic"}
        Of the times.
    alpha : float
        Smallest share of patients to protect, in (0, 1]; 1 is the plain model.
    ball : {"chi2", "paper", "cvar"}
        As in :class:`drosurv.DROCox`.
    batch_size, early_stopping, validation_fraction, n_iter_no_change, dropout, tree_params, recalibrate
        As in :class:`drosurv.CoxPH`.
    network, hidden, solver, lr, max_iter, tol, l2, ties, random_state, device, verbose
        As in :class:`drosurv.CoxPH`. Linear models are solved to the optimum.

    Attributes
    ----------
    coef_ : (d,) float64
        Effects on log time (linear): a positive one means later.
    intercept_ : float
        Location mu of a patient whose features are zero; for other networks, of a patient of score zero.
    scale_ : float
        sigma.

    Examples
    --------
    >>> from drosurv import AcceleratedFailureTime, datasets
    >>> data = datasets.make_hidden_minority(n_samples=500, random_state=0)
    >>> model = AcceleratedFailureTime("weibull").fit(data.X, data.y)
    >>> model.predict_median(data.X).shape
    (500,)
    """

    distribution: str = "weibull"
    alpha: float = 1.0
    ball: str = "chi2"

    _no_ties = "a likelihood of log times"
    _own_curves = "has scores of log times"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("distribution", self.distribution, DISTRIBUTIONS)

    def _recipe(self, training: Training, batch: Sequence[Self]) -> Recipe:
        loss = LogTime(training.target, self.distribution, training.weight)
        objective = self._objective(batch, [training.mass])
        return Recipe(loss, objective, baseline=_curves(self.distribution), tol=self._tol)

    def _describe(self, fitted: Fitted) -> None:
        super()._describe(fitted)
        kappa, tau = fitted.extra
        self.scale_, self.intercept_ = float(1.0 / tau), float(-kappa / tau)
        if hasattr(self, "coef_"):
            self.coef_ = -self.scale_ * self.coef_

    def predict(self, X: Any, *, offset: ArrayLike | None = None) -> FloatArray:
        """Risk -mu (n,) of each patient; higher means sooner."""
        scores = super().predict(X, offset=offset)
        # coef_ speaks of log time, other networks of the score -(mu - mu_0) / sigma.
        return -scores - self.intercept_ if hasattr(self, "coef_") else self.scale_ * scores - self.intercept_

    @property
    def summary(self) -> Any:
        """Not there: the Cox table speaks of hazard ratios, and this model of times."""
        raise AttributeError(
            "summary() is a table of hazard ratios, which an accelerated failure time model does not have; read coef_ "
            "(effects on log time), intercept_ and scale_."
        )


@dataclass(frozen=True, eq=False)
class LogTimeCurves:
    """Survival curves S((log t - mu) / sigma).

    Attributes
    ----------
    distribution : str
    scale : float
        sigma.
    times : (K,) float64
        Times of events in training.
    """

    distribution: str
    scale: float
    times: FloatArray

    def cumulative_hazard(self, scores: FloatArray, times: ArrayLike | None = None) -> FloatArray:
        """Cumulative hazards (n, T) of patients with risks -mu (n,)."""
        at = self.times if times is None else checked_times(times)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            z = (np.log(at) + np.asarray(scores)[:, None]) / self.scale
            hazard = -log_survival(self.distribution, z)
        return np.where(at > 0, hazard, 0.0)


def _curves(distribution: str) -> Callable[[Training, FloatArray, FloatArray], LogTimeCurves]:
    def curves(training: Training, scores: FloatArray, extra: FloatArray) -> LogTimeCurves:
        times = np.unique(np.concatenate([[0.0], training.target.time[training.target.event]]))
        return LogTimeCurves(distribution, float(1.0 / extra[1]), times)

    return curves
