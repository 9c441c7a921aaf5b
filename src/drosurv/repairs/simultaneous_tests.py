"""Simultaneous tests and bounds for all subgroups: of observed against predicted events, and of mean losses.

Observed events of every subgroup are compared with those that a model predicts, by simulating events from the model's
curves. Means, such as of Brier scores, are bounded by a multiplier bootstrap. Both use the distribution of the most
extreme statistic over all subgroups, so that the results hold for all of them together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
import pandas as pd
from scipy.special import xlogy

from drosurv.curve_values import minus_log
from drosurv.curves import StepCurves, SurvivalCurves
from drosurv.evaluation.training_weights import estimation_share, linear_columns
from drosurv.metrics import FollowUp
from drosurv.metrics.expected_events import (
    expected_events,
    known_everywhere,
)
from drosurv.metrics.inference.intervals import in_parallel, replicate_rng, seed_sequence
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.observation import label_codes
from drosurv.predictions import Predicted
from drosurv.repairs.rules import CodedTable, Rule
from drosurv.repairs.subgroup_sums import Subgroups
from drosurv.target import FloatArray, IntArray, Target

# Smallest number of predicted events of a subgroup.
LEAST_EXPECTED = 10.0
# Numbers are cut at their deciles; a column has at most so many categories.
N_CUTS = 10
MOST_LEVELS = 20
# Events are simulated jump by jump if curves have at most so many jumps; with more, curves are treated as continuous.
_FEW_JUMPS = 64
# Number of replicates that estimate variances if there are clusters.
_CLUSTER_REPLICATES = 200
#: Rows of the table of bounds on the ratio of events.
MOST, LEAST = "observed/expected, most", "observed/expected, least"


def judged_subgroups(table: pd.DataFrame, patients: PatientEvents, least: float) -> Subgroups:
    """Return the subgroups of a table with at least so many patients, counted by weight, and 10 predicted events."""
    subgroups = Subgroups(CodedTable.from_table(table, N_CUTS, MOST_LEVELS))
    # Events predicted until the censoring times: the choice of subgroups must not depend on outcomes.
    predicted = -np.expm1(-patients.limit)
    counts = subgroups.sums(np.column_stack([patients.weight, patients.weight * predicted]))
    subgroups.keep((counts[:, 0] >= least - 1e-9) & (counts[:, 1] >= LEAST_EXPECTED))
    return subgroups


class PatientEvents(NamedTuple):
    """Weights, observed and expected events of n patients, and the hazards from which events are simulated.

    `limit` (n,) is the model's cumulative hazard at the censoring time. If curves have few jumps, `jumps` (n, K) are
    the cumulative hazards after each, and `limit_jump` (n,) is the number of jumps until the censoring time.
    """

    weight: FloatArray
    events: FloatArray
    expected: FloatArray
    limit: FloatArray
    jumps: FloatArray
    limit_jump: IntArray
    clusters: IntArray | None

    @staticmethod
    def of(
        curves: SurvivalCurves,
        target: Target,
        weight: FloatArray,
        horizon: float | None,
        clusters: Any,
        rng: np.random.Generator,
    ) -> PatientEvents:
        """Count observed and expected events of patients with these predicted curves, until the horizon if given."""
        n = len(target)
        censored_at = censoring_times(target, weight, rng)
        if horizon is not None:
            target = target.until(horizon)
            censored_at = np.minimum(censored_at, horizon)
        # Curves known at points are completed from the patients whose events are counted.
        curves = known_everywhere(curves, target, weight)
        if isinstance(curves, StepCurves):
            # As events are simulated.
            curves = curves.with_probabilities()
        events, expected = expected_events(curves, target)
        censored_at = np.minimum(censored_at, curves.known_until)
        jumps, limit_jump = np.empty((n, 0)), np.zeros(n, dtype=np.intp)
        times = curves.times
        if curves.curve_type == "step" and times is not None and len(times) <= _FEW_JUMPS:
            jumps = minus_log(curves.survival(times))
            limit_jump = np.searchsorted(times, censored_at, side="right")
        codes = None if clusters is None else label_codes("clusters", clusters, n)[0]
        limit = minus_log(curves.at_patient_times(censored_at))
        return PatientEvents(weight, events, expected, limit, jumps, limit_jump, codes)

    def rescaled(self, ratio: float) -> PatientEvents:
        """Return the same patients after the model's hazards are multiplied by a number."""
        return self._replace(
            expected=self.expected * ratio, limit=self.limit * ratio, jumps=self.jumps * ratio
        )

    def draw(self, rows: slice, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Simulate events of some rows from the model; return weighted events and expected events, (m, 2 n_draws)."""
        unit = rng.standard_exponential((len(self.weight[rows]), n_draws))
        return _draw(unit, self.weight[rows], self.limit[rows], self.jumps[rows], self.limit_jump[rows])

    def multipliers(self, n_draws: int, rng: np.random.Generator) -> Callable[[slice], FloatArray]:
        """Return a function that draws standard normal multipliers (m, n_draws) of some rows, equal within clusters."""
        if self.clusters is None:
            return lambda rows: rng.standard_normal((len(self.weight[rows]), n_draws))
        clusters = self.clusters
        drawn = rng.standard_normal((int(clusters.max()) + 1, n_draws))
        return lambda rows: drawn[clusters[rows]]


@numba.njit(cache=True, nogil=True)
def _draw(
    unit: FloatArray, weight: FloatArray, limit: FloatArray, jumps: FloatArray, limit_jump: IntArray
) -> FloatArray:
    """Return weighted events, which occur when the cumulative hazard reaches `unit`, and expected events until then."""
    n, k = unit.shape
    out = np.empty((n, 2 * k))
    n_jumps = jumps.shape[1]
    for i in range(n):
        for j in range(k):
            out[i, j] = weight[i] if unit[i, j] <= limit[i] else 0.0
            if n_jumps == 0:
                out[i, k + j] = weight[i] * min(unit[i, j], limit[i])
                continue
            expected, before = 0.0, 0.0
            for m in range(limit_jump[i]):
                expected -= np.expm1(before - jumps[i, m])
                before = jumps[i, m]
                if before >= unit[i, j]:
                    break
            out[i, k + j] = weight[i] * expected
    return out


def censoring_times(target: Target, weight: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the censoring time (n,) of each patient: as observed, or, after an event, drawn from Kaplan-Meier.

    If censoring is independent of the event time, so are these censoring times, and with them the same data would have
    been observed.
    """
    _, censoring = KaplanMeier.both(target, weight)
    before = np.concatenate([[1.0], censoring.survival])[
        np.searchsorted(censoring.times, target.time, side="left")
    ]
    reached = rng.random(len(target)) * before
    jump = np.searchsorted(-censoring.survival, -reached, side="left")
    drawn = np.append(censoring.times, target.time.max())[jump]
    return np.where(target.event, np.maximum(drawn, target.time), target.time)


def signed_root_deviance(observed: FloatArray, expected: FloatArray, scale: FloatArray) -> FloatArray:
    """Return the signed root of the Poisson deviance over a scale, about standard normal if the model is right."""
    safe = np.maximum(expected, 1e-12)
    deviance = 2 * (xlogy(observed, np.maximum(observed, 1e-300) / safe) - (observed - safe))
    root: FloatArray = np.sign(observed - safe) * np.sqrt(np.maximum(deviance, 0.0) / scale)
    return root


@numba.njit(cache=True, nogil=True)
def _extreme_deviances(sums: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the largest and smallest signed root of the deviance over subgroups, each (k,), from sums (G, 2 k)."""
    k = sums.shape[1] // 2
    high, low = np.full(k, -np.inf), np.full(k, np.inf)
    for g in range(len(sums)):
        for j in range(k):
            observed, expected = sums[g, j], max(sums[g, k + j], 1e-12)
            deviance = 2.0 * (expected - observed)
            # Differences of sums are 0 only up to rounding.
            if observed > 1e-9:
                deviance += 2.0 * observed * np.log(observed / expected)
            z = np.sqrt(max(deviance, 0.0) / scale[g])
            if observed > expected:
                high[j] = max(high[j], z)
            else:
                low[j] = min(low[j], -z)
    return high, low


T = TypeVar("T")


def _replicates(
    work: Callable[[int, np.random.Generator], T],
    subgroups: Subgroups,
    n_bootstrap: int,
    n_patients: int,
    rng: np.random.Generator,
) -> list[T]:
    """Compute batches of replicates in threads; the results do not depend on the number of threads."""
    sizes, streams = subgroups.batches(n_bootstrap), seed_sequence(rng)

    def batch(number: int) -> T:
        return work(sizes[number], replicate_rng(streams, number))

    return list(in_parallel(batch, len(sizes), None, n_patients))


def model_errors(
    predicted: Predicted, patients: PatientEvents, subgroups: Subgroups, follow_up: FollowUp
) -> tuple[FloatArray, float]:
    """Return the variance from a model's estimation error, relative to that of the events: by subgroup, and overall.

    0 if the number of training events is not known, or for predictions in folds.
    """
    trained = follow_up.training_events
    if trained is None or predicted.given is not None:
        return np.zeros(len(subgroups)), 0.0
    expected = patients.weight * patients.expected
    everybody = float(expected.sum() / trained)
    columns = linear_columns(predicted)
    each = np.ones((len(expected), 1)) if columns is None else columns
    sums = subgroups.sums(expected[:, None] * each)
    return sums[:, 0] / (trained * estimation_share(columns, expected, sums)), everybody


class EventTest(NamedTuple):
    """Bounds on observed / expected events, significant subgroups with their rules, and the test of all patients."""

    bounds: dict[str, dict[str, Any]]
    significant: pd.DataFrame
    rules: tuple[Rule, ...]
    overall: dict[str, float]


def compare_events(
    subgroups: Subgroups,
    patients: PatientEvents,
    level: float,
    n_bootstrap: int,
    rng: np.random.Generator,
    model_error: tuple[FloatArray, float] | None = None,
) -> EventTest:
    """Compare observed with expected events in all subgroups and in all patients together."""
    w, d, e = patients.weight, patients.events, patients.expected
    sizes, observed, expected, squares = subgroups.sums(
        np.column_stack([np.ones(len(w)), w * d, w * e, w * w * e])
    ).T
    scale = squares / expected
    # Squared statistics are divided by the design effect of clusters and the model's estimation error.
    effect, effect_all = _design_effects(subgroups, patients, rng)
    error, error_all = model_error or (np.zeros(len(subgroups)), 0.0)
    z = signed_root_deviance(observed, expected, scale * (effect + error))
    scale_all = np.array((w * w * e).sum() / (w @ e))
    z_all = signed_root_deviance(np.array([w @ d]), np.array([w @ e]), scale_all * (effect_all + error_all))

    def extremes(k: int, rng: np.random.Generator) -> tuple[FloatArray, ...]:
        """Return statistics of k replicates: the largest and minus the smallest of subgroups, and that of everybody."""
        totals = np.zeros(2 * k)

        def values(rows: slice) -> FloatArray:
            drawn = patients.draw(rows, k, rng)
            np.add(totals, drawn.sum(axis=0), out=totals)
            return drawn

        high, low = _extreme_deviances(subgroups.sums_of_parts(2 * k, values), scale)
        return high, -low, abs(signed_root_deviance(totals[:k], totals[k:], scale_all))

    drawn = _replicates(extremes, subgroups, n_bootstrap, len(w), rng)
    upper, lower, everybody = (np.sort(np.concatenate(one)) for one in zip(*drawn, strict=True))
    p = np.minimum(2 * np.minimum(_p_values(z, upper), _p_values(-z, lower)), 1.0)
    side = (1 + level) / 2
    high = _ratio_at(observed, expected, scale * effect, -_quantile(lower, side))
    low = _ratio_at(observed, expected, scale * effect, _quantile(upper, side))
    ratio = observed / expected
    worst, best = int(high.argmax()), int(low.argmin())
    bounds = {
        MOST: {"estimate": ratio.max(), "bound": high[worst], "group": str(subgroups.rule(worst))},
        LEAST: {"estimate": ratio.min(), "bound": low[best], "group": str(subgroups.rule(best))},
    }
    # Subgroups with equal p-values are sorted by the statistic.
    order = np.lexsort((-abs(z), p))
    found: list[int] = order[p[order] <= 1 - level].tolist()
    significant = pd.DataFrame(
        {
            "group": [str(subgroups.rule(g)) for g in found],
            "patients": np.rint(sizes[found]).astype(int),
            "observed": observed[found],
            "expected": expected[found],
            "ratio": ratio[found],
            "p": p[found],
        }
    )
    total = {"observed": float(w @ d), "expected": float(w @ e), "ratio": float((w @ d) / (w @ e))}
    total["p"] = float(_p_values(abs(z_all), everybody)[0])
    return EventTest(bounds, significant, tuple(subgroups.rule(g) for g in found), total)


def _p_values(statistic: FloatArray, drawn: FloatArray) -> FloatArray:
    """Return Monte Carlo p-values (k + 1) / (B + 1), of k larger ones among B sorted draws."""
    larger = len(drawn) - np.searchsorted(drawn, statistic, side="left")
    p: FloatArray = (larger + np.float64(1)) / (len(drawn) + 1)
    return p


def _quantile(drawn: FloatArray, share: float) -> float:
    """Return the order statistic of sorted draws (B,) that another draw exceeds with probability at most 1 - share."""
    return float(drawn[min(int(np.ceil((len(drawn) + 1) * share)), len(drawn)) - 1])


def _ratio_at(observed: FloatArray, expected: FloatArray, scale: FloatArray, z: float) -> FloatArray:
    """Return the ratios by which expected events must be multiplied for the statistic to be z, by bisection."""
    far = np.full(len(observed), abs(z) * np.sqrt(scale))
    low, high = (
        np.full(len(observed), 1e-9),
        (observed + far**2 + 2 * far * np.sqrt(observed + 1) + 10) / expected,
    )
    for _ in range(60):
        middle = (low + high) / 2
        # The statistic decreases with the expected events.
        above = signed_root_deviance(observed, middle * expected, scale) > z
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    ratio: FloatArray = (low + high) / 2
    return ratio


def _design_effects(
    subgroups: Subgroups, patients: PatientEvents, rng: np.random.Generator
) -> tuple[FloatArray, float]:
    """Return design effects of each subgroup and of all patients: the variance of events over that without clusters.

    They are 1 without clusters; else estimated by multipliers that the rows of a cluster share, and at least 1.
    """
    if patients.clusters is None:
        return np.ones(len(subgroups)), 1.0
    w, d, e = patients.weight, patients.events, patients.expected
    values = np.column_stack([w * d, w * e, w * w * e])
    # The last row is everybody.
    observed, expected, squares = np.vstack([subgroups.sums(values), values.sum(axis=0)]).T
    ratio, variance = (observed / expected)[:, None], np.zeros(len(observed))
    for k in subgroups.batches(_CLUSTER_REPLICATES):
        xi = patients.multipliers(k, rng)(slice(None))
        drawn = np.hstack([xi * values[:, [0]], xi * values[:, [1]]])
        sums = np.vstack([subgroups.sums(drawn), drawn.sum(axis=0)])
        variance += ((sums[:, :k] - ratio * sums[:, k:]) ** 2).sum(axis=1)
    effect = np.maximum(variance / _CLUSTER_REPLICATES / np.maximum(ratio[:, 0] * squares, 1e-12), 1.0)
    return effect[:-1], float(effect[-1])


def brier_losses(curves: SurvivalCurves, target: Target, horizon: float, weight: FloatArray) -> FloatArray:
    r"""Return squared errors (n,) of predicted survival at a horizon, weighted by the inverse probability of censoring.

    .. math:: w_i = \frac{1[Y_i \le t, d_i = 1]}{G(Y_i-)} + \frac{1[T_i > t]}{G(t-)}

    T > t is known if the patient was observed longer than t, or censored at t.
    """
    at = np.array([horizon])
    weights = FollowUp.of(target, weight).censoring_weights(target, at)
    free, survival = weights.free_until > horizon, curves.survival(at)[:, 0]
    return np.where(free, weights.free, weights.event) * (free - survival) ** 2


def bounded_means(
    subgroups: Subgroups,
    values: dict[str, FloatArray],
    patients: PatientEvents,
    level: float,
    n_bootstrap: int,
    rng: np.random.Generator,
) -> dict[str, dict[str, Any]]:
    """Return the largest mean of each value over subgroups, and its simultaneous upper bound."""
    w, names = patients.weight, list(values)
    v = np.column_stack([w * values[name] for name in names])
    m = len(names)
    sums = subgroups.sums(np.column_stack([w, w * w, v, v * w[:, None], v * v]))
    total, mean = sums[:, :1], sums[:, 2 : 2 + m] / sums[:, :1]
    variance = sums[:, 2 + 2 * m :] - 2 * mean * sums[:, 2 + m : 2 + 2 * m] + mean**2 * sums[:, 1:2]

    def deviations(k: int, rng: np.random.Generator) -> FloatArray:
        """Return sums of the multiplied deviations from the mean, (G, m, k)."""
        multipliers = patients.multipliers(k, rng)

        def values(rows: slice) -> FloatArray:
            xi = multipliers(rows)
            return np.hstack([xi * w[rows, None], *(xi * v[rows, j, None] for j in range(m))])

        drawn = subgroups.sums_of_parts((m + 1) * k, values).reshape(len(subgroups), m + 1, k)
        return drawn[:, 1:] - mean[:, :, None] * drawn[:, :1]

    if patients.clusters is not None:
        parts = [(deviations(k, rng) ** 2).sum(axis=2) for k in subgroups.batches(_CLUSTER_REPLICATES)]
        variance = np.sum(parts, axis=0) / _CLUSTER_REPLICATES
    error = np.sqrt(np.maximum(variance, 1e-18))

    def extremes(k: int, rng: np.random.Generator) -> FloatArray:
        largest: FloatArray = (deviations(k, rng) / error[:, :, None]).max(axis=0)
        return largest

    largest = _replicates(extremes, subgroups, n_bootstrap, len(w), rng)
    quantiles = [_quantile(np.sort(one), level) for one in np.concatenate(largest, axis=1)]
    found = {}
    for j, name in enumerate(names):
        bound = mean[:, j] + quantiles[j] * error[:, j] / total[:, 0]
        worst = int(bound.argmax())
        found[name] = {
            "estimate": mean[:, j].max(),
            "bound": bound[worst],
            "group": str(subgroups.rule(worst)),
            "all patients": float(v[:, j].sum() / w.sum()),
        }
    return found
