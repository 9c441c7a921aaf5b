"""Calibration slopes: of risk scores by Cox regression, of curves by Poisson regression, and their intervals."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import norm
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.errors import as_number, require
from drosurv.metrics.estimates import Estimate, Interval
from drosurv.metrics.partial_likelihood import CoxRows, fit_cox
from drosurv.metrics.scores import (
    ScoredTarget,
    parse_risk,
    parse_scored,
    parse_weights,
    warn_undefined,
)
from drosurv.patients.target import FloatArray, Target

_MAX_STEPS = 100
# Scores that hardly vary have larger slopes, whose variances overflow: they have no interval.
_LARGEST_SLOPE = 1e100


def calibration_slope(y: Any, risk: Any, *, sample_weight: Any = None, strata: Any = None) -> float:
    r"""Calibration slope of log hazard ratios: the coefficient of a Cox model of y on the risk score alone.

    .. math:: \arg\max_b \sum_{i: \delta_i = 1} \Big( b f_i - \log \sum_{j: Y_j \ge Y_i} e^{b f_j} \Big)

    The slope of a calibrated model is 1. Below 1 the scores are too extreme (overfitted), above 1 not extreme enough.
    Multiplying every score by c divides the slope by c. For scores that are not log hazards use
    :func:`calibration_slope_of_curves`.

    Parameters
    ----------
    y : structured array, (n,)
        Event flags and times; the fields ``entry`` (left truncation) and ``weight`` are used. For one of several
        causes, events of the others count as censoring.
    risk : (n,) array
        Log hazard ratios.
    sample_weight : (n,) array, optional
        Patient weights; weight 2 counts a patient twice.
    strata : (n,) array, optional
        Stratum labels; each stratum has its own baseline hazard.

    Returns
    -------
    float
        NaN, with a warning, if there is no event or the scores do not vary within risk sets; infinite, with a
        warning, if the scores order the events perfectly.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0])
    >>> slope = calibration_slope(y, [2.0, 3.0, 1.0, 0.0])
    >>> round(calibration_slope(y, [4.0, 6.0, 2.0, 0.0]) / slope, 6)
    0.5
    """
    return _cox_slope(parse_scored(y, risk, sample_weight, late_entry=True, strata=strata))[0]


def _cox_slope(scored: ScoredTarget) -> tuple[float, float]:
    """Slope of a Cox model on the score, and its standard error from the observed information."""
    rows = CoxRows.of(scored)
    lowest, highest = _extremes(rows)
    if lowest and highest:
        return _undefined_slope(), np.nan
    if lowest or highest:
        return _infinite_slope("highest" if highest else "lowest"), np.nan
    # Divide by the largest score first: squares of very large or very small scores overflow or underflow.
    largest = float(np.abs(rows.score).max())
    centred = rows.score / largest
    centred -= centred.sum() / len(centred)
    spread = math.sqrt(float(centred @ centred) / len(centred))
    column = (centred / spread)[:, None]
    b, curvature = fit_cox(rows, column, 0.0)
    error = 1.0 / math.sqrt(curvature[0, 0]) if curvature[0, 0] > 0.0 else math.inf
    return float(b[0]) / spread / largest, error / spread / largest


def slope_estimate(target: Target, risk: FloatArray, weight: FloatArray | None = None) -> Estimate:
    """Calibration slope of log hazard ratios as :func:`calibration_slope`, with the influence of each of n patients.

    Entry times and strata are those of the target. NaN or infinite as there, without a warning.
    """
    n, weight = len(target), np.ones(len(target)) if weight is None else weight
    scored = ScoredTarget(target, risk, weight)
    with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
        slope = _cox_slope(scored)[0] if (target.event & (weight > 0)).any() else np.nan
    if not abs(slope) < _LARGEST_SLOPE:
        return replace(Estimate.undefined(n), value=slope)
    # Squares of very large or very small scores overflow or underflow; a power of 2 changes no digit.
    scale = 2.0 ** float(np.floor(np.log2(np.abs(risk).max())))
    risk, scaled = risk / scale, slope * scale
    stratum = np.zeros(n, np.intp) if target.stratum is None else target.stratum
    influence, information = np.zeros(n), 0.0
    for k in np.unique(stratum[weight > 0]):
        rows = target.order[(stratum == k)[target.order] & (weight > 0)[target.order]]
        derivative, more = _score_derivative(target.take(rows), risk[rows], weight[rows], scaled)
        influence[rows], information = weight[rows] * derivative, information + more
    events = np.count_nonzero(target.event & (weight > 0))
    return Estimate(slope, influence / information / scale, freedom=events - 1.0)


def _score_derivative(
    target: Target, risk: FloatArray, weight: FloatArray, slope: float
) -> tuple[FloatArray, float]:
    """Return the derivative (n,), by each weight, of the score of a Cox model on `risk` (n,), and the information.

    Patients, with positive weights (n,), are sorted by time.
    """
    x, times = risk - weight @ risk / weight.sum(), np.unique(target.time[target.event])
    ratio = np.exp(slope * x - (slope * x).max())
    columns = (weight * ratio)[:, None] * np.stack([np.ones(len(x)), x, x**2], axis=1)
    none = np.zeros((1, 3))

    def later(at: FloatArray, values: FloatArray) -> FloatArray:
        """Return the sums of values (n, 3), sorted by `at` (n,), of patients who have it at a time or later."""
        return np.vstack([values[::-1].cumsum(axis=0)[::-1], none])[np.searchsorted(at, times)]

    at_risk = later(target.time, columns)
    if target.entry is not None:
        order = np.argsort(target.entry, kind="stable")
        at_risk = at_risk - later(target.entry[order], columns[order])
    mean, square = at_risk[:, 1] / at_risk[:, 0], at_risk[:, 2] / at_risk[:, 0]
    place = np.searchsorted(times, target.time)
    events = np.bincount(place[target.event], weight[target.event], len(times))
    hazard = events / at_risk[:, 0]
    passed = np.vstack([np.zeros((1, 2)), np.cumsum(np.stack([hazard, hazard * mean], axis=1), axis=0)])
    own = passed[np.searchsorted(times, target.time, side="right")]
    if target.entry is not None:
        own = own - passed[np.searchsorted(times, target.entry, side="right")]
    found = -ratio * (x * own[:, 0] - own[:, 1])
    found[target.event] += x[target.event] - mean[place[target.event]]
    return found, float(events @ (square - mean**2))


def slope_of_curves_estimate(
    events: FloatArray, expected: FloatArray, log_risk: FloatArray, weight: FloatArray | None = None
) -> Estimate:
    """Calibration slope as :func:`calibration_slope_of_curves`, with the influence of each of n patients.

    NaN or infinite as there, without a warning.
    """
    weight = np.ones(len(log_risk)) if weight is None else weight
    with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
        slope = _poisson_slope(events, expected, log_risk, weight)[0]
    if not np.isfinite(slope):
        return replace(Estimate.undefined(len(log_risk)), value=slope)
    exponent = (slope - 1) * log_risk
    fitted = expected * np.exp(exponent - exponent.max())
    fitted *= float(weight @ events) / float(weight @ fitted)
    mass = weight * fitted
    centred = log_risk - float(mass @ log_risk) / float(mass.sum())
    influence = weight * (events - fitted) * centred / float(mass @ centred**2)
    return Estimate(slope, influence, freedom=np.count_nonzero((events > 0) & (weight > 0)) - 1.0)


def _extremes(rows: CoxRows) -> tuple[bool, bool]:
    """Whether every event has the lowest score of its risk set, and whether every event has the highest."""
    lowest = highest = True
    strata = int(rows.stratum[-1]) + 1 if len(rows.stratum) else 0
    for k in range(strata):
        inside = rows.stratum == k if strata > 1 else slice(None)
        time, event, score = rows.time[inside], rows.event[inside], rows.score[inside]
        if rows.entry is not None:
            entry = rows.entry[inside]
            for score_of_event, now in zip(score[event], time[event], strict=True):
                # Usually one of the first events has neither, which ends the loop.
                if not (lowest or highest):
                    break
                others = score[(time >= now) & (entry < now)]
                lowest, highest = (
                    lowest and score_of_event <= others.min(),
                    highest and score_of_event >= others.max(),
                )
            continue
        # Without late entry, a risk set is everybody from one position in the order of time on.
        of_events, first = score[event], np.searchsorted(time, time[event])
        highest = highest and bool((of_events == np.maximum.accumulate(score[::-1])[::-1][first]).all())
        lowest = lowest and bool((of_events == np.minimum.accumulate(score[::-1])[::-1][first]).all())
    return bool(lowest), bool(highest)


def _undefined_slope() -> float:
    warn_undefined(
        "the calibration slope is undefined (NaN): there is no event, or the scores do not vary within risk sets."
    )
    return float("nan")


def _infinite_slope(which: str) -> float:
    slope = float("inf") if which == "highest" else float("-inf")
    warn_undefined(
        f"the calibration slope is {slope}: every event has the {which} score of its risk set, so the likelihood "
        "has no finite maximum."
    )
    return slope


def calibration_slope_of_curves(
    events: Any, expected: Any, log_risk: Any, *, sample_weight: Any = None
) -> float:
    r"""Calibration slope of any survival model, from its survival curves.

    .. math:: \delta_i \sim \text{Poisson}\big( H_i e^{a + (b - 1) z_i} \big), \qquad z_i = \log H_i(t_0)

    with :math:`H_i` the cumulative hazard that the model predicts for patient i while under observation, and
    :math:`H_i(t_0)` the predicted cumulative hazard at one horizon, the same for everybody. The slope b of a calibrated
    model is 1, with or without proportional hazards, strata, entry times or several causes. Below 1, patients with high
    predicted risk have relatively fewer events than predicted; above 1, relatively more. For proportional hazards it
    estimates the same slope as :func:`calibration_slope`, which does not use the model's baseline hazard.

    Parameters
    ----------
    events : (n,) bool or float
        Whether each patient had the event (of the cause).
    expected : (n,) float
        Expected events: the predicted cumulative hazard (of the cause) from entry to the time of event or censoring.
    log_risk : (n,) float
        Log of the predicted cumulative hazard at the horizon, ``log(-log S(t0))``.
    sample_weight : (n,) array, optional
        Patient weights; weight 2 counts a patient twice.

    Returns
    -------
    float
        NaN, with a warning, if there is no event or the predicted risk does not vary.

    References
    ----------
    Crowson, Atkinson, Therneau (2016), Assessing calibration of prognostic risk scores, Statistical Methods in Medical
    Research 25.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=5000)
    >>> time = rng.exponential(np.exp(-z))
    >>> seen = np.minimum(time, 1.0)
    >>> round(calibration_slope_of_curves(time <= 1, seen * np.exp(z), z), 1)
    1.0
    """
    return _poisson_slope(events, expected, log_risk, sample_weight)[0]


def _poisson_slope(
    events: Any, expected: Any, log_risk: Any, sample_weight: Any = None
) -> tuple[float, float]:
    """Slope of a Poisson model of the events on the log risk, and its standard error from the information.

    For every slope the best intercept makes the numbers of expected and observed events equal. So Newton's method has
    one unknown, and needs only the weighted mean and variance of the log risk.
    """
    z = parse_risk(log_risk, name="log_risk")
    d, hazard = (np.asarray(values, dtype=np.float64) for values in (events, expected))
    for name, values in (("events", d), ("expected", hazard)):
        require(values.shape == z.shape, name, f"have one value per patient, shape {z.shape}", values.shape)
    weight = parse_weights(sample_weight, len(z))
    total = float(weight @ d)
    mass = weight * hazard
    centre = float(mass @ z / mass.sum()) if mass.sum() > 0 else 0.0
    spread = float(np.sqrt(mass @ (z - centre) ** 2 / mass.sum())) if mass.sum() > 0 else 0.0
    if total == 0 or not spread > 1e-12 * max(1.0, abs(centre)):
        return _undefined_slope(), np.nan
    z = (z - centre) / spread
    observed_mean = float((weight * d) @ z) / total
    z, mass = z[mass > 0], mass[mass > 0]
    if not z.min() < observed_mean < z.max():
        return _infinite_slope("highest" if observed_mean > 0 else "lowest"), np.nan

    def moments(b: float) -> tuple[float, float]:
        """Mean and variance of the log risks, weighted by the events that slope b predicts."""
        exponent = b * z
        reweighted = mass * np.exp(exponent - exponent.max())
        share = reweighted / reweighted.sum()
        mean = float(share @ z)
        return mean, float(share @ (z - mean) ** 2)

    b, (mean, variance) = 0.0, moments(0.0)
    low, high = -np.inf, np.inf
    for _ in range(_MAX_STEPS):
        # Limit the step size: the variance, the derivative of the mean, vanishes for extreme slopes.
        step = float(np.clip((observed_mean - mean) / max(variance, 1e-300), -2.0, 2.0))
        if abs(step) < 1e-10:
            break
        # The mean rises with b, so the solution stays between `low` and `high`. With a skewed log risk Newton's steps
        # can go back and forth around it.
        low, high = (b, high) if step > 0 else (low, b)
        b = b + step if low < b + step < high else (low + high) / 2
        mean, variance = moments(b)
    return 1.0 + b / spread, 1.0 / np.sqrt(total * variance) / spread


def calibration_slope_interval(
    y: Any = None,
    risk: Any = None,
    *,
    events: Any = None,
    expected: Any = None,
    log_risk: Any = None,
    strata: Any = None,
    level: float = 0.95,
    training_events: float | None = None,
) -> Interval:
    """Calibration slope with its interval, and the test that it is 1.

    Pass either `y` and `risk` or `events`, `expected` and `log_risk`.

    Parameters
    ----------
    y, risk, strata
        As in :func:`calibration_slope`, for log hazard ratios.
    events, expected, log_risk
        As in :func:`calibration_slope_of_curves`, for any model.
    level : float
        Nominal coverage.
    training_events : float, optional
        Number of events that the model was fitted on. With it the interval includes the estimation error of the model:
        the variance is multiplied by (1 + d / training_events), with d the events among the given patients. Without it
        the model's predictions are treated as known.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv import Surv
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.normal(size=1000)
    >>> y = Surv.from_arrays(np.ones(1000), rng.exponential(np.exp(-risk)))
    >>> found = calibration_slope_interval(y, risk)
    >>> found.low < 1 < found.high
    True
    """
    if y is not None:
        scored = parse_scored(y, risk, late_entry=True, weighted=False, strata=strata)
        slope, error = _cox_slope(scored)
        n_events = float(scored.target.n_events)
    else:
        slope, error = _poisson_slope(events, expected, log_risk)
        n_events = float(np.sum(events))
    if training_events is not None:
        require(as_number(training_events) > 0, "training_events", "be positive", training_events)
        error *= float(np.sqrt(1 + n_events / training_events))
    require(0 < as_number(level) < 1, "level", "lie between 0 and 1", level)
    reach = float(ndtri((1 + level) / 2)) * error
    p = 2 * float(norm.sf(abs(slope - 1) / error)) if error > 0 else np.nan
    return Interval(slope, slope - reach, slope + reach, level, error, p=p)
