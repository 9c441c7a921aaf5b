"""Corrections of the timing of events: a factor of the hazard and a slope of the log risk for each of four periods.

In period k the hazard of a patient with log risk s is multiplied by exp(a_k + b_k s): the effect of the predicted risk
is 1 + b_k times as large there as the model says. Levels a and slopes b are shrunken towards 0, the more the less they
differ from each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from drosurv.patients.arrays import batches
from drosurv.patients.target import BoolArray, FloatArray, IntArray
from drosurv.repairs.bayes_factors import (
    TOGETHER,
    Block,
    OverTime,
    Residuals,
    fit_above,
    likelihood_gains_of,
)

N_PERIODS = 4
# Prior standard deviations of log hazard ratios that are compared; a small one shrinks levels and slopes much.
TAUS = (0.05, 0.15, 0.5)
# The hazard of a period is multiplied by at most exp(2.5) = 12, and by at least 1/12.
LARGEST_CHANGE = 2.5
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
        assert at.over_time is not None
        chosen = np.flatnonzero(rows)
        (period, expected), events = at.over_time.periods(self.first, chosen), at.events[chosen]
        gains = np.empty((len(self.versions) + 1, len(chosen)))
        for out, found in zip(gains, (*self.versions.values(), self.common), strict=True):
            r = found.log_ratios(score[chosen])
            out[:] = events * r[np.arange(len(r)), period] - (np.expm1(r) * expected).sum(axis=1)
        return gains


def after_periods(at: Residuals, periods: Periods, score: FloatArray) -> Residuals:
    """Return the residuals after a correction of the timing of events, given the log risks (n,)."""
    assert at.over_time is not None
    first = np.append(0, np.searchsorted(at.over_time.edges, periods.cuts))
    n = len(score)
    total, by_period = np.empty(n), np.empty((n, len(first)), at.columns.dtype)
    ended = np.empty(n, np.intp)
    for part in batches(n, TOGETHER):
        ended[part], expected = at.over_time.periods(first, np.arange(n)[part])
        expected *= np.exp(periods.log_ratios(score[part]))
        total[part], by_period[part] = expected.sum(axis=1), expected
    over_time = OverTime(by_period, ended, at.over_time.edges[first], at.over_time.scale)
    return replace(at, expected=total, over_time=over_time)


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
    rows = np.flatnonzero(counted)
    period, expected = at.over_time.periods(first, rows)
    fits = _Fits(at.events[rows], period, expected, score[rows], cuts, at.over_time.scale, frozen)
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
    """Fits of levels and slopes to the events of n patients, each in a `period`, and expected events (n, k) in periods.

    Each fit returns a correction and the log of its Bayes factor against no correction (Laplace's approximation).
    """

    events: FloatArray
    period: IntArray
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
        theta, evidence = np.zeros((self.expected.shape[1], 2)), 0.0
        for k in range(len(theta)):
            size = 2 if version == "own" else 1
            effects, log_factor = self._fitted(partial(self._blocks, k, size), size, tau)
            theta[k, : len(effects)] = effects
            evidence += log_factor
        return Periods(self.cuts, *theta.T.copy()), evidence

    def common(self) -> tuple[Periods, float]:
        """Fit one slope, and one level for all periods of a frozen model, else one for each."""
        k = self.expected.shape[1]

        def blocks() -> Iterator[Block]:
            for period in range(k):
                for (one, score), events, expected in self._blocks(period, 2):
                    columns = np.zeros((2 if self.frozen else k + 1, len(one)))
                    columns[0 if self.frozen else period], columns[-1] = one, score
                    yield columns, events, expected

        effects, evidence = self._fitted(blocks, 2 if self.frozen else k + 1, max(TAUS))
        return Periods(self.cuts, np.broadcast_to(effects[:-1], k), np.full(k, effects[-1])), evidence

    def _blocks(self, k: int, size: int) -> Iterator[Block]:
        """Yield a level and, with size 2, the score, with the events in period k, of the patients at risk there."""
        for part in batches(len(self.score), TOGETHER):
            events = np.where(self.period[part] == k, self.events[part], 0.0)
            expected = self.expected[part, k]
            rows = np.flatnonzero((expected > 0) | (events > 0))
            columns = np.ones((size, len(rows)))
            columns[1:] = self.score[part][rows]
            yield columns, events[rows], expected[rows]

    def _fitted(
        self, blocks: Callable[[], Iterator[Block]], size: int, tau: float
    ) -> tuple[FloatArray, float]:
        """Fit a Poisson ridge regression on columns of levels and, if there are several, on the score (last column)."""
        last = size - 1
        penalty = np.full(size, tau**-2.0)
        if last:
            penalty[last] *= self.scale**2
        bounded = last if last and not self.frozen else None
        # A slope of -1 leaves no effect of the risk.
        effects = fit_above(blocks, penalty, bounded, -1.0)
        information, gain = np.zeros((size, size)), 0.0
        for columns, events, expected in blocks():
            r = np.clip(effects @ columns, -LARGEST_CHANGE, LARGEST_CHANGE)
            information += (columns * (np.exp(r) * expected)) @ columns.T
            gain += float(likelihood_gains_of(r, events, expected).sum())
        spread = np.linalg.slogdet(np.eye(size) + information / penalty)[1]
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
