"""Likelihood gain: log likelihood per patient over the null model; log scores of predictions at few times.

Times divide the follow-up into intervals. The log score of a patient is the log probability of the interval in which
the event happened, or of none; of censored patients the outcomes are pseudo-values. Its expectation is that of the log
likelihood without censoring. Counting censored patients until the beginning of their interval instead would prefer
hazards that are too large. Where curves are known throughout, scores are log likelihoods with hazards that are constant
on intervals, as in `likelihood_gain`; that function takes hazards as constant between few times too, since it knows no
model of censoring.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drosurv.curves import interpolate, parse_survival
from drosurv.errors import ArgumentError, as_whole, require
from drosurv.metrics.follow_up import FollowUp
from drosurv.metrics.scores import metric_target, parse_weights, weighted_mean
from drosurv.patients.observation import given_weight
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target

# Intervals of a null model: so many, and no more than leave each so many events if it is fitted to the scored patients.
MOST_INTERVALS, EVENTS_PER_INTERVAL = 20, 5
# Shortest interval, as a share of all.
_SHORTEST = 1e-4
# With this many steps per interval, a step function is close enough to a continuous curve.
_MANY_STEPS = 10
# Smallest probability of an event or of none in an interval, where probabilities are not rounded.
LEAST = 1e-6
# Rounded probabilities are scored where they change by so many units of their last digit.
_VISIBLE = 2


def likelihood_gains(
    y_train: Any,
    y_test: Any,
    survival: Any,
    times: Any = None,
    *,
    n_intervals: int | None = None,
    hazard_floor: float = 1e-6,
    survival_floor: float = 1e-10,
) -> FloatArray:
    """Each patient's log likelihood under the model minus that under the null model, (n,); see `likelihood_gain`."""
    follow_up = FollowUp.parse(y_train)
    target = metric_target(y_test, name="y_test", weighted=True)
    curves = parse_survival(survival, len(target), times)
    if n_intervals is None:
        n_intervals = intervals_of_events(target.n_events) if follow_up.from_test_patients else MOST_INTERVALS
    require(as_whole(n_intervals) >= 1, "n_intervals", "be a whole number, at least 1", n_intervals)
    edges = interval_edges(follow_up, n_intervals)
    if len(edges) == 1:
        raise ArgumentError(
            "y_train", "every training event happened at time 0: there is no interval to take a hazard on."
        )
    knots = _few_times(follow_up, curves.times, edges)
    if knots is not None:
        # Patients are scored only as long as curves are known.
        edges = np.unique(np.minimum(edges, knots[-1]))
        target = target.until(knots[-1])

    def hazard_of(survival: FloatArray) -> FloatArray:
        return -np.log(np.maximum(survival, survival_floor))

    if knots is None:
        at_edges = hazard_of(curves.survival(edges))
        at_edges[:, 0] = 0.0
        hazard = hazard_of(curves.survival(target.time[:, None]))[:, 0]
    else:
        at_knots = np.column_stack((np.zeros(len(target)), hazard_of(curves.survival(knots[1:]))))
        at_edges = interpolate(knots, at_knots, edges)
        hazard = interpolate(knots, at_knots, target.time[:, None])[:, 0]
    null_at_edges = follow_up.cumulative_hazard_at(edges)
    null_at_edges[0] = 0.0
    latest = follow_up.times[-1:]
    smallest = hazard_floor * float(follow_up.cumulative_hazard_at(latest)[0] / latest[0])
    null_rate = np.maximum(np.diff(null_at_edges) / np.diff(edges), smallest)
    rate = np.maximum(interval_rates(at_edges, edges), smallest)
    # The interval of each patient's time.
    interval = np.clip(np.searchsorted(edges, target.time), 1, len(edges) - 1) - 1
    log_ratio = np.log(rate[np.arange(len(target)), interval]) - np.log(null_rate[interval])
    if follow_up.from_test_patients:
        # A null model fitted to the test patients gains about 1/2 of log likelihood per interval: E[d log(d / m)] is
        # about 1/2 for d events with mean m. Without this correction a correct model would have a negative gain.
        log_ratio += 0.5 / np.maximum(np.bincount(interval, target.event, len(null_rate))[interval], 1.0)
    gains: FloatArray = follow_up.cumulative_hazard_at(target.time) - hazard + target.event * log_ratio
    return gains


def interval_rates(hazard: FloatArray, edges: FloatArray, *, joined: bool = False) -> FloatArray:
    """Return mean hazards (n, m) of patients in intervals, from cumulative hazards (n, m + 1) at their edges.

    A step curve of a stratum, or one that starts at the patient's entry, may have no step in an interval, and so no
    hazard. If `joined`, such an interval is merged with the next interval that has a step, or else with the last one
    that has: their hazard is spread evenly over all of them.
    """
    if not joined:
        rates: FloatArray = np.diff(hazard, axis=1) / np.diff(edges)
        return rates
    rows, last = np.arange(len(hazard)), hazard.shape[1] - 1
    kept = np.diff(hazard, axis=1, prepend=-1.0) > 0
    kept[rows, last - kept[:, ::-1].argmax(axis=1)] = False
    kept[:, last] = True
    indices = np.arange(last + 1)
    before = np.maximum.accumulate(np.where(kept, indices, 0), axis=1)[:, :-1]
    after = np.minimum.accumulate(np.where(kept, indices, last)[:, ::-1], axis=1)[:, ::-1][:, 1:]
    rise = np.take_along_axis(hazard, after, axis=1) - np.take_along_axis(hazard, before, axis=1)
    spread: FloatArray = rise / (edges[after] - edges[before])
    return spread


