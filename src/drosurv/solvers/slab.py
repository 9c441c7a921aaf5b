"""Patients of one stretch of time.

Patients are sorted from the longest to the shortest time, so a risk set is everybody up to a place. A slab holds a
stretch of that order; equal times never lie in two slabs. What a slab must know of the others is a few sums, its
*carries*: the risk of all earlier slabs (longer times), and what the events of all later slabs pull.

Arrays are NumPy's or torch's: one code for the processor, an accelerator and a cluster. Features are stored feature
by feature, (d, m), because running sums over patients then go along contiguous memory.
"""

from __future__ import annotations

from typing import NamedTuple

from drosurv.solvers.arrays import (
    Array,
    blocks_of_equals,
    counted_up_to,
    double,
    in_precision_of,
    set_places,
    summed_by_block,
)


class Ties(NamedTuple):
    """Events of equal times, where they share a risk set in Efron's form.

    The m events of a block, with summed risk D, are compared with S - k/m D, k = 0..m-1, and each loss takes the mean
    of the m logs. Each event stands for one of these terms. Equal times lie in one slab, so no block has a carry.

    `block` (E,) is each event's block, whose events follow each other from `starts` (K,) on; `share` and `step` (E,)
    are each event's 1/m and k/m.
    """

    block: Array
    starts: Array
    share: Array
    step: Array

    @classmethod
    def of(cls, last: Array) -> Ties | None:
        """The blocks of events that have the same risk set; None where every event has one of its own."""
        block, starts, counts, before = blocks_of_equals(last)
        if len(starts) == len(last):
            return None
        share = 1.0 / double(counts)
        return cls(block, starts, share, share * double(before))

    def total(self, values: Array) -> Array:
        """For each event the sum (..., E) of values over its block."""
        return summed_by_block(values, self.block, self.starts)[..., self.block]

    def mean(self, values: Array) -> Array:
        """For each event the mean (..., E) of values over its block."""
        return self.total(values * in_precision_of(values, self.share))


class ScoredEvents(NamedTuple):
    """Events that are scored together, and whom they are compared with.

    `event` (E,) are their places in the slab, rising, `last` (E,) the last place of each one's time: its risk set is
    everybody up to there. `mass` (E,) are the events' masses. `reference` (m,) is what each patient of the slab weighs
    in risk sets, None for one each; `own` tells whether an event adds its own risk to the risk set, which then holds
    other patients only. `ties` are events of equal times, where ties are Efron's.
    """

    event: Array
    last: Array
    mass: Array
    reference: Array | None
    own: bool
    ties: Ties | None = None


class Scheme(NamedTuple):
    """How events are scored.

    `totals` are the summed weights of all patients of each side, in all slabs together; one total where nobody is
    split. `ties` is Breslow's for halves, in which an event has its own risk set.
    """

    totals: tuple[float, ...]
    ties: str = "breslow"


class Slab(NamedTuple):
    """Features (d, m), scored events, times, event flags and weights of m patients, times falling.

    A slab may also be anything with these attributes that reads them from where they are stored.
    """

    X: Array
    sides: tuple[ScoredEvents, ...]
    time: Array
    event: Array
    weight: Array | None


def make_slab(
    X: Array, time: Array, event: Array, weight: Array | None, in_first: Array | None, scheme: Scheme
) -> Slab:
    """A slab of m patients that are sorted from the longest to the shortest time, with centred features (d, m).

    Weights are given where they are not all one, `in_first` where halves are scored against each other.
    """
    if in_first is None:
        sides = [_scored(time, event, weight, scheme.totals[0], None, scheme.ties == "efron")]
    else:
        halves = (in_first, ~in_first)[: len(scheme.totals)]
        sides = [
            _scored(time, event & own, weight, total, ~own, False)
            for own, total in zip(halves, scheme.totals, strict=True)
        ]
    return Slab(X, tuple(sides), time, event, weight)


def _scored(
    time: Array, event: Array, weight: Array | None, total: float, others: Array | None, efron: bool
) -> ScoredEvents:
    falling = -double(time)
    places = set_places(event)
    last = counted_up_to(falling, falling[places]) - 1
    mass = (double(event[places]) if weight is None else double(weight)[places]) / total
    reference = weight
    if others is not None:
        reference = double(others) if weight is None else double(others) * weight
    ties = Ties.of(last) if efron else None
    return ScoredEvents(places, last, mass, reference, others is not None, ties)
