"""Intervals and tests that need no influences: exact ones of counts, and adjusted p-values."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import numpy as np
from scipy.stats import binom, chi2, f, poisson

from drosurv.errors import as_number, require
from drosurv.metrics.estimates import Interval


def observed_over_expected(
    observed: float, expected: float, *, level: float = 0.95, training_events: float | None = None
) -> Interval:
    r"""Ratio of observed to expected events with an exact interval, and the test that it is 1.

    .. math:: O \sim \text{Poisson}(\theta E), \qquad
              \left[ \frac{\chi^2_{\alpha/2}(2 O)}{2 E}, \; \frac{\chi^2_{1 - \alpha/2}(2 O + 2)}{2 E} \right]

    with O observed events, E the sum of the cumulative hazards that the model predicts up to each patient's time,
    and 1 - alpha the level. If the model is correct, O - E has mean 0 and variance E, whatever the censoring.

    With `training_events` the interval includes the estimation error of E: it is the interval of a ratio of two Poisson
    counts, by the F distribution. Without it, a model of the right form that was fitted on few patients may be rejected
    because of its estimation error.

    Parameters
    ----------
    observed, expected : float
        Numbers of events, observed and predicted.
    level : float
        Nominal coverage.
    training_events : float, optional
        Number of events D from which the predictions were estimated. Without it the predictions are treated as known.

    Returns
    -------
    Interval
        With the two-sided exact p-value of "the ratio is 1". NaN if no event is expected.

    References
    ----------
    Garwood (1936), Fiducial limits for the Poisson distribution, Biometrika 28.
    Przyborowski, Wilenski (1940), Homogeneity of results in testing samples from Poisson series, Biometrika 31.

    Examples
    --------
    >>> found = observed_over_expected(10, 5.0)
    >>> found.estimate, round(found.low, 3), round(found.high, 3), round(found.p, 3)
    (2.0, 0.959, 3.678, 0.064)
    """
    require(0 < as_number(level) < 1, "level", "lie between 0 and 1", level)
    if not expected > 0:
        return Interval(np.nan, np.nan, np.nan, level)
    ratio, tail = observed / expected, (1 - level) / 2
    if training_events is None:
        low = chi2.ppf(tail, 2 * observed) / 2 / expected if observed > 0 else 0.0
        high = chi2.ppf(1 - tail, 2 * observed + 2) / 2 / expected
        at_most, at_least = poisson.cdf(observed, expected), poisson.sf(observed - 1, expected)
        error = ratio / np.sqrt(observed) if observed > 0 else np.nan
    else:
        d = float(training_events)
        require(d > 0, "training_events", "be positive", training_events)
        scale, share = d / expected, expected / (expected + d)
        low = 0.0
        if observed > 0:
            low = scale * observed / (d + 1) / f.ppf(1 - tail, 2 * d + 2, 2 * observed)
        high = scale * (observed + 1) / d * f.ppf(1 - tail, 2 * observed + 2, 2 * d)
        total = observed + d
        at_most, at_least = binom.cdf(observed, total, share), binom.sf(observed - 1, total, share)
        error = ratio * np.sqrt(1 / observed + 1 / d) if observed > 0 else np.nan
    p = min(1.0, 2 * float(min(at_most, at_least)))
    return Interval(ratio, float(low), float(high), level, float(error), p=p)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's method, which controls the family-wise error rate; NaN stays NaN and does not count."""
    adjusted = list(p_values)
    known = sorted((p, index) for index, p in enumerate(p_values) if not isnan(p))
    largest = 0.0
    for rank, (p, index) in enumerate(known):
        largest = min(max(largest, p * (len(known) - rank)), 1.0)
        adjusted[index] = largest
    return adjusted
