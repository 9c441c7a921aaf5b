"""Metrics for competing risks: Brier score, calibration and concordance of one cause.

`cause` is the cause of each patient's event, 1, 2, ..., or 0 if the patient was censored. With a single cause the
metrics equal those for ordinary survival data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import require
from drosurv.metrics.calibration import beside_observed, parse_horizons
from drosurv.metrics.concordance import concordance_index
from drosurv.metrics.follow_up import FollowUp
from drosurv.metrics.nonparametric import aalen_johansen
from drosurv.metrics.scores import parse_weights, weighted_mean
from drosurv.patients.observation import label_codes
from drosurv.patients.target import CompetingTarget, FloatArray, Surv


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
    r"""Brier score of the predicted cumulative incidence of one cause at each of k times, (k,).

    .. math:: \frac1n \sum_i \left( \frac{1[Y_i \le t, D_i \ne 0]}{\hat G(Y_i-)} + \frac{1[T_i > t]}{\hat G(t-)}
              \right) \left( 1[Y_i \le t, D_i = k] - \hat F_k(t | x_i) \right)^2

    where T > t is known if the patient was observed longer than t, or censored at t. A patient who had an event of
    another cause by t counts as free of this event.

    Parameters
    ----------
    follow_up : FollowUp
        Follow-up of the training patients for the censoring weights, with events of any cause as the event.
    cause, time : (n,)
        Cause and time of the events of the test patients.
    incidence : (n, k) float
        Predicted cumulative incidence of the cause at the times.
    at : (k,) float
        Times at which to compute the score, up to the end of the training follow-up.
    of : int
        Cause that is scored.
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
    target = _parsed(cause, time).among_others(of)
    times = parse_horizons("at", at)
    predicted = _parse_incidence(incidence, len(target), len(times))
    wanted = f"not lie after the end of the training follow-up, {follow_up.end:g}"
    require((times <= follow_up.end).all(), "at", wanted, at, "censoring weights are not known later")
    weight = parse_weights(sample_weight, len(target))
    weights = follow_up.censoring_weights(target, times)
    errors = weights.squared_errors(times, predicted)
    return weighted_mean(errors, weight, "the Brier score of a cause")


def calibration_by_cause(
    cause: Any,
    time: Any,
    incidence: Any,
    at: Any,
    *,
    of: int = 1,
    level: float = 0.95,
    sample_weight: Any = None,
    clusters: Any = None,
) -> pd.DataFrame:
    """Observed (Aalen-Johansen) against mean predicted cumulative incidence of one cause.

    Parameters
    ----------
    cause, time, incidence, at, of
        As in :func:`brier_score_by_cause`.
    level : float
        Nominal coverage of the interval of the observed incidence.
    sample_weight : (n,) array, optional
        Patient weights; in the interval, weight 2 counts a patient twice.
    clusters : (n,) array, optional
        Cluster of each patient, such as a hospital, if there are no weights: the interval allows for correlation
        within clusters.

    Returns
    -------
    DataFrame
        One row per time: ``horizon``, mean ``predicted`` and ``observed`` incidence, their ``difference``
        (positive: the model is too pessimistic), the interval ``low`` to ``high`` of the observed incidence, the
        estimate that counts other causes as censored (``others_censored``), and the number of patients ``at_risk``.
        The interval is on the log-log scale.

    Examples
    --------
    >>> table = calibration_by_cause([1, 2, 1, 0], [1.0, 2.0, 3.0, 4.0], [[0.5]] * 4, [3.5])
    >>> table[["predicted", "observed", "others_censored"]].round(3).values.tolist()
    [[0.5, 0.5, 0.625]]
    """
    target = _parsed(cause, time)
    times = parse_horizons("at", at)
    predicted = _parse_incidence(incidence, len(target), len(times))
    weight = parse_weights(sample_weight, len(target))
    codes = None if clusters is None else label_codes("clusters", clusters, len(target))[0]
    require(
        codes is None or sample_weight is None, "sample_weight", "be left out with clusters", sample_weight
    )
    curve = aalen_johansen(
        target.cause, target.time, of=of, weight=weight if codes is None else None, clusters=codes
    )
    alone = aalen_johansen(target.cause == of, target.time, weight=weight)
    mean = weighted_mean(predicted, weight, "mean predicted incidence")
    table = pd.DataFrame(beside_observed(mean, curve, times, level, target.time))
    table.insert(len(table.columns) - 1, "others_censored", alone.at(times))
    return table


def concordance_by_cause(
    cause: Any, time: Any, risk: Any, *, of: int = 1, sample_weight: Any = None
) -> float:
    """Concordance index of one cause: patients with the event should rank above those who had it later or never.

    Pairs are compared by Harrell's rule. Patients with another event, who can no longer have this one, count as
    observed to the end without it (Wolbers et al.).

    Parameters
    ----------
    risk : (n,) array
        Risk scores of the cause, such as its predicted incidence at a horizon; higher means an earlier event. Scores
        within 1e-8 are tied: of very small incidences, pass logarithms, as :func:`~drosurv.evaluate` does.
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
    return concordance_index(_parsed(cause, time).among_others(of), risk, sample_weight)


def _parsed(cause: Any, time: Any) -> CompetingTarget:
    y = Surv.competing(cause, time)
    return CompetingTarget(y["cause"], y["time"])


def _parse_incidence(incidence: Any, n: int, k: int) -> FloatArray:
    values = np.asarray(incidence, dtype=np.float64)
    require(values.shape == (n, k), "incidence", f"hold {n} patients by {k} times", values.shape)
    inside = (values >= -1e-6) & (values <= 1 + 1e-6)
    require(inside.all(), "incidence", "hold probabilities between 0 and 1", values[~inside].tolist()[:5])
    return np.clip(values, 0.0, 1.0)
