"""The likelihood of discrete-time hazard models: probabilities of the event in each interval, given survival so far."""

from __future__ import annotations

import numpy as np

from drosurv.losses.full_likelihood import Intervals
from drosurv.losses.loss import NOTHING, ConvexLoss, OnePerPatient
from drosurv.patients.target import FloatArray, IntArray, Target

LINKS = ("logit", "cloglog")


class DiscreteHazard(OnePerPatient, ConvexLoss):
    """Negative log likelihood of each patient on K intervals, prepared for one target.

        l_i = -sum_{m < k(i)} e_im log(1 - h_im) - d_i log h_ik(i) - (1 - d_i) e_ik(i) log(1 - h_ik(i)),
        g(h_im) = a_m + f_i

    with k(i) the interval that contains Y_i, e_im the share of an interval between entry and Y_i, and g the logit or
    the complementary log-log link. The extra parameters are the a_m. The loss is that of a binary regression with one
    row per patient and interval, of weight e_im or, with an event, 1, and convex. Intervals are cut at quantiles of the
    event times; with ties or few events there are fewer. With the link "cloglog", the hazards of the underlying
    continuous time are proportional. The weights (n,) apply in the quantiles and in the null model; they do not
    multiply the losses.
    """

    # Small enough for the a_m of a plain model to equal those of the binary regression to six digits.
    extra_ridge = 1e-8
    _by_patient = ("target", "_with_event", "_at_risk")

    def __init__(
        self, target: Target, n_intervals: int = 20, link: str = "logit", weight: FloatArray | None = None
    ) -> None:
        super().__init__(target)
        self.link, self.intervals = link, Intervals.from_target(target, n_intervals, weight)
        K, index = self.intervals.n_intervals, self.intervals.exposure(target.time).index
        self._with_event = target.event[:, None] & (np.arange(K) == index[:, None])
        # A patient with the event counts fully in its interval.
        self._at_risk = np.where(self._with_event, 1.0, self._shares_at_risk(target))
        share = np.ones(self.n) if weight is None else weight
        # Training starts at the null model: the hazard of an interval is the number of events divided by that of
        # patients at risk, at least half an event away from 0 and 1.
        n_events, n_at_risk = share @ self._with_event, np.maximum(share @ self._at_risk, 1.0)
        hazard = np.clip(n_events, 0.5, None) / n_at_risk
        hazard = np.clip(hazard, 1e-9, 1.0 - 0.5 / n_at_risk)
        self.start = np.log(hazard / (1.0 - hazard)) if link == "logit" else np.log(-np.log1p(-hazard))
        self.shift = np.ones(K)
        self._terms: tuple[FloatArray, ...] = ()

    def _shares_at_risk(self, target: Target) -> FloatArray:
        """Return the share of each interval (n, K) that lies between a patient's entry and time."""
        cuts, entry = self.intervals.cut_points, np.zeros(self.n) if target.entry is None else target.entry
        begins = np.append(0.0, cuts)
        ends = np.append(cuts, max(float(target.time.max()), begins[-1] + 1e-300))
        passed = np.minimum(target.time[:, None], ends) - np.maximum(entry[:, None], begins)
        found: FloatArray = np.clip(passed / (ends - begins), 0.0, 1.0)
        return found

    def __call__(self, scores: FloatArray, extra: FloatArray = NOTHING) -> FloatArray:
        """Return the losses (B, n) at scores (B, n) and the a_m (B, K)."""
        terms = _logit if self.link == "logit" else _cloglog
        parts = terms(scores[..., None] + extra[:, None, :], self._with_event)
        # The term of each interval in each loss (B, n, K), and its first two derivatives in a_m + f_i.
        self._terms = tuple(np.where(self._at_risk > 0, self._at_risk * part, 0.0) for part in parts)
        losses: FloatArray = self._terms[0].sum(-1)
        return losses

    def pullback(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradients of the losses weighted by (B, n): in the scores (B, n) and in the a_m (B, K)."""
        slopes = weights[..., None] * self._terms[1]
        return slopes.sum(-1), slopes.sum(-2)

    def curvature(self, weights: FloatArray) -> FloatArray:
        """Return second derivatives (B, n) of the losses weighted by (B, n), each in one patient's score."""
        second: FloatArray = weights * self._terms[2].sum(-1)
        return second

    def jacobian(self, X: FloatArray, which: IntArray) -> FloatArray:
        """Return gradients (len(which), d + K) of the chosen losses for scores X theta, first row of the batch."""
        slopes = self._terms[1][0, which]
        return np.concatenate([slopes.sum(-1, keepdims=True) * X[which], slopes], axis=1)

    def hessian(self, weights: FloatArray, X: FloatArray) -> FloatArray:
        """Return the Hessian (d + K, d + K) of the losses weighted by (1, n), first row of the batch."""
        second, d = weights[0][:, None] * self._terms[2][0], X.shape[1]
        size = d + self.n_extra
        hessian = np.zeros((size, size))
        hessian[:d, :d] = X.T @ (second.sum(-1)[:, None] * X)
        hessian[:d, d:] = X.T @ second
        hessian[d:, :d] = hessian[:d, d:].T
        hessian[range(d, size), range(d, size)] = second.sum(0)
        return hessian


def log_survived(link: str, eta: FloatArray) -> FloatArray:
    """Return log(1 - h) of a linear predictor, bounded so that it is finite and differences are defined."""
    return -np.logaddexp(0.0, eta) if link == "logit" else -np.exp(np.minimum(eta, 700.0))


def _logit(eta: FloatArray, event: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the loss of an interval with the logit link, and its two derivatives in eta."""
    hazard = np.exp(eta + log_survived("logit", eta))
    return np.logaddexp(0.0, eta) - event * eta, hazard - event, hazard * (1.0 - hazard)


def _cloglog(eta: FloatArray, event: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the loss of an interval with the complementary log-log link, and its two derivatives in eta."""
    # With u = exp(eta), the loss of an interval is u without an event, and -log(1 - exp(-u)) with an event.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        u = np.exp(eta)
        # Where u underflows to 0, the loss of an event is -log u = -eta.
        of_event = np.where(u > 0, -np.log(-np.expm1(-u)), -eta)
        # The derivatives of -log(1 - exp(-u)) in eta are -r and r (u - 1 + r) with r = u / (e^u - 1). Both are 0 up to
        # rounding for u >= 700, and would be NaN for an infinite u.
        bounded = np.minimum(u, 700.0)
        ratio = np.where(u > 0, bounded / np.expm1(bounded), 1.0)
        second = ratio * (bounded - 1.0 + ratio)
    return (
        np.where(event, of_event, u),
        np.where(event, -ratio, u),
        np.where(event, np.maximum(second, 0.0), u),
    )
