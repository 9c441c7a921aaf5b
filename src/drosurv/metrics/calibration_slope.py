"""Calibration slope: how much the scores would have to be stretched to fit these patients."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from drosurv.metrics.scores import parse_scored, warn_undefined
from drosurv.target import BoolArray, FloatArray

_MAX_STEPS = 200


def calibration_slope(y: Any, risk: Any, *, sample_weight: Any = None) -> float:
    r"""Coefficient of a Cox model of y on the risk score alone.

    .. math:: \arg\max_b \sum_{i: \delta_i = 1} \Big( b f_i - \log \sum_{j: Y_j \ge Y_i} e^{b f_j} \Big)

    1 is right; below 1 the scores are too extreme (overfitted), above 1 they are shrunk. A model whose
    every score is multiplied by c has its slope divided by c.

    Parameters
    ----------
    y : structured array, (n,)
        Event flags and times.
    risk : (n,) array
        Risk scores, log hazard ratios.
    sample_weight : (n,) array, optional
        Patient weights; a whole number counts copies.

    Returns
    -------
    float
        NaN, with a warning, if the scores do not vary among patients at risk together (as without events);
        infinite, with a warning, if they order the events perfectly, so that no finite slope is best.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0])
    >>> slope = calibration_slope(y, [2.0, 3.0, 1.0, 0.0])
    >>> round(calibration_slope(y, [4.0, 6.0, 2.0, 0.0]) / slope, 6)
    0.5
    """
    scored = parse_scored(y, risk, sample_weight)
    order = scored.target.order
    order = order[scored.weight[order] > 0]
    time, event = scored.target.time[order], scored.target.event[order]
    risk_seen, weight = scored.risk[order], scored.weight[order]
    never_lower, never_higher = _event_extremes(time, event, risk_seen)
    if never_lower and never_higher:
        warn_undefined(
            "the calibration slope is undefined (NaN): the scores do not vary among "
            "patients at risk together."
        )
        return float("nan")
    if never_lower or never_higher:
        slope = float("inf") if never_lower else float("-inf")
        warn_undefined(
            f"the calibration slope is {slope}: every event has the {'highest' if never_lower else 'lowest'} "
            "score of its risk set, so that no finite slope is best."
        )
        return slope
    # By the largest score first: squares of very large or very small scores leave the range of floats.
    largest = float(np.abs(risk_seen).max())
    scaled = risk_seen / largest
    spread = float(scaled.std())
    return _maximised(time, event, (scaled - scaled.mean()) / spread, weight) / spread / largest


def _maximised(time: FloatArray, event: BoolArray, risk: FloatArray, weight: FloatArray) -> float:
    """Zero of the derivative of a concave function of one number.

    A bracket, then Newton's steps, with bisection where they would leave it: far from the maximum the
    curvature of heavy-tailed scores vanishes and a full step would overshoot.
    """

    def derivatives(slope: float) -> tuple[float, float]:
        gradient, curvature = _derivatives(time, event, risk, weight, slope)
        return float(gradient), float(curvature)

    direction = 1.0 if derivatives(0.0)[0] > 0 else -1.0
    near, far = 0.0, direction
    while derivatives(far)[0] * direction > 0:
        near, far = far, 2 * far
    slope = near
    for _ in range(_MAX_STEPS):
        gradient, curvature = derivatives(slope)
        if gradient * direction > 0:
            near = slope
        else:
            far = slope
        following = slope + gradient / curvature if curvature > 0 else far
        if not min(near, far) < following < max(near, far):
            following = (near + far) / 2
        if abs(following - slope) <= 1e-13 * abs(following):
            return following
        slope = following
    return slope


@numba.njit(cache=True, nogil=True)
def _event_extremes(time: FloatArray, event: BoolArray, risk: FloatArray) -> tuple[bool, bool]:
    """Whether no event's score is below, and whether none is above, that of anybody in its risk set."""
    highest = -np.inf
    lowest = np.inf
    never_lower = True
    never_higher = True
    stop = len(time)
    while stop > 0:
        start = stop
        while start > 0 and time[start - 1] == time[stop - 1]:
            start -= 1
            highest = max(highest, risk[start])
            lowest = min(lowest, risk[start])
        for k in range(start, stop):
            if event[k]:
                never_lower = never_lower and risk[k] == highest
                never_higher = never_higher and risk[k] == lowest
        stop = start
    return never_lower, never_higher


@numba.njit(cache=True, nogil=True)
def _derivatives(
    time: FloatArray, event: BoolArray, risk: FloatArray, weight: FloatArray, slope: float
) -> tuple[float, float]:
    """First and minus second derivative, in the slope, of the log partial likelihood of slope * risk."""
    largest = -np.inf
    mass = 0.0
    first = 0.0
    second = 0.0
    gradient = 0.0
    curvature = 0.0
    stop = len(time)
    while stop > 0:
        start = stop
        while start > 0 and time[start - 1] == time[stop - 1]:
            start -= 1
            score = slope * risk[start]
            if score > largest:
                shrink = np.exp(largest - score)
                mass, first, second = mass * shrink, first * shrink, second * shrink
                largest = score
            share = weight[start] * np.exp(score - largest)
            mass += share
            first += share * risk[start]
            second += share * risk[start] ** 2
        for k in range(start, stop):
            if event[k]:
                mean = first / mass
                gradient += weight[k] * (risk[k] - mean)
                curvature += weight[k] * max(second / mass - mean * mean, 0.0)
        stop = start
    return gradient, curvature
