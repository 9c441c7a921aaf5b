"""Observed over expected events of many groups, such as hospitals: Poisson counts with a random intercept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, ndtri
from scipy.stats import t

from drosurv.errors import ArgumentError, as_number, require
from drosurv.patients.arrays import as_numbers
from drosurv.patients.target import FloatArray

# Points of the adaptive Gauss-Hermite quadrature.
_NODES = 25
_LEAST_SPREAD = 1e-4
_STEPS = 50


@dataclass(frozen=True, eq=False)
class RandomIntercept:
    r"""A fitted Poisson model with a random intercept: observed over expected events of many groups.

    The log of each group's ratio is drawn from a normal distribution.

    Attributes
    ----------
    mean, mean_error : float
        Mean of the log ratios, and its standard error.
    spread : float
        Standard deviation of the log ratios between groups.
    shrunken, low, high : (k,) arrays
        Estimated ratio of each group, shrunken towards the mean the more, the fewer events it has; with an interval.
    new_low, new_high : float
        Interval for the ratio of a new group.
    """

    mean: float
    mean_error: float
    spread: float
    shrunken: FloatArray
    low: FloatArray
    high: FloatArray
    new_low: float
    new_high: float


def random_intercept(observed: Any, expected: Any, *, level: float = 0.95) -> RandomIntercept:
    r"""Estimate ratios of observed to expected events of k groups that share a distribution.

    .. math:: O_j \sim \text{Poisson}(E_j e^{\mu + b_j}), \qquad b_j \sim N(0, \tau^2)

    by maximum likelihood, with adaptive Gauss-Hermite quadrature, as lme4's ``glmer`` with ``nAGQ``. Groups without
    events count. The ratio of a small group is close to the mean of all. The prediction interval of a new group is
    :math:`\exp(\mu \pm t_{k-2} \sqrt{\tau^2 + se(\mu)^2})`.

    Parameters
    ----------
    observed, expected : (k,) arrays
        Events of each group; expected ones above 0. Three groups at least.
    level : float
        Nominal coverage of the intervals.

    References
    ----------
    Snell, Ensor, Debray, Moons, Riley (2018), Meta-analysis of prediction model performance across multiple studies,
    Statistical Methods in Medical Research 27.

    Examples
    --------
    >>> found = random_intercept([5, 9, 60, 0, 12], [5.0, 8.0, 30.0, 1.5, 30.0])
    >>> found.shrunken.round(1).tolist()
    [0.9, 1.1, 1.9, 0.6, 0.5]
    """
    O, E = as_numbers(observed), as_numbers(expected)
    require(0 < as_number(level) < 1, "level", "lie between 0 and 1", level)
    if O.shape != E.shape or O.ndim != 1 or len(O) < 3 or not ((E > 0) & (O >= 0)).all():
        raise ArgumentError(
            "expected",
            "observed and expected must hold events of three groups at least, expected ones above 0, got "
            f"{O.shape} and {E.shape}.",
        )
    start = np.array([np.log(max(O.sum(), 0.5) / E.sum()), np.log(0.3)])
    bounds = [(None, None), (np.log(_LEAST_SPREAD), np.log(5.0))]
    best = minimize(lambda at: -_likelihood(O, E, at[0], np.exp(at[1])), start, bounds=bounds)
    mean, spread = float(best.x[0]), float(np.exp(best.x[1]))
    mean_error = _mean_error(O, E, mean, spread)
    z = float(ndtri((1 + level) / 2))
    mode, curvature = _modes(O, E, mean, spread)
    error = 1 / np.sqrt(curvature)
    reach = float(t.ppf((1 + level) / 2, len(O) - 2)) * np.hypot(spread, mean_error)
    # Without events, the ratio of a new group has no upper limit.
    with np.errstate(over="ignore"):
        new_low, new_high = (float(np.exp(mean + side * reach)) for side in (-1, 1))
    return RandomIntercept(
        mean,
        mean_error,
        spread,
        np.exp(mean + mode),
        np.exp(mean + mode - z * error),
        np.exp(mean + mode + z * error),
        new_low,
        new_high,
    )


def _modes(O: FloatArray, E: FloatArray, mean: float, spread: float) -> tuple[FloatArray, FloatArray]:
    """Return the most likely intercept of each group (k,), and the negative second derivative there."""
    b = np.zeros(len(O))
    for _ in range(_STEPS):
        rate = E * np.exp(mean + b)
        curvature = rate + 1 / spread**2
        step = (O - rate - b / spread**2) / curvature
        b = b + np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-12:
            break
    curvature = E * np.exp(mean + b) + 1 / spread**2
    return b, curvature


def _likelihood(O: FloatArray, E: FloatArray, mean: float, spread: float) -> float:
    """Return the log likelihood, up to a constant."""
    mode, curvature = _modes(O, E, mean, spread)
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    b = mode[:, None] + nodes / np.sqrt(curvature)[:, None]
    log_rate = np.log(E)[:, None] + mean + b
    density = O[:, None] * log_rate - np.exp(log_rate) - 0.5 * (b / spread) ** 2 - np.log(spread)
    inside = logsumexp(density + nodes**2 / 2, b=weights, axis=1)
    return float((inside - 0.5 * np.log(curvature)).sum())


def _mean_error(O: FloatArray, E: FloatArray, mean: float, spread: float) -> float:
    """Return the standard error of the mean, from the curvature of the likelihood in mean and spread."""
    step = 1e-3

    def at(i: int, j: int) -> float:
        return _likelihood(O, E, mean + i * step, spread * np.exp(j * step))

    middle = at(0, 0)
    by_mean = (at(1, 0) + at(-1, 0) - 2 * middle) / step**2
    by_spread = (at(0, 1) + at(0, -1) - 2 * middle) / step**2
    both = (at(1, 1) + at(-1, -1) - at(1, -1) - at(-1, 1)) / (4 * step**2)
    information = -by_mean
    if by_spread < 0 and spread > 10 * _LEAST_SPREAD:
        information = max(information - both**2 / -by_spread, 1e-3 * information)
    return float(1 / np.sqrt(information))
