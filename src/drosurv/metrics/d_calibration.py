"""D-calibration: are the predicted survival probabilities at the events uniform, as they should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from drosurv.metrics.survival_curves import parse_survival
from drosurv.target import FloatArray, parse_target


@dataclass(frozen=True, eq=False)
class DCalibration:
    """Result of :func:`d_calibration`.

    Parameters
    ----------
    statistic : float
        Pearson's chi-square of the bins against equal shares.
    p_value : float
        Chance of so large a statistic if the model is calibrated.
    shares : (n_bins,) float64
        Share of patients in each bin of survival probability, from the lowest bin; 1/n_bins each is right.
    n : int
        Number of patients.
    """

    statistic: float
    p_value: float
    shares: FloatArray
    n: int


def d_calibration(y: Any, survival: Any, times: Any = None, *, n_bins: int = 10) -> DCalibration:
    r"""Test that the predicted survival probability at the event is uniform on [0, 1].

    A patient with an event falls into the bin of S(Y|x). A censored one is known only to fall at or below
    it, and is spread evenly over that range:

    .. math:: \text{share of } [a, b): \quad \frac{\max(0, \min(b, s) - a)}{s}, \qquad s = \hat S(Y_i | x_i)

    Parameters
    ----------
    y : structured array, (n,)
        Event flags and times.
    survival : n step functions, or (n, k) array
        Predicted survival curves; an array holds the survival at `times`, one column each.
    times : (k,) array, optional
        Times of the columns of an array.
    n_bins : int
        Number of equal bins.

    Returns
    -------
    DCalibration

    References
    ----------
    Haider, Hoehn, Davis, Greiner (2020), Effective ways to build and evaluate individual survival
    distributions, JMLR 21.

    Examples
    --------
    >>> from drosurv import Surv
    >>> y = Surv.from_arrays([True, True], [1.0, 2.0])
    >>> d_calibration(y, [[0.75, 0.5], [0.75, 0.25]], times=[1.0, 2.0], n_bins=2).shares.tolist()
    [0.5, 0.5]
    """
    from scipy.stats import chi2

    if n_bins < 2:
        raise ValueError(f"n_bins must be at least 2, got {n_bins}.")
    target = parse_target(y, require_event=False)
    reached = parse_survival(survival, len(target), times).at_own(target.time)
    low = np.arange(n_bins) / n_bins
    inside = np.zeros((len(target), n_bins))
    bins = np.minimum((reached * n_bins).astype(np.intp), n_bins - 1)
    inside[np.arange(len(target)), bins] = 1.0
    # A patient censored at a survival of 0 has no range below, and stays in the lowest bin.
    spread = ~target.event & (reached > 0)
    s = reached[spread, None]
    inside[spread] = np.clip(np.minimum(low + 1 / n_bins, s) - low, 0.0, None) / s
    counts = inside.sum(axis=0)
    expected = len(target) / n_bins
    statistic = float(((counts - expected) ** 2).sum() / expected)
    return DCalibration(statistic, float(chi2.sf(statistic, n_bins - 1)), counts / len(target), len(target))
