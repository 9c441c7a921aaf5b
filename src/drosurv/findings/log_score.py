"""Log scores of predictions at few times, weighted for censoring.

The log score of a patient is that of being free of the event at the end of each interval between two predicted times,
over the intervals whose answer is known, each weighted by the inverse probability of knowing it. Its mean is that of
the log likelihood of complete observations. Counting the censored until the beginning of their interval instead would
prefer hazards that are too large.
"""

from __future__ import annotations

import numpy as np

from drosurv.target import BoolArray, FloatArray

# Smallest probability of an event or of none in an interval, where probabilities are not rounded.
LEAST = 1e-6
# Probabilities with so many decimals are taken as rounded.
_MOST_DECIMALS = 5


def rounding_unit(probability: FloatArray) -> float:
    """Return the last digit to which all probabilities are rounded, such as 0.01; 0 if they are not.

    >>> [rounding_unit(np.array(p)) for p in ([0.12, 0.5, 1.0], [0.123, 0.5], [1 / 3])]
    [0.01, 0.001, 0.0]
    """
    for decimals in range(1, _MOST_DECIMALS + 1):
        if np.allclose(probability, np.round(probability, decimals), rtol=0, atol=1e-9):
            return float(10.0**-decimals)
    return 0.0


def log_scores(
    survival: FloatArray,
    times: FloatArray,
    time: FloatArray,
    event: BoolArray,
    inverse: FloatArray,
    *,
    start: FloatArray | None = None,
    unit: float = 0.0,
) -> FloatArray:
    """Return each patient's log score (n,) of probabilities of no event (n, K), or (K,) for all, by K times.

    `inverse` (n, K) are weights of those whose status at each time is known, else 0. Patients count from their `start`
    (n,) on, one of the times. Rounded probabilities (`unit`) of 0 and 1 count as those in the middle of their range.
    """
    least = unit / 4 if unit else LEAST
    S = np.clip(np.broadcast_to(survival, inverse.shape), least, 1.0)
    before = np.column_stack([np.ones(len(S)), S[:, :-1]])
    # An event has the probability of its interval, of which both ends are rounded.
    drop = np.clip((before - S) / before, least, 1 - least)
    begins = np.append(0.0, times[:-1])
    happened = event[:, None] & (time[:, None] <= times)
    at_risk = time[:, None] > begins
    if start is not None:
        at_risk &= start[:, None] <= begins
    found: FloatArray = np.where(
        at_risk, inverse * np.where(happened, np.log(drop), np.log1p(-drop)), 0.0
    ).sum(axis=1)
    return found
