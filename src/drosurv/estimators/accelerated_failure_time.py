"""Accelerated failure time models: Weibull, log-normal and log-logistic regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from drosurv.curves import FittedCurves
from drosurv.errors import ArgumentError, arg, check_choice
from drosurv.estimators.capabilities import Capabilities
from drosurv.estimators.coefficient_inference import check_linear, feature_names, title
from drosurv.estimators.coefficients import CoxTable, cox_table
from drosurv.estimators.coefficients.fitted_cox import inverse, squares
from drosurv.estimators.coefficients.summary import ORIGIN
from drosurv.estimators.network_estimator import NetworkEstimator
from drosurv.losses.log_time import DISTRIBUTIONS, LogTime, log_survival, log_time_at
from drosurv.metrics.follow_up import FollowUp
from drosurv.objectives.balls import lists_balls
from drosurv.patients.target import FloatArray
from drosurv.solvers import Problem, Result, TrainingData


@lists_balls
@dataclass(eq=False, repr=False)
class AcceleratedFailureTime(NetworkEstimator):
    """Accelerated failure time model, log Y = mu(x) + sigma e: Weibull, log-normal or log-logistic times.

    With ``alpha=1`` it maximises the likelihood, as R's ``survreg`` does. With ``alpha`` below 1 it minimises the worst
    case of the negative log likelihood of log times over every subpopulation of at least mass alpha, which does not
    depend on the unit of time.

    Parameters
    ----------
    distribution : {"weibull", "lognormal", "loglogistic"}
        Distribution of the times.
    alpha : float
        Smallest share of patients to protect, in (0, 1]; 1 is the plain model.
    ball : {balls}
        As in :class:`drosurv.DROCox`.

    Attributes
    ----------
    coef_ : (d,) float64
        Effects on log time (linear); a positive effect means later events.
    intercept_ : float
        Location mu of a patient whose features are zero; for other networks, of a patient of score zero.
    scale_ : float
        Scale sigma.

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

    capabilities = Capabilities(
        score="log time",
        exp_coef="time ratio",
        own_curves=True,
        no_recalibration="has scores of log times",
        row_arguments=("clusters",),
        no_row_arguments="its loss does not support it",
        objective="worst case",
        no_ties="a likelihood of log times",
        convex=True,
        devices="accelerator",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("distribution", self.distribution, DISTRIBUTIONS)

    def _problem(self, data: TrainingData, batch: Sequence[Self]) -> Problem:
        loss = LogTime(data.target, self.distribution, data.weight)

        def curves(data: TrainingData, scores: FloatArray, extra: FloatArray) -> LogTimeCurves:
            return LogTimeCurves(self.distribution, float(1.0 / extra[1]), data.target.curve_times)

        return Problem(data, loss, self._objective(batch, [data.mass]), curves=curves)

    def _describe(self, result: Result) -> None:
        super()._describe(result)
        kappa, tau = result.extra
        loss = result.problem.loss
        assert isinstance(loss, LogTime)
        self.scale_, self.intercept_ = float(1.0 / tau), float(loss.centre - kappa / tau)
        if hasattr(self, "coef_"):
            data = result.problem.data
            self._errors = _standard_errors(result)
            self._rows_depend = data.rows.depend(data.target)
            self.coef_ = -self.scale_ * self.coef_

    def _accept(self, result: Result, follow_up: FollowUp | None = None) -> None:
        super()._accept(result, follow_up)
        # The table of this model needs no training data.
        self._kept_training = None

    def predict(self, X: Any, *, offset: ArrayLike | None = None) -> FloatArray:
        """Return the risk -mu (n,) of each patient; higher means an earlier event."""
        scores = super().predict(X, offset=offset)
        # coef_ are effects on log time; the scores of other networks are -(mu - mu_0) / sigma.
        return -scores - self.intercept_ if hasattr(self, "coef_") else self.scale_ * scores - self.intercept_

    def summary(  # type: ignore[override]
        self,
        level: float = 0.95,
        method: str = "auto",
        *,
        scale: FloatArray | None = None,
        names: Sequence[str] | None = None,
    ) -> CoxTable:
        """Return the table of a plain linear model as R's ``survreg``: effects on log time, intercept, log(scale).

        ``exp(coef)`` is a time ratio: the factor of the time to the event per unit of the feature.

        Parameters
        ----------
        level : float
            Level of the confidence intervals.
        method : {"auto", "information", "sandwich"}
            Source of the standard errors: the observed information, or the sandwich estimator, valid for a misspecified
            model, sampling weights and clusters. "auto" is the sandwich for clusters of several rows, as in R.
        scale, names : (d,) arrays, optional
            As in :meth:`drosurv.CoxPH.summary`.

        Examples
        --------
        >>> from drosurv import AcceleratedFailureTime, datasets
        >>> data = datasets.make_hidden_minority(n_samples=500, random_state=0)
        >>> table = AcceleratedFailureTime().fit(data.X, data.y).summary()
        >>> table.index[-2:].tolist()
        ['(Intercept)', 'Log(scale)']
        """
        check_linear(self, "summary")
        check_choice("method", method, ("auto", *ORIGIN))
        for name, plain in (("alpha", 1.0), ("l2", 0.0)):
            if getattr(self, name) != plain:
                raise ArgumentError(
                    name,
                    f"{arg(name, getattr(self, name))} is not maximum likelihood, so the information gives no "
                    f"standard errors; fit a model with {arg(name, plain)} as well.",
                )
        units = np.append(np.ones(len(self.coef_)) if scale is None else scale, [1.0, 1.0])
        values = np.append(self.coef_, [self.intercept_, np.log(self.scale_)])
        used = method if method != "auto" else "sandwich" if self._rows_depend else "information"
        zero = "" if scale is None else " The intercept is that of a patient whose scaled features are zero."
        return cox_table(
            [*(names or feature_names(self)), "(Intercept)", "Log(scale)"],
            values / units,
            self._errors[list(ORIGIN).index(used)] / units,
            level=level,
            caption=f"{title(self)}, {self.distribution}: {self.n_patients_:,} patients, {self.n_events_:,} events",
            notes=[f"Effects on log time: a positive effect means later events. {ORIGIN[used]}{zero}"],
            ratio="time ratio",
        )


@dataclass(frozen=True, eq=False)
class LogTimeCurves(FittedCurves):
    """Survival curves S((log t - mu) / scale); the default times (K,) are the event times in training."""

    distribution: str
    scale: float
    times: FloatArray

    def cumulative_hazard(self, scores: FloatArray, times: FloatArray | None = None) -> FloatArray:
        """Return cumulative hazards (n, k) of patients with risks -mu (n,), at times (k,) or (n, k)."""
        at = self.times if times is None else times
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            z = (np.log(at) + np.asarray(scores)[:, None]) / self.scale
            hazard = -log_survival(self.distribution, z)
        return np.where(at > 0, hazard, 0.0)

    def first_at(self, hazard: FloatArray, scores: FloatArray) -> FloatArray:
        """Return the times (n,) at which patients reach a cumulative hazard (n,)."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.scale * log_time_at(self.distribution, hazard) - scores))


def _standard_errors(result: Result) -> FloatArray:
    """Return standard errors (2, d + 2) of coefficients, intercept and log(scale), by information and by sandwich.

    The information is computed for (theta, kappa, tau) with centred features, because it is better conditioned. The
    delta method gives the standard errors of beta = -theta / tau, mu_0 = const - kappa / tau and
    log sigma = -log tau; at the optimum they equal those from the observed information in these parameters.
    """
    data, theta, (kappa, tau) = result.problem.data, result.network, result.extra
    weight = np.ones(len(data.X)) if data.weight is None else data.weight
    centre = weight @ data.X / weight.sum()
    loss = result.problem.loss
    assert isinstance(loss, LogTime)
    loss(result.scores[None], result.extra[None])
    X = data.X - centre
    covariance = inverse(loss.hessian(weight[None], X))
    influence = weight[:, None] * loss.jacobian(X, np.arange(len(X))) @ covariance
    covariances = covariance, squares(influence, data.clusters)
    d = len(theta)
    # Derivatives of (beta, mu_0, log sigma) in (theta, kappa, tau).
    jacobian = np.zeros((d + 2, d + 2))
    jacobian[:d, :d], jacobian[:d, -1] = -np.eye(d) / tau, theta / tau**2
    jacobian[d] = np.concatenate([centre / tau, [-1.0 / tau, kappa / tau**2]])
    jacobian[-1, -1] = -1.0 / tau
    return np.array([np.sqrt(np.diag(jacobian @ found @ jacobian.T)) for found in covariances])
