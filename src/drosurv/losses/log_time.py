"""The likelihood of accelerated failure time models, in parameters in which it is convex."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit, log_ndtr, ndtri_exp

from drosurv.errors import ArgumentError, row_number
from drosurv.losses.loss import NOTHING, ConvexLoss, OnePerPatient
from drosurv.patients.target import FloatArray, IntArray, Target

DISTRIBUTIONS = ("weibull", "lognormal", "loglogistic")
_HALF_LOG_TWO_PI = 0.5 * np.log(2.0 * np.pi)


class LogTime(OnePerPatient, ConvexLoss):
    """Negative log likelihood of each patient's log time, prepared for one target.

        log Y = mu + sigma e,   z_i = (log Y_i - mu_i) / sigma = f_i + kappa + tau (log Y_i - centre)
        l_i = -d_i (log g(z_i) + log tau) - (1 - d_i) log S(z_i)

    with g and S the density and survival function of the error e, whose distribution is the smallest extreme value
    (Weibull), normal or logistic. The score is f = -(mu - mu_0) / sigma, the extra parameters are
    kappa = (centre - mu_0) / sigma and tau = 1 / sigma. The loss is convex in these parameters, because g and S are
    log-concave and z is linear. With the mean log time as centre, the extra parameters do not depend on the unit of
    time, and neither do the steps of Adam. The loss uses the density of log Y, not of Y: the two differ by log Y_i,
    which depends on the unit of time and would change the weights of a robust objective.

    Times must be above zero. The weights (n,) apply in the null model, where training starts; they do not multiply the
    losses.
    """

    shift = np.array([1.0, 0.0])
    # The data always determine location and scale.
    extra_ridge = 0.0
    _by_patient = ("target", "_event", "_log_time")

    def __init__(
        self, target: Target, distribution: str = "weibull", weight: FloatArray | None = None
    ) -> None:
        if (target.time <= 0).any():
            row = int(np.flatnonzero(target.time <= 0)[0])
            raise ArgumentError.must(
                "y",
                "have times above zero, because the model uses log times",
                float(target.time[row]),
                f"row {row_number(row)}; drop such patients, or set their time to the smallest one that can be "
                "measured",
            )
        super().__init__(target)
        self.distribution = distribution
        share = np.full(self.n, 1.0 / self.n) if weight is None else weight / weight.sum()
        log_time = np.log(target.time)
        self.centre = float(share @ log_time)
        self._event, self._log_time = target.event.astype(np.float64), log_time - self.centre
        self._terms: Callable[..., tuple[FloatArray, FloatArray, FloatArray]] = _TERMS[distribution]
        self._z = self._tau = np.empty(0)
        self.start = self._null(share)

    def _null(self, share: FloatArray) -> FloatArray:
        """Return the maximum likelihood kappa and tau for scores of zero, by Newton's method."""
        spread = max(float(np.sqrt(share @ self._log_time**2)), 1e-6)
        extra = np.array([0.0, 1.0 / spread])
        scores, X = np.zeros((1, self.n)), np.zeros((self.n, 0))
        value = float((self(scores, extra[None]) @ share)[0])
        for _ in range(100):
            slope = self.pullback(share[None])[1][0]
            step = np.linalg.solve(self.hessian(share[None], X), slope)
            if float(slope @ step) < 1e-20 * max(abs(value), 1.0):
                break
            step_size = 1.0
            while step_size > 1e-10:
                new_value = float((self(scores, (extra - step_size * step)[None]) @ share)[0])
                if new_value <= value:
                    break
                step_size /= 2
            extra, value = extra - step_size * step, new_value
            self(scores, extra[None])
        return extra

    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Return the losses (B, n) at scores (B, n) and (kappa, tau) (B, 2); infinite where tau is not positive."""
        kappa, tau = extra[:, :1], extra[:, 1:]
        self._tau, self._z = tau, scores + kappa + tau * self._log_time
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            losses = self._terms(self._z, self._event)[0] - self._event * np.log(tau)
        return np.where(tau > 0, losses, np.inf)

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradients of the losses weighted by (B, n): in the scores (B, n) and in kappa and tau (B, 2)."""
        slope = weights * self._terms(self._z, self._event)[1]
        by_tau = slope @ self._log_time - (weights @ self._event) / self._tau[:, 0]
        return slope, np.stack([slope.sum(-1), by_tau], axis=-1)

    def curvature(self, weights: FloatArray) -> FloatArray:
        """Return second derivatives (B, n) of the losses weighted by (B, n), each in one patient's score."""
        return weights * self._terms(self._z, self._event)[2]

    def jacobian(self, X: FloatArray, which: IntArray) -> FloatArray:
        """Return gradients (len(which), d + 2) of the chosen losses for scores X theta, first row of the batch."""
        slope = self._terms(self._z[0], self._event)[1]
        gradients = slope[which, None] * self._design(X)[which]
        gradients[:, -1] -= self._event[which] / self._tau[0, 0]
        return gradients

    def hessian(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Return the Hessian (d + 2, d + 2) of the losses weighted by (1, n), first row of the batch."""
        second = weights[0] * self._terms(self._z[0], self._event)[2]
        design = self._design(X)
        hessian: FloatArray = design.T @ (second[:, None] * design)
        hessian[-1, -1] += float(weights[0] @ self._event) / self._tau[0, 0] ** 2
        return hessian

    def _design(self, X: FloatArray) -> FloatArray:
        return np.column_stack([X, np.ones(self.n), self._log_time])


def log_survival(distribution: str, z: FloatArray) -> FloatArray:
    """Return log S(z) of the standard distribution of log times."""
    return -_TERMS[distribution](z, 0.0)[0]


def log_time_at(distribution: str, hazard: FloatArray) -> FloatArray:
    """Return the z with -log S(z) = hazard."""
    if distribution == "lognormal":
        return np.asarray(-ndtri_exp(-hazard))
    return np.log(hazard) if distribution == "weibull" else hazard + np.log(-np.expm1(-hazard))


# Each of the following returns -d log g(z) - (1 - d) log S(z), and its first and second derivative in z.


def _weibull(z: FloatArray, event: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
    hazard = np.exp(z)
    return hazard - event * z, hazard - event, hazard


def _lognormal(z: FloatArray, event: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
    # The normal hazard g / S, from logarithms: for large z both underflow, but not their ratio.
    log_survival = log_ndtr(-z)
    hazard = np.exp(-0.5 * z * z - _HALF_LOG_TWO_PI - log_survival)
    value = event * (0.5 * z * z + _HALF_LOG_TWO_PI) - (1.0 - event) * log_survival
    return value, event * z + (1.0 - event) * hazard, event + (1.0 - event) * hazard * (hazard - z)


def _loglogistic(z: FloatArray, event: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray]:
    cdf = expit(z)
    value = (1.0 + event) * np.logaddexp(0.0, z) - event * z
    return value, (1.0 + event) * cdf - event, (1.0 + event) * cdf * (1.0 - cdf)


_TERMS = {"weibull": _weibull, "lognormal": _lognormal, "loglogistic": _loglogistic}
