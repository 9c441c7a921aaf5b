"""Harm: is a group worse served by the model than by no model at all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drosurv.errors import ArgumentError, as_whole, require
from drosurv.metrics.brier import brier_contributions, brier_integrals
from drosurv.metrics.follow_up import FollowUp
from drosurv.metrics.scores import parse_weights, warn_undefined, weighted_mean
from drosurv.metrics.survival_curves import parse_survival
from drosurv.metrics.time_grid import Grid, brier_times
from drosurv.target import FloatArray, IntArray, Target, parse_target

# Steps per interval from which the lag of a step function is negligible.
_MANY_STEPS = 10


class BrierAgainstNull(NamedTuple):
    """Each patient's integrated Brier score, (n,), from the model and from the null model.

    Their means over any group are the group's scores. The null model gives everybody the training patients'
    Kaplan-Meier curve.
    """

    model: FloatArray
    null: FloatArray


def brier_against_null(
    y_train: Any, y_test: Any, survival: Any, times: Any = None, *, grid: Grid = "inside"
) -> BrierAgainstNull:
    """Per-patient integrated Brier scores of a model and of the null model, for the skill of any group.

    Parameters as in :func:`~drosurv.metrics.integrated_brier_score`. The skill of a group is
    ``1 - sum(model) / sum(null)`` over its members; choose `times` once for all groups.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0])
    >>> survival = [[0.2, 0.1], [0.9, 0.4], [0.9, 0.8], [0.9, 0.9]]
    >>> scores = brier_against_null(y, y, survival, times=[1.0, 2.0])
    >>> (1 - scores.model[2:].sum() / scores.null[2:].sum()).round(3)
    np.float64(0.888)
    """
    follow_up = FollowUp.parse(y_train)
    target = parse_target(y_test, name="y_test", require_event=False)
    model = brier_contributions(follow_up, target, survival, times, grid=grid)
    at = brier_times(follow_up, target, times, grid)
    if len(at) == 0:
        return BrierAgainstNull(model, model)
    same_for_all = np.broadcast_to(follow_up.survival_at(at), (len(target), len(at)))
    null = brier_integrals(follow_up, target, same_for_all, at, published=grid == "table")
    return BrierAgainstNull(model, null)


def brier_skill(
    y_train: Any,
    y_test: Any,
    survival: Any,
    times: Any = None,
    *,
    grid: Grid = "inside",
    sample_weight: Any = None,
) -> float:
    r"""Brier skill: the share of the null model's integrated Brier score that the model saves.

    .. math:: 1 - \frac{IBS(\text{model})}{IBS(\text{null})}

    where the null model predicts the training patients' Kaplan-Meier curve for everybody. Below 0 the
    patients would have been better served without the model.

    Parameters as in :func:`~drosurv.metrics.integrated_brier_score`.

    Returns
    -------
    float
        At most 1; NaN, with a warning, if the null model makes no error at all.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0])
    >>> kaplan_meier = [[0.75, 0.5]] * 4
    >>> brier_skill(y, y, kaplan_meier, times=[1.0, 2.0])
    0.0
    """
    scores = brier_against_null(y_train, y_test, survival, times, grid=grid)
    weight = parse_weights(sample_weight, len(scores.model))
    null = float(weight @ scores.null)
    if null == 0:
        warn_undefined(
            "the Brier skill is undefined (NaN): the null model's Brier score is 0, so there is nothing to save."
        )
        return float("nan")
    return 1.0 - float(weight @ scores.model) / null


def likelihood_gains(
    y_train: Any,
    y_test: Any,
    survival: Any,
    times: Any = None,
    *,
    n_intervals: int = 20,
    hazard_floor: float = 1e-6,
    survival_floor: float = 1e-10,
) -> FloatArray:
    r"""Each patient's full log likelihood under the model, less that under the null model, (n,).

    .. math:: g_i = l^0_i - l_i, \qquad l_i = -\delta_i \log \lambda_{i,k(i)} + H_i(Y_i), \qquad
              \lambda_{im} = \frac{H_i(t_m) - H_i(t_{m-1})}{t_m - t_{m-1}}

    with H = -log S the model's cumulative hazard, k(i) the interval of Y_i, and l0 the same of the training
    patients' Nelson-Aalen hazard. The mean over a group says how much better than no model the group is
    served; negative means harmed. It does not depend on the unit of time. The partial likelihood cannot be
    read by group: a right model loses partial likelihood on low-risk groups, whose merit stands in other
    patients' risk sets.

    Curves known at few times only, such as those of a discrete-time model or of a file, are not said to
    jump there: their hazard is constant between those times, and patients are scored up to the last of
    them.

    Parameters
    ----------
    y_train : structured array or FollowUp
        Training targets, for the null model and the intervals. Where the scored patients stand in for them
        (``FollowUp.standing_in``), what the null model gains by having seen them is taken back.
    y_test, survival, times
        Target and predicted curves of the scored patients, as in :func:`integrated_brier_score`.
    n_intervals : int
        Intervals between quantiles of the training event times on which hazards are constant.
    hazard_floor : float
        Smallest hazard, in units of the training patients' mean hazard: an event where the model saw none
        coming costs at most -log of it more than one at the mean.
    survival_floor : float
        Smallest survival probability; without it a patient alive where the model gave 0 would cost
        infinitely.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0])
    >>> low_and_high = [[0.2, 0.1, 0.0], [0.5, 0.2, 0.1], [0.9, 0.8, 0.7], [0.9, 0.9, 0.9]]
    >>> likelihood_gains(y, y, low_and_high, times=[1.0, 2.0, 3.0], n_intervals=2).round(1).tolist()
    [0.0, -0.0, -0.6, 1.0]
    """
    follow_up = FollowUp.parse(y_train)
    target = parse_target(y_test, name="y_test", require_event=False)
    curves = parse_survival(survival, len(target), times)
    edges = _edges(follow_up, n_intervals)
    knots = _few_times(follow_up, curves.jumps, edges)
    if knots is not None:
        # Nothing was said of later times, so nothing is judged there.
        edges = np.unique(np.minimum(edges, knots[-1]))
        target = Target(target.event & (target.time <= knots[-1]), np.minimum(target.time, knots[-1]))

    def hazard_of(survival: FloatArray) -> FloatArray:
        return -np.log(np.maximum(survival, survival_floor))

    # Each patient's interval: its two ends, and the own time.
    right = np.clip(np.searchsorted(edges, target.time), 1, len(edges) - 1)
    first, last = right - 1, right
    if knots is None:
        at_edges = hazard_of(curves.at(edges))
        at_edges[:, 0] = 0.0
        if follow_up.other_times:
            first, last = _between_steps(at_edges, right)
        start, end = (np.take_along_axis(at_edges, k[:, None], axis=1)[:, 0] for k in (first, last))
        own = hazard_of(curves.at_own(target.time))
    else:
        at_knots = np.column_stack((np.zeros(len(target)), hazard_of(curves.at(knots[1:]))))
        start, end, own = (
            _interpolated(knots, at_knots, at) for at in (edges[first], edges[last], target.time)
        )
    null_start, null_end = (follow_up.cumulative_hazard_at(edges[k]) for k in (right - 1, right))
    null_start[right == 1] = 0.0
    null_own = follow_up.cumulative_hazard_at(target.time)
    latest = follow_up.times[-1:]
    smallest = hazard_floor * float(follow_up.cumulative_hazard_at(latest)[0] / latest[0])
    log_ratio = np.log(np.maximum((end - start) / (edges[last] - edges[first]), smallest)) - np.log(
        np.maximum((null_end - null_start) / (edges[right] - edges[right - 1]), smallest)
    )
    if follow_up.stands_in:
        # Having seen what it is scored on, the null model gains half a unit of log likelihood per interval: of d events
        # with mean m, E[d log(d / m)] is about 1/2. That would make the very truth look harmful; the events share it.
        log_ratio += 0.5 / np.maximum(np.bincount(right, target.event, len(edges))[right], 1.0)
    gains: FloatArray = null_own - own + target.event * log_ratio
    return gains


def gain_times(follow_up: FollowUp, jumps: FloatArray | None, n_intervals: int = 20) -> FloatArray:
    """Times at which :func:`likelihood_gains` reads curves that change at `jumps`, beside each patient's own."""
    edges = _edges(follow_up, n_intervals)
    knots = _few_times(follow_up, jumps, edges)
    return edges if knots is None else knots


