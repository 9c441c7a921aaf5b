"""Simultaneous tests and bounds for all subgroups: of observed against predicted events, and of mean losses.

Observed and expected events are those of the residuals of :mod:`drosurv.findings`. Their number (level) and their
distribution over the parts of the follow-up (shape in time) are tested, with a reference distribution that is drawn
from the model, as if it were right. Means, such as of Brier scores, are bounded by a multiplier bootstrap. Both use
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
from drosurv.findings.residuals import (
    LEAST_CROSS_FITTED,
    PatientResiduals,
    WeightedResiduals,
    covariances_at_times,
)
from drosurv.metrics.inference.intervals import in_parallel, replicate_rng, seed_sequence
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.observation import sample_rows, sample_size
from drosurv.repairs.rules import CodedTable, Rule
from drosurv.repairs.subgroup_sums import Subgroups
from drosurv.target import BoolArray, FloatArray, IntArray, Target

# Smallest number of expected events of a subgroup; and of a part of the follow-up, and of all others together, for the
# test of the shape in time.
LEAST_EXPECTED, LEAST_IN_PART = 10.0, 5.0
# Numbers are cut at their deciles; a column has at most so many categories.
N_CUTS = 10
MOST_LEVELS = 20
# Events are simulated jump by jump if curves have at most so many jumps; with more, curves are treated as continuous.
_FEW_JUMPS = 64
# Of very many patients, a sample with so many events, of at most so many, is enough for the reference distribution.
_SAMPLED_EVENTS, _MOST_SAMPLED = 10_000, 200_000
# Number of draws that estimate variances if there are clusters.
_CLUSTER_REPLICATES = 200
_CERTAIN_HAZARD = 23.0
_LEAST_DISPERSION = 0.05
#: Columns of the table of significant subgroups.
SIGNIFICANT = (
    "group",
    "patients",
    "question",
    "observed",
    "expected",
    "ratio",
    "p",
    "events",
    "since",
    "until",
)
#: Rows of the table of bounds on the ratio of events.
MOST, LEAST = "observed/expected, most", "observed/expected, least"


def judged_subgroups(table: pd.DataFrame, patients: PatientEvents, least: float) -> Subgroups:
    """Return the subgroups of a table with at least a number of patients and 10 expected events."""
    subgroups = Subgroups(CodedTable.from_table(table, N_CUTS, MOST_LEVELS))
    expected = patients.weight * patients.expected.sum(axis=1)
    counts = subgroups.sums(np.column_stack([patients.counts, expected]))
    subgroups.keep((counts[:, 0] >= least - 1e-9) & (counts[:, 1] >= LEAST_EXPECTED))
    return subgroups


@dataclass(frozen=True, eq=False, kw_only=True)
class PatientEvents:
    """Observed and expected events (n, J) of n patients in J parts of the follow-up, and the `source` that draws them.

    `ends` (J,) are the ends of the parts. Of each row, `weight` (n,) is the number of copies, `counts` (n,) of
    patients, and `clusters` (n,) its cluster.
    """

    weight: FloatArray
    counts: FloatArray
    observed: FloatArray
    expected: FloatArray
    ends: FloatArray
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
            given |= {"observed": residuals.observed, "expected": residuals.expected, "ends": residuals.ends}
            return PatientEvents(**given, source=Hazards.of(judged, residuals, until, rng))
        known = residuals.known_parts(np.ones(len(residuals), np.bool_))
        if known == 0:
            raise ArgumentError(
                "model",
                "too few patients were observed until the first predicted time: predict earlier times.",
            )
        parts = {name: getattr(residuals, name)[:, :known] for name in Probabilities._fields}
        return Probabilities(**parts).events(**given, ends=residuals.ends[:known])

    def rescaled(self, ratios: FloatArray) -> PatientEvents:
        """Return the same patients after hazards, or probabilities, are multiplied by a number in each part, (J,)."""
        source = self.source.rescaled(ratios)
        if isinstance(source, Probabilities):
            return source.events(
                weight=self.weight, counts=self.counts, clusters=self.clusters, ends=self.ends
            )
        return replace(self, expected=self.expected * ratios, source=source)

    def sample(self, rng: np.random.Generator) -> Sample:
        """Return copies of patients for a reference distribution: all, or a sample of very many."""
        total = float(self.weight.sum())
        events = float((self.weight @ self.expected).sum())
        size = sample_size(total, events, _MOST_SAMPLED, _SAMPLED_EVENTS)
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
        residual = np.bincount(self.clusters, self.weight * (self.observed - self.expected).sum(axis=1))
        seen = float((residual**2).sum())
        error = float(np.sqrt(((residual**2 - (residual**2).mean()) ** 2).sum()))
        variances = self.weight @ self.source.variances_of(slice(None))
        alone = float(self.source.as_covariance(variances[None]).sum())
        same = replace(sample, shared=1.0)
        drawn = same.draw(slice(None), 32, same.units(32, rng), rng)
        by_cluster = np.column_stack(
            [np.bincount(sample.clusters, part) for part in (drawn[:, :32] - drawn[:, 32:64]).T]
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
        """Draw events of some of the copies, if the model is right: (m, (J + 1) n_draws).

        Observed, then expected events of the whole follow-up, and their differences in all parts but the last.
        """
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
    """Curves that are known throughout: `limit` (n, J) is the model's hazard from entry until the end of each part.

    It does not grow after the censoring time. `variances` (n, J) are those of the events in each part. If events happen
    at few jumps, `jumps` (n, K) are cumulative hazards whose steps have the probabilities of the jumps, `parts` (n, K)
    are the numbers of their parts, and a patient is at risk from jump number `first` (n,) until before `last` (n,).
    """

    limit: FloatArray
    variances: FloatArray
    jumps: FloatArray
    parts: IntArray
    first: IntArray
    last: IntArray

    @staticmethod
    def of(judged: Judged, residuals: PatientResiduals, until: Any, rng: np.random.Generator) -> Hazards:
        """Return the hazards of judged patients until censoring, or a time before it."""
        curves, cohort, ends = judged.curves, judged.cohort, residuals.ends
        assert curves is not None
        since, n = cohort.since, len(cohort)
        censored = since + censoring_times(cohort.durations, cohort.copies, rng)
        end = np.minimum(np.minimum(censored, curves.until), until)
        # The last part has no end: events may be drawn after the last observed time.
        limit = np.column_stack([curves.accumulated(np.minimum(end, at))[0] for at in (*ends[:-1], np.inf)])
        if since.any():
            limit = limit - curves.accumulated(np.minimum(since, end))[0][:, None]
        limit = np.maximum(limit, 0.0)
        times = curves.curves.times
        jumps, parts = np.empty((n, 0)), np.empty((n, 0), np.intp)
        first = last = np.zeros(n, np.intp)
        if curves.discrete and times is not None and len(times) <= _FEW_JUMPS:
            steps = np.diff(curves.at(times), axis=1, prepend=0.0)
            certain = -np.expm1(-_CERTAIN_HAZARD)
            jumps = np.cumsum(-np.log1p(-np.clip(steps, 0.0, certain)), axis=1)
            parts = np.broadcast_to(np.searchsorted(ends[:-1], times), jumps.shape)
            first, last = (np.searchsorted(times, at, side="right") for at in (since, end))
        return Hazards(limit, residuals.variances, jumps, parts, first, last)

    def take(self, rows: IntArray) -> Hazards:
        """Return those of some rows."""
        parts: list[Any] = [part[rows] for part in self]
        return Hazards(*parts)

    def variances_of(self, rows: slice) -> FloatArray:
        """Return variances (m, J) of the residuals of some patients in the parts, which are uncorrelated."""
        return self.variances[rows]

    @staticmethod
    def as_covariance(sums: FloatArray) -> FloatArray:
        """Return covariances (G, J, J) of groups, from the sums of `variances_of`."""
        return sums[:, :, None] * np.eye(sums.shape[1])

    def rescaled(self, ratios: FloatArray) -> Hazards:
        """Return hazards that are multiplied by a number in each part, (J,)."""
        steps = np.diff(self.jumps, axis=1, prepend=0.0) if self.jumps.size else self.jumps
        return self._replace(
            limit=np.cumsum(np.diff(self.limit, axis=1, prepend=0.0) * ratios, axis=1),
            variances=self.variances * ratios,
            jumps=np.cumsum(steps * ratios[self.parts], axis=1),
        )

    def draw(self, rows: slice, unit: FloatArray) -> FloatArray:
        """Return what :meth:`Sample.draw` says; an event occurs when the hazard reaches `unit` (m, k)."""
        drawn: FloatArray = _draw_events(
            unit, self.limit[rows], self.jumps[rows], self.parts[rows], self.first[rows], self.last[rows]
        )
        return drawn


class Probabilities(NamedTuple):
    """Predictions at J times, (n, J): probabilities of the event by then, who had it, and 1 / G, 0 if it is not known.

    `at_events`, `at_free` and `at_end` are means of 1 / G at events, of those free of it, and at the time.
    """

    probability: FloatArray
    happened: BoolArray
    inverse: FloatArray
    at_events: FloatArray
    at_free: FloatArray
    at_end: FloatArray

    def events(self, **given: Any) -> PatientEvents:
        """Return observed and expected events of the patients with the given weights and clusters."""
        expected = np.diff(self.probability, axis=1, prepend=0.0)
        residual = np.diff((self.happened - self.probability) * self.inverse, axis=1, prepend=0.0)
        return PatientEvents(observed=expected + residual, expected=expected, source=self, **given)

    def take(self, rows: IntArray) -> Probabilities:
        """Return those of some rows."""
        parts: list[Any] = [part[rows] for part in self]
        return Probabilities(*parts)

    def variances_of(self, rows: slice) -> FloatArray:
        """Return covariances (m, J * J) of the residuals of some patients by the J times."""
        parts = (self.probability, self.at_events, self.at_free, self.at_end)
        found = covariances_at_times(*(part[rows] for part in parts))
        return found.reshape(len(found), -1)

    @staticmethod
    def as_covariance(sums: FloatArray) -> FloatArray:
        """Return covariances (G, J, J) of groups in the parts, from the sums of `variances_of`."""
        J = round(np.sqrt(sums.shape[1]))
        difference = np.eye(J) - np.eye(J, k=-1)
        found: FloatArray = difference @ sums.reshape(-1, J, J) @ difference.T
        return found

    def rescaled(self, ratios: FloatArray) -> Probabilities:
        """Return probabilities that are multiplied by a number in each part, (J,)."""
        steps = np.diff(self.probability, axis=1, prepend=0.0)
        return self._replace(probability=np.clip(np.cumsum(steps * ratios, axis=1), 0.0, 1.0))

    def draw(self, rows: slice, unit: FloatArray) -> FloatArray:
        """Return what :meth:`Sample.draw` says; uniform numbers exp(-`unit`) say who has the event, and when."""
        F, free = self.probability[rows], (1 - self.probability[rows]) / self.at_free[rows]
        # Mean of 1 / G at the events of each part: a share 1 / g of them is known, and counts g times.
        steps = np.diff(F, axis=1, prepend=0.0)
        total = np.diff(F * self.at_events[rows], axis=1, prepend=0.0)
        g = np.where(steps > 0, np.maximum(total, steps) / np.maximum(steps, 1e-12), 1.0)
        known = np.cumsum(steps / g, axis=1)
        # Of those free at a time some have a known event later, some are free at the end, the others censored between.
        between = np.maximum(free - (known[:, -1:] - known) - free[:, -1:], 0.0)
        uniform = -np.expm1(-unit)
        part = (uniform[:, :, None] >= known[:, None, :]).sum(axis=2)
        own = np.take_along_axis(np.column_stack([g, np.zeros(len(g))]), part, axis=1)
        residuals = []
        for j in range(F.shape[1]):
            event = part <= j
            later = (part > j) & (part < F.shape[1])
            at_end = uniform > 1 - free[:, -1:] - between[:, j, None]
            seen_free = (later | (at_end & ~event)) * self.at_free[rows][:, j, None]
            residuals.append(np.where(event, (1 - F[:, j, None]) * own, -F[:, j, None] * seen_free))
        expected = np.broadcast_to(F[:, -1:], uniform.shape)
        parts = [now - before for before, now in zip([0.0, *residuals], residuals[:-1], strict=False)]
        return np.hstack([expected + residuals[-1], expected, *parts])


Source = Hazards | Probabilities


@numba.njit(cache=True, nogil=True)
def _draw_events(
    unit: FloatArray,
    limit: FloatArray,
    jumps: FloatArray,
    parts: IntArray,
    first: IntArray,
    last: IntArray,
) -> FloatArray:
    """Return events, which occur when the cumulative hazard reaches `unit`, expected events, and parts' differences."""
    n, k = unit.shape
    n_parts, n_jumps = limit.shape[1], jumps.shape[1]
    out = np.zeros((n, (n_parts + 1) * k))
    for i in range(n):
        for j in range(k):
            u = unit[i, j]
            if n_jumps == 0:
                out[i, j] = 1.0 if u <= limit[i, -1] else 0.0
                out[i, k + j] = min(u, limit[i, -1])
                low = 0.0
                for part in range(n_parts - 1):
                    high = limit[i, part]
                    happened = 1.0 if low < u <= high else 0.0
                    out[i, (2 + part) * k + j] = happened - (min(u, high) - min(u, low))
                    low = high
                continue
            start = jumps[i, first[i] - 1] if first[i] > 0 else 0.0
            before = start
            for m in range(first[i], last[i]):
                residual = np.expm1(before - jumps[i, m])
                out[i, k + j] -= residual
                before = jumps[i, m]
                if before - start >= u:
                    out[i, j] = 1.0
                    residual += 1.0
                if parts[i, m] < n_parts - 1:
                    out[i, (2 + parts[i, m]) * k + j] += residual
                if before - start >= u:
                    break
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


