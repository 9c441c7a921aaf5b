"""The baseline hazard over slabs: Breslow's steps, thinned where there are more of them than anybody reads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from drosurv.solvers.slab_problem import Workers
from drosurv.target import FloatArray

# Steps of the baseline hazard that a fitted model keeps; each is exact at its time.
MOST_STEPS = 100_000


def baseline(
    slabs: Sequence[Any], scores: Sequence[Any], shift: float, n_events: int, workers: Workers
) -> tuple[FloatArray, FloatArray]:
    """Times, rising, and the cumulative baseline hazard there, of patients with score zero.

    Parameters
    ----------
    slabs : sequence of slabs
        From the longest to the shortest times, with ``time``, ``event`` and ``weight``.
    scores : sequence of (m,) arrays
        Their scores.
    shift : float
        About the largest score.
    n_events : int
        Events in all slabs.
    workers : Workers
    """
    n = len(slabs)
    risks = workers.gather(workers.map(_risk, slabs, scores, [shift] * n))
    before = list(accumulate(risks[:-1], initial=0.0))
    every = max(n_events // MOST_STEPS, 1)
    found = workers.gather(workers.map(_steps, slabs, scores, [shift] * n, before, [every] * n))
    times, hazards, reached = [], [], 0.0
    for own_times, own_hazards in reversed(found):
        if len(own_times):
            times.append(own_times)
            hazards.append(own_hazards + reached)
            reached += float(own_hazards[-1])
    return np.concatenate(times), np.concatenate(hazards)


def _risk(slab: Any, f: FloatArray, shift: float) -> float:
    risk = np.exp(f - shift)
    return float(risk.sum() if slab.weight is None else slab.weight @ risk)


def _steps(
    slab: Any, f: FloatArray, shift: float, before: float, every: int
) -> tuple[FloatArray, FloatArray]:
    """Rising times of a slab and the hazard that it adds up to each of them; every k-th time and the last."""
    time, event, weight = slab.time, slab.event, slab.weight
    risk = np.exp(f - shift) if weight is None else weight * np.exp(f - shift)
    at_risk = np.cumsum(risk) + before
    places = np.flatnonzero(event)[::-1]
    times, block = np.unique(time[places], return_inverse=True)
    deaths = np.bincount(block, None if weight is None else weight[places], minlength=len(times))
    last = np.searchsorted(-time, -times, side="right") - 1
    hazard = np.cumsum(deaths / at_risk[last]) * np.exp(-shift)
    kept = np.arange(len(times) - 1, -1, -every)[::-1]
    return times[kept], hazard[kept]