def _edges(follow_up: FollowUp, n_intervals: int) -> FloatArray:
    """Ends of the intervals: 0 and quantiles of the training event times."""
    require(as_whole(n_intervals) >= 1, "n_intervals", "be a whole number, at least 1", n_intervals)
    edges = np.interp(np.linspace(0, 100, n_intervals + 1), np.arange(101), follow_up.event_percentiles)
    edges[0] = 0.0
    edges = np.unique(edges)
    if len(edges) == 1:
        raise ArgumentError(
            "y_train", "every training event happened at time 0: there is no interval to take a hazard on."
        )
    return edges


def _between_steps(hazard: FloatArray, right: IntArray) -> tuple[IntArray, IntArray]:
    """First and last edge of an interval around each patient's own, which ends at edge `right` (n,), that has a step.

    Edges at events of many patients know nothing of the steps of a stratum's curve, of which there may be few, or of
    one that counts from entry; hazards are (n, m) at the edges. An interval without a step has no hazard at all: it is
    joined to the next one with a step, whose hazard is spread over both, and after the last step to that one.
    """
    rows, last = np.arange(len(hazard)), hazard.shape[1] - 1
    kept = np.diff(hazard, axis=1, prepend=-1.0) > 0
    kept[rows, last - kept[:, ::-1].argmax(axis=1)] = False
    kept[:, last] = True
    before = np.maximum.accumulate(np.where(kept, np.arange(last + 1), 0), axis=1)
    after = np.minimum.accumulate(np.where(kept, np.arange(last + 1), last)[:, ::-1], axis=1)[:, ::-1]
    return before[rows, right - 1], after[rows, right]


