"""Brier scores: of a model, of each patient, and relative to the null model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from drosurv.curves import SurvivalCurves
from drosurv.given_curves import parse_survival
from drosurv.groups import Groups
from drosurv.metrics.follow_up import CensoringWeights, FollowUp, Grid, GroupFollowUp, brier_times
from drosurv.metrics.scores import parse_weights, warn_undefined, weighted_mean
from drosurv.target import FloatArray, Target, parse_target

# Patients whose errors are computed at once.
_ROWS = 8192


def integrated_brier_score(
    y_train: Any,
    y_test: Any,
    survival: Any,
    times: Any = None,
    *,
    grid: Grid = "inside",
    sample_weight: Any = None,
) -> float:
    r"""Brier score averaged over time, censoring weights from the training patients (lower is better).

    .. math:: IBS = \frac{1}{t_k - t_1} \int_{t_1}^{t_k} \frac1n \sum_i
              \frac{1[Y_i \le t, \delta_i = 1] \hat S(t|x_i)^2}{\hat G(Y_i-)}
              + \frac{1[T_i > t] (1 - \hat S(t|x_i))^2}{\hat G(t-)} \, dt

    by the trapezoidal rule. G(t-) is the probability of not being censored before t. T > t is known if the patient was
    observed longer than t, or censored at t: so a score at the end of follow-up counts those who reached it.
    scikit-survival uses G(Y), and for patients observed longer than t G(t). This differs only if a censoring has the
    time of an event, or is one of the `times`; ``grid="table"`` does so too, as the published tables do. The R packages
    riskRegression and pec use G(Y-) and G(t). Patients observed beyond the training follow-up are censored where it
    ends, which changes no score up to then.

    Parameters
    ----------
    y_train : structured array or FollowUp
        Training targets, for the censoring distribution.
    y_test : structured array, (n,)
        Event flags and times of the test patients.
    survival : n step functions, or (n, k) array
        Predicted survival curves; an array holds the survival at `times`, one column each.
    times : (k,) array, optional
        Times to integrate over, within the follow-up of the training and the test patients. Required if `survival` is
        an array.
    grid : "inside" or "table"
        Which times to use when none are given (see :func:`~drosurv.metrics.follow_up.brier_times`), and how ties of
        events and censoring are weighted.
    sample_weight : (n,) array, optional
        Patient weights.

    Returns
    -------
    float
        NaN, with a warning, if the patients were not observed over any span of time within the training follow-up.

    References
    ----------
    Graf, Schmoor, Sauerbrei, Schumacher (1999), Assessment and comparison of prognostic classification
    schemes for survival data, Statistics in Medicine 18.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0])
    >>> survival = [[0.2, 0.1], [0.9, 0.4], [0.9, 0.8], [0.9, 0.9]]
    >>> round(integrated_brier_score(y, y, survival, times=[1.0, 2.0]), 5)
    0.03625
    """
    scores = next(_scores(y_train, y_test, survival, times, grid, None))
    weight = parse_weights(sample_weight, len(scores))
    return float(weighted_mean(scores, weight, "the integrated Brier score"))


def _time_average(
    survival: SurvivalCurves | FloatArray, at: FloatArray, weights: CensoringWeights
) -> FloatArray:
    """Time average of each patient's weighted squared error, (n,), given their curves, or one for all at k times."""
    share, n = _shares(at), len(weights.event)
    average = np.empty(n)
    # In batches of patients: arrays of all patients and times may not fit into memory.
    for start in range(0, n, _ROWS):
        rows = slice(start, start + _ROWS)
        predicted = survival.take(rows).survival(at) if isinstance(survival, SurvivalCurves) else survival
        average[rows] = weights.squared_errors(at, 1 - predicted, rows) @ share
    return average


def _shares(at: FloatArray) -> FloatArray:
    """Return the weights (k,) of values at k times in their average over time, by the trapezoidal rule."""
    ends = np.concatenate(([at[0]], at, [at[-1]]))
    shares: FloatArray = (ends[2:] - ends[:-2]) / 2 / (at[-1] - at[0])
    return shares


