"""A number with its interval, and intervals that need no resampling: counts of events, and normal estimates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import binom, chi2, f, norm, poisson

from drosurv.errors import as_number, require

# Replicates that differ by less are equal but for rounding.
_SAME = 1e-12


@dataclass(frozen=True)
class Interval:
    """An estimate with a confidence interval from `low` to `high`, whose nominal coverage is `level`.

    NaN where something is unknown. `p_value` is of the hypothesis that the function which returns the interval names.
    `replicates` bootstrap replicates were drawn; those `undefined` had no value and were left out.
    """

    estimate: float
    low: float
    high: float
    level: float
    standard_error: float = np.nan
    replicates: int = 0
    undefined: int = 0
    p_value: float = np.nan

    def where_replicates_differ(self) -> Interval:
        """The interval, without its ends where all replicates are the same.

        A c-index of 1 stays 1 whoever of four patients is drawn, which does not show how uncertain it is.
        """
        if self.standard_error > _SAME * max(1.0, abs(self.estimate)):
            return self
        return replace(self, low=np.nan, high=np.nan)


def observed_over_expected(
    observed: float, expected: float, *, level: float = 0.95, training_events: float | None = None
) -> Interval:
    r"""Ratio of observed to expected events with an exact interval, and the test that it is 1.

    .. math:: O \sim \text{Poisson}(\theta E), \qquad
              \left[ \frac{\chi^2_{\alpha/2}(2 O)}{2 E}, \; \frac{\chi^2_{1 - \alpha/2}(2 O + 2)}{2 E} \right]

    with O observed events, E the sum of the cumulative hazards that the model predicts until each patient's own time,
    and 1 - alpha the level. Under a right model O - E has mean 0 and variance E, whatever the censoring.

    A model that was fitted on D training events predicts E with an error of its own. With `training_events` the
    interval contains it: it is that of the ratio of two Poisson counts, by the F distribution. Then a right model,
    fitted on few patients, is not called wrong for its estimation error.

    Parameters
    ----------
    observed, expected : float
        Numbers of events, observed and predicted.
    level : float
        Nominal coverage.
    training_events : float, optional
        Events D that the predictions for these patients were estimated from. Without it the model is taken as given.

    Returns
    -------
    Interval
        With the two-sided exact p-value of "the ratio is 1". NaN where no event is expected.

    References
    ----------
    Garwood (1936), Fiducial limits for the Poisson distribution, Biometrika 28.
    Przyborowski, Wilenski (1940), Homogeneity of results in testing samples from Poisson series, Biometrika 31.

    Examples
    --------
    >>> found = observed_over_expected(10, 5.0)
    >>> found.estimate, round(found.low, 3), round(found.high, 3), round(found.p_value, 3)
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
    p_value = min(1.0, 2 * float(min(at_most, at_least)))
    return Interval(ratio, float(low), float(high), level, float(error), p_value=p_value)


def normal_interval(
    estimate: float, standard_error: float, *, level: float = 0.95, null: float = 0.0
) -> Interval:
    """Interval of an estimate that is near normal, and the two-sided test that the true value is `null`.

    Examples
    --------
    >>> found = normal_interval(1.5, 0.25, null=1.0)
    >>> round(found.low, 2), round(found.high, 2), round(found.p_value, 3)
    (1.01, 1.99, 0.046)
    """
    require(0 < as_number(level) < 1, "level", "lie between 0 and 1", level)
    reach = float(norm.ppf((1 + level) / 2)) * standard_error
    p_value = np.nan
    if standard_error > 0:
        p_value = 2 * float(norm.sf(abs(estimate - null) / standard_error))
    return Interval(estimate, estimate - reach, estimate + reach, level, standard_error, p_value=p_value)