def intervals_of_events(events: float) -> int:
    """Return the number of intervals of a null model that is fitted to so many `events` of the test patients."""
    return int(np.clip(events // EVENTS_PER_INTERVAL, 1, MOST_INTERVALS))


def interval_edges(follow_up: FollowUp, n_intervals: int = MOST_INTERVALS) -> FloatArray:
    """Return the edges of intervals on which hazards are constant: 0 and quantiles of the training event times."""
    edges = np.interp(np.linspace(0, 100, n_intervals + 1), np.arange(101), follow_up.event_percentiles)
    edges[0] = 0.0
    edges = np.unique(edges)
    # Very short intervals are joined with a neighbour: events at nearly the same time would give a huge hazard.
    shortest = _SHORTEST * edges[-1]
    return np.append(0.0, edges[np.append(np.diff(edges) > shortest, True) & (edges > shortest)])


def _few_times(follow_up: FollowUp, jumps: FloatArray | None, edges: FloatArray) -> FloatArray | None:
    """0 and the times of curves that have too few steps to be read as step functions; None for other curves.

    A step function lags behind a continuous curve by up to one step. The lag does not matter if the curve has as many
    steps as the null model, which has the same lag, or very many. An interval without a step would have no hazard.
    """
    if jumps is None or not (jumps > 0).any():
        return None
    knots = np.concatenate(([0.0], jumps[jumps > 0]))
    inside = np.histogram(knots[1:], edges)[0]
    before = np.concatenate(([1.0], follow_up.survival[:-1]))
    of_null = np.histogram(follow_up.times[follow_up.survival < before], edges)[0]
    is_sparse = inside.sum() < min(int(of_null.sum()), _MANY_STEPS * len(inside))
    return knots if is_sparse or ((inside == 0) & (of_null > 0)).any() else None


def likelihood_gain(
    y_train: Any,
    y_test: Any,
    survival: Any,
    times: Any = None,
    *,
    sample_weight: Any = None,
    n_intervals: int | None = None,
    hazard_floor: float = 1e-6,
    survival_floor: float = 1e-10,
) -> float:
    r"""Mean gain in log likelihood per patient over the null model.

    The gain of a patient is the log likelihood under the model minus that under the null model,

    .. math:: g_i = l^0_i - l_i, \qquad l_i = -\delta_i \log \lambda_{i,k(i)} + H_i(Y_i), \qquad
              \lambda_{im} = \frac{H_i(t_m) - H_i(t_{m-1})}{t_m - t_{m-1}}

    with H = -log S the model's cumulative hazard, k(i) the interval of Y_i, and l0 the same for the training
    patients' Nelson-Aalen hazard. The mean over a group says how much better than the null model the group is
    predicted; negative means worse. It does not depend on the unit of time. The partial likelihood cannot be compared
    between groups: a correct model loses partial likelihood on low-risk groups, because their gain is counted in the
    risk sets of other patients.

    Curves known at few times only, such as those of a discrete-time model or of a file, are not read as step
    functions: their hazard is constant between those times, and patients are scored up to the last of them. The gains
    of :func:`drosurv.evaluate` differ there: they are log scores at those times, of outcomes weighted for censoring
    among patients of like predicted risk, and assume nothing between the times. They also differ in the last interval:
    few patients remain there, and `evaluate` weights the hazards in parts of it by the time for which patients were
    observed.

    Parameters
    ----------
    y_train : structured array or FollowUp
        Training targets, for the null model and the intervals. If they are those of the test patients
        (``FollowUp.of_test_patients``), the null model was fitted to the patients it is scored on; the gains are
        corrected for that.
    y_test, survival, times
        Target and predicted curves of the test patients, as in :func:`integrated_brier_score`.
    n_intervals : int, optional
        Number of intervals between quantiles of the training event times. Hazards are constant on each. By default 20,
        or fewer, with at least five events in each, if the null model was fitted to the scored patients.
    hazard_floor : float
        Smallest hazard, in units of the training patients' mean hazard; without it an event where the model predicts a
        hazard of 0 would have an infinite loss.
    survival_floor : float
        Smallest survival probability; without it a patient alive at a predicted survival of 0 would
        have an infinite loss.
    sample_weight : (n,) array, optional
        Patient weights.

    Returns
    -------
    float
        Negative means that the model predicts these patients worse than the null model.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0])
    >>> survival = [[0.2, 0.1, 0.0], [0.5, 0.2, 0.1], [0.9, 0.8, 0.7], [0.9, 0.9, 0.9]]
    >>> likelihood_gain(y, y, survival, times=[1.0, 2.0, 3.0], n_intervals=2) > 0
    True
    """
    how: dict[str, Any] = {"hazard_floor": hazard_floor, "survival_floor": survival_floor}
    gains = likelihood_gains(y_train, y_test, survival, times, n_intervals=n_intervals, **how)
    weight = parse_weights(given_weight(y_test, sample_weight), len(gains))
    return float(weighted_mean(gains, weight, "the likelihood gain"))


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