def weight_error(
    follow_up: FollowUp, target: Target, curves: SurvivalCurves, at: FloatArray, *, published: bool
) -> float:
    r"""Standard error of the integrated Brier score at k valid times due to the estimation of the censoring weights.

    A bootstrap of the test patients treats the weights as known. They are estimated from other patients, which adds

    .. math:: \sum_s A(s)^2 \, \Delta \widehat{Var} \log \hat G(s)

    to the variance, with A(s) the part of the score whose weights depend on the censoring at time s, and Greenwood's
    increments of the variance of log G. It is 0 if the weights come from the test patients themselves (intervals are
    then not too narrow), and NaN if the number of training patients is unknown.
    """
    if follow_up.from_test_patients or follow_up.test_censoring or len(at) == 0:
        return 0.0
    target = follow_up.censor_at_end(target)
    share = _shares(at)
    weights = follow_up.censoring_weights(target, at, published=published)
    squares, missed = np.empty(len(target)), np.zeros(len(at))
    for start in range(0, len(target), _ROWS):
        rows = slice(start, start + _ROWS)
        ended, predicted = weights.free_until[rows, None] <= at, curves.take(rows).survival(at)
        squared = np.where(target.event[rows, None], predicted, 1 - predicted) ** 2
        squares[rows] = np.where(ended, squared, 0.0) @ share
        missed += np.where(ended, 0.0, (1 - predicted) ** 2).sum(axis=0)
    cases, controls = weights.event * squares, share * weights.free * missed / len(target)
    order = np.argsort(target.time)
    # A(s) at each training time s: the contributions whose weights depend on the censoring at s.
    later = np.append(np.cumsum(cases[order][::-1])[::-1], 0.0) / len(target)
    of_cases = later[np.searchsorted(target.time[order], follow_up.times, side="right")]
    first = np.searchsorted(at, follow_up.times, side="left" if published else "right")
    of_controls = np.append(np.cumsum(controls[::-1])[::-1], 0.0)[first]
    part = of_cases + of_controls
    return float(np.sqrt(part**2 @ follow_up.log_censoring_variance))


class BrierAgainstNull(NamedTuple):
    """Each patient's integrated Brier score, (n,), under the model and under the null model.

    Their means over any group are the group's scores. The null model predicts the training patients' Kaplan-Meier
    curve for everybody.
    """

    model: FloatArray
    null: FloatArray


def brier_against_null(
    y_train: Any,
    y_test: Any,
    survival: Any,
    times: Any = None,
    *,
    grid: Grid = "inside",
    groups: Groups | None = None,
) -> BrierAgainstNull:
    """Integrated Brier score of each patient under a model and under the null model, for the skill of any group.

    Parameters as in :func:`integrated_brier_score`; use the same `times` for all groups. Because of the censoring
    weights only means are meaningful, not the value of one patient. With `groups` that are to be compared, the weights
    are estimated in each group of test patients, and times end where a tenth of every group with at least 50 patients
    is still at risk, so that groups with different follow-up can be compared (:func:`compare_follow_up`). Patients
    without a group get NaN.
    """
    return BrierAgainstNull(*_scores(y_train, y_test, survival, times, grid, groups))


def _scores(
    y_train: Any, y_test: Any, survival: Any, times: Any, grid: Grid, groups: Groups | None
) -> Iterator[FloatArray]:
    """Yield the scores of each patient, (n,), under the model and then under the null model."""
    follow_up = FollowUp.parse(y_train)
    target = parse_target(y_test, name="y_test", require_event=False)
    curves = parse_survival(survival, len(target), times)
    by_group = None if groups is None else GroupFollowUp.of(target, groups)
    at = brier_times(follow_up, target, times, grid, until=None if by_group is None else by_group.horizon)
    if len(at) == 0:
        warn_undefined(
            f"the Brier score is undefined (NaN): the {len(target)} patients were not observed over any span "
            f"of time within the training follow-up, which ends at {follow_up.end:g}."
        )
        unknown = np.full(len(target), np.nan)
        yield from (unknown, unknown)
        return
    target = follow_up.censor_at_end(target)
    if by_group is None:
        weights = follow_up.censoring_weights(target, at, published=grid == "table")
    else:
        weights = by_group.censoring_weights(target, at)
    for predicted in (curves, follow_up.survival_at(at)):
        yield _time_average(predicted, at, weights)


def brier_skill(
    y_train: Any,
    y_test: Any,
    survival: Any,
    times: Any = None,
    *,
    grid: Grid = "inside",
    sample_weight: Any = None,
) -> float:
    r"""Brier skill: relative reduction of the integrated Brier score against the null model.

    .. math:: 1 - \frac{IBS(\text{model})}{IBS(\text{null})}

    where the null model predicts the training patients' Kaplan-Meier curve for everybody. Below 0 the
    model predicts worse than the null model.

    Parameters as in :func:`~drosurv.metrics.integrated_brier_score`.

    Returns
    -------
    float
        At most 1; NaN, with a warning, if the null model's score is 0.

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
            "the Brier skill is undefined (NaN): the null model's Brier score is 0, so it cannot be reduced."
        )
        return float("nan")
    return 1.0 - float(weight @ scores.model) / null
