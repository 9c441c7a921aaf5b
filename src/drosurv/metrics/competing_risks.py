"""Accuracy where patients may have one of several events: Brier score, calibration and concordance by cause.

`cause` is the event of each patient: 0 censored, 1, 2, ... the causes. With a single cause every number
here is that of the ordinary metric.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError
from drosurv.metrics.calibration import beside_observed, parse_horizons
from drosurv.metrics.concordance import concordance_index
from drosurv.metrics.follow_up import FollowUp
from drosurv.metrics.nonparametric import aalen_johansen
from drosurv.metrics.scores import parse_weights, weighted_mean
from drosurv.target import FloatArray, IntArray, Surv, Target


def brier_score_by_cause(
    follow_up: FollowUp,
    cause: Any,
    time: Any,
    incidence: Any,
    at: Any,
    *,
    of: int = 1,
    sample_weight: Any = None,
) -> FloatArray:
    r"""Squared error of predicted cumulative incidence of one cause at each of k times, (k,).

    .. math:: \frac1n \sum_i \left( \frac{1[Y_i \le t, D_i \ne 0]}{\hat G(Y_i-)} + \frac{1[Y_i > t]}{\hat G(t)}
              \right) \left( 1[Y_i \le t, D_i = k] - \hat F_k(t | x_i) \right)^2

    A patient who had another event by t counts as one without this event.

    Parameters
    ----------
    follow_up : FollowUp
        Of the training patients, any cause counted as the event, for the censoring weights.
    cause, time : (n,)
        What happened to the scored patients, and when.
    incidence : (n, k) float
        Predicted cumulative incidence of the cause at the times.
    at : (k,) float
        The times, before the end of the training follow-up.
    of : int
        The cause.
    sample_weight : (n,) array, optional
        Patient weights.

    References
    ----------
    Gerds, Scheike, Andersen (2012), Absolute risk regression for competing risks, Statistics in Medicine 31.

    Examples
    --------
    >>> from drosurv import Surv
    >>> cause, time = [1, 2, 1, 0], [1.0, 2.0, 3.0, 4.0]
    >>> follow_up = FollowUp.parse(Surv.from_arrays([True, True, True, False], time))
    >>> brier_score_by_cause(follow_up, cause, time, [[0.6], [0.2], [0.4], [0.2]], [2.5]).round(3).tolist()
    [0.1]
    """
    causes, target = _parsed(cause, time)
    times = parse_horizons("at", at)
    predicted = _parse_incidence(incidence, len(target), len(times))
    if not (times < follow_up.end).all():
        raise ArgumentError(
            "at",
            f"at must lie before the end of the training follow-up, {follow_up.end:g}, got "
            f"{times.max():g}: censoring weights are not known later.",
        )
    weight = parse_weights(sample_weight, len(target))
    by_then = target.time[:, None] <= times
    happened = by_then & (causes == of)[:, None]
    known = np.where(
        by_then, follow_up.inverse_probability(target)[:, None], 1.0 / follow_up.censoring_at(times)
    )
    return weighted_mean(known * (happened - predicted) ** 2, weight, "the Brier score of a cause")


def calibration_by_cause(
    cause: Any,
    time: Any,
    incidence: Any,
    at: Any,
    *,
    of: int = 1,
    level: float = 0.95,
    sample_weight: Any = None,
) -> pd.DataFrame:
    """Observed (Aalen-Johansen) against mean predicted cumulative incidence of one cause.

    Parameters
    ----------
    cause, time, incidence, at, of
        As in :func:`brier_score_by_cause`.
    level : float
        Of the interval on the observed incidence.
    sample_weight : (n,) array, optional
        Patient weights; they count as copies in the interval.

    Returns
    -------
    DataFrame
        One row per time: ``horizon``, mean ``predicted`` and ``observed`` incidence, their ``difference``
        (positive: too pessimistic), the interval ``low`` to ``high`` of the observed, what counting other causes
        as censored would have given (``others_censored``), and ``at_risk``.

    Examples
    --------
    >>> table = calibration_by_cause([1, 2, 1, 0], [1.0, 2.0, 3.0, 4.0], [[0.5]] * 4, [3.5])
    >>> table[["predicted", "observed", "others_censored"]].round(3).values.tolist()
    [[0.5, 0.5, 0.625]]
    """
    causes, target = _parsed(cause, time)
    times = parse_horizons("at", at)
    predicted = _parse_incidence(incidence, len(target), len(times))
    weight = parse_weights(sample_weight, len(target))
    curve = aalen_johansen(causes, target.time, of=of, weight=weight)
    alone = aalen_johansen(causes == of, target.time, weight=weight)
    mean = weighted_mean(predicted, weight, "mean predicted incidence")
    table = beside_observed(mean, curve, times, level, target)
    table.insert(len(table.columns) - 1, "others_censored", alone.at(times))
    return table


def concordance_by_cause(
    cause: Any, time: Any, risk: Any, *, of: int = 1, sample_weight: Any = None
) -> float:
    """Concordance index of one cause: patients with the event should rank above those who had it later or never.

    Pairs are Harrell's, with patients who had another event counted as observed to the end without this one
    (Wolbers et al.): they can no longer have it.

    Parameters
    ----------
    risk : (n,) array
        Risk scores of the cause, such as its predicted incidence at a horizon; higher means sooner.
    cause, time, of, sample_weight
        As in :func:`brier_score_by_cause`.

    Returns
    -------
    float
        NaN, with a warning, if no pair is comparable.

    References
    ----------
    Wolbers, Koller, Witteman, Steyerberg (2009), Prognostic models with competing risks, Epidemiology 20.

    Examples
    --------
    >>> concordance_by_cause([1, 2, 1, 0], [3.0, 1.0, 2.0, 4.0], [0.5, 0.1, 0.9, 0.2])
    1.0
    """
    causes, target = _parsed(cause, time)
    other = (causes != 0) & (causes != of)
    # Later than everybody, so that each of them is observed longer than any event of this cause.
    last = np.where(other, np.nextafter(target.time.max(), np.inf), target.time)
    return concordance_index(Surv.from_arrays(causes == of, last), risk, sample_weight)


def _parsed(cause: Any, time: Any) -> tuple[IntArray, Target]:
    """Causes as whole numbers, and the target in which any cause is the event."""
    y = Surv.competing(cause, time)
    return y["cause"], Target(y["cause"] != 0, y["time"])


def _parse_incidence(incidence: Any, n: int, k: int) -> FloatArray:
    values = np.asarray(incidence, dtype=np.float64)
    if values.shape != (n, k):
        raise ArgumentError(
            "incidence", f"incidence must hold {n} patients by {k} times, got shape {values.shape}."
        )
    if not ((values >= -1e-6) & (values <= 1 + 1e-6)).all():
        raise ArgumentError("incidence", "incidence must hold probabilities between 0 and 1.")
    return np.clip(values, 0.0, 1.0)
