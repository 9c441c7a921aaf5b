"""Calibration at a horizon, and D-calibration over the whole range of survival probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pandas as pd
from scipy.special import chdtrc

from drosurv.curves import parse_survival
from drosurv.errors import as_whole, require
from drosurv.metrics.nonparametric import (
    CumulativeIncidence,
    KaplanMeier,
    censored_later,
    weighted_quantiles,
)
from drosurv.metrics.partial_likelihood import CoxRows, fit_cox
from drosurv.metrics.scores import ScoredTarget, metric_target, parse_weights, warn_undefined, weighted_mean
from drosurv.patients.observation import given_weight
from drosurv.patients.target import FloatArray, IntArray, Target

# Quantiles at which the three knots of the restricted cubic splines lie, as in Austin et al. (2020).
_KNOTS = (0.10, 0.50, 0.90)
# Survival probabilities that are so little below the end of a bin, in widths of a bin, are at it but for rounding.
_ROUNDING = 1e-9
# A very small ridge penalty keeps coefficients finite where scores rank few events perfectly.
RIDGE = 1e-4


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
        Times at which to compare.
    times : (k,) array, optional
        Times of the columns of an array.
    level : float
        Level of the interval on the observed survival.
    sample_weight : (n,) array, optional
        Patient weights; with them there is no interval.

    Returns
    -------
    DataFrame
        One row per horizon: ``horizon``, mean ``predicted`` and ``observed`` survival, their ``difference`` (positive:
        the model is too optimistic), the interval ``low`` to ``high`` of the observed survival, and the number of
        patients ``at_risk``. The interval is that of R's ``survfit(conf.type="log-log")``. ``observed`` is NaN after
        the last time if that patient was censored.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, False, False], [1.0, 2.0, 3.0, 4.0])
    >>> table = calibration_at(y, [[0.5]] * 4, horizons=[2.5], times=[2.0])
    >>> table[["predicted", "observed", "at_risk"]].values.tolist()
    [[0.5, 0.5, 2.0]]
    """
    target, given = metric_target(y, weighted=True), given_weight(y, sample_weight)
    weight = parse_weights(given, len(target))
    at = parse_horizons("horizons", horizons)
    survival_then = parse_survival(survival, len(target), times).survival(at)
    predicted = weighted_mean(survival_then, weight, "mean predicted survival")
    table = pd.DataFrame(beside_observed(predicted, KaplanMeier.of(target, weight), at, level, target.time))
    return table if given is None else table.assign(low=np.nan, high=np.nan)


def parse_horizons(name: str, horizons: Any) -> FloatArray:
    """One or several times, (k,)."""
    at = np.atleast_1d(np.asarray(horizons, dtype=np.float64))
    require((np.isfinite(at) & (at >= 0)).all(), name, "be finite and >= 0", horizons)
    return at


def beside_observed(
    predicted: FloatArray,
    curve: KaplanMeier | CumulativeIncidence,
    at: FloatArray,
    level: float,
    time_at_risk: FloatArray,
) -> dict[str, FloatArray | IntArray]:
    """Columns: mean predictions (k,) at k times, the observed values with intervals, and the patients at risk.

    `time_at_risk` (n,) is when each patient leaves the patients at risk.
    """
    observed = curve.at(at)
    low, high = curve.interval(at, level)
    return {
        "horizon": at,
        "predicted": predicted,
        "observed": observed,
        "difference": predicted - observed,
        "low": low,
        "high": high,
        "at_risk": (time_at_risk[:, None] >= at).sum(axis=0),
    }


