"""Patients of one stretch of time.

Patients are sorted from the longest to the shortest time, so a risk set is everybody up to a place. A slab holds a
stretch of that order; equal times never lie in two slabs. What a slab must know of the others is a few sums, its
*carries*: the risk of all earlier slabs (longer times), and what the events of all later slabs pull.

Arrays are NumPy's or torch's: one code for the processor, an accelerator and a cluster. Features are stored feature
by feature, (d, m), because running sums over patients then go along contiguous memory.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from drosurv.solvers.arrays import (
    Array,
    blocks_of_equals,
    counted_up_to,
    double,
    in_precision_of,
    set_places,
    summed_by_block,
)
from drosurv.target import BoolArray, FloatArray

if TYPE_CHECKING:
    from torch import Tensor

# Patients of a slab on an accelerator: enough to keep it busy, few enough that what a step holds is small beside the
# features.
ROWS = 1 << 21


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


def device_slabs(
    X: Any,
    time: FloatArray,
    event: BoolArray,
    weight: FloatArray | None,
    in_first: BoolArray | None,
    scheme: Scheme,
    device: Any,
    rows: int = ROWS,
) -> tuple[list[Slab], FloatArray, Tensor]:
    """Slabs of n patients in any order, from the longest to the shortest times, made on an accelerator.

    Beside them come the centre (d,) of the features and, on the device, the order (n,) of the rows. Features are in
    float32 or float64, the rest is as in :func:`make_slab`. A slab holds about `rows` patients;
    equal times stay together.
    """
    import torch

    with warnings.catch_warnings():
        # A DataFrame's numbers are read-only, which torch warns about; nothing is written here.
        warnings.filterwarnings("ignore", "The given NumPy array is not writ", UserWarning)
        given, times = (torch.as_tensor(values, device=device) for values in (X, time))
    order = times.argsort(descending=True, stable=True)
    falling = times[order]
    centre = _centre(given, weight)
    # A sum is finite only if all its terms are.
    if not bool(torch.isfinite(centre).all()):
        column = int((~torch.isfinite(centre)).nonzero()[0])
        raise ValueError(f"X contains NaN or infinity (first in column {column}); drop or repair those rows.")
    events, weights, firsts = (
        None if values is None else torch.as_tensor(values, device=device)[order]
        for values in (event, weight, in_first)
    )
    slabs, start, n = [], 0, len(given)
    while start < n:
        stop = min(start + rows, n)
        # To the end of its last time: the next slab starts with another.
        stop = int((falling >= falling[stop - 1]).sum()) if stop < n else n
        own = slice(start, stop)
        features = (given[order[own]] - centre.to(given.dtype)).T.contiguous()
        parts = (None if values is None else values[own] for values in (events, weights, firsts))
        slabs.append(make_slab(features, falling[own], next(parts), next(parts), next(parts), scheme))
        start = stop
    return slabs, centre.cpu().numpy(), order


def _centre(X: Tensor, weight: FloatArray | None) -> Tensor:
    """Mean of the features in float64, without a copy of them."""
    import torch

    if weight is None:
        # A sum in double precision copies what it adds up: not all of X at a time.
        parts = (X[row : row + ROWS] for row in range(0, len(X), ROWS))
        return torch.stack([part.sum(0, dtype=torch.float64) for part in parts]).sum(0) / len(X)
    share = torch.as_tensor(weight / weight.sum(), dtype=X.dtype, device=X.device)
    return (share @ X).double()
