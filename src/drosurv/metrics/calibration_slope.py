"""Calibration slope: how much the scores would have to be stretched to fit these patients."""

from __future__ import annotations

from typing import Any

import numpy as np

from drosurv.metrics.cox_newton import maximised
from drosurv.metrics.scores import parse_scored, warn_undefined


def calibration_slope(y: Any, risk: Any, *, sample_weight: Any = None) -> float:
    r"""Coefficient of a Cox model of y on the risk score alone.

    .. math:: \arg\max_b \sum_{i: \delta_i = 1} \Big( b f_i - \log \sum_{j: Y_j \ge Y_i} e^{b f_j} \Big)

    1 is right; below 1 the scores are too extreme (overfitted), above 1 they are shrunk. A model whose
    every score is multiplied by c has its slope divided by c.

    Parameters as in :func:`log_partial_likelihood`; scores are log hazard ratios.

    Returns
    -------
    float
        NaN, with a warning, if the scores do not vary among patients at risk together (as without events);
        infinite, with a warning, if they order the events perfectly, so that no finite slope is best.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0])
    >>> slope = calibration_slope(y, [2.0, 3.0, 1.0, 0.0])
    >>> round(calibration_slope(y, [4.0, 6.0, 2.0, 0.0]) / slope, 6)
    0.5
    """
    seen = parse_scored(y, risk, sample_weight).by_time()
    time, event = seen.target.time, seen.target.event
    # Risk sets are suffixes of the patients in order of time.
    own, since = seen.risk[event], np.searchsorted(time, time[event])
    never_lower = (own == np.maximum.accumulate(seen.risk[::-1])[::-1][since]).all()
    never_higher = (own == np.minimum.accumulate(seen.risk[::-1])[::-1][since]).all()
    if never_lower and never_higher:
        warn_undefined(
            "the calibration slope is undefined (NaN): the scores do not vary among "
            "patients at risk together."
        )
        return float("nan")
    if never_lower or never_higher:
        slope = float("inf") if never_lower else float("-inf")
        warn_undefined(
            f"the calibration slope is {slope}: every event has the {'highest' if never_lower else 'lowest'} "
            "score of its risk set, so that no finite slope is best."
        )
        return slope
    # By the largest score first: squares of very large or very small scores leave the range of floats.
    largest = float(np.abs(seen.risk).max())
    scaled = seen.risk / largest
    spread = float(scaled.std())
    column = ((scaled - scaled.mean()) / spread)[:, None]
    return float(maximised(time, event, column, seen.weight, 0.0, 1e-7)[0]) / spread / largest