def integrated_calibration_index(
    y: Any, survival: Any, horizon: float, times: Any = None, *, sample_weight: Any = None
) -> float:
    r"""Integrated calibration index: mean distance of predicted from smoothed observed event probabilities.

    .. math:: ICI = \frac1n \sum_i |\hat p_i - \tilde p(\hat p_i)|, \qquad \hat p_i = 1 - \hat S(t_0 | x_i)

    where the curve p~ is a Cox model of y on restricted cubic splines of log(-log(1 - p)).

    Parameters
    ----------
    y, survival, times
        As in :func:`calibration_at`.
    horizon : float
        The time t0, before the end of follow-up.
    sample_weight : (n,) array, optional
        Patient weights; weight 2 counts a patient twice.

    Returns
    -------
    float
        0 is perfect; chance alone makes it larger. It has no interval: where predictions are right, a mean of absolute
        differences has no normal limit. The bands of :meth:`~drosurv.evaluation.EvaluationResult.plot_calibration`
        show how certain the differences are. NaN, with a warning, if nobody had the event or nobody was observed up to
        the horizon.

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
    target = metric_target(y, weighted=True)
    t0 = parse_horizons("horizon", horizon)
    predicted = 1.0 - parse_survival(survival, len(target), times).survival(t0)[:, 0]
    weight = parse_weights(given_weight(y, sample_weight), len(target))
    return calibration_index(target, predicted, float(t0[0]), weight)


def calibration_index(target: Target, predicted: FloatArray, horizon: float, weight: FloatArray) -> float:
    """Integrated calibration index of event probabilities (n,) by the horizon, with patient weights (n,)."""
    patients, target, weight = censored_later(target, weight)
    predicted = predicted[patients]
    rows = CoxRows.of(ScoredTarget(target, predicted, weight))

    def observed_in_all() -> float:
        return 1.0 - float(KaplanMeier.of(target, weight).at(np.array([horizon]))[0])

    if not rows.event.any() or (rows.time[-1] < horizon and np.isnan(observed_in_all())):
        warn_undefined(
            f"the integrated calibration index at {horizon:g} is undefined (NaN): {rows.event.sum()} of the "
            f"{len(rows.time)} patients had the event and follow-up ends at {rows.time.max(initial=0):g}."
        )
        return float("nan")
    basis = standardised_splines(np.log(-np.log1p(-np.clip(rows.score, 1e-8, 1 - 1e-8))), rows.weight)
    # With equal predictions there is no curve to fit: the observed probability is that of all patients.
    observed = (
        _event_probability(rows, basis, horizon, RIDGE) if basis.shape[1] else np.array([observed_in_all()])
    )
    return float(rows.weight @ np.abs(rows.score - observed) / rows.weight.sum())


def _event_probability(rows: CoxRows, columns: FloatArray, horizon: float, ridge: float) -> FloatArray:
    r"""Probability of the event by a horizon (n,) under a Cox model fitted to sorted patients on few columns.

    .. math:: 1 - \exp(-H_0(t_0) e^{x_i \cdot b}), \qquad
              b = \arg\max_b \; \ell(b) - \tfrac{\text{ridge}}{2} \|b\|^2

    with Breslow's treatment of ties in the partial likelihood and in the baseline hazard. The columns (n, d) are
    standardised and in the order of the rows; d must be small, since every Newton step solves d equations.
    """
    b, _ = fit_cox(rows, columns, ridge)
    score = columns @ b
    hazard_ratio = np.exp(score - score.max())
    # Breslow's baseline hazard: each event adds one over the sum of hazard ratios of its risk set.
    at_risk = np.cumsum((rows.weight * hazard_ratio)[::-1])[::-1]
    events = rows.event & (rows.time <= horizon)
    hazard = float(rows.weight[events] @ (1.0 / at_risk[np.searchsorted(rows.time, rows.time[events])]))
    probability: FloatArray = -np.expm1(-hazard * hazard_ratio)
    return probability


def standardised_splines(x: FloatArray, weight: FloatArray) -> FloatArray:
    """Restricted cubic splines, standardised; linear if the knots coincide, empty if x is constant."""
    if np.ptp(x) == 0:
        return np.empty((len(x), 0))
    knots = np.unique(weighted_quantiles(x, weight, _KNOTS))
    basis = spline_columns(x, knots if len(knots) == len(_KNOTS) else np.empty(0)).T
    centred = basis - weight @ basis / weight.sum()
    spread = np.sqrt(weight @ centred**2 / weight.sum())
    varying = spread > 1e-12 * np.abs(basis).max(axis=0)
    return np.ascontiguousarray(centred[:, varying] / spread[varying])


@dataclass(frozen=True, eq=False)
class DCalibration:
    """Pearson's chi-square test that the survival probabilities of n patients fall equally often into each bin.

    `shares` (n_bins,) are the shares of patients in the bins, from the lowest survival probability to the highest; a
    calibrated model has 1 / n_bins each. `p` is the probability of a `statistic` at least as large if the model
    is calibrated.
    """

    statistic: float
    p: float
    shares: FloatArray
    n: int


def d_calibration(y: Any, survival: Any, times: Any = None, *, n_bins: int = 10) -> DCalibration:
    r"""Test that the predicted survival probability at the event is uniform on [0, 1].

    A patient with an event falls into the bin of S(Y|x). The survival probability of a censored patient at their
    unobserved event is at most S(Y|x); the patient is spread evenly over that range:

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
    target = metric_target(y)
    n, curves = len(target), parse_survival(survival, len(target), times)
    rows, target, weight = censored_later(target, np.ones(n))
    # The rows of a patient follow each other; their curve is read once, at all their times.
    column = np.arange(len(rows)) - np.searchsorted(rows, rows)
    times = np.zeros((n, 1 + column.max(initial=0)))
    times[rows, column] = target.time
    reached = curves.survival(times)[rows, column]
    low = np.arange(n_bins) / n_bins
    inside = np.zeros((len(target), n_bins))
    bins = np.minimum((reached * n_bins + _ROUNDING).astype(np.intp), n_bins - 1)
    inside[np.arange(len(target)), bins] = 1.0
    # A patient censored at a survival probability of 0 stays in the lowest bin.
    spread = ~target.event & (reached > 0)
    s = reached[spread, None]
    inside[spread] = np.clip(np.minimum(low + 1 / n_bins, s) - low, 0.0, None) / s
    counts = weight @ inside
    expected = n / n_bins
    statistic = float(((counts - expected) ** 2).sum() / expected)
    return DCalibration(statistic, float(chdtrc(n_bins - 1, statistic)), counts / n, n)


