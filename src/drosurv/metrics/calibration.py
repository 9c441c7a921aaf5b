"""Calibration: do predicted survival probabilities come true, at a horizon and over their whole range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2

from drosurv.errors import as_whole, require
from drosurv.metrics.cox_newton import event_probability
from drosurv.metrics.nonparametric import CumulativeIncidence, KaplanMeier
from drosurv.metrics.scores import parse_weights, warn_undefined, weighted_mean
from drosurv.metrics.survival_curves import parse_survival
from drosurv.target import FloatArray, Target, parse_target

# Restricted cubic splines of three knots at these quantiles, as in Austin et al. (2020).
_KNOTS = (0.10, 0.50, 0.90)
# A trace of ridge keeps the fit finite where few events order perfectly.
_RIDGE = 1e-4


def calibration_at(
    y: Any, survival: Any, horizons: Any, times: Any = None, *, level: float = 0.95, sample_weight: Any = None
) -> pd.DataFrame:
    """Observed (Kaplan-Meier) against mean predicted survival at chosen horizons.

    Parameters
    ----------
    y : structured array, (n,)
        Event flags and times.
    survival : n step functions, or (n, k) array
        Predicted survival curves; an array holds the survival at `times`, one column each.
    horizons : (h,) array
        When to compare.
    times : (k,) array, optional
        Times of the columns of an array.
    level : float
        Level of the interval on the observed survival.
    sample_weight : (n,) array, optional
        Patient weights; with them there is no interval (use :func:`~drosurv.metrics.bootstrap`).

    Returns
    -------
    DataFrame
        One row per horizon: ``horizon``, mean ``predicted`` and ``observed`` survival, their ``difference``
        (positive: too optimistic), the log-log interval ``low`` to ``high`` of the observed, and the number
        of patients ``at_risk``. Observed is NaN beyond the last time if that patient was censored.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, False, False], [1.0, 2.0, 3.0, 4.0])
    >>> table = calibration_at(y, [[0.5]] * 4, horizons=[2.5], times=[2.0])
    >>> table[["predicted", "observed", "at_risk"]].values.tolist()
    [[0.5, 0.5, 2.0]]
    """
    target = parse_target(y, require_event=False)
    weight = parse_weights(sample_weight, len(target))
    at = parse_horizons("horizons", horizons)
    survival_then = parse_survival(survival, len(target), times).at(at)
    predicted = weighted_mean(survival_then, weight, "mean predicted survival")
    table = beside_observed(predicted, KaplanMeier.of(target, weight), at, level, target)
    return table if sample_weight is None else table.assign(low=np.nan, high=np.nan)


def parse_horizons(name: str, horizons: Any) -> FloatArray:
    """One or several finite times, (k,)."""
    at = np.atleast_1d(np.asarray(horizons, dtype=np.float64))
    require(np.isfinite(at).all(), name, "be finite", horizons)
    return at


def beside_observed(
    predicted: FloatArray,
    curve: KaplanMeier | CumulativeIncidence,
    at: FloatArray,
    level: float,
    target: Target,
) -> pd.DataFrame:
    """Mean predictions (k,) for the times beside what was observed by then, with its interval and who is left."""
    observed = curve.at(at)
    low, high = curve.interval(at, level)
    return pd.DataFrame(
        {
            "horizon": at,
            "predicted": predicted,
            "observed": observed,
            "difference": predicted - observed,
            "low": low,
            "high": high,
            "at_risk": (target.time[:, None] > at).sum(axis=0),
        }
    )


def integrated_calibration_index(y: Any, survival: Any, horizon: float, times: Any = None) -> float:
    r"""Mean distance of predicted event probabilities from smoothed observed ones at one horizon.

    .. math:: ICI = \frac1n \sum_i |\hat p_i - \tilde p(\hat p_i)|, \qquad \hat p_i = 1 - \hat S(t_0 | x_i)

    where the curve p~ is a Cox model of y on restricted cubic splines of log(-log(1 - p)).

    Parameters
    ----------
    y, survival, times
        As in :func:`calibration_at`.
    horizon : float
        The time t0, before the end of follow-up.

    Returns
    -------
    float
        0 is perfect. NaN, with a warning, if nobody had the event or nobody is observed to the horizon.

    References
    ----------
    Austin, Harrell, van Klaveren (2020), Graphical calibration curves and the integrated calibration index
    (ICI) for survival models, Statistics in Medicine 39.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, False, False], [1.0, 2.0, 3.0, 4.0])
    >>> round(integrated_calibration_index(y, [[0.6]] * 4, horizon=2.5, times=[2.0]), 4)
    0.1
    """
    target = parse_target(y, require_event=False)
    t0 = parse_horizons("horizon", horizon)
    predicted = 1.0 - parse_survival(survival, len(target), times).at(t0)[:, 0]
    overall = KaplanMeier.of(target).at(t0)[0]
    if not target.event.any() or np.isnan(overall):
        warn_undefined(
            f"the integrated calibration index at {horizon:g} is undefined (NaN): {target.n_events} of the "
            f"{len(target)} patients had the event and follow-up ends at {target.time.max():g}."
        )
        return float("nan")
    basis = _spline_basis(np.log(-np.log1p(-np.clip(predicted, 1e-8, 1 - 1e-8))))
    # Predictions that do not vary leave nothing to smooth over: everybody's observed probability is the same.
    observed = (
        event_probability(target, basis, horizon, _RIDGE)
        if basis.shape[1]
        else np.full(len(target), 1.0 - overall)
    )
    return float(np.abs(predicted - observed).mean())


def _spline_basis(x: FloatArray) -> FloatArray:
    """Restricted cubic splines, standardised; linear if the knots coincide, empty if x is constant."""
    if np.ptp(x) == 0:
        return np.empty((len(x), 0))
    low, middle, high = np.quantile(x, _KNOTS)
    columns = [x]
    if low < middle < high:

        def cubic(knot: float) -> FloatArray:
            return np.maximum(x - knot, 0.0) ** 3

        share = (high - low) / (high - middle)
        columns.append(cubic(low) - share * cubic(middle) + (share - 1) * cubic(high))
    basis = np.column_stack(columns)
    spread = basis.std(axis=0)
    varying = spread > 1e-12 * np.abs(basis).max(axis=0)
    standard: FloatArray = (basis[:, varying] - basis[:, varying].mean(axis=0)) / spread[varying]
    return standard


@dataclass(frozen=True, eq=False)
class DCalibration:
    """Pearson's chi-square `statistic` of the bins of n patients against equal shares.

    `p_value` is the chance of so large a statistic if the model is calibrated, and `shares` (n_bins,) those of patients
    in each bin of survival probability, from the lowest; 1/n_bins each is right.
    """

    statistic: float
    p_value: float
    shares: FloatArray
    n: int


def d_calibration(y: Any, survival: Any, times: Any = None, *, n_bins: int = 10) -> DCalibration:
    r"""Test that the predicted survival probability at the event is uniform on [0, 1].

    A patient with an event falls into the bin of S(Y|x). A censored one is known only to fall at or below
    it, and is spread evenly over that range:

    .. math:: \text{share of } [a, b): \quad \frac{\max(0, \min(b, s) - a)}{s}, \qquad s = \hat S(Y_i | x_i)

    Parameters
    ----------
    y, survival, times
        As in :func:`calibration_at`.
    n_bins : int
        Number of equal bins.

    References
    ----------
    Haider, Hoehn, Davis, Greiner (2020), Effective ways to build and evaluate individual survival
    distributions, JMLR 21.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True], [1.0, 2.0])
    >>> d_calibration(y, [[0.75, 0.5], [0.75, 0.25]], times=[1.0, 2.0], n_bins=2).shares.tolist()
    [0.5, 0.5]
    """
    require(as_whole(n_bins) >= 2, "n_bins", "be a whole number, at least 2", n_bins)
    target = parse_target(y, require_event=False)
    reached = parse_survival(survival, len(target), times).at_own(target.time)
    low = np.arange(n_bins) / n_bins
    inside = np.zeros((len(target), n_bins))
    bins = np.minimum((reached * n_bins).astype(np.intp), n_bins - 1)
    inside[np.arange(len(target)), bins] = 1.0
    # A patient censored at a survival of 0 has no range below, and stays in the lowest bin.
    spread = ~target.event & (reached > 0)
    s = reached[spread, None]
    inside[spread] = np.clip(np.minimum(low + 1 / n_bins, s) - low, 0.0, None) / s
    counts = inside.sum(axis=0)
    expected = len(target) / n_bins
    statistic = float(((counts - expected) ** 2).sum() / expected)
    return DCalibration(statistic, float(chi2.sf(statistic, n_bins - 1)), counts / len(target), len(target))
