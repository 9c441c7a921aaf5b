"""Kaplan-Meier estimate of a weighted sample."""

from __future__ import annotations

import numpy as np

from drosurv.metrics.radix import stable_order
from drosurv.target import FloatArray, Target


def kaplan_meier(target: Target, at: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    r"""Share of patients free of the event after each of k times.

    .. math:: \hat S(t) = \prod_{t_j \le t} \left( 1 - \frac{\sum_i w_i 1[Y_i = t_j, \delta_i = 1]}
                                                          {\sum_i w_i 1[Y_i \ge t_j]} \right)

    Parameters
    ----------
    target : Target
        Events and times of n patients.
    at : (k,) float64
        Where to read the curve.
    weight : (n,) float64, optional
        Patient weights; a whole number counts copies.

    Returns
    -------
    (k,) float64
        NaN after the last time of the sample if that patient was censored: the curve ends there.
    """
    order = stable_order(target.time)
    time = target.time[order]
    mass = np.ones(len(time)) if weight is None else weight[order]
    seen = mass > 0
    time, mass, event = time[seen], mass[seen], target.event[order][seen]
    if len(time) == 0:
        return np.full(len(at), np.nan)
    first = np.flatnonzero(np.concatenate(([True], time[1:] != time[:-1])))
    at_risk = np.cumsum(mass[::-1])[::-1][first]
    died = np.add.reduceat(mass * event, first)
    curve = np.concatenate(([1.0], np.cumprod(np.maximum(1.0 - died / at_risk, 0.0))))
    found: FloatArray = curve[np.searchsorted(time[first], at, side="right")]
    beyond = (at > time[-1]) & (curve[-1] > 0)
    return np.where(beyond, np.nan, found)
