"""Brier scores: of a model, of each patient, and relative to the null model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from drosurv.curves import SurvivalCurves, parse_survival
from drosurv.metrics.estimates import Estimate
from drosurv.metrics.follow_up import CensoringWeights, FollowUp, Grid, brier_times
from drosurv.metrics.nonparametric import Incidence, free_until
from drosurv.metrics.scores import metric_target, parse_weights, warn_undefined, weighted_mean
from drosurv.patients.observation import given_weight
from drosurv.patients.target import FloatArray, Target

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
    scores = next(brier_scores(y_train, y_test, survival, times, grid))
    weight = parse_weights(given_weight(y_test, sample_weight), len(scores))
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
    if len(at) == 1:
        return np.ones(1)
    ends = np.concatenate(([at[0]], at, [at[-1]]))
    shares: FloatArray = (ends[2:] - ends[:-2]) / 2 / (at[-1] - at[0])
    return shares


def brier_scores(
    y_train: Any, y_test: Any, survival: Any, times: Any = None, grid: Grid = "inside"
) -> Iterator[FloatArray]:
    """Yield the integrated Brier score of each patient, (n,), under the model and then under the null model.

    Parameters as in :func:`integrated_brier_score`. Because of the censoring weights only means have a meaning.
    """
    follow_up = FollowUp.parse(y_train)
    target = metric_target(y_test, name="y_test", weighted=True)
    curves = parse_survival(survival, len(target), times)
    at = brier_times(follow_up, target, times, grid)
    if len(at) == 0:
        warn_undefined(
            f"the Brier score is undefined (NaN): the {len(target)} patients were not observed over any span "
            f"of time within the training follow-up, which ends at {follow_up.end:g}."
        )
        unknown = np.full(len(target), np.nan)
        yield from (unknown, unknown)
        return
    target = target.until(follow_up.end)
    weights = follow_up.censoring_weights(target, at, published=grid == "table")
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
    of_model, of_null = brier_scores(y_train, y_test, survival, times, grid)
    weight = parse_weights(given_weight(y_test, sample_weight), len(of_model))
    null = float(weight @ of_null)
    if null == 0:
        warn_undefined(
            "the Brier skill is undefined (NaN): the null model's Brier score is 0, so it cannot be reduced."
        )
        return float("nan")
    return 1.0 - float(weight @ of_model) / null


class BrierEstimates(NamedTuple):
    """The integrated Brier score of a model, its skill, and the derivative (k,) of the skill by a given null model."""

    score: Estimate
    skill: Estimate
    by_null: FloatArray


def brier_estimates(
    target: Target,
    survival: SurvivalCurves | FloatArray,
    times: FloatArray,
    weight: FloatArray | None = None,
    *,
    null: FloatArray | None = None,
) -> BrierEstimates:
    """Brier score, averaged over k times, and skill of n patients, with the influence of each patient.

    They are those of :func:`integrated_brier_score` and :func:`brier_skill`, with the censoring distribution of these
    patients; influences include that on its estimate. NaN if the patients were not followed until the last of the
    `times` (k,). Of one of several causes, survival (n, k) is one minus the incidence. The survival (k,) under the
    `null` model is by default the Kaplan-Meier curve of these patients, and influences include that on the curve; of a
    curve of other patients they do not, and `by_null` tells how the skill depends on it.
    """
    n, weight = len(target), np.ones(len(target)) if weight is None else weight
    censoring = Incidence.of_censoring(target, weight)
    observed, free = censoring.free_at(target.time), censoring.free_at(times)
    if not (len(times) and (free > 0).all() and weight.any()):
        return BrierEstimates(Estimate.undefined(n), Estimate.undefined(n), np.zeros(len(times)))
    inverse = np.divide(1.0, observed, out=np.zeros(n), where=target.ended & (observed > 0))
    # Patients are known to be free of any event at so many of the times.
    reached = np.searchsorted(times, free_until(target), side="left")
    at, total, share = np.concatenate([target.time, times]), float(weight.sum()), _shares(times)
    after = np.append(np.cumsum(share[::-1])[::-1], 0.0)[reached]

    def score(before: FloatArray, later: FloatArray, of_free: FloatArray) -> tuple[float, FloatArray]:
        """Return a score and its derivative by the weights (n,).

        Of each patient, `before` and `later` (n,) are the weighted errors before and after the event. At each time,
        `of_free` (k,) are those of all who are free of it.
        """
        value = float(weight @ (before + later)) / total
        terms = np.concatenate([weight * later, of_free])
        return value, (before + later - value + censoring.derivative_of_inverse(at, terms)) / total

    def of_model() -> tuple[float, FloatArray]:
        """Return the score of the predicted survival."""
        before, later, missed = np.zeros(n), np.zeros(n), np.zeros(len(times))
        # Patients without weight have no influence.
        counted = np.flatnonzero(weight)
        for start in range(0, len(counted), _ROWS):
            rows = counted[start : start + _ROWS]
            curves = (
                survival[rows] if isinstance(survival, np.ndarray) else survival.take(rows).survival(times)
            )
            predicted = 1 - curves
            known = np.where(reached[rows, None] <= np.arange(len(times)), predicted, 0.0)
            free_errors = predicted**2 - known**2
            before[rows] = free_errors @ (share / free)
            missed += weight[rows] @ free_errors
            # (1 - p)^2 of patients with the event, else p^2.
            by_event = target.event[rows] * (after[rows] - 2 * (known @ share))
            later[rows] = inverse[rows] * (known**2 @ share + by_event)
        return score(before, later, missed * share / free)

    def of_curve(curve: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the score of one curve (k,) for everybody, and its derivatives by weights (n,) and curve (k,)."""
        predicted = 1 - curve
        left, ended, happened = (
            np.cumsum(np.bincount(reached, mass, len(times) + 1))[:-1]
            for mass in (weight, weight * inverse, weight * inverse * target.event)
        )
        n_free = total - left
        errors = np.append(0.0, np.cumsum(predicted**2 * share / free))[reached]
        later = [np.append(np.cumsum((each * share)[::-1])[::-1], 0.0) for each in (curve**2, predicted**2)]
        of_ended = inverse * np.where(target.event, later[0][reached], later[1][reached])
        slope = 2 * share * (happened - predicted * (ended + n_free / free)) / total
        value, derivative = score(errors, of_ended, n_free * predicted**2 * share / free)
        return value, derivative, slope

    events = np.count_nonzero(target.event & (target.time <= times[-1]) & (weight > 0))
    value, derivative = of_model()
    own = Incidence.of(target, weight)
    of_null, by_null, slope = of_curve(1.0 - own.at(times) if null is None else null)
    if null is None:
        by_null = by_null - own.derivative(times, slope)
    found = Estimate(value, weight * derivative, "log", events - 1.0)
    if of_null <= 0:
        return BrierEstimates(found, Estimate.undefined(n), np.zeros(len(times)))
    change = (value / of_null * by_null - derivative) / of_null
    skill = Estimate(1.0 - value / of_null, weight * change, freedom=events - 1.0)
    return BrierEstimates(found, skill, value / of_null**2 * slope)
