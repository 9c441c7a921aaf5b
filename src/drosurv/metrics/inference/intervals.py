"""A number with its interval: exact for counts of events, normal, or from bootstrap replicates of patients.

Patients are drawn with replacement. A replicate is a vector of weights (how often each patient was drawn), or the
drawn rows. Replicates do not depend on the number of threads.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import joblib
import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import LokyBackend, get_active_backend
from scipy.special import chndtrinc, expit, logit, ndtri
from scipy.stats import binom, chi2, f, norm, poisson
from scipy.stats import t as student
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.errors import as_number, as_whole, require
from drosurv.observation import no_seed
from drosurv.target import FloatArray

# Replicates that differ by less, relative to the estimate, are equal up to rounding.
_SAME = 1e-12
# Shares of 0 and 1 are this far from them on the logit scale.
_LEAST_SHARE = 1e-3
# Limits of the degrees of freedom of a squared distance, and the squared distance in units of its error from which on a
# distance is normal.
_FREEDOM_OF_DISTANCE, _FAR = (0.5, 50.0), 1e4


@dataclass(frozen=True)
class Interval:
    """An estimate with a confidence interval from `low` to `high`, whose nominal coverage is `level`.

    What is unknown is NaN. The function that returns the interval says which hypothesis `p` tests.
    """

    estimate: float
    low: float
    high: float
    level: float
    standard_error: float = np.nan
    p: float = np.nan


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


def normal_interval(
    estimate: float, standard_error: float, *, level: float = 0.95, null: float = 0.0
) -> Interval:
    """Normal interval of an estimate, and the two-sided test that the true value is `null`."""
    require(0 < as_number(level) < 1, "level", "lie between 0 and 1", level)
    reach = float(ndtri((1 + level) / 2)) * standard_error
    p = np.nan
    if standard_error > 0:
        p = 2 * float(norm.sf(abs(estimate - null) / standard_error))
    return Interval(estimate, estimate - reach, estimate + reach, level, standard_error, p=p)


T = TypeVar("T")
_BATCHES_PER_THREAD = 8
# For fewer patients a replicate takes so little time that threads mostly wait for each other.
_MIN_PATIENTS_FOR_THREADS = 2_500


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """Return one seed for all replicates from an int, None, or a generator, which is advanced."""
    if isinstance(random_state, np.random.SeedSequence):
        return random_state
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(2**63, size=2).tolist())
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(random_state.randint(2**31, size=4).tolist())
    try:
        return np.random.SeedSequence(random_state)
    except (TypeError, ValueError) as error:
        raise no_seed(random_state) from error


def replicate_rng(seed: np.random.SeedSequence, replicate: int) -> np.random.Generator:
    """Return the random generator of one replicate, the same in every thread and process."""
    key = (*seed.spawn_key, replicate)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed.entropy, spawn_key=key)))


def in_parallel(
    work: Callable[[int], T], count: int, n_jobs: int | None, patients: int = _MIN_PATIENTS_FOR_THREADS
) -> Iterator[T]:
    """Yield ``work(0), ..., work(count - 1)``, without warnings about undefined values.

    The calls run in threads, or on the backend of a ``joblib.parallel_config``, such as the workers of a Dask cluster.
    With few patients they run one after another, unless `n_jobs` or such a backend is given.
    """
    numbers = range(count)
    with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
        backend, asked = get_active_backend()
        # Without a parallel_config, joblib reports its default backend.
        by_default = asked is None and isinstance(backend, LokyBackend)
        if n_jobs is None and patients < _MIN_PATIENTS_FOR_THREADS and by_default:
            n_jobs = 1
        n_threads = 1 if n_jobs == 1 or count < 2 else joblib.effective_n_jobs(n_jobs or -1)
        if n_threads == 1:
            yield from map(work, numbers)
            return
        # Several batches per thread, so that all threads end at about the same time.
        size = -(-count // (_BATCHES_PER_THREAD * n_threads))
        batches = [numbers[k : k + size] for k in range(0, count, size)]
        pool = Parallel(n_threads, prefer="threads", batch_size=1, return_as="generator")
        for found in pool(delayed(_run_batch)(work, batch, os.getpid()) for batch in batches):
            yield from found


def _run_batch(work: Callable[[int], T], numbers: range, parent: int) -> list[T]:
    if os.getpid() == parent:
        # Threads share the warning filters of their process, which in_parallel has set.
        return [work(number) for number in numbers]
    with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
        return [work(number) for number in numbers]


Statistic = Callable[[Any], Any]
Method = Literal["percentile", "distance", "t"]
Resample = Literal["weights", "rows"]


class Draws(NamedTuple):
    r"""An estimate and its bootstrap replicates (replicates,), NaN where undefined.

    The interval is cut at `lowest` and `highest`, the smallest and largest possible value. `further_error` is the
    standard deviation of an error that the replicates do not include, such as that of censoring weights estimated from
    other patients; the interval includes it. `freedom` are the degrees of freedom of the method "t".

    The largest of several differences, such as a gap between groups, is biased upward in replicates, so that their
    quantiles are not a valid interval. Then `largest_errors` (replicates,) are :math:`\max_{ab} |d^*_{ab} - d_{ab}|`,
    with :math:`d_{ab}` the difference of groups a and b. With c their `level` quantile, all differences lie within c of
    their estimates simultaneously, and so does the largest: the interval is the estimate minus and plus c.
    """

    estimate: float
    draws: FloatArray
    lowest: float = -np.inf
    highest: float = np.inf
    method: Method = "percentile"
    further_error: float = 0.0
    largest_errors: FloatArray | None = None
    freedom: float = np.inf

    def interval(self, level: float) -> Interval:
        """Bootstrap interval; its ends are NaN without replicates."""
        share = (self.lowest, self.highest) == (0.0, 1.0)
        found = interval_of(
            self.estimate, self._spread_draws(), level, self.method, self.freedom, share=share
        )
        low, high = found.low, found.high
        if np.isnan(low):
            return found
        if not found.standard_error > _SAME * max(1.0, abs(found.estimate)):
            # A c-index of 1 among four patients is 1 in every replicate, which does not show how uncertain it is.
            return replace(found, low=np.nan, high=np.nan)
        if self.largest_errors is not None:
            known = not np.isnan(self.largest_errors).all()
            reach = float(np.nanquantile(self.largest_errors, level)) if known else float("nan")
            low, high = self.estimate - reach, self.estimate + reach
        low, high = np.clip([low, high], self.lowest, self.highest).tolist()
        return replace(found, low=low, high=high)

    @property
    def p(self) -> float:
        """P-value of "no difference" between any two groups; NaN without `largest_errors`."""
        errors = np.empty(0) if self.largest_errors is None else self.largest_errors
        return no_difference_p_value(self.estimate, errors)

    def _spread_draws(self) -> FloatArray:
        """Replicates whose variance is increased by that of the `further_error`; unchanged if it is 0 or unknown."""
        if not self.further_error > 0:
            return self.draws
        known = self.draws[~np.isnan(self.draws)]
        if len(known) < 2 or not known.std() > 0:
            return self.draws
        factor = np.sqrt(1 + (self.further_error / known.std()) ** 2)
        spread: FloatArray = known.mean() + factor * (self.draws - known.mean())
        return spread


@dataclass(frozen=True, eq=False)
class Replicates:
    """A statistic of k values: its estimate (k,), and its values on replicates (replicates, k), NaN where undefined."""

    estimate: FloatArray
    draws: FloatArray

    def interval(self, column: int = 0, *, level: float = 0.95, method: Method = "percentile") -> Interval:
        """Bootstrap interval of one of the values (:func:`interval_of`)."""
        return Draws(float(self.estimate[column]), self.draws[:, column], method=method).interval(level)


def bootstrap(
    statistic: Statistic,
    n: int,
    *,
    resample: Resample = "weights",
    replicates: int = 1000,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Replicates:
    """Values of a statistic on bootstrap replicates of n patients.

    Parameters
    ----------
    statistic : callable
        Takes patient weights (n,), or drawn rows (n,) if ``resample="rows"``; returns a float or k floats.
    n : int
        Number of patients.
    resample : "weights" or "rows"
        What the statistic takes. Weights are much faster for metrics that take ``sample_weight``.
    replicates : int
        Number of replicates.
    random_state : int, Generator or None
        Seed of the draws.
    n_jobs : int, optional
        Number of threads; by default one per processor core. The result does not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from drosurv import Surv
    >>> from drosurv.metrics import concordance_index
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.normal(size=200)
    >>> y = Surv.from_arrays(rng.random(200) < 0.7, rng.exponential(np.exp(-risk)))
    >>> draws = bootstrap(lambda w: concordance_index(y, risk, w), 200, replicates=200, random_state=0)
    >>> interval = draws.interval(level=0.9)
    >>> bool(interval.low < interval.estimate < interval.high)
    True
    """
    require(as_whole(replicates) >= 2, "replicates", "be a whole number, at least 2", replicates)
    require(resample in ("weights", "rows"), "resample", "be 'weights' or 'rows'", resample)
    everyone = np.ones(n) if resample == "weights" else np.arange(n)
    estimate = np.atleast_1d(np.asarray(statistic(everyone), dtype=np.float64))
    seed = seed_sequence(random_state)

    def draw(replicate: int) -> FloatArray:
        rows = replicate_rng(seed, replicate).integers(n, size=n)
        drawn = np.bincount(rows, minlength=n).astype(np.float64) if resample == "weights" else rows
        return np.atleast_1d(np.asarray(statistic(drawn), dtype=np.float64))

    return Replicates(estimate, np.stack(list(in_parallel(draw, replicates, n_jobs))))


def interval_of(
    estimate: float,
    draws: FloatArray,
    level: float,
    method: Method = "percentile",
    freedom: float = np.inf,
    *,
    share: bool = False,
) -> Interval:
    """Bootstrap interval of one value from its replicates (replicates,); replicates that are NaN are left out.

    The method "t" uses the standard error of the replicates and a quantile of Student's distribution with so many
    degrees of freedom; of a `share`, such as a c-index, on the logit scale, where it is nearly normal. The method
    "distance" is for means of absolute values (`_distance_ends`).
    """
    require(0 < as_number(level) < 1, "level", "lie between 0 and 1", level)
    require(method in get_args(Method), "method", f"be one of {list(get_args(Method))}", method)
    defined = draws[~np.isnan(draws)]
    if len(defined) < 2 or np.isnan(estimate):
        return Interval(estimate, np.nan, np.nan, level)
    error = float(defined.std(ddof=1))
    if method == "t":
        values = np.append(defined, estimate)
        values = logit(np.clip(values, _LEAST_SHARE, 1 - _LEAST_SHARE)) if share else values
        reach = float(student.ppf((1 + level) / 2, max(freedom, 1.0)) * values[:-1].std(ddof=1))
        low, high = values[-1] - reach, values[-1] + reach
        low, high = (float(expit(low)), float(expit(high))) if share else (float(low), float(high))
    elif method == "distance":
        low, high = _distance_ends(estimate, defined, level)
    else:
        low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Interval(estimate, low, high, level, error)


def _distance_ends(estimate: float, draws: FloatArray, level: float) -> tuple[float, float]:
    r"""Return the interval of a mean of absolute errors, corrected for the upward bias by chance.

    Its square is nearly a multiple of a noncentral chi-square variable, as the squared length of normal errors is:

    .. math:: \hat d^2 \sim \frac{v}{k} \chi^2_k\Big(\frac{k d^2}{v}\Big), \qquad E \hat d^2 = d^2 + v.

    Replicates show v, by how much their mean square is larger, and k, by the variance of their squares. The ends are
    the distances d of which the estimate is a tail quantile. If the true distance is 0 the lower end is 0 in
    ``(1 + level) / 2`` of samples; the upper end is what can be excluded. The interval includes the normal one: where
    errors are large at some places only, or have the same sign at all, chance adds less than v.
    """
    v = float(np.mean(draws**2)) - estimate**2
    v = max(v, 1e-3 * float(draws.var()))
    variance = float((draws**2).var())
    if not (v > 0 and variance > 0):
        return estimate, estimate
    k = float(np.clip((2 * v**2 + 4 * v * estimate**2) / variance, *_FREEDOM_OF_DISTANCE))
    x = k * estimate**2 / v
    reach = float(ndtri((1 + level) / 2) * draws.std(ddof=1))
    if x > _FAR:
        return estimate - reach, estimate + reach
    squares = chndtrinc(x, k, [(1 + level) / 2, (1 - level) / 2])
    # It returns the smallest positive number in place of 0.
    low, high = np.sqrt(np.where(squares > 1e-12, squares, 0.0) * v / k).tolist()
    return min(low, estimate - reach), max(high, estimate + reach)


def no_difference_p_value(estimate: float, errors: FloatArray) -> float:
    """Two-sided bootstrap p-value of "no difference": how often an error is at least the absolute estimate.

    `errors` (replicates,) are the distances of the replicates from the estimate. The p-value is NaN if the estimate or
    all errors are NaN.
    """
    known = errors[~np.isnan(errors)]
    if len(known) == 0 or np.isnan(estimate):
        return float("nan")
    return (1 + int((known >= abs(estimate)).sum())) / (1 + len(known))
