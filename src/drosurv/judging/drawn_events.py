"""Observed and expected events of patients in parts of the follow-up, and draws of them, as if the model were right.

Events are drawn from curves that are known throughout (`Hazards`), or from probabilities at few times
(`Probabilities`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numba
import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError
from drosurv.judging.few_times import ResidualsAtTimes
from drosurv.judging.judged import Judged
from drosurv.judging.residuals import PatientResiduals
from drosurv.metrics.follow_up import left_limit
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.patients.arrays import inverse
from drosurv.patients.observation import sample_rows, sample_size
from drosurv.patients.target import FloatArray, IntArray, Target

# Events are simulated jump by jump if curves have at most so many jumps; with more, curves are treated as continuous.
_FEW_JUMPS = 64
# Of very many patients, a sample with so many events, of at most so many, is enough for the reference distribution.
_SAMPLED_EVENTS, _MOST_SAMPLED = 10_000, 200_000
_CERTAIN_HAZARD = 23.0


@dataclass(frozen=True, eq=False, kw_only=True)
class PatientEvents:
    """Observed and expected events (n, J) of n patients in J parts of the follow-up, and the `source` that draws them.

    `ends` (J,) are the ends of the parts. `weight` (n,) is 1 for rows that are judged, 0 for others. `id` (n,) names
    the patient of each row, if patients have several, and `clusters` (n,) the cluster. Random numbers are drawn for the
    rows in the `order` (n,).
    """

    weight: FloatArray
    id: IntArray | None
    observed: FloatArray
    expected: FloatArray
    ends: FloatArray
    source: Source
    order: IntArray
    clusters: IntArray | None = None

    @staticmethod
    def of(
        judged: Judged, residuals: PatientResiduals, until: Any, order: IntArray, rng: np.random.Generator
    ) -> PatientEvents:
        """Return the events of patients, counted until a time."""
        weight, known = residuals.weight * judged.inside, residuals.known_parts
        if known == 0:
            few = "too few patients were observed until the first predicted time: predict earlier times."
            raise ArgumentError("model", few)
        source: Source
        if isinstance(residuals, ResidualsAtTimes):
            source = Probabilities.of(residuals, known, weight)
        else:
            source = Hazards.of(judged, residuals, until, order, rng)
        return PatientEvents(
            weight=weight,
            id=judged.cohort.patients,
            observed=residuals.observed[:, :known],
            expected=residuals.expected[:, :known],
            ends=residuals.ends[:known],
            source=source,
            order=order,
            clusters=residuals.clusters,
        )

    @property
    def counts(self) -> FloatArray:
        """Number of patients that each row stands for, (n,): the rows of one patient have equal shares of one."""
        if self.id is None:
            return self.weight
        known = self.weight > 0
        return known / np.maximum(np.bincount(self.id, known), 1)[self.id]

    def rescaled(self, ratios: FloatArray) -> PatientEvents:
        """Return the same patients after hazards, or probabilities, are multiplied by a number in each part, (J,)."""
        source = self.source.rescaled(ratios)
        expected = source.steps if isinstance(source, Probabilities) else self.expected * ratios
        return replace(self, expected=expected, source=source)

    def sample(self, rng: np.random.Generator) -> Sample:
        """Return copies of patients for a reference distribution: all, or a sample of very many."""
        total = float(self.weight.sum())
        events = float((self.weight @ self.expected).sum())
        size = sample_size(total, events, _MOST_SAMPLED, _SAMPLED_EVENTS)
        rows = self.order[self.weight[self.order] > 0]
        # Clusters are numbered in the order of their first rows.
        clusters = None if self.clusters is None else pd.factorize(self.clusters[rows])[0]
        rows = rows[sample_rows(len(rows), size, rng, clusters)]
        if self.clusters is None:
            return Sample(rows, self.source.take(rows))
        sample = Sample(rows, self.source.take(rows), pd.factorize(self.clusters[rows])[0])
        return replace(sample, shared=self._shared(sample, rng))

    def _shared(self, sample: Sample, rng: np.random.Generator) -> float:
        """Estimate the share of clusters whose rows must have the same outcome to match the observed variance.

        The upper bound of the estimate, two standard errors above it, is returned: too small a share would make false
        alarms more frequent.
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
        sums = [np.bincount(sample.clusters, part) for part in (drawn[:, :32] - drawn[:, 32:64]).T]
        squares = float((np.column_stack(sums) ** 2).sum(axis=0).mean())
        together = squares * float(self.weight.sum()) / len(sample.rows)
        if together <= alone * (1 + 1e-9):
            return 0.0
        return float(np.clip((seen + 2 * error - alone) / (together - alone), 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Sample:
    """Copies of patients whose events are drawn: their rows (m,), numbers of clusters, and what is drawn from.

    The rows of a cluster have the same outcome with probability `shared`, and independent outcomes otherwise.
    """

    rows: IntArray
    source: Source
    clusters: IntArray | None = None
    shared: float = 0.0

    def units(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Return exponential numbers (clusters, n_draws) of clusters whose rows have one outcome; NaN for others."""
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
    def of(
        judged: Judged, residuals: PatientResiduals, until: Any, order: IntArray, rng: np.random.Generator
    ) -> Hazards:
        """Return the hazards of judged patients until censoring, or a time before it."""
        curves, cohort, ends = judged.curves, judged.cohort, residuals.ends
        assert curves is not None
        since, n = cohort.since, len(cohort)
        target = cohort.target.since_entry.others_censored
        censored = since + censoring_times(target, order, rng, cohort.clusters)
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
            steps = np.diff(curves.curves.cumulative_hazard(times), axis=1, prepend=0.0)
            certain = -np.expm1(-_CERTAIN_HAZARD)
            jumps = np.cumsum(-np.log1p(-np.clip(steps, 0.0, certain)), axis=1)
            parts = np.broadcast_to(np.searchsorted(ends[:-1], times), jumps.shape)
            first, last = (np.searchsorted(times, at, side="right") for at in (since, end))
        return Hazards(limit, residuals.variances, jumps, parts, first, last)

    def take(self, rows: IntArray) -> Hazards:
        """Return the hazards of some rows."""
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
        """See :meth:`Sample.draw`; an event occurs when the hazard reaches `unit` (m, k)."""
        return _draw_events(
            unit, self.limit[rows], self.jumps[rows], self.parts[rows], self.first[rows], self.last[rows]
        )


@dataclass(frozen=True, eq=False)
class Probabilities:
    """Predictions at few times: probabilities `steps` (n, J) of the event in the parts, from which events are drawn.

    Censoring makes residuals vary more than events do, and most where few patients of like risk were followed. To vary
    as much, a share 1 / g of the drawn events is known, and counts g times, with the numbers `inflation` (n, J).
    """

    steps: FloatArray
    inflation: FloatArray

    @staticmethod
    def of(residuals: ResidualsAtTimes, known: int, weight: FloatArray) -> Probabilities:
        """Return probabilities in `known` parts whose drawn residuals vary as much as those of n patients."""
        observed, expected = residuals.observed[:, :known], residuals.expected[:, :known]
        added = np.divide(
            residuals.added_in_parts()[:, :known], expected, out=np.zeros(expected.shape), where=expected > 0
        )
        wanted = weight @ ((observed - expected) ** 2 + expected**2)
        found = weight @ (expected * (1 + added))
        return Probabilities(expected, (1 + added) * np.maximum(wanted / np.maximum(found, 1e-12), 1.0))

    def take(self, rows: IntArray) -> Probabilities:
        """Return the probabilities of some rows."""
        return Probabilities(self.steps[rows], self.inflation[rows])

    def variances_of(self, rows: slice) -> FloatArray:
        """Return covariances (m, J * J) of the residuals of some patients in the parts."""
        steps = self.steps[rows]
        found = -steps[:, :, None] * steps[:, None, :]
        found[:, range(steps.shape[1]), range(steps.shape[1])] += self.inflation[rows] * steps
        return found.reshape(len(found), -1)

    @staticmethod
    def as_covariance(sums: FloatArray) -> FloatArray:
        """Return covariances (G, J, J) of groups in the parts, from the sums of `variances_of`."""
        J = round(np.sqrt(sums.shape[1]))
        return sums.reshape(-1, J, J)

    def rescaled(self, ratios: FloatArray) -> Probabilities:
        """Return probabilities that are multiplied by a number in each part, (J,)."""
        steps = self.steps * ratios
        return replace(self, steps=steps / np.maximum(steps.sum(axis=1, keepdims=True), 1.0))

    def draw(self, rows: slice, unit: FloatArray) -> FloatArray:
        """See :meth:`Sample.draw`; uniform numbers exp(-`unit`) say who has the event, and when."""
        steps, g = self.steps[rows], self.inflation[rows]
        known, uniform = np.cumsum(steps / g, axis=1), -np.expm1(-unit)
        part = (uniform[:, :, None] >= known[:, None, :]).sum(axis=2)
        observed = np.take_along_axis(np.pad(g, ((0, 0), (0, 1))), part, axis=1)
        expected = np.broadcast_to(steps.sum(axis=1, keepdims=True), uniform.shape)
        parts = [np.where(part == j, g[:, [j]], 0.0) - steps[:, [j]] for j in range(steps.shape[1] - 1)]
        return np.hstack([observed, expected, *parts])


Source = Hazards | Probabilities


@numba.njit(cache=True, nogil=True)
def _draw_events(
    unit: FloatArray, limit: FloatArray, jumps: FloatArray, parts: IntArray, first: IntArray, last: IntArray
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


def censoring_times(
    target: Target, order: IntArray, rng: np.random.Generator, clusters: IntArray | None = None
) -> FloatArray:
    """Return the censoring time (n,) of each row: as observed, or, after an event, drawn from Kaplan-Meier.

    If censoring is independent of the event time, so are these censoring times, and with them the same data would have
    been observed. Equal rows of one of the `clusters` (n,), such as copies of a patient, have one censoring time.
    Numbers are drawn for the rows in `order` (n,).
    """
    _, censoring = KaplanMeier.both(target)
    uniform = rng.random(len(target))[inverse(order)]
    if clusters is not None:
        numbers, first = np.unique(clusters[order], return_index=True)
        uniform = uniform[order][first][np.searchsorted(numbers, clusters)]
    reached = uniform * left_limit(censoring.times, censoring.survival, target.time)
    jump = np.searchsorted(-censoring.survival, -reached, side="left")
    drawn = np.append(censoring.times, target.time.max())[jump]
    return np.where(target.event, np.maximum(drawn, target.time), target.time)
