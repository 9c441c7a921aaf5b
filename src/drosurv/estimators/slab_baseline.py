"""What a model keeps of slabs of patients: its baseline hazard and their follow-up, thinned to what anybody reads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from drosurv.metrics import FollowUp
from drosurv.solvers.arrays import (
    blocks_of_equals,
    counted_up_to,
    double,
    exp,
    flipped,
    on_host,
    set_places,
    summed_by_block,
)
from drosurv.solvers.slab_problem import Workers
from drosurv.target import BoolArray, FloatArray, Target

# Steps of the baseline hazard that a fitted model keeps; each is exact at its time.
MOST_STEPS = 100_000
# Patients whose times stand for everybody's in what a model keeps of the follow-up.
FOLLOWED = 1_000_000


def baseline(
    slabs: Sequence[Any], scores: Sequence[Any], shift: float, n_events: int, ties: str, workers: Workers
) -> tuple[FloatArray, FloatArray]:
    """Times, rising, and the cumulative baseline hazard there, of patients with score zero.

    Slabs go from the longest to the shortest times and have ``time``, ``event`` and ``weight``; `scores` are one array
    (m,) for each, and `shift` is about the largest of them.
    """
    n = len(slabs)
    risks = workers.gather(workers.map(_risk, slabs, scores, [shift] * n))
    before = list(accumulate(risks[:-1], initial=0.0))
    every = max(n_events // MOST_STEPS, 1)
    found = workers.gather(workers.map(_steps, slabs, scores, [shift] * n, before, [ties] * n, [every] * n))
    times, hazards, reached = [], [], 0.0
    for own_times, own_hazards in reversed(found):
        if len(own_times):
            times.append(own_times)
            hazards.append(own_hazards + reached)
            reached += float(own_hazards[-1])
    return np.concatenate(times), np.concatenate(hazards)


def _risk(slab: Any, f: Any, shift: float) -> float:
    return float(_risks(slab, f, shift).sum())


def _risks(slab: Any, f: Any, shift: float) -> Any:
    risk = exp(f - shift)
    return risk if slab.weight is None else double(slab.weight) * risk


def _steps(
    slab: Any, f: Any, shift: float, before: float, ties: str, every: int
) -> tuple[FloatArray, FloatArray]:
    """Rising times of a slab and the hazard that it adds up to each of them; every k-th time and the last."""
    # Times fall: negative they rise, and blocks of equal ones follow each other.
    rising, risk, places = -double(slab.time), _risks(slab, f, shift), set_places(slab.event)
    block, starts, counts, earlier = blocks_of_equals(rising[places])
    firsts = rising[places[starts]]
    at_risk = (risk.cumsum(0) + before)[counted_up_to(rising, firsts) - 1]
    weight = double(slab.event if slab.weight is None else slab.weight)[places]
    deaths = summed_by_block(weight, block, starts)
    jumps = deaths / at_risk
    if ties == "efron":
        # A block's m events with summed risk D leave in turn: the mean of 1 / (S - k/m D), k = 0..m-1.
        tied = summed_by_block(risk[places], block, starts)
        terms = 1.0 / (at_risk[block] - double(earlier) / counts * tied[block])
        jumps = deaths / counts[starts] * summed_by_block(terms, block, starts)
    times, hazard = on_host(-flipped(firsts)), on_host(flipped(jumps).cumsum(0)) * np.exp(-shift)
    kept = np.arange(len(times) - 1, -1, -every)[::-1]
    return times[kept], hazard[kept]


def follow_up(slabs: Sequence[Any], n: int, workers: Workers) -> FollowUp:
    """The follow-up of n patients, or of every so many of them."""
    every = max(n // FOLLOWED, 1)
    seen = workers.gather(workers.map(_followed, slabs, [every] * len(slabs)))
    time, event = (np.concatenate([part[k] for part in seen]) for k in (0, 1))
    weight = None if seen[0][2] is None else np.concatenate([part[2] for part in seen])
    return FollowUp.of(Target(event, time), weight)


def _followed(slab: Any, every: int) -> tuple[FloatArray, BoolArray, FloatArray | None]:
    """Times, events and weights of every so many patients."""
    weight = slab.weight
    return (
        on_host(slab.time[::every]),
        on_host(slab.event[::every]),
        None if weight is None else on_host(weight[::every]),
    )
