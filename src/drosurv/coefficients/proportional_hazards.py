"""The test of proportional hazards: whether coefficients change with time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, rankdata

from drosurv.coefficients.fitted_cox import FittedCox
from drosurv.coefficients.residuals import schoenfeld
from drosurv.target import FloatArray, Target

Transform = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class ProportionalHazardsTest:
    """Score tests of coefficients that change with a function g of time.

    Attributes
    ----------
    chi_square, p : (d + 1,) float64
        Of each feature (one degree of freedom) and, last, of all together (d degrees).
    time, transformed : (E,) float64
        Times of the events and g there.
    """

    chi_square: FloatArray
    p: FloatArray
    time: FloatArray
    transformed: FloatArray


def proportional_hazards_test(fit: FittedCox, transform: str | Transform = "km") -> ProportionalHazardsTest:
    """Test each coefficient for a change with time.

    The model with coefficients beta_j + gamma_j g(t) is tested against gamma = 0 by its score test. With the
    Schoenfeld residuals r_e, the terms' covariances V_e of the features and their weights w_e,

    .. math:: U = sum_e w_e g_e r_e,  I = sum_e w_e (1, g_e)' (1, g_e) (x) V_e

    and the statistic of a set of features is U' I^{-1} U over the coefficients and the set. These are the numbers of
    ``cox.zph`` in R's survival package since version 3.

    Parameters
    ----------
    fit : FittedCox
    transform : {"km", "rank", "identity", "log"} or callable
        g: one less Kaplan-Meier's survival just before t, the rank of t, t itself, its logarithm, or a function of
        all n times.

    References
    ----------
    Grambsch and Therneau (1994). Proportional hazards tests and diagnostics based on weighted residuals.
    """
    d, rows = fit.X.shape[1], fit.rows
    transformed = _transformed(fit.target, transform)
    # Centring g changes no statistic and keeps the matrix well conditioned.
    g = transformed[rows] - transformed[rows].mean()
    plain, mixed, square = fit.information(), fit.information(g), fit.information(g * g)
    information = np.block([[plain, mixed], [mixed, square]])
    slope = schoenfeld(fit).T @ (fit.case_weight[rows] * g)
    sets = [np.array([j]) for j in range(d)] + [np.arange(d)]
    statistic = np.array([_score_statistic(information, slope, features) for features in sets])
    degrees = np.array([len(features) for features in sets])
    return ProportionalHazardsTest(
        statistic, chi2.sf(statistic, degrees), fit.target.time[rows], transformed[rows]
    )


def _score_statistic(information: FloatArray, slope: FloatArray, features: FloatArray) -> float:
    d = len(slope)
    kept = np.concatenate([np.arange(d), d + features])
    score = np.concatenate([np.zeros(d), slope[features]])
    part = information[np.ix_(kept, kept)]
    scale = np.sqrt(np.diag(part))
    if not (scale > 0).all():
        return float("nan")
    scaled = part / np.outer(scale, scale)
    # Dependent features leave directions without information, in which no change can be seen either.
    solved = np.linalg.pinv(scaled, rcond=1e-12, hermitian=True) @ (score / scale)
    return float(score / scale @ solved)


def _transformed(target: Target, transform: str | Transform) -> FloatArray:
    if callable(transform):
        return np.asarray(transform(target.time), dtype=np.float64)
    if transform == "identity":
        return target.time
    if transform == "rank":
        return np.asarray(rankdata(target.time), dtype=np.float64)
    if transform == "log":
        if (target.time <= 0).any():
            raise ValueError("transform='log' needs times above 0; use 'km', 'rank' or 'identity'.")
        return np.log(target.time)
    if transform == "km":
        return _event_share_before(target)
    raise ValueError(
        f"transform must be 'km', 'rank', 'identity', 'log' or a function of the times, got {transform!r}."
    )


def _event_share_before(target: Target) -> FloatArray:
    """One less the Kaplan-Meier survival just before each patient's time, (n,), strata pooled."""
    at = np.unique(target.time[target.event])
    died = np.searchsorted(np.sort(target.time[target.event]), at, side="right")
    died = np.diff(died, prepend=0)
    at_risk = len(target) - np.searchsorted(np.sort(target.time), at, side="left")
    if target.entry is not None:
        at_risk = at_risk - (len(target) - np.searchsorted(np.sort(target.entry), at, side="left"))
    survival = np.concatenate([[1.0], np.cumprod(1.0 - died / at_risk)])
    share: FloatArray = 1.0 - survival[np.searchsorted(at, target.time, side="left")]
    return share
