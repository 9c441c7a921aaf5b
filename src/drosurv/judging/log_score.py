"""Log scores of predictions at few times, weighted for censoring.

Times divide the follow-up into intervals. The log score of a patient is the log probability of the interval in which
the event happened, or of none; of censored patients the outcomes are pseudo-values. Its expectation is that of the log
likelihood without censoring. Counting censored patients until the beginning of their
interval instead would prefer hazards that are too large. Where curves are known throughout, scores are log likelihoods
with hazards that are constant on intervals, as in :func:`drosurv.metrics.likelihood_gain`; that function takes hazards
as constant between few times too, since it knows no model of censoring.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drosurv.metrics.likelihood_gain import interval_rates
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target

# Smallest probability of an event or of none in an interval, where probabilities are not rounded.
LEAST = 1e-6
# Rounded probabilities are scored where they change by so many units of their last digit.
_VISIBLE = 2


def scored_times(survival: FloatArray, unit: float) -> IntArray:
    """Return the times, as columns of survival (n, K), between which rounded probabilities change visibly.

    On average, at least two units of the last digit are between two of them, and before the first.

    >>> scored_times(np.array([[0.99, 0.99, 0.97, 0.96, 0.95, 0.95]]), 0.01).tolist()
    [2, 5]
    """
    if not unit:
        return np.arange(survival.shape[1])
    mean, kept, last = survival.mean(axis=0), [], 1.0
    for column, value in enumerate(mean):
        if last - value >= _VISIBLE * unit * (1 - 1e-6):
            kept.append(column)
            last = value
    # The last interval reaches until the last time.
    return np.array([*kept[:-1], len(mean) - 1], np.intp)


def outcome_scores(
    survival: FloatArray, outcome: FloatArray, followed: BoolArray, unit: float = 0.0
) -> FloatArray:
    """Return each patient's log score (n,) of probabilities of no event (n, K), or (1, K) for all, by K times.

    It is the log probability of the interval in which the event happened, or of none. `outcome` (n, K) are
    pseudo-values of the event by each time, of the patients who were `followed` (n, K) until then. Rounded
    probabilities (`unit`) of 0 and 1 count as those in the middle of their range.
    """
    least = unit / 4 if unit else LEAST
    S = np.clip(np.broadcast_to(survival, outcome.shape), least, 1.0)
    before = np.column_stack([np.ones(len(S)), S[:, :-1]])
    # An event has the probability of its interval, of which both ends are rounded.
    drop = np.clip((before - S) / before, least, 1 - least)
    free = np.where(followed, np.log1p(-drop), 0.0)
    until = np.cumsum(free, axis=1)
    happened = np.where(followed, np.diff(outcome, axis=1, prepend=0.0), 0.0)
    found: FloatArray = (happened * (np.log(drop) + until - free)).sum(axis=1)
    found += (1 - happened.sum(axis=1)) * until[:, -1]
    return found


@dataclass(frozen=True, eq=False)
class ScoredIntervals:
    """Intervals of the follow-up on which hazards are constant, between edges (m + 1,).

    The last ones may be cells of one interval: its hazard is their mean, weighted by the time for which patients were
    observed in each, `observed` (c,).
    """

    edges: FloatArray
    observed: FloatArray

    def rates(self, hazard: FloatArray, *, joined: bool = False) -> FloatArray:
        """Return hazards (n, k) in k intervals from cumulative hazards (n, m + 1) at the edges.

        If `joined`, an interval without a step of the curve is merged with the next that has one.
        """
        cells = len(self.observed)
        whole = np.append(np.arange(len(self.edges) - cells), len(self.edges) - 1)
        rates = interval_rates(hazard[:, whole], self.edges[whole], joined=joined)
        if cells > 1:
            in_cells = np.diff(hazard[:, -cells - 1 :], axis=1) / np.diff(self.edges[-cells - 1 :])
            last = in_cells @ (self.observed / self.observed.sum())
            rates[:, -1] = np.where(last > 0, last, rates[:, -1])
        return np.asarray(np.maximum(rates, LEAST / self.edges[-1]), np.float64)

    def of(self, time: FloatArray) -> IntArray:
        """Return the number of the interval of each time."""
        last = len(self.edges) - 1 - len(self.observed)
        return np.clip(np.searchsorted(self.edges, time) - 1, 0, last)


def hazard_scores(rate: FloatArray, total: FloatArray, interval: IntArray, happened: BoolArray) -> FloatArray:
    """Return each patient's log likelihood (n,) under hazards that are constant on k intervals.

    `rate` (n, k), or (1, k) for all, are the hazards, `total` (n,) those summed while each patient was observed, and
    `interval` (n,) the numbers of the intervals in which observation ended.
    """
    rows = np.arange(len(total)) if len(rate) > 1 else np.zeros(len(total), np.intp)
    found: FloatArray = np.where(happened, np.log(rate[rows, interval]), 0.0) - total
    return found


def probability_scores(p: FloatArray, times: FloatArray, target: Target) -> FloatArray:
    """Return each patient's log likelihood (n,) of event probabilities (n, K), or (K,) for all, at K times.

    Patients are at risk at the times after entry until their own; without entry, at time 0 too.
    """
    p = np.clip(np.broadcast_to(p, (len(target), len(times))), LEAST, 1 - LEAST)
    last = np.searchsorted(times, target.time, side="right")
    first = 0 if target.entry is None else np.searchsorted(times, target.entry, side="right")
    free = np.column_stack([np.zeros(len(p)), np.cumsum(np.log1p(-p), axis=1)])
    rows, index = np.arange(len(p)), np.clip(np.searchsorted(times, target.time), 0, len(times) - 1)
    found = free[rows, last] - free[rows, first]
    happened = target.event & (target.time <= times[-1])
    # An event between two times is one of the next time.
    through = np.where(target.time < times[index], 0.0, np.log1p(-p[rows, index]))
    found = found + np.where(happened, np.log(p[rows, index]) - through, 0.0)
    return np.asarray(found, np.float64)