def _few_times(follow_up: FollowUp, jumps: FloatArray | None, edges: FloatArray) -> FloatArray | None:
    """0 and the times of curves that are known at too few times to be read as they are; None for others.

    A step function lags behind what it stands for by up to one step. That is harmless where the curve has
    steps as often as the null model, which lags as much, or has many; an interval without a step has no
    hazard at all. Times at which curves with steps of their own are read are no steps: for those, intervals are joined.
    """
    if jumps is None or not (jumps > 0).any() or follow_up.other_times:
        return None
    knots = np.concatenate(([0.0], jumps[jumps > 0]))
    inside = np.histogram(knots[1:], edges)[0]
    before = np.concatenate(([1.0], follow_up.survival[:-1]))
    of_null = np.histogram(follow_up.times[follow_up.survival < before], edges)[0]
    few = inside.sum() < min(int(of_null.sum()), _MANY_STEPS * len(inside))
    return knots if few or ((inside == 0) & (of_null > 0)).any() else None


def _interpolated(knots: FloatArray, values: FloatArray, at: FloatArray) -> FloatArray:
    """Each patient's value at a time of its own, (n,), linear between its values (n, k) at the knots (k,)."""
    rows, right = np.arange(len(values)), np.clip(np.searchsorted(knots, at), 1, len(knots) - 1)
    share = (at - knots[right - 1]) / (knots[right] - knots[right - 1])
    return (1 - share) * values[rows, right - 1] + share * values[rows, right]


def likelihood_gain(
    y_train: Any, y_test: Any, survival: Any, times: Any = None, *, sample_weight: Any = None, **options: Any
) -> float:
    """Mean full-likelihood gain per patient over the null model: the mean of :func:`likelihood_gains`.

    Parameters
    ----------
    y_train, y_test, survival, times, **options
        As in :func:`likelihood_gains`.
    sample_weight : (n,) array, optional
        Patient weights.

    Returns
    -------
    float
        Negative means that the patients are worse served than by no model.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0])
    >>> survival = [[0.2, 0.1, 0.0], [0.5, 0.2, 0.1], [0.9, 0.8, 0.7], [0.9, 0.9, 0.9]]
    >>> likelihood_gain(y, y, survival, times=[1.0, 2.0, 3.0], n_intervals=2) > 0
    True
    """
    gains = likelihood_gains(y_train, y_test, survival, times, **options)
    weight = parse_weights(sample_weight, len(gains))
    return float(weighted_mean(gains, weight, "the likelihood gain"))
