"""Outcomes at a horizon, weighted for censoring, and bands from the influence of each patient.

Who had the event by the horizon is known of the patients who were not censored before it; each counts as one over the
probability of being uncensored (`drosurv.findings.censoring`). Sums over groups add up to the sum over everybody.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from drosurv.findings.censoring import CensoringModel
from drosurv.findings.judged import Judged
from drosurv.findings.weighted_residuals import MOST_TAKEN, WeightedResiduals, reduced, weighted_residuals
from drosurv.target import BoolArray, FloatArray, IntArray, Target

# Normal draws from which the quantile of the largest error of a curve is taken.
_DRAWS = 4_000


@dataclass(frozen=True, eq=False)
class OutcomesAtHorizon:
    """Predicted risk and outcome of n patients at a horizon.

    `happened` (n,) is 1 for patients who had the event by the horizon; `inverse` (n,) is one over the probability of
    being uncensored between `since` and `until` (n,), 0 where the outcome is not known. `weight` (n,) are numbers of
    copies, `clusters` (n,) the clusters as numbers. `at_events` and `at_free` (n,) are expected values of `inverse` for
    patients with the event and without.
    """

    horizon: float
    risk: FloatArray
    happened: FloatArray
    inverse: FloatArray
    weight: FloatArray
    until: FloatArray
    at_events: FloatArray
    at_free: FloatArray
    since: FloatArray | None = None
    censoring: CensoringModel | None = None
    clusters: IntArray | None = None

    @classmethod
    def of_judged(cls, judged: Judged, rows: IntArray | None = None) -> OutcomesAtHorizon:
        """Weight the outcomes of judged patients, or of some `rows`; with a cause, they are events of this cause.

        Times count from entry on, but not for predictions at few times.
        """
        at, cohort = judged.at_horizon, judged.cohort
        weighted = isinstance(at, WeightedResiduals)
        if isinstance(at, WeightedResiduals) and rows is None:
            return cls._of_residuals(at, judged.risk, judged.horizon)
        used = np.arange(len(cohort)) if rows is None else rows
        columns = np.empty((len(cohort), 0)) if cohort.columns is None else cohort.columns
        clusters = None if cohort.clusters is None else cohort.clusters[used]
        return cls.of(
            (cohort.target if weighted else cohort.durations).take(used),
            judged.risk[used],
            judged.horizon,
            columns[used],
            other=None if cohort.other is None else cohort.other[used],
            weight=None if cohort.weight is None else cohort.weight[used],
            clusters=None if clusters is None else np.unique(clusters, return_inverse=True)[1],
        )

    @classmethod
    def of(
        cls,
        target: Target,
        risk: FloatArray,
        horizon: float,
        columns: FloatArray,
        *,
        other: BoolArray | None = None,
        weight: FloatArray | None = None,
        clusters: IntArray | None = None,
    ) -> OutcomesAtHorizon:
        """Weight the outcomes of patients with predicted risks (n,); censoring may depend on columns (n, q) too.

        `other` (n,) are patients whose observation ended with an event of another cause; the risk is then the
        incidence.
        """
        at = np.array([horizon])
        how: dict[str, Any] = {"other": other, "parts": 1, "weight": weight, "clusters": clusters}
        return cls._of_residuals(weighted_residuals(target, at, risk[:, None], columns, **how), risk, horizon)

    @classmethod
    def _of_residuals(cls, found: WeightedResiduals, risk: FloatArray, horizon: float) -> OutcomesAtHorizon:
        return cls(
            horizon=horizon,
            risk=risk,
            happened=found.happened[:, -1].astype(np.float64),
            inverse=found.inverse[:, -1],
            # Patients who start at the horizon or later are not predicted by then.
            weight=found.weight * (found.start < horizon),
            until=found.before[:, -1],
            at_events=found.at_events[:, -1],
            at_free=found.at_free[:, -1],
            since=found.after,
            censoring=found.censoring,
            clusters=found.clusters,
        )

    def __len__(self) -> int:
        return len(self.risk)

    @property
    def events(self) -> FloatArray:
        """Weighted events (n,), whose mean is the observed risk."""
        found: FloatArray = self.happened * self.inverse
        return found

    def is_known(self, rows: IntArray) -> bool:
        """Whether outcomes at the horizon can be estimated: one patient is known to be free then, or all are known."""
        known = self.inverse[rows] > 0
        return bool(known.all() or (known & (self.happened[rows] == 0)).any())

    def model_covariance(self, terms: FloatArray, mean: FloatArray) -> FloatArray:
        """Return the covariance (K, K) of sums of terms (n, K) times weighted residuals, if `mean` (n,) is the risk.

        In small groups it is less variable than that of the contributions. Estimated weights make it smaller.
        """
        variance = mean * (1 - mean) * ((1 - mean) * self.at_events + mean * self.at_free)
        found: FloatArray = (terms * (self.weight * variance)[:, None]).T @ terms
        if self.censoring is not None:
            residuals = self.weight * self.inverse * (self.happened - mean)
            taken = self.censoring.covariance(terms * residuals[:, None], self.until, self.since)
            found = reduced(found, taken)
        return found

    def events_covariance(self, terms: FloatArray, mean: FloatArray) -> FloatArray:
        """Return the covariance (K, K) of sums of terms (n, K) times weighted events, if `mean` (n,) is the risk."""
        variance = mean * (self.at_events - mean)
        found: FloatArray = (terms * (self.weight * variance)[:, None]).T @ terms
        if self.censoring is not None:
            events = terms * (self.weight * self.events)[:, None]
            taken = np.diag(self.censoring.covariance(events, self.until, self.since))
            # Sum by sum: nested sums are nearly equal, and together would look as if more than all were taken.
            left = 1 - np.clip(taken / np.maximum(np.diag(found), 1e-300), 0.0, MOST_TAKEN)
            found = found * np.sqrt(np.outer(left, left))
        return found

    def contributions(self, centred: FloatArray, weighted: FloatArray) -> FloatArray:
        """Return contributions (n, K) of the patients to the errors of K sums.

        `centred` (n, K) are the terms of the sums less their means. `weighted` (n, K) are those of their parts that are
        weighted for censoring: through these, each patient also has an influence on the weights of others.
        """
        found: FloatArray = self.weight[:, None] * centred
        if self.censoring is not None and weighted.any():
            influence = self.censoring.influences(self.weight[:, None] * weighted, self.until, self.since)
            found = found + self.weight[:, None] * influence
        return found

    def contributions_of_group(self, rows: IntArray, fixed: FloatArray, by_event: FloatArray) -> FloatArray:
        """Return contributions (n, K) to sums of `fixed` + `by_event` * events, each (m, K), over m rows."""
        centred, weighted = np.zeros((2, len(self), by_event.shape[1]))
        weighted[rows] = by_event * self.events[rows, None]
        centred[rows] = fixed + weighted[rows]
        centred[rows] -= np.average(centred[rows], axis=0, weights=self.weight[rows])
        return self.contributions(centred, weighted)

    def covariance(self, contributions: FloatArray) -> FloatArray:
        """Return the covariance (K, K) of sums from the contributions (n, K) of patients, or of their clusters."""
        if self.clusters is None:
            # A patient of weight 2 stands for two independent ones.
            rows = contributions / np.sqrt(np.maximum(self.weight, 1e-12))[:, None]
            n = float(self.weight.sum())
        else:
            n_clusters = int(self.clusters.max()) + 1
            rows = np.column_stack(
                [np.bincount(self.clusters, column, n_clusters) for column in contributions.T]
            )
            n = n_clusters
        found: FloatArray = rows.T @ rows * (n / max(n - 1.0, 1.0))
        return found

    def design_effects(self, contributions: FloatArray, rows: IntArray) -> FloatArray:
        """Return how many times larger the variances (K,) of a group's sums are than those of independent patients.

        They are at least 1. For a group in one cluster they are 1: given this cluster, its patients are independent. A
        sum without contributions has the median of the others.
        """
        if not self.in_several_clusters(rows):
            return np.ones(contributions.shape[1])
        alone = np.diag(replace(self, clusters=None).covariance(contributions))
        clustered = np.diag(self.covariance(contributions))
        known = alone > 0
        found = np.maximum(np.divide(clustered, alone, out=np.ones(len(alone)), where=known), 1.0)
        found[~known] = np.median(found[known]) if known.any() else 1.0
        return found

    def error_of_sum(self, rows: IntArray, fixed: FloatArray | float, by_event: FloatArray | float) -> float:
        """Return the standard error of the sum of `fixed` + `by_event` * events over the rows of a group."""
        parts = (np.broadcast_to(part, len(rows))[:, None] for part in (fixed, by_event))
        each = self.contributions_of_group(rows, *parts)
        found = replace(self, clusters=None).covariance(each) * self.design_effects(each, rows)
        return float(np.sqrt(found[0, 0]))

    def in_several_clusters(self, rows: IntArray) -> bool:
        """Whether a group is in several clusters; given one cluster, its patients are independent."""
        return self.clusters is not None and len(np.unique(self.clusters[rows])) > 1


def simultaneous_reach(covariance: FloatArray, level: float) -> FloatArray:
    """Return half widths (K,) within which all errors of K estimates lie at once with a probability.

    They are multiples of the standard errors; the factor is a quantile of the largest standardised error in normal
    draws, as in a bootstrap with normal multipliers of the patients' contributions.
    """
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    known = error > 1e-12 * max(float(error.max(initial=0.0)), 1e-300)
    if not known.any():
        return np.zeros_like(error)
    scaled = covariance[np.ix_(known, known)] / np.outer(error[known], error[known])
    values, vectors = np.linalg.eigh(scaled)
    large = values > 1e-10 * values[-1]
    root = vectors[:, large] * np.sqrt(values[large])
    draws = np.random.default_rng(0).standard_normal((_DRAWS, root.shape[1])) @ root.T
    factor = float(np.quantile(np.abs(draws).max(axis=1), level))
    reach: FloatArray = factor * error
    return reach
