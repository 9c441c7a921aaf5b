"""Corrections of the timing of events: a factor of the hazard and a slope of the log risk for each of four periods.

In period k the hazard of a patient with log risk s is multiplied by exp(a_k + b_k s): the effect of the predicted risk
is 1 + b_k times as large there as the model says. Levels a and slopes b are shrunken towards 0, the more the less they
differ from each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from drosurv.patients.arrays import batches
from drosurv.patients.target import BoolArray, FloatArray, IntArray
from drosurv.repairs.bayes_factors import Residuals, fit_above, likelihood_gains_of

N_PERIODS = 4
# Prior standard deviations of log hazard ratios that are compared; a small one shrinks levels and slopes much.
TAUS = (0.05, 0.15, 0.5)
# The hazard of a period is multiplied by at most exp(2.5) = 12, and by at least 1/12.
LARGEST_CHANGE = 2.5
# Patients whose columns are multiplied at a time.
_TOGETHER = 4096
# What is corrected: effects of everyone and of a group, those of the group (in each period: level and slope), or the
# level only.
Version = Literal["full", "own", "level"]


@dataclass(frozen=True, eq=False)
class Periods:
    """A correction of the hazards in k periods.

    Periods end at the k - 1 `cuts`, which belong to the earlier one; the last has no end. `levels` (k,) are log hazard
    ratios of a patient with log risk 0, the mean; `slopes` (k,) are what is added to the effect of the log risk.
    """

    cuts: FloatArray
    levels: FloatArray
    slopes: FloatArray

    def log_ratios(self, score: FloatArray) -> FloatArray:
        """Return the corrections (n, k) of the log hazards of patients with log risks (n,), in each of k periods."""
        return np.clip(self.levels + np.outer(score, self.slopes), -LARGEST_CHANGE, LARGEST_CHANGE)

    def at_intervals(self, edges: FloatArray, score: FloatArray) -> FloatArray:
        """Return the same in the intervals that begin at the edges (m,), of which the cuts are some, (n, m)."""
        return self.log_ratios(score)[:, np.searchsorted(self.cuts, edges, side="right")]


@dataclass(frozen=True, eq=False)
class FoundPeriods:
    """Versions of a correction of the timing of events, found on some of the patients.

    The periods begin with the intervals `first` (k,). `common` is a correction with the same slope in all periods, with
    which the versions are compared; `log_odds` are the log posterior odds against it.
    """

    first: IntArray
    versions: dict[Version, Periods]
    common: Periods
    log_odds: float

    def gains(self, at: Residuals, score: FloatArray, rows: BoolArray) -> FloatArray:
        """Return the gains in log likelihood of m rows, (v + 1, m): of v versions, then of the common version."""
        events, expected = in_periods(at, self.first, rows)
        changes = np.stack(
            [found.log_ratios(score[rows]) for found in (*self.versions.values(), self.common)]
        )
        gains: FloatArray = likelihood_gains_of(changes, events, expected).sum(axis=2)
        return gains


def after_periods(at: Residuals, periods: Periods, score: FloatArray) -> Residuals:
    """Return the residuals after a correction of the timing of events, given the log risks (n,)."""
    assert at.over_time is not None
    over_time = at.over_time.joined(np.append(0, np.searchsorted(at.over_time.edges, periods.cuts)))
    expected = over_time.expected * np.exp(periods.log_ratios(score))
    return replace(
        at, expected=expected.sum(axis=1), over_time=replace(over_time, unscaled=expected, factor=None)
    )


def in_periods(at: Residuals, first: IntArray, rows: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return observed and expected events of some rows in the periods that begin with the intervals `first`, (m, k)."""
    assert at.over_time is not None
    over_time = at.over_time.joined(first)
    observed = over_time.interval[rows, None] == np.arange(len(first))
    return np.where(observed, at.events[rows, None], 0.0), over_time.expected[rows]


def find_periods(
    at: Residuals, score: FloatArray, counted: BoolArray, *, frozen: bool
) -> FoundPeriods | None:
    """Return corrections fitted on the counted patients; None if they have posterior odds below 1.

    The periods hold about equally many of their events. The baseline of a fitted model is estimated again after
    repairs: its corrections are compared with levels of their own for the periods, and must not reverse the effect of
    the risk. Those of a `frozen` model are compared with one level.
    """
    assert at.over_time is not None
    first = periods_of(at, counted)
    if len(first) < 2:
        return None
    cuts = at.over_time.edges[first[1:]]
    fits = _Fits(*in_periods(at, first, counted), score[counted], cuts, at.over_time.scale, frozen)
    common, least = fits.common()
    versions: dict[Version, Periods] = {}
    odds = []
    for version in fits.versions:
        found = [fits.by_period(version, tau) for tau in TAUS]
        evidence = np.array([one for _, one in found])
        versions[version] = found[int(evidence.argmax())][0]
        odds.append(np.logaddexp.reduce(evidence) - np.log(len(TAUS)))
    log_odds = float(max(odds) - max(least, 0.0))
    return FoundPeriods(first, versions, common, log_odds) if log_odds > 0 else None


