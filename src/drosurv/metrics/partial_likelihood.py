"""Cox's log partial likelihood as a score of held-out patients."""

from __future__ import annotations

from typing import Any, Literal

import numba
import numpy as np

from drosurv.metrics.scores import ScoredTarget, parse_scored, warn_undefined
from drosurv.target import BoolArray, FloatArray

Per = Literal["event", "patient"]


def log_partial_likelihood(y: Any, risk: Any, *, per: Per = "event", sample_weight: Any = None) -> float:
    r"""Mean log partial likelihood of risk scores, risk sets within the given patients (higher is better).

    .. math:: \frac1m \sum_{i: \delta_i = 1} w_i \Big( f_i - \log \sum_{j: Y_j \ge Y_i} w_j e^{f_j} \Big)

    with Breslow's treatment of ties. It is taken in log space, so scores of a thousand are fine.

    Parameters
    ----------
    y : structured array, (n,)
        Event flags and times.
    risk : (n,) array
        Risk scores; higher means sooner.
    per : "event" or "patient"
        What m counts. The published tables divide by the number of events, although the paper's equation 2
        divides by the number of patients.
    sample_weight : (n,) array, optional
        Patient weights, in risk sets and in m; a whole number counts copies.

    Returns
    -------
    float
        NaN, with a warning, if there is no event.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, False], [1.0, 2.0])
    >>> log_partial_likelihood(y, [0.0, 0.0])
    -0.6931471805599453
    """
    if per not in ("event", "patient"):
        raise ValueError(f"per must be 'event' or 'patient', got {per!r}.")
    scored = parse_scored(y, risk, sample_weight)
    events = float(scored.weight[scored.target.event].sum())
    if events == 0:
        warn_undefined("the log partial likelihood is undefined (NaN): no patient had the event.")
        return float("nan")
    return log_likelihood_sum(scored) / (events if per == "event" else float(scored.weight.sum()))


def log_likelihood_sum(scored: ScoredTarget) -> float:
    """The log partial likelihood itself: the weighted sum over events."""
    order = scored.target.order
    return float(
        _sum_over_events(
            scored.target.time[order], scored.target.event[order], scored.risk[order], scored.weight[order]
        )
    )


@numba.njit(cache=True, nogil=True)
def _sum_over_events(time: FloatArray, event: BoolArray, risk: FloatArray, weight: FloatArray) -> float:
    """From the last time to the first; the risk set's sum is kept relative to its own largest score."""
    largest = -np.inf
    mass = 0.0
    total = 0.0
    stop = len(time)
    while stop > 0:
        start = stop
        while start > 0 and time[start - 1] == time[stop - 1]:
            start -= 1
            if weight[start] > 0.0:
                if risk[start] > largest:
                    mass = mass * np.exp(largest - risk[start]) + weight[start]
                    largest = risk[start]
                else:
                    mass += weight[start] * np.exp(risk[start] - largest)
        for k in range(start, stop):
            if event[k] and weight[k] > 0.0:
                total += weight[k] * (risk[k] - largest - np.log(mass))
        stop = start
    return total