def spline_columns(x: FloatArray, knots: FloatArray) -> FloatArray:
    r"""Design columns of a restricted cubic spline of a column (n,) with k knots, as rows (k - 1, n).

    The first is the column itself, the others are its nonlinear parts, which are linear beyond the outer knots:

    .. math:: h_j(x) = \frac{(x - t_j)_+^3 - (x - t_{k-1})_+^3 \frac{t_k - t_j}{t_k - t_{k-1}}
              + (x - t_k)_+^3 \frac{t_{k-1} - t_j}{t_k - t_{k-1}}}{(t_k - t_1)^2}

    These are the columns of R's ``rms::rcs``. Without knots there is only the column itself.
    """
    out = np.empty((1 + max(len(knots) - 2, 0), len(x)))
    out[0] = x
    if len(out) > 1:
        # numba would compile the loop again for arrays stored otherwise.
        write_spline(np.require(x, requirements=["C", "W"]), knots, out)
    return out


@numba.njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def write_spline(x: FloatArray, knots: FloatArray, out: FloatArray) -> None:
    """Write the nonlinear columns at x (n,) to the first n numbers of the rows of `out` (k - 1, N) but the first."""
    before, last = knots[-2], knots[-1]
    # In units of the knots' range: cubes of large numbers would lose digits.
    size = last - knots[0]
    per_size = 1.0 / size
    cubes = np.empty((2, x.shape[0]))
    for i in range(x.shape[0]):
        b, c = (x[i] - before) * per_size, (x[i] - last) * per_size
        b = b if b > 0.0 else 0.0
        c = c if c > 0.0 else 0.0
        cubes[0, i], cubes[1, i] = b * b * b, c * c * c
    for j in range(out.shape[0] - 1):
        first, column = knots[j], out[j + 1]
        by_before, by_last = (last - first) / (last - before), (before - first) / (last - before)
        # Without branches, so that the compiler can use vector instructions.
        for i in range(x.shape[0]):
            a = (x[i] - first) * per_size
            a = a if a > 0.0 else 0.0
            column[i] = size * (a * a * a - by_before * cubes[0, i] + by_last * cubes[1, i])
