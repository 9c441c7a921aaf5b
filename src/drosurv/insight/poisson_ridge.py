"""Poisson regression with known expectations: the exact likelihood of multiplying hazards.

If a repair r(x) multiplies a patient's hazard by exp(r), his log likelihood changes by

    d r - (exp(r) - 1) E,

with d his event and E the cumulative hazard that the model gave him until his time. That is a Poisson
log likelihood with expectation E, so no risk sets are needed and any model with cumulative hazards will do.
"""

from __future__ import annotations

import numpy as np

from drosurv.target import FloatArray

# Linear predictors beyond this are never meant; they appear on the way of a Newton step that will be halved.
LARGEST = 20.0
MOST_STEPS = 30


def likelihood_gains_of(r: FloatArray, events: FloatArray, expected: FloatArray) -> FloatArray:
    """Each patient's gain in log likelihood when his hazard is multiplied by exp(r), (..., n)."""
    return events * r - np.expm1(r) * expected


def poisson_ridge(
    Z: FloatArray,
    events: FloatArray,
    expected: FloatArray,
    penalty: FloatArray,
    start: FloatArray | None = None,
) -> FloatArray:
    r"""Effects theta (p,) that maximise the penalised gain in log likelihood, by Newton's method.

    .. math:: \sum_i d_i r_i - (e^{r_i} - 1) E_i - \tfrac12 \sum_j \lambda_j \theta_j^2, \quad r = Z \theta

    with columns Z (n, p), events d and expected ones E (n,), and the penalty lambda (p,), not negative.
    """
    theta = np.zeros(Z.shape[1]) if start is None else start
    r = Z @ theta
    value = _penalised(r, theta, events, expected, penalty)
    for _ in range(MOST_STEPS):
        mean = np.exp(np.clip(r, -LARGEST, LARGEST)) * expected
        gradient = Z.T @ (events - mean) - penalty * theta
        curvature = (Z * mean[:, None]).T @ Z
        curvature[np.diag_indices_from(curvature)] += penalty
        step = np.linalg.lstsq(curvature, gradient)[0]
        scale, risen = 1.0, -np.inf
        # Concave, so some part of a Newton step always rises.
        while scale > 1e-4:
            moved = theta + scale * step
            r_moved = Z @ moved
            risen = _penalised(r_moved, moved, events, expected, penalty)
            if risen >= value:
                break
            scale /= 2
        if not risen > value + 1e-9 * (1.0 + abs(value)):
            break
        theta, r, value = moved, r_moved, risen
    return theta


def _penalised(
    r: FloatArray, theta: FloatArray, events: FloatArray, expected: FloatArray, penalty: FloatArray
) -> float:
    gain = events @ r - np.expm1(np.clip(r, -LARGEST, LARGEST)) @ expected
    return float(gain - 0.5 * (penalty * theta * theta).sum())
