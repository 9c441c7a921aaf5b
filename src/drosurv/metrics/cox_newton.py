"""A Cox model of a few columns, fitted by Newton's method: the calibration slope, and what calibration curves need.

Its log likelihood is also that of any scores, given no columns.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from drosurv.metrics.scores import parse_scored, warn_undefined
from drosurv.target import BoolArray, FloatArray, Target

_MAX_STEPS = 100


def calibration_slope(y: Any, risk: Any, *, sample_weight: Any = None) -> float:
    r"""Coefficient of a Cox model of y on the risk score alone.

    .. math:: \arg\max_b \sum_{i: \delta_i = 1} \Big( b f_i - \log \sum_{j: Y_j \ge Y_i} e^{b f_j} \Big)

    1 is right; below 1 the scores are too extreme (overfitted), above 1 they are shrunk. A model whose
    every score is multiplied by c has its slope divided by c.

    Parameters as in :func:`log_partial_likelihood`; scores are log hazard ratios.

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
    seen = parse_scored(y, risk, sample_weight).by_time()
    time, event = seen.target.time, seen.target.event
    # Risk sets are suffixes of the patients in order of time.
    own, since = seen.risk[event], np.searchsorted(time, time[event])
    never_lower = (own == np.maximum.accumulate(seen.risk[::-1])[::-1][since]).all()
    never_higher = (own == np.minimum.accumulate(seen.risk[::-1])[::-1][since]).all()
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
    largest = float(np.abs(seen.risk).max())
    scaled = seen.risk / largest
    spread = float(scaled.std())
    column = ((scaled - scaled.mean()) / spread)[:, None]
    return float(maximised(time, event, column, seen.weight, 0.0, 1e-7)[0]) / spread / largest


def event_probability(target: Target, columns: FloatArray, horizon: float, ridge: float) -> FloatArray:
    r"""Fitted probability of the event by a horizon, of a Cox model of the target on few columns.

    .. math:: 1 - \exp(-H_0(t_0) e^{x_i \cdot b}), \qquad
              b = \arg\max_b \; \ell(b) - \tfrac{\text{ridge}}{2} \|b\|^2

    with Breslow's treatment of ties in the partial likelihood and in the baseline hazard. The columns (n, d) are
    standardised; d is small, since every step solves a d x d system. The ridge keeps the coefficients finite where few
    events order perfectly.
    """
    order = target.order
    time, event = target.time[order], target.event[order]
    rows = np.ascontiguousarray(columns[order])
    b = maximised(time, event, rows, np.ones(len(rows)), ridge, 1e-5)
    score = rows @ b
    shift = float(score.max())
    # Breslow's baseline hazard: each event adds one over the mass of those with its time or a later one.
    mass = np.cumsum(np.exp(score - shift)[::-1])[::-1]
    happened = time[event & (time <= horizon)]
    hazard = float((1.0 / mass[np.searchsorted(time, happened)]).sum())
    return -np.expm1(-hazard * np.exp(columns @ b - shift))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def maximised(
    time: FloatArray, event: BoolArray, rows: FloatArray, weight: FloatArray, ridge: float, tolerance: float
) -> FloatArray:
    """Coefficients (d,) of the largest penalised log partial likelihood, with Breslow's treatment of ties.

    Patients are in ascending order of time, with positive weights; their columns (n, d) are standardised, and such that
    a largest value exists. A step as small as the tolerance is the last: the error after it is about its square.
    """
    b = np.zeros(rows.shape[1])
    value, gradient, curvature = _penalised(time, event, rows, weight, b, ridge)
    for _ in range(_MAX_STEPS):
        step = np.linalg.solve(curvature, gradient)
        following = _penalised(time, event, rows, weight, b + step, ridge)
        # The function is concave: halving a step that overshoots the maximum ends. Far out, where the curvature of
        # heavy-tailed columns vanishes, a full step may not even have a value.
        while not following[0] >= value - 1e-12 * abs(value):
            step = step / 2
            following = _penalised(time, event, rows, weight, b + step, ridge)
        b = b + step
        value, gradient, curvature = following
        if np.abs(step).max() <= tolerance:
            break
    return b


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _penalised(
    time: FloatArray, event: BoolArray, rows: FloatArray, weight: FloatArray, b: FloatArray, ridge: float
) -> tuple[float, FloatArray, FloatArray]:
    score = np.zeros(len(rows))
    for i in range(len(rows)):
        for a in range(len(b)):
            score[i] += rows[i, a] * b[a]
    value, gradient, curvature = log_likelihood(time, event, rows, weight, score)
    for a in range(len(b)):
        value -= ridge / 2 * float(b[a] ** 2)
        gradient[a] -= ridge * b[a]
        curvature[a, a] += ridge
    return value, gradient, curvature


@numba.njit(cache=True, nogil=True, error_model="numpy")
def log_likelihood(
    time: FloatArray, event: BoolArray, rows: FloatArray, weight: FloatArray, score: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Log partial likelihood of scores (n,), its gradient (d,) and minus its second derivatives (d, d).

    Patients as in `maximised`. The sweep goes from the last time to the first, so that a risk set only grows.
    """
    n, d = rows.shape
    # The largest score so far: a patient who is far above all others and leaves early must not make the later risk
    # sets vanish.
    shift, mass, value, stop = -np.inf, 0.0, 0.0, n
    first, gradient = np.zeros(d), np.zeros(d)
    second, curvature = np.zeros((d, d)), np.zeros((d, d))
    while stop > 0:
        start = stop
        events = 0.0
        while start > 0 and time[start - 1] == time[stop - 1]:
            start -= 1
            own, copies = float(score[start]), float(weight[start])
            if own > shift:
                shrink = float(np.exp(shift - own))
                mass *= shrink
                for a in range(d):
                    first[a] *= shrink
                    for b in range(a + 1):
                        second[a, b] *= shrink
                shift = own
            share = copies * float(np.exp(own - shift))
            mass += share
            row = rows[start]
            for a in range(d):
                part = share * row[a]
                first[a] += part
                for b in range(a + 1):
                    second[a, b] += part * row[b]
            if event[start]:
                events += copies
                value += copies * own
                for a in range(d):
                    gradient[a] += copies * row[a]
        if events > 0:
            value -= events * (float(np.log(mass)) + shift)
            per = events / mass
            for a in range(d):
                gradient[a] -= per * first[a]
                mean = first[a] / mass
                for b in range(a + 1):
                    curvature[a, b] += per * (second[a, b] - mean * first[b])
        stop = start
    for a in range(d):
        for b in range(a):
            curvature[b, a] = curvature[a, b]
    return value, gradient, curvature
