"""What a model keeps of slabs of patients: its baseline hazard and their follow-up, thinned to what anybody reads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np

from drosurv.metrics.follow_up import FollowUp, percentiles
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
from drosurv.target import FloatArray

# Steps of each curve that a fitted model keeps, about; each is exact at its time.
MOST_STEPS = 100_000


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
    hazard = flipped(jumps).cumsum(0) * np.exp(-shift)
    return _thinned(-flipped(firsts), every), _thinned(hazard, every)


def _thinned(values: Any, every: int) -> FloatArray:
    """Every k-th value and the last, copied: a view of them would keep the values of every patient."""
    return np.array(on_host(values[(len(values) - 1) % every :: every]))


def follow_up(slabs: Sequence[Any], n: int, workers: Workers) -> FollowUp:
    """The follow-up of n patients."""
    every = max(n // MOST_STEPS, 1)
    held = workers.gather(workers.map(_held, slabs))
    before = list(accumulate(held[:-1], initial=0.0))
    found = workers.gather(workers.map(_followed, slabs, before, [every] * len(slabs)))
    # Slabs begin with the longest times, curves with the shortest.
    times, survival, censoring, event_times, weights = zip(*reversed(found), strict=True)
    return FollowUp(
        np.concatenate(times),
        _continued(censoring),
        _continued(survival),
        percentiles(np.concatenate(event_times), None if weights[0] is None else np.concatenate(weights)),
    )


def _continued(curves: Sequence[FloatArray]) -> FloatArray:
    """One curve of those that each begin at one."""
    reached = accumulate((curve[-1] for curve in curves[:-1]), mul, initial=1.0)
    return np.concatenate([begun * curve for begun, curve in zip(reached, curves, strict=True)])


def _held(slab: Any) -> float:
    return float(len(slab.time) if slab.weight is None else double(slab.weight).sum())


def _followed(slab: Any, before: float, every: int) -> tuple[FloatArray | None, ...]:
    """Rising times of a slab, both Kaplan-Meier curves from its first time on, and times and weights of events.

    `before` is the weight of all earlier slabs, whose patients are at risk throughout.
    """
    rising, weight = -double(slab.time), slab.weight
    mass = 0.0 * rising + 1.0 if weight is None else double(weight)
    block, starts, counts, _ = blocks_of_equals(rising)
    at_risk = mass.cumsum(0)[starts + counts[starts] - 1] + before
    died = summed_by_block(mass * slab.event, block, starts)
    left = summed_by_block(mass * ~slab.event, block, starts)
    places = flipped(set_places(slab.event))
    return (
        _thinned(-flipped(rising[starts]), every),
        _thinned(_surviving(died, at_risk), every),
        # At equal times events come first: who had the event is no longer at risk of being censored.
        _thinned(_surviving(left, at_risk - died), every),
        _thinned(-rising[places], every),
        None if weight is None else _thinned(mass[places], every),
    )


def _surviving(gone: Any, at_risk: Any) -> Any:
    """Kaplan-Meier curve, from the shortest time on, of counts that begin with the longest."""
    # Where nobody has left there may be nobody at risk: 0 / 1, not 0 / 0.
    share = gone / (at_risk + (gone == 0.0))
    return flipped((1.0 - share).clip(0.0, 1.0)).cumprod(0)
