"""Simultaneous tests and bounds for all subgroups: of observed against predicted events, and of mean losses.

Observed and expected events are those of the residuals of :mod:`drosurv.findings`. Their reference distribution, if the
model is right, is drawn from the model. Means, such as of Brier scores, are bounded by a multiplier bootstrap. Both use
the distribution of the most extreme statistic over all subgroups, so that the results hold for all of them together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
import pandas as pd
from scipy.special import xlogy

from drosurv.errors import ArgumentError
from drosurv.findings.estimation_error import EstimationError
from drosurv.findings.judged import Judged
from drosurv.findings.residuals import LEAST_CROSS_FITTED, PatientResiduals, WeightedResiduals
from drosurv.metrics.inference.intervals import in_parallel, replicate_rng, seed_sequence
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.observation import sample_rows, sample_size
from drosurv.repairs.rules import CodedTable, Rule
from drosurv.repairs.subgroup_sums import Subgroups
from drosurv.target import BoolArray, FloatArray, IntArray, Target

# Smallest number of expected events of a subgroup.
LEAST_EXPECTED = 10.0
# Numbers are cut at their deciles; a column has at most so many categories.
N_CUTS = 10
MOST_LEVELS = 20
# Events are simulated jump by jump if curves have at most so many jumps; with more, curves are treated as continuous.
_FEW_JUMPS = 64
# Of very many patients, a sample of at most so many is enough for the reference distribution.
_MOST_SAMPLED = 200_000
# Number of draws that estimate variances if there are clusters.
_CLUSTER_REPLICATES = 200
_CERTAIN_HAZARD = 23.0
#: Rows of the table of bounds on the ratio of events.
MOST, LEAST = "observed/expected, most", "observed/expected, least"


def judged_subgroups(table: pd.DataFrame, patients: PatientEvents, least: float) -> Subgroups:
    """Return the subgroups of a table with at least a number of patients and 10 expected events."""
    subgroups = Subgroups(CodedTable.from_table(table, N_CUTS, MOST_LEVELS))
    counts = subgroups.sums(np.column_stack([patients.counts, patients.weight * patients.expected]))
    subgroups.keep((counts[:, 0] >= least - 1e-9) & (counts[:, 1] >= LEAST_EXPECTED))
    return subgroups


@dataclass(frozen=True, eq=False, kw_only=True)
class PatientEvents:
    """Observed and expected events of n patients, the variance for one copy, and the `source` that draws events.

    Of each row, `weight` (n,) is the number of copies, `counts` (n,) of patients, and `clusters` (n,) its cluster.
    """

    weight: FloatArray
    counts: FloatArray
    observed: FloatArray
    expected: FloatArray
    variance: FloatArray
    source: Source
    clusters: IntArray | None = None

    @staticmethod
    def of(
        judged: Judged, residuals: PatientResiduals, until: Any, rng: np.random.Generator
    ) -> PatientEvents:
        """Return the events of judged patients, counted until a time."""
        weight, clusters = residuals.weight, residuals.clusters
        if clusters is not None and len(np.unique(clusters)) == len(clusters):
            clusters = None
        id = judged.cohort.patients
        counts = weight if id is None else 1.0 / np.bincount(id)[id]
        given: dict[str, Any] = {"weight": weight, "counts": counts, "clusters": clusters}
        if not isinstance(residuals, WeightedResiduals):
            sums = (
                part.sum(axis=1) for part in (residuals.observed, residuals.expected, residuals.variances)
            )
            observed, expected, variance = sums
            source = Hazards.of(judged, until, rng)
            return PatientEvents(
                **given, observed=observed, expected=expected, variance=variance, source=source
            )
        last = residuals.known_parts(np.ones(len(residuals), np.bool_)) - 1
        if last < 0:
            raise ArgumentError(
                "model",
                "too few patients were observed until the first predicted time: predict earlier times.",
            )
        names = ("probability", "happened", "inverse", "at_events", "at_free")
        return Probabilities(**{name: getattr(residuals, name)[:, last] for name in names}).events(**given)

    def rescaled(self, ratio: float) -> PatientEvents:
        """Return the same patients after the model's hazards, or probabilities, are multiplied by a number."""
        source = self.source.rescaled(ratio)
        if isinstance(source, Probabilities):
            return source.events(weight=self.weight, counts=self.counts, clusters=self.clusters)
        return replace(self, expected=self.expected * ratio, variance=self.variance * ratio, source=source)

    def sample(self, rng: np.random.Generator) -> Sample:
        """Return copies of patients for a reference distribution: all, or a sample of very many."""
        total = float(self.weight.sum())
        events = float(self.weight @ self.expected)
        size = sample_size(total, events, _MOST_SAMPLED)
        # Each row has as many copies as its weight says; of a fraction, by chance.
        rows = np.searchsorted(np.cumsum(self.weight), rng.random() + np.arange(round(total)))
        rows = np.minimum(rows, len(self.weight) - 1)
        clusters = None if self.clusters is None else self.clusters[rows]
        rows = rows[sample_rows(len(rows), size, rng, clusters)]
        if self.clusters is None:
            return Sample(rows, self.source.take(rows))
        sample = Sample(rows, self.source.take(rows), np.unique(self.clusters[rows], return_inverse=True)[1])
        return replace(sample, shared=self._shared(sample, rng))

    def _shared(self, sample: Sample, rng: np.random.Generator) -> float:
        """Return the share of clusters that must be drawn with one outcome for all rows to match the observed variance.

        One standard error is added: with too small a share, right models would be called wrong too often.
        """
        assert self.clusters is not None
        assert sample.clusters is not None
        residual = np.bincount(self.clusters, self.weight * (self.observed - self.expected))
        seen = float((residual**2).sum())
        error = float(np.sqrt(((residual**2 - (residual**2).mean()) ** 2).sum()))
        alone = float(self.weight @ self.variance)
        same = replace(sample, shared=1.0)
        drawn = same.draw(slice(None), 32, same.units(32, rng), rng)
        by_cluster = np.column_stack(
            [np.bincount(sample.clusters, part) for part in (drawn[:, :32] - drawn[:, 32:]).T]
        )
        together = float((by_cluster**2).sum(axis=0).mean()) * float(self.weight.sum()) / len(sample.rows)
        if together <= alone * (1 + 1e-9):
            return 0.0
        return float(np.clip((seen + error - alone) / (together - alone), 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Sample:
    """Copies of patients whose events are drawn: their rows (m,), numbers of clusters, and what is drawn from.

    The rows of a cluster have the same fate with probability `shared`, else fates of their own.
    """

    rows: IntArray
    source: Source
    clusters: IntArray | None = None
    shared: float = 0.0

    def units(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Return standard exponential numbers (clusters, n_draws) of those who have the same fate; NaN for others."""
        if self.clusters is None:
            return np.empty((0, n_draws))
        size = (int(self.clusters.max()) + 1, n_draws)
        return np.where(rng.random(size) < self.shared, rng.standard_exponential(size), np.nan)

    def draw(self, rows: slice, n_draws: int, units: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw events of some of the copies, if the model is right: observed, then expected events, (m, 2 n_draws)."""
        unit = rng.standard_exponential((len(self.rows[rows]), n_draws))
        if self.clusters is not None:
            common = units[self.clusters[rows]]
            unit = np.where(np.isnan(common), unit, common)
        return self.source.draw(rows, unit)

    def multipliers(self, n_draws: int, rng: np.random.Generator) -> Callable[[slice], FloatArray]:
        """Return a function that draws standard normal multipliers (m, n_draws) of some rows, equal within clusters."""
        if self.clusters is None:
            return lambda rows: rng.standard_normal((len(self.rows[rows]), n_draws))
        clusters = self.clusters
        drawn = rng.standard_normal((int(clusters.max()) + 1, n_draws))
        return lambda rows: drawn[clusters[rows]]


class Hazards(NamedTuple):
    """Curves that are known throughout: `limit` (n,) is the model's hazard from entry until the censoring time.

    If events happen at few jumps, `jumps` (n, K) are cumulative hazards whose steps have the probabilities of the
    jumps, and a patient is at risk from jump number `first` (n,) until before `last` (n,).
    """

    limit: FloatArray
    jumps: FloatArray
    first: IntArray
    last: IntArray

    @staticmethod
    def of(judged: Judged, until: Any, rng: np.random.Generator) -> Hazards:
        """Return the hazards of judged patients until censoring, or a time before it."""
        curves, cohort = judged.curves, judged.cohort
        assert curves is not None
        since = cohort.since
        censored = since + censoring_times(cohort.durations, cohort.copies, rng)
        end = np.minimum(np.minimum(censored, curves.until), until)
        hazard = curves.accumulated(end)[0]
        if since.any():
            hazard = hazard - curves.accumulated(np.minimum(since, end))[0]
        times = curves.curves.times
        jumps, first, last = (
            np.empty((len(since), 0)),
            np.zeros(len(since), np.intp),
            np.zeros(len(since), np.intp),
        )
        if curves.discrete and times is not None and len(times) <= _FEW_JUMPS:
            steps = np.diff(curves.at(times), axis=1, prepend=0.0)
            certain = -np.expm1(-_CERTAIN_HAZARD)
            jumps = np.cumsum(-np.log1p(-np.clip(steps, 0.0, certain)), axis=1)
            first, last = (np.searchsorted(times, at, side="right") for at in (since, end))
        return Hazards(np.maximum(hazard, 0.0), jumps, first, last)

    def take(self, rows: IntArray) -> Hazards:
        """Return those of some rows."""
        parts: list[Any] = [part[rows] for part in self]
        return Hazards(*parts)

    def rescaled(self, ratio: float) -> Hazards:
        """Return hazards that are multiplied by a number."""
        return self._replace(limit=self.limit * ratio, jumps=self.jumps * ratio)

    def draw(self, rows: slice, unit: FloatArray) -> FloatArray:
        """Return observed and expected events (m, 2 k); an event occurs when the hazard reaches `unit` (m, k)."""
        parts: list[Any] = [part[rows] for part in self]
        return _draw_events(unit, *parts)


class Probabilities(NamedTuple):
    """Predictions at one time: probabilities of the event by then, who had it, and 1 / G, 0 where it is not known.

    `at_events` and `at_free` are means of 1 / G at events, and of those free of it.
    """

    probability: FloatArray
    happened: BoolArray
    inverse: FloatArray
    at_events: FloatArray
    at_free: FloatArray

    def events(self, **given: Any) -> PatientEvents:
        """Return observed and expected events of the patients with the given weights and clusters."""
        F = self.probability
        return PatientEvents(
            observed=F + (self.happened - F) * self.inverse,
            expected=F,
            variance=F * (1 - F) * ((1 - F) * self.at_events + F * self.at_free),
            source=self,
            **given,
        )

    def take(self, rows: IntArray) -> Probabilities:
        """Return those of some rows."""
        parts: list[Any] = [part[rows] for part in self]
        return Probabilities(*parts)

    def rescaled(self, ratio: float) -> Probabilities:
        """Return probabilities that are multiplied by a number."""
        return self._replace(probability=np.minimum(self.probability * ratio, 1.0))

    def draw(self, rows: slice, unit: FloatArray) -> FloatArray:
        """Return observed and expected events (m, 2 k); uniform numbers exp(-`unit`) say who has the event."""
        F, m, k = (part[rows, None] for part in (self.probability, self.at_events, self.at_free))
        uniform = -np.expm1(-unit)
        # Of those with the event a share 1 / m is known, and counts m times; of the others 1 / k.
        known = uniform < F / m
        free = uniform > 1 - (1 - F) / k
        observed = F + np.where(known, (1 - F) * m, 0.0) - np.where(free, F * k, 0.0)
        return np.hstack([observed, np.broadcast_to(F, observed.shape)])


Source = Hazards | Probabilities


@numba.njit(cache=True, nogil=True)
def _draw_events(
    unit: FloatArray, limit: FloatArray, jumps: FloatArray, first: IntArray, last: IntArray
) -> FloatArray:
    """Return events, which occur when the cumulative hazard reaches `unit`, and expected events until then."""
    n, k = unit.shape
    out = np.empty((n, 2 * k))
    n_jumps = jumps.shape[1]
    for i in range(n):
        for j in range(k):
            if n_jumps == 0:
                out[i, j] = 1.0 if unit[i, j] <= limit[i] else 0.0
                out[i, k + j] = min(unit[i, j], limit[i])
                continue
            expected, happened = 0.0, 0.0
            start = jumps[i, first[i] - 1] if first[i] > 0 else 0.0
            before = start
            for m in range(first[i], last[i]):
                expected -= np.expm1(before - jumps[i, m])
                before = jumps[i, m]
                if before - start >= unit[i, j]:
                    happened = 1.0
                    break
            out[i, j], out[i, k + j] = happened, expected
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
    safe, seen = np.maximum(expected, 1e-12), np.maximum(observed, 0.0)
    deviance = 2 * (xlogy(seen, np.maximum(seen, 1e-300) / safe) - (seen - safe))
    root: FloatArray = np.sign(seen - safe) * np.sqrt(np.maximum(deviance, 0.0) / scale)
    return root


@numba.njit(cache=True, nogil=True)
def _extreme_deviances(sums: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the largest and smallest signed root of the deviance over subgroups, each (k,), from sums (G, 2 k)."""
    k = sums.shape[1] // 2
    high, low = np.full(k, -np.inf), np.full(k, np.inf)
    for g in range(len(sums)):
        for j in range(k):
            observed, expected = max(sums[g, j], 0.0), max(sums[g, k + j], 1e-12)
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


class EventTest(NamedTuple):
    """Bounds on observed / expected events, and significant subgroups with their rules."""

    bounds: dict[str, dict[str, Any]]
    significant: pd.DataFrame
    rules: tuple[Rule, ...]


def compare_events(
    subgroups: Subgroups,
    patients: PatientEvents,
    sample: Sample,
    level: float,
    n_bootstrap: int,
    rng: np.random.Generator,
    error: EstimationError | None = None,
) -> EventTest:
    """Compare observed with expected events in all subgroups."""
    w = patients.weight
    columns = (patients.counts, w * patients.observed, w * patients.expected, w * patients.variance)
    sizes, observed, expected, variance = subgroups.sums(np.column_stack(columns)).T
    drawn_from = subgroups.of_rows(sample.rows)

    def draws(k: int, rng: np.random.Generator) -> FloatArray:
        """Return sums (G, 2 k) of observed and expected events in k replicates."""
        units = sample.units(k, rng)
        return drawn_from.sums_of_parts(2 * k, lambda rows: sample.draw(rows, k, units, rng))

    scale = np.maximum(variance, 1e-12) / expected
    if sample.clusters is not None:
        # The variance of clusters, relative to that of patients, is that of draws.
        parts = _replicates(draws, drawn_from, _CLUSTER_REPLICATES, len(sample.rows), rng)
        squares = np.zeros(len(subgroups))
        for sums in parts:
            half = sums.shape[1] // 2
            squares += (signed_root_deviance(sums[:, :half], sums[:, half:], scale[:, None]) ** 2).sum(axis=1)
        scale = scale * np.maximum(squares / _CLUSTER_REPLICATES, 1.0)

    def extremes(k: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        high, low = _extreme_deviances(draws(k, rng), scale)
        return high, -low

    drawn = _replicates(extremes, drawn_from, n_bootstrap, len(sample.rows), rng)
    upper, lower = (np.sort(np.concatenate(one)) for one in zip(*drawn, strict=True))
    # The model's estimation error counts in tests; bounds are those of the given predictions.
    more = 0.0 if error is None else error.of_subgroups(subgroups.sums_of_parts) / expected
    z = signed_root_deviance(observed, expected, np.maximum(scale + more, LEAST_CROSS_FITTED * scale))
    p = np.minimum(2 * np.minimum(_p_values(z, upper), _p_values(-z, lower)), 1.0)
    side = (1 + level) / 2
    high = _ratio_at(observed, expected, scale, -_quantile(lower, side))
    low = _ratio_at(observed, expected, scale, _quantile(upper, side))
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
    return EventTest(bounds, significant, tuple(subgroups.rule(g) for g in found))


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
    observed = np.maximum(observed, 0.0)
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


def bounded_means(
    subgroups: Subgroups,
    values: dict[str, FloatArray],
    weight: FloatArray,
    sample: Sample,
    level: float,
    n_bootstrap: int,
    rng: np.random.Generator,
) -> dict[str, dict[str, Any]]:
    """Return the largest mean of each value over subgroups, and its simultaneous upper bound.

    Weights are numbers of copies. The distribution of the largest deviation is that of the sample.
    """
    names, m = list(values), len(values)
    v = np.column_stack([values[name] for name in names])
    total, mean, variance = _moments(subgroups, v, weight)
    drawn_from, sampled = subgroups.of_rows(sample.rows), v[sample.rows]
    _, centre, spread = _moments(drawn_from, sampled, np.ones(len(sampled)))

    def deviations(k: int, rng: np.random.Generator) -> FloatArray:
        """Return sums of the multiplied deviations from the mean, (G, m, k)."""
        multipliers = sample.multipliers(k, rng)

        def multiplied(rows: slice) -> FloatArray:
            xi = multipliers(rows)
            return np.hstack([xi, *(xi * sampled[rows, j, None] for j in range(m))])

        drawn = drawn_from.sums_of_parts((m + 1) * k, multiplied).reshape(len(subgroups), m + 1, k)
        return drawn[:, 1:] - centre[:, :, None] * drawn[:, :1]

    if sample.clusters is not None:
        parts = [(deviations(k, rng) ** 2).sum(axis=2) for k in subgroups.batches(_CLUSTER_REPLICATES)]
        clustered = np.sum(parts, axis=0) / _CLUSTER_REPLICATES
        variance, spread = variance * clustered / np.maximum(spread, 1e-18), clustered
    spread = np.sqrt(np.maximum(spread, 1e-18))

    def extremes(k: int, rng: np.random.Generator) -> FloatArray:
        largest: FloatArray = (deviations(k, rng) / spread[:, :, None]).max(axis=0)
        return largest

    largest = _replicates(extremes, drawn_from, n_bootstrap, len(sampled), rng)
    quantiles = [_quantile(np.sort(one), level) for one in np.concatenate(largest, axis=1)]
    error = np.sqrt(np.maximum(variance, 1e-18))
    found = {}
    for j, name in enumerate(names):
        bound = mean[:, j] + quantiles[j] * error[:, j] / total[:, 0]
        worst = int(bound.argmax())
        found[name] = {
            "estimate": mean[:, j].max(),
            "bound": bound[worst],
            "group": str(subgroups.rule(worst)),
            "all patients": float(weight @ v[:, j] / weight.sum()),
        }
    return found


def _moments(
    subgroups: Subgroups, v: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return sums of weights (G, 1), means of values (n, m) in subgroups (G, m), and variances of their sums."""
    m, w = v.shape[1], weight[:, None]
    sums = subgroups.sums(np.hstack([w, w * v, w * v**2]))
    total, mean = sums[:, :1], sums[:, 1 : 1 + m] / sums[:, :1]
    return total, mean, sums[:, 1 + m :] - mean**2 * total
