"""Brier score: squared distance of predicted survival from what happened."""

from __future__ import annotations

from typing import Any

import numpy as np

from drosurv.metrics.follow_up import FollowUp
from drosurv.metrics.scores import parse_weights, warn_undefined, weighted_mean
from drosurv.metrics.survival_curves import parse_survival
from drosurv.metrics.time_grid import Grid, brier_times
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
              + \frac{1[Y_i > t] (1 - \hat S(t|x_i))^2}{\hat G(t)} \, dt

    by the trapezoidal rule. G(Y-) is the probability of not being censored before Y, as in the R packages
    riskRegression and pec. scikit-survival has G(Y) instead, which is the same unless events and censoring share a
    time; ``grid="table"`` follows it, as the published tables do. Patients observed beyond the training follow-up are
    censored where it ends, which changes no score at an earlier time.

    Parameters
    ----------
    y_train : structured array or FollowUp
        Training targets, for the censoring distribution.
    y_test : structured array, (n,)
        Event flags and times of the scored patients.
    survival : n step functions, or (n, k) array
        Predicted survival curves; an array holds the survival at `times`, one column each.
    times : (k,) array, optional
        Times to integrate over; must lie inside the range the error message names. Needed with an array.
    grid : "inside" or "table"
        The times to use when none are given (see :func:`~drosurv.metrics.time_grid.brier_times`), and how ties of
        events and censoring are weighted.
    sample_weight : (n,) array, optional
        Patient weights.

    Returns
    -------
    float
        NaN, with a warning, if the patients' times span nothing within the training follow-up.

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
    target = parse_target(y_test, name="y_test", require_event=False)
    weight = parse_weights(sample_weight, len(target))
    scores = brier_contributions(y_train, target, survival, times, grid=grid)
    return float(weighted_mean(scores, weight, "the integrated Brier score"))


def brier_contributions(
    y_train: Any, y_test: Any, survival: Any, times: Any = None, *, grid: Grid = "inside"
) -> FloatArray:
    """Each patient's own integrated Brier score, (n,), whose mean over patients is the IBS.

    Because censored patients pass their weight on to others, only means over a group can be read, not the
    score of one patient. Parameters as in :func:`integrated_brier_score`.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0])
    >>> survival = [[0.2, 0.1], [0.9, 0.4], [0.9, 0.8], [0.9, 0.9]]
    >>> brier_contributions(y, y, survival, times=[1.0, 2.0]).round(3).tolist()
    [0.025, 0.085, 0.025, 0.01]
    """
    follow_up = FollowUp.parse(y_train)
    target = parse_target(y_test, name="y_test", require_event=False)
    curves = parse_survival(survival, len(target), times)
    at = brier_times(follow_up, target, times, grid)
    if len(at) == 0:
        warn_undefined(
            f"the Brier score is undefined (NaN): the {len(target)} patients were not observed over any span "
            f"of time within the training follow-up, which ends at {follow_up.end:g}."
        )
        return np.full(len(target), np.nan)
    return brier_integrals(follow_up, target, curves.at(at), at, published=grid == "table")


def brier_integrals(
    follow_up: FollowUp, target: Target, survival: FloatArray, at: FloatArray, *, published: bool = False
) -> FloatArray:
    """Time average of each patient's weighted squared error, (n,), of survival (n, k) at k valid times."""
    target = follow_up.censor_at_end(target)
    case_weight = follow_up.inverse_probability(target, published=published)
    control_weight = 1.0 / follow_up.censoring_at(at)
    half_step = 0.5 * np.diff(at)
    area = np.empty(len(target))
    # A part of the patients at a time: several arrays of all patients and times do not fit into memory.
    for start in range(0, len(target), _ROWS):
        rows = slice(start, start + _ROWS)
        by_then = target.time[rows, None] <= at
        case, control = (
            case_weight[rows, None] * survival[rows] ** 2,
            control_weight * (1 - survival[rows]) ** 2,
        )
        error = np.where(by_then, case, control)
        area[rows] = ((error[:, 1:] + error[:, :-1]) * half_step).sum(axis=1)
    average: FloatArray = area / (at[-1] - at[0])
    return average