def periods_of(at: Residuals, counted: BoolArray) -> IntArray:
    """Return the first interval of each period: those whose beginnings are nearest to quartiles of the event times."""
    assert at.over_time is not None
    m = len(at.over_time.edges)
    events = np.bincount(at.over_time.interval[counted], at.events[counted], minlength=m)
    before = np.cumsum(events)[:-1] / max(events.sum(), 1e-12)
    inner = [int(abs(before - q).argmin()) + 1 for q in np.arange(1, N_PERIODS) / N_PERIODS] if m > 1 else []
    return np.unique([0, *inner]).astype(np.intp)


@dataclass(frozen=True, eq=False)
class _Fits:
    """Fits of levels and slopes to observed and expected events of n patients in k periods, both (n, k).

    Each fit returns a correction and the log of its Bayes factor against no correction (Laplace's approximation).
    """

    events: FloatArray
    expected: FloatArray
    score: FloatArray
    cuts: FloatArray
    scale: float
    frozen: bool

    @property
    def versions(self) -> tuple[Version, ...]:
        return ("own", "level") if self.frozen else ("own",)

    def by_period(self, version: Version, tau: float) -> tuple[Periods, float]:
        """Fit each period on its own; tau is the prior standard deviation, per standard deviation of the log risk."""
        Z = np.column_stack([np.ones(len(self.score)), self.score])[:, : 2 if version == "own" else 1]
        theta, evidence = np.zeros((self.events.shape[1], 2)), 0.0
        for k in range(len(theta)):
            rows = np.flatnonzero((self.expected[:, k] > 0) | (self.events[:, k] > 0))
            effects, log_factor = self._fitted(Z[rows], self.events[rows, k], self.expected[rows, k], tau)
            theta[k, : len(effects)] = effects
            evidence += log_factor
        return Periods(self.cuts, *theta.T.copy()), evidence

    def common(self) -> tuple[Periods, float]:
        """Fit one slope, and one level for all periods of a frozen model, else one for each."""
        k = self.events.shape[1]
        patient, period = np.nonzero((self.expected > 0) | (self.events > 0))
        # One row of memory per column, as `poisson_ridge` needs it.
        Z = np.ones((2, len(period))).T if self.frozen else np.zeros((k + 1, len(period))).T
        if not self.frozen:
            Z[np.arange(len(period)), period] = 1.0
        Z[:, -1] = self.score[patient]
        events, expected = self.events[patient, period], self.expected[patient, period]
        del patient, period
        effects, evidence = self._fitted(Z, events, expected, max(TAUS))
        return Periods(self.cuts, np.broadcast_to(effects[:-1], k), np.full(k, effects[-1])), evidence

    def _fitted(
        self, Z: FloatArray, events: FloatArray, expected: FloatArray, tau: float
    ) -> tuple[FloatArray, float]:
        """Fit a Poisson ridge regression on columns of levels and, if there are several, on the score (last column)."""
        last = Z.shape[1] - 1
        penalty = np.full(last + 1, tau**-2.0)
        if last:
            penalty[last] *= self.scale**2
        bounded = last if last and not self.frozen else None
        # A slope of -1 leaves no effect of the risk.
        effects = fit_above(Z, events, expected, penalty, bounded, -1.0)
        r = np.clip(Z @ effects, -LARGEST_CHANGE, LARGEST_CHANGE)
        information, mean = np.zeros((last + 1, last + 1)), np.exp(r) * expected
        for rows in batches(len(Z), _TOGETHER):
            information += (Z[rows] * mean[rows, None]).T @ Z[rows]
        spread = np.linalg.slogdet(np.eye(last + 1) + information / penalty)[1]
        gain = float(likelihood_gains_of(r, events, expected).sum())
        return effects, gain - 0.5 * float((penalty * effects**2).sum() + spread)


def repaired_hazard(
    hazard: Callable[[FloatArray], FloatArray], times: FloatArray, edges: FloatArray, factors: FloatArray
) -> FloatArray:
    """Return cumulative hazards (n, T) at the times, multiplied by factors in intervals.

    `hazard` returns the uncorrected ones at any times; `edges` (m,) are the beginnings of the intervals, the first 0;
    the last has no end. The `factors` are those of all patients (m,), or of each patient (n, m).
    """
    found = hazard(np.concatenate([edges, times]))
    at_edges, at_times = found[:, : len(edges)], found[:, len(edges) :]
    out = np.zeros_like(at_times)
    for m in range(len(edges)):
        low = at_edges[:, [m]]
        high = at_edges[:, [m + 1]] if m + 1 < len(edges) else np.inf
        out += np.atleast_2d(factors)[:, [m]] * np.clip(at_times - low, 0.0, high - low)
    return out