def part_statistic(inside: Any, outside: Any, share: Any, scale: Any) -> Any:
    """Return the standardised difference between the events in a part of the follow-up and its share of all events.

    It is that of square roots of counts, which is about standard normal also with few events.
    """
    first, second = np.maximum(inside, 0.0) + 0.375, np.maximum(outside, 0.0) + 0.375
    return 2.0 * (np.sqrt((1.0 - share) * first) - np.sqrt(share * second)) / np.sqrt(scale)


_part_statistic = numba.njit(part_statistic, nogil=True)


@numba.njit(cache=True, nogil=True)
def _statistics(sums: FloatArray, scale: FloatArray, share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the extreme statistics (3, k) of replicates, and the sums of squares (G, 1 + J) of all.

    `sums` (G, (J + 1) k) are those of `Sample.draw`, `scale` (G, 1 + J) the dispersions of level and parts, NaN where a
    part is not tested, `share` (G, J) the parts' shares of the expected events. Extremes are the largest and the
    negative smallest statistic of the level, and the largest absolute one of parts.
    """
    n_parts = share.shape[1]
    k = sums.shape[1] // (n_parts + 1)
    extremes, squares = np.full((3, k), -np.inf), np.zeros(scale.shape)
    for g in range(len(sums)):
        for j in range(k):
            observed, expected = max(sums[g, j], 0.0), max(sums[g, k + j], 1e-12)
            deviance = 2.0 * (expected - observed)
            # Differences of sums are 0 only up to rounding.
            if observed > 1e-9:
                deviance += 2.0 * observed * np.log(observed / expected)
            z = np.sqrt(max(deviance, 0.0) / scale[g, 0])
            squares[g, 0] += z * z
            side = 0 if observed > expected else 1
            extremes[side, j] = max(extremes[side, j], z)
            rest = observed - expected
            for part in range(n_parts):
                own = rest
                if part < n_parts - 1:
                    own = sums[g, (2 + part) * k + j]
                    rest -= own
                if np.isnan(scale[g, 1 + part]):
                    continue
                inside = own + share[g, part] * expected
                z = _part_statistic(inside, observed - inside, share[g, part], scale[g, 1 + part])
                squares[g, 1 + part] += z * z
                extremes[2, j] = max(extremes[2, j], abs(z))
    return extremes, squares


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
    """Bounds on observed / expected events, and a table of significant subgroups with their rules."""

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
    """Compare observed with expected events in all subgroups, in number and in their distribution over the parts."""
    J, w = len(patients.ends), patients.weight

    def columns(rows: slice) -> FloatArray:
        parts = (patients.observed[rows], patients.expected[rows], patients.source.variances_of(rows))
        return np.hstack([patients.counts[rows, None], w[rows, None] * np.hstack(parts)])

    sums = subgroups.sums_of_parts(columns(slice(0, 1)).shape[1], columns)
    sizes, observed, expected = sums[:, 0], sums[:, 1 : 1 + J], sums[:, 1 + J : 1 + 2 * J]
    events, predicted = observed.sum(axis=1), expected.sum(axis=1)
    share = expected / predicted[:, None]
    # Where all probabilities are 1 there is no variance.
    scale = np.maximum(
        _dispersions(patients.source.as_covariance(sums[:, 1 + 2 * J :]), expected), _LEAST_DISPERSION
    )
    drawn_from = subgroups.of_rows(sample.rows)

    def statistics(k: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return extremes (3, k) and squares (G, 1 + J) of the statistics of k replicates."""
        units = sample.units(k, rng)
        drawn = drawn_from.sums_of_parts((J + 1) * k, lambda rows: sample.draw(rows, k, units, rng))
        found: tuple[FloatArray, FloatArray] = _statistics(drawn, scale, share)
        return found

    if sample.clusters is not None:
        # The variance of clusters, relative to that of patients, is that of draws.
        drawn = _replicates(statistics, drawn_from, _CLUSTER_REPLICATES, len(sample.rows), rng)
        squares = np.sum([one for _, one in drawn], axis=0)
        scale = scale * np.maximum(squares / _CLUSTER_REPLICATES, 1.0)
    extremes = _replicates(
        lambda k, rng: statistics(k, rng)[0], drawn_from, n_bootstrap, len(sample.rows), rng
    )
    upper, lower, parts = np.sort(np.concatenate(extremes, axis=1))
    tested = np.isfinite(scale[:, 1:])
    # The model's estimation error counts in tests; bounds are those of the given predictions.
    with_error = scale
    if error is not None:
        more = _dispersions(error.of_subgroups(subgroups.sums_of_parts)[:, :J, :J], expected)
        with_error = np.maximum(scale + more, LEAST_CROSS_FITTED * scale)
    z = np.column_stack(
        [
            signed_root_deviance(events, predicted, with_error[:, 0]),
            np.where(
                tested, part_statistic(observed, events[:, None] - observed, share, with_error[:, 1:]), 0.0
            ),
        ]
    )
    p_level = np.minimum(_p_values(z[:, 0], upper), _p_values(-z[:, 0], lower))
    p = np.column_stack([p_level, np.where(tested, _p_values(np.abs(z[:, 1:]), parts), 1.0)])
    # More events, fewer events, and their distribution over the parts.
    p = np.minimum((3 if tested.any() else 2) * p, 1.0)
    side = (1 + level) / 2
    high = _ratio_at(events, predicted, scale[:, 0], -_quantile(lower, side))
    low = _ratio_at(events, predicted, scale[:, 0], _quantile(upper, side))
    ratio = events / predicted
    worst, best = int(high.argmax()), int(low.argmin())
    bounds = {
        MOST: {"estimate": ratio.max(), "bound": high[worst], "group": str(subgroups.rule(worst))},
        LEAST: {"estimate": ratio.min(), "bound": low[best], "group": str(subgroups.rule(best))},
    }
    # Of a subgroup, only the most extreme part is reported; equal p-values are sorted by the statistic.
    p[:, 1:][np.arange(J) != np.abs(z[:, 1:]).argmax(axis=1)[:, None]] = 1.0
    order = np.lexsort((-np.abs(z).ravel(), p.ravel()))
    found = [divmod(int(place), 1 + J) for place in order[p.ravel()[order] <= 1 - level]]
    rows = [
        {
            "group": str(subgroups.rule(g)),
            "patients": int(np.rint(sizes[g])),
            **events_of(observed[g], expected[g], patients.ends, part - 1),
            "p": p[g, part],
        }
        for g, part in found
    ]
    return EventTest(
        bounds,
        pd.DataFrame(rows, columns=list(SIGNIFICANT)),
        tuple(subgroups.rule(g) for g, _ in found),
    )


def events_of(
    observed: FloatArray, expected: FloatArray, ends: FloatArray, part: int = -1
) -> dict[str, str | float]:
    """Return events of a group, from those in parts (J,): of the whole follow-up, or in one of its parts.

    Those expected in a part are its share of all observed events. NaN is written for the beginning and end of the
    whole follow-up, and for the end of the last part.
    """
    events, predicted, nan = float(observed.sum()), float(expected.sum()), float("nan")
    found: dict[str, str | float] = {"question": "level", "observed": events, "expected": predicted}
    since = until = nan
    if part >= 0:
        in_part = {"observed": observed[part], "expected": events * expected[part] / predicted}
        found = {"question": "shape in time", **{name: float(value) for name, value in in_part.items()}}
        since = float(ends[part - 1]) if part else 0.0
        until = float(ends[part]) if part < len(ends) - 1 else nan
    ratio = float(found["observed"]) / float(found["expected"])
    return {**found, "ratio": ratio, "events": events, "since": since, "until": until}


def _dispersions(covariance: FloatArray, expected: FloatArray) -> FloatArray:
    """Return variances over those of Poisson counts, (G, 1 + J): of all events, and of a part given all events.

    `covariance` (G, J, J) and `expected` (G, J) are those of parts. NaN for parts with too few events.
    """
    total = expected.sum(axis=1)
    share = expected / total[:, None]
    rows = covariance.sum(axis=2)
    whole = rows.sum(axis=1)
    own = np.diagonal(covariance, axis1=1, axis2=2)
    of_parts = own - 2 * share * rows + share**2 * whole[:, None]
    enough = np.minimum(expected, total[:, None] - expected) >= LEAST_IN_PART
    plain = np.where(enough, total[:, None] * share * (1 - share), np.nan)
    return np.column_stack([whole / total, of_parts / plain])


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
