"""Harrell's c-index and the integrated Brier score as the published comparison defines them (mlr3proba)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from drosurv.metrics import concordance_index
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.patients.target import FloatArray, Surv, Target, parse_target

# Time at which this share of the test patients is no longer at risk: the Brier score is integrated until then.
LARGEST_SHARE_GONE = 0.8
# In place of a probability of being uncensored of 0.
SMALLEST_WEIGHT = 1e-3
# Patients whose curves are held in memory together.
BLOCK = 500


def harrell_c(target: Target, risk: FloatArray) -> float:
    """Share of concordant pairs, among pairs with different times of which the shorter one ends with an event.

    Patients censored at the time of another's event are not compared with him, unlike in our ``concordance_index``.
    """
    rank = np.unique(target.time, return_inverse=True)[1] + 1.0
    # Half a rank earlier, a censored patient ends before an event at the same time, and no pair is formed.
    return concordance_index(Surv.from_arrays(target.event, rank - 0.5 * ~target.event), risk)


def integrated_brier(
    train: Target, test: Target, survival: Callable[[slice, FloatArray], FloatArray]
) -> float:
    """Brier score weighted by the training patients' censoring, integrated over the test patients' times.

    `survival` gives the survival probabilities of a slice of the test patients at times.
    """
    times = score_times(test)
    uncensored = _censoring(train)
    at_times, own = uncensored(times), uncensored(test.time)
    total = np.zeros(len(times))
    for start in range(0, len(test), BLOCK):
        rows = slice(start, start + BLOCK)
        later = test.time[rows, None] > times
        curves = survival(rows, times)
        weight = np.where(later, at_times, np.where(test.event[rows], own[rows], np.inf)[:, None])
        total += (np.where(later, 1 - curves, curves) ** 2 / weight).sum(axis=0)
    score = total / len(test)
    return float(np.trapezoid(score, times) / np.ptp(times)) if len(times) > 1 else float(score[0])


def score_times(test: Target) -> FloatArray:
    """Distinct times until the first at which more than 80 % of the patients are no longer at risk."""
    times = np.unique(test.time)
    at_risk = len(test) - np.searchsorted(np.sort(test.time), times, side="left")
    few = np.flatnonzero(1 - at_risk / len(test) > LARGEST_SHARE_GONE)
    return times[: few[0] + 1] if len(few) else times


def _censoring(train: Target) -> Callable[[FloatArray], FloatArray]:
    """Kaplan-Meier estimate of the probability to be uncensored after a time."""
    curve = KaplanMeier.of(parse_target(Surv.from_arrays(~train.event, train.time), require_event=False))

    def at(times: FloatArray) -> FloatArray:
        position = np.searchsorted(curve.times, times, side="right") - 1
        found = np.where(position >= 0, curve.survival[np.maximum(position, 0)], 1.0)
        return np.where(found == 0, SMALLEST_WEIGHT, found)

    return at
