"""A fitted linear Cox model with its training data: information matrix, residuals and robust covariance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from drosurv.losses.cox_partial import CoxPartial
from drosurv.losses.late_entry import EventTimes, LateEntryRiskSets
from drosurv.losses.loss import constant_features
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target

# Eigenvalues of the scaled information below this are rounding errors: the features are linearly dependent.
_DEPENDENT = 1e-11


@dataclass(frozen=True, eq=False)
class FittedCox:
    """Coefficients of a linear Cox model and its n training rows.

    The partial likelihood is a product of terms, one per event e: the risk of the patient with the event divided by the
    summed risk S_e of all patients at risk. For m tied events with summed risk D, Efron's method uses
    S_e = S - k/m D, k = 0..m-1, and Breslow's uses S.

    The `likelihood` is the loss that was minimised, with target, ties, case weights and offset; `l2` is the ridge
    penalty of the mean loss.
    """

    X: FloatArray
    likelihood: CoxPartial
    coef: FloatArray
    l2: float = 0.0

    @property
    def target(self) -> Target:
        """Events and times of the rows."""
        return self.likelihood.target

    @cached_property
    def _log_risks(self) -> FloatArray:
        scores = self.X @ self.coef
        return scores if self.likelihood.offset is None else scores + self.likelihood.offset

    @property
    def highest(self) -> float:
        """The highest log risk of a row."""
        return float(self._log_risks.max())

    @cached_property
    def scores(self) -> FloatArray:
        """Log risks (n,), shifted so that the highest is zero; a shift changes no likelihood and no residual."""
        shifted: FloatArray = self._log_risks - self.highest
        return shifted

    @cached_property
    def middle(self) -> FloatArray:
        """A point (d,) near the mean of the features; subtracting it reduces rounding errors."""
        middle: FloatArray = self.X[:: max(1, len(self.X) // 1024)].mean(axis=0)
        return middle

    @cached_property
    def centred(self) -> FloatArray:
        """Features (n, d) minus ``middle``."""
        return self.X - self.middle

    @property
    def loss(self) -> CoxPartial:
        """The losses of the events, evaluated at the scores."""
        return self._evaluated[0]

    @property
    def log_likelihoods(self) -> tuple[float, float]:
        """Log partial likelihoods without the features, and with them."""
        return self._evaluated[1]

    @cached_property
    def _evaluated(self) -> tuple[CoxPartial, tuple[float, float]]:
        loss, offset = self.likelihood, self.likelihood.offset
        weight = self.case_weight[loss.rows]
        of_features = self.scores if offset is None else self.scores - offset
        # The loss stores its last scores, which must be the fitted ones.
        scores = np.zeros(len(self.X)), of_features
        null, fitted = (-float(weight @ loss(f[None, :])[0]) for f in scores)
        return loss, (null, fitted)

    @cached_property
    def rows(self) -> IntArray:
        """The events (E,), by stratum and time."""
        return self.loss.rows

    @cached_property
    def case_weight(self) -> FloatArray:
        """Weights (n,); ones if none were given."""
        weight = self.likelihood.weight
        return np.ones(len(self.X)) if weight is None else weight

    @cached_property
    def term_weight(self) -> FloatArray:
        """Weight (E,) of each term: the mean weight of the tied events."""
        if self.likelihood.weight is None:
            return np.ones(len(self.rows))
        block, weight = self.loss.block, self.case_weight[self.rows]
        return (np.bincount(block, weight) / np.bincount(block))[block]

    @property
    def tie_share(self) -> FloatArray:
        """Share k/m (E,) of the risk of the tied events that each term subtracts."""
        return np.zeros(len(self.rows)) if self.loss.efron is None else self.loss.efron.step

    @cached_property
    def means(self) -> FloatArray:
        """Risk-weighted means (E, d) of the centred features over the patients at risk in each term."""
        plain, ties = self.loss.risk_sets.means(self.X) - self.middle, self.loss.efron
        return plain[self.loss.block] if ties is None else ties.terms(self.centred, plain)

    @cached_property
    def hazard(self) -> FloatArray:
        """Jump (E,) of the baseline hazard at each term, for a patient of (shifted) log risk zero."""
        log_sums = self.loss.risk_sets.log_sums(self.scores[None, :])[0]
        left = 1.0 if self.loss.efron is None else self.loss.efron.left
        hazard: FloatArray = self.term_weight * np.exp(-log_sums[self.loss.block]) / left
        return hazard

    @cached_property
    def risk_sets(self) -> LateEntryRiskSets:
        """The risk sets at all event times."""
        return LateEntryRiskSets(EventTimes.of(self.target))

    def by_block(self, values: FloatArray) -> FloatArray:
        """Return sums (K, p) of values (E, p) over the tied events of each time."""
        return np.add.reduceat(values, np.flatnonzero(np.diff(self.loss.block, prepend=-1)), axis=0)

    @cached_property
    def observed_information(self) -> FloatArray:
        """Observed information (d, d): the weighted sum of the terms' covariances of the features."""
        return self.information(np.ones(len(self.rows)))

    def information(self, factor: FloatArray) -> FloatArray:
        """Return the information with every term's covariance multiplied by a factor (E,)."""
        information = self.loss.hessian((self.term_weight * factor)[None, :], self.X, self.middle)
        # Entries of constant features are rounding errors.
        constant = constant_features(self.X, self.loss.compared)
        information[constant, :] = information[:, constant] = 0.0
        return information

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance (d, d) of the coefficients: the inverse of the observed information plus the ridge penalty.

        Rows and columns of constant and of linearly dependent features are NaN, because their coefficients are not
        determined.
        """
        ridge = self.l2 * self.case_weight.sum() * np.eye(self.X.shape[1])
        return inverse(self.observed_information + ridge)

    @property
    def degrees(self) -> int:
        """Rank of the information: the number of linearly independent features."""
        return int((_directions(self.observed_information)[2] > _DEPENDENT).sum())


def inverse(information: FloatArray) -> FloatArray:
    """Return the inverse of an information matrix, with NaN in the rows and columns of undetermined features."""
    known, size, values, vectors = _directions(information)
    zero = values <= _DEPENDENT
    informative = vectors[:, ~zero]
    part = (informative / values[~zero]) @ informative.T / np.outer(size, size)
    # Features that are part of a direction without information have no standard error.
    undetermined = (vectors[:, zero] ** 2).sum(axis=1) > 1e-12
    part[undetermined, :] = part[:, undetermined] = np.nan
    out = np.full_like(information, np.nan)
    out[np.ix_(known, known)] = part
    return out


def _directions(information: FloatArray) -> tuple[BoolArray, FloatArray, FloatArray, FloatArray]:
    """Scale an information matrix to unit diagonal, and return its eigenvalues and eigenvectors.

    Return also which features (d,) have information, and the square roots (m,) by which they were scaled.
    """
    size = np.sqrt(np.diag(information).clip(min=0.0))
    known = size > 0
    scaled = information[np.ix_(known, known)] / np.outer(size[known], size[known])
    values, vectors = np.linalg.eigh(scaled)
    return known, size[known], values, vectors


def martingale(fit: FittedCox) -> FloatArray:
    """Return martingale residuals (n,): observed minus expected events.

    .. math:: M_i = d_i - e^{f_i} sum_{e : V_i < t_e <= Y_i} h_e

    with the jumps h_e of the baseline hazard. In the k-th term of Efron's method, each of the m tied events counts
    1 - k/m.
    """
    expected = fit.risk_sets.over_windows(fit.by_block(fit.hazard[:, None]))[:, 0]
    expected[fit.rows] -= fit.by_block((fit.tie_share * fit.hazard)[:, None])[fit.loss.block, 0]
    residuals: FloatArray = fit.target.event - np.exp(fit.scores) * expected
    return residuals


def deviance(fit: FittedCox) -> FloatArray:
    """Return deviance residuals (n,): martingale residuals transformed to be more symmetric about zero.

    .. math:: D_i = sign(M_i) sqrt( -2 ( M_i + d_i log(d_i - M_i) ) )
    """
    m = martingale(fit)
    event = fit.target.event
    logs = np.log(np.where(event, np.maximum(1.0 - m, np.finfo(float).tiny), 1.0))
    # By rounding, the number under the root may be negative.
    residuals: FloatArray = np.sign(m) * np.sqrt(np.maximum(-2.0 * (m + event * logs), 0.0))
    return residuals


def score(fit: FittedCox, factor: FloatArray | float = 1.0) -> FloatArray:
    """Return score residuals (n, d): each patient's part of the gradient of the log partial likelihood, unweighted.

    .. math:: U_i = d_i (x_i - xbar(Y_i)) - e^{f_i} sum_{e : V_i < t_e <= Y_i} (x_i - xbar_e) h_e

    The weighted residuals sum to zero at the optimum. Terms of each event, in both parts, are multiplied by a `factor`
    (E,), a function of its time.
    """
    block, X, hazard = fit.loss.block, fit.centred, factor * fit.hazard
    jumps = np.column_stack([hazard, hazard[:, None] * fit.means])
    sums = fit.risk_sets.over_windows(fit.by_block(jumps))
    # Subtract the share of tied events that Efron's terms leave out.
    sums[fit.rows] -= fit.by_block(fit.tie_share[:, None] * jumps)[block]
    residuals: FloatArray = -np.exp(fit.scores)[:, None] * (X * sums[:, :1] - sums[:, 1:])
    residuals[fit.rows] += np.reshape(factor, (-1, 1)) * schoenfeld(fit)
    return residuals


def dfbeta(fit: FittedCox) -> FloatArray:
    """Return dfbeta residuals (n, d): the change of the coefficients due to each patient, to first order."""
    return _times_covariance(fit.case_weight[:, None] * score(fit), fit)


def sandwich(fit: FittedCox, clusters: IntArray | None = None) -> FloatArray:
    """Return the robust covariance (d, d): the sum of squares of the dfbeta of each patient, or of each cluster.

    It is valid for misspecified models and for sampling weights and, with clusters (n,), for dependent patients within
    clusters.
    """
    return squares(dfbeta(fit), clusters)


def squares(rows: FloatArray, clusters: IntArray | None = None) -> FloatArray:
    """Return the sum of squares (d, d) of the rows of (n, d); rows of the same cluster (n,) are summed first."""
    if clusters is not None:
        order = np.argsort(clusters, kind="stable")
        rows = np.add.reduceat(rows[order], np.flatnonzero(np.diff(clusters[order], prepend=-1)), axis=0)
    return rows.T @ rows


def schoenfeld(fit: FittedCox) -> FloatArray:
    """Return Schoenfeld residuals (E, d): features of each event minus the risk-weighted mean, by stratum and time."""
    block = fit.loss.block
    tied_means = fit.by_block(fit.means) / np.bincount(block)[:, None]
    residuals: FloatArray = fit.centred[fit.rows] - tied_means[block]
    return residuals


def scaled_schoenfeld(fit: FittedCox) -> FloatArray:
    """Return scaled Schoenfeld residuals (E, d): estimates of the coefficients at each event's time.

    .. math:: r*_e = beta + E V r_e

    with the number E of events and the covariance V of the coefficients. Under proportional hazards their mean is beta
    at all times.
    """
    return _times_covariance(schoenfeld(fit), fit) * len(fit.rows) + fit.coef


def hazard_errors(
    fit: FittedCox,
    covariance: FloatArray,
    X: FloatArray,
    log_risk: FloatArray,
    times: FloatArray,
    stratum: IntArray | None = None,
) -> FloatArray:
    r"""Return standard errors (n, T) of predicted cumulative hazards at times (T,), as R's ``survfit.coxph`` does.

    .. math:: e^{2 f} \Big( \sum_{e : t_e \le t} h_e^2 / w_e + q(t)' V q(t) \Big),
              \quad q(t) = \sum_{e : t_e \le t} h_e (x - \bar x_e)

    with the jumps h_e of the baseline hazard, the weights w_e of the events, and the covariance V of the coefficients.
    Features X (n, d), log risks with offsets (n,) and numbers of strata (n,) are those of the patients to predict for.
    """
    jumps = fit.by_block(
        np.column_stack([fit.hazard**2 / fit.term_weight, fit.hazard, fit.hazard[:, None] * fit.means])
    )
    x = X - fit.middle
    quadratic = np.einsum("ij,jk,ik->i", x, covariance, x)
    variance = np.empty((len(X), len(times)))
    for k in [None] if stratum is None else np.unique(stratum):
        events = slice(None) if k is None else fit.loss.event_strata == k
        rows = slice(None) if k is None else stratum == k
        sums = np.concatenate([np.zeros((1, jumps.shape[1])), np.cumsum(jumps[events], axis=0)])
        until = sums[np.searchsorted(fit.loss.event_times[events], times, side="right")]
        own, hazard, means = until[:, 0], until[:, 1], until[:, 2:]
        variance[rows] = (
            own
            + quadratic[rows, None] * hazard**2
            - 2 * hazard * (x[rows] @ covariance @ means.T)
            + np.einsum("ij,jk,ik->i", means, covariance, means)
        )
    found: FloatArray = np.exp(log_risk - fit.highest)[:, None] * np.sqrt(np.maximum(variance, 0.0))
    return found


def _times_covariance(values: FloatArray, fit: FittedCox) -> FloatArray:
    """Return values (m, d) times the covariance of the coefficients; NaN for undetermined features only."""
    product: FloatArray = values @ np.nan_to_num(fit.covariance)
    product[:, np.isnan(np.diag(fit.covariance))] = np.nan
    return product


RESIDUALS = {
    "martingale": martingale,
    "deviance": deviance,
    "score": score,
    "dfbeta": dfbeta,
    "schoenfeld": schoenfeld,
    "scaled_schoenfeld": scaled_schoenfeld,
}
