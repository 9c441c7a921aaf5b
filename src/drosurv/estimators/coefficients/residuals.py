"""Residuals of a linear Cox model: who departs from it, who moves it, and when it fails."""

from __future__ import annotations

import numpy as np

from drosurv.estimators.coefficients.fitted_cox import FittedCox
from drosurv.target import FloatArray, IntArray


def martingale(fit: FittedCox) -> FloatArray:
    """Observed less expected events, (n,).

    .. math:: M_i = d_i - e^{f_i} sum_{e : V_i < t_e <= Y_i} h_e

    with the rises h_e of the baseline hazard. A patient among m tied events counts in Efron's k-th term by 1 - k/m.
    """
    expected = fit.windows.over_windows(fit.by_block(fit.hazard[:, None]))[:, 0]
    expected[fit.rows] -= fit.by_block((fit.tie_share * fit.hazard)[:, None])[fit.loss.block, 0]
    residuals: FloatArray = fit.target.event - np.exp(fit.scores) * expected
    return residuals


def deviance(fit: FittedCox) -> FloatArray:
    """Martingale residuals made symmetric about zero, (n,).

    .. math:: D_i = sign(M_i) sqrt( -2 ( M_i + d_i log(d_i - M_i) ) )
    """
    left = martingale(fit)
    event = fit.target.event
    logs = np.log(np.where(event, np.maximum(1.0 - left, np.finfo(float).tiny), 1.0))
    # A martingale residual of a rounding above zero would ask for the root of a negative number.
    residuals: FloatArray = np.sign(left) * np.sqrt(np.maximum(-2.0 * (left + event * logs), 0.0))
    return residuals


def score(fit: FittedCox) -> FloatArray:
    """Each patient's part of the derivative of the log partial likelihood, per unit of weight, (n, d).

    .. math:: U_i = d_i (x_i - xbar(Y_i)) - e^{f_i} sum_{e : V_i < t_e <= Y_i} (x_i - xbar_e) h_e

    The weighted residuals sum to zero at the optimum.
    """
    block, X = fit.loss.block, fit.centred
    rises = np.column_stack([fit.hazard, fit.hazard[:, None] * fit.means])
    sums = fit.windows.over_windows(fit.by_block(rises))
    # Those tied in an event were counted in full; Efron's terms hold the rest of them only.
    sums[fit.rows] -= fit.by_block(fit.tie_share[:, None] * rises)[block]
    residuals: FloatArray = -np.exp(fit.scores)[:, None] * (X * sums[:, :1] - sums[:, 1:])
    residuals[fit.rows] += schoenfeld(fit)
    return residuals


def dfbeta(fit: FittedCox) -> FloatArray:
    """How far each patient moves the coefficients, to first order, (n, d): weight times U_i times the covariance."""
    return _times_covariance(fit.case_weight[:, None] * score(fit), fit)


def sandwich(fit: FittedCox, clusters: IntArray | None = None) -> FloatArray:
    """Robust covariance (d, d): the sum of squares of what each patient, or each cluster, moves the coefficients by.

    It holds where the model is wrong, where the weights are sampling weights, and, with clusters (n,), where members of
    one cluster are alike.
    """
    return squares(dfbeta(fit), clusters)


def squares(moves: FloatArray, clusters: IntArray | None = None) -> FloatArray:
    """Sum of squares (d, d) of the rows of moves (n, d), those of each cluster (n,) added up first."""
    if clusters is not None:
        order = np.argsort(clusters, kind="stable")
        moves = np.add.reduceat(moves[order], np.flatnonzero(np.diff(clusters[order], prepend=-1)), axis=0)
    return moves.T @ moves


def schoenfeld(fit: FittedCox) -> FloatArray:
    """Features of each event less their risk-weighted mean among those at risk, (E, d), by stratum and time."""
    block = fit.loss.block
    tied_means = fit.by_block(fit.means) / np.bincount(block)[:, None]
    residuals: FloatArray = fit.centred[fit.rows] - tied_means[block]
    return residuals


def scaled_schoenfeld(fit: FittedCox) -> FloatArray:
    """Schoenfeld residuals as estimates of the coefficients at each event's time, (E, d).

    .. math:: r*_e = beta + E V r_e

    with the number E of events and the coefficients' covariance V: under proportional hazards they scatter about
    beta at all times.
    """
    return _times_covariance(schoenfeld(fit), fit) * len(fit.rows) + fit.coef


def _times_covariance(values: FloatArray, fit: FittedCox) -> FloatArray:
    """Values (m, d) times the coefficients' covariance; NaN for the features that have none, and for these alone."""
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
