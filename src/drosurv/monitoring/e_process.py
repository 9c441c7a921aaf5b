"""Test martingales of event counts, intervals that hold at all dates, and a detector of recent changes.

With D events and E expected events until a date, and a Gamma(a, a) prior of the ratio r of true to predicted hazards,

    M = e^E a^a Gamma(a + D) / (Gamma(a) (a + E)^(a + D))

is a martingale in calendar time if the model is right (a supermartingale if events come in steps), and
M / (r^D e^((1 - r) E)) is one if the true ratio is r. Each ever reaches 1 / share with a probability of at most `share`
(Ville's inequality), at any number of looks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy

from drosurv.patients.target import FloatArray, IntArray

# Parameter a of the prior: ratios of about 1/2 to 2 are found earliest.
PRIOR = 10.0
# Fewer expected events are taken as none, and larger ratios as infinite.
_NONE, _LARGEST = 1e-12, 1e9
_BISECTIONS = 80


def log_martingale(events: Any, expected: Any) -> FloatArray:
    """Return log M for numbers of events and of expected events."""
    a, d, e = PRIOR, np.asarray(events, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    found: FloatArray = e + a * np.log(a) + gammaln(a + d) - gammaln(a) - (a + d) * np.log(a + e)
    return found


def log_likelihood_ratio(events: Any, expected: Any, ratio: Any) -> FloatArray:
    """Return log(r^D e^((1 - r) E)): the log likelihood of the ratio r over that of 1."""
    found: FloatArray = xlogy(events, ratio) + (1.0 - np.asarray(ratio)) * expected
    return found


def log_e_value(events: Any, expected: Any, tolerance: float) -> FloatArray:
    """Return the smallest log e-value over all ratios between 1 / tolerance and tolerance."""
    d, e = np.asarray(events, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    nearest = np.clip((d + _NONE) / (e + _NONE), 1.0 / tolerance, tolerance)
    return log_martingale(d, e) - log_likelihood_ratio(d, e, nearest)


def ratio_interval(events: FloatArray, expected: FloatArray, share: Any) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and highest ratios whose e-value is below 1 / share, at all dates together.

    `events`, `expected` and `share` are arrays of one shape, or broadcast to one.
    """
    d, e = np.broadcast_arrays(np.asarray(events, float), np.maximum(expected, _NONE))
    level = log_martingale(d, e) + np.log(share)
    centre = np.log(np.maximum(d, _NONE) / e)
    ends = []
    for far in (-60.0, 60.0):
        # Within (near, far) the log likelihood falls from its maximum, which is above the level, to below it.
        near, away = centre.copy(), centre + far
        for _ in range(_BISECTIONS):
            middle = (near + away) / 2
            inside = log_likelihood_ratio(d, e, np.exp(middle)) > level
            near, away = np.where(inside, middle, near), np.where(inside, away, middle)
        ends.append(np.exp(near))
    low, high = np.where(d > 0, ends[0], 0.0), ends[1]
    return low, np.where(high > _LARGEST, np.inf, high)


def log_detector(
    events: FloatArray, expected: FloatArray, starts: IntArray, tolerance: float
) -> tuple[FloatArray, IntArray]:
    """Return the log of the e-detector at K dates, and the start with the largest part in it, each (K,).

    `events` and `expected` (K,) are cumulative; `starts` are the indices of the dates from which processes count. The
    detector at a date is the sum of the e-values of the processes that started before it. It reaches A after A starts
    or more, on average, if the model is right.
    """
    total, leading = np.full(len(events), -np.inf), np.full(len(events), -1)
    if len(starts) == 0:
        return total, leading
    began = starts[None, :] < np.arange(len(events))[:, None]
    since = np.where(began, starts[None, :], np.arange(len(events))[:, None])
    happened, predicted = (part[:, None] - part[since] for part in (events, expected))
    logs = np.where(began, log_e_value(happened, predicted, tolerance), -np.inf)
    some = began.any(axis=1)
    total[some] = logsumexp(logs[some], axis=1)
    leading[some] = starts[logs[some].argmax(axis=1)]
    return total, leading
