"""Sorting by time, once: where to cut, the pieces of a partition, and the slab made of pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from drosurv.distributed.columns import Rows
from drosurv.solvers.slab import Scheme, Slab, make_slab
from drosurv.target import BoolArray, FloatArray

# Times that a partition tells of itself: slabs come out even to about one part in this many.
_QUANTILES = 512


class Outline(NamedTuple):
    """What one partition of n rows tells before anything is sorted.

    `feature_sums` (d,) are weighted; `times` are evenly spaced quantiles of its times, the shortest and the
    longest among them.
    """

    n: int
    flags: BoolArray
    weights: FloatArray | None
    feature_sums: FloatArray
    times: FloatArray


def outline(rows: Rows) -> Outline:
    """Summarise a partition."""
    n, w = len(rows.time), rows.weight
    if n == 0:
        return Outline(0, rows.event, w, np.zeros(rows.X.shape[1]), np.zeros(0))
    sums = rows.X.sum(axis=0, dtype=np.float64) if w is None else w @ rows.X.astype(np.float64)
    quantiles = np.linspace(0.0, 1.0, min(n, _QUANTILES))
    return Outline(n, rows.event, w, sums, np.quantile(rows.time, quantiles, method="nearest"))


def cut_times(outlines: Sequence[Outline], n_slabs: int) -> FloatArray:
    """Rising times that start a slab each, the first at minus infinity; at most n_slabs of them."""
    parts = [part for part in outlines if part.n]
    times = np.concatenate([part.times for part in parts])
    shares = np.concatenate([np.full(len(part.times), part.n / len(part.times)) for part in parts])
    order = np.argsort(times, kind="stable")
    reached = np.cumsum(shares[order])
    wanted = np.arange(1, n_slabs) * (reached[-1] / n_slabs)
    cuts = np.unique(times[order][np.searchsorted(reached, wanted).clip(max=len(times) - 1)])
    return np.concatenate([[-np.inf], cuts[cuts > times[order[0]]]])


class Layout(NamedTuple):
    """How the rows of all partitions become slabs.

    `cuts` (K,) are times that start a slab each, from :func:`cut_times`; `centre` (d,) is subtracted from the
    features; `first` tells who of each partition's rows is in the first half, where there are halves.
    """

    cuts: FloatArray
    centre: FloatArray
    first: Sequence[BoolArray | None]
    scheme: Scheme


def cut(rows: Rows, layout: Layout, partition: int) -> list[Rows]:
    """The rows of each slab, features centred; some slabs may have none."""
    slab = np.searchsorted(layout.cuts, rows.time, side="right") - 1
    order = np.argsort(slab, kind="stable")
    ends = np.searchsorted(slab[order], np.arange(len(layout.cuts)), side="right")
    centre, weight, first = layout.centre.astype(rows.X.dtype), rows.weight, layout.first[partition]
    return [
        Rows(
            rows.X[own] - centre,
            rows.time[own],
            rows.event[own],
            None if weight is None else weight[own],
            None if first is None else first[own],
        )
        for own in np.split(order, ends[:-1])
    ]


def join(pieces: Sequence[Rows], scheme: Scheme) -> Slab:
    """The slab of all pieces, from the longest to the shortest time."""
    time = np.concatenate([piece.time for piece in pieces])
    order = np.argsort(-time, kind="stable")
    X = np.ascontiguousarray(np.concatenate([piece.X for piece in pieces])[order].T)
    event = np.concatenate([piece.event for piece in pieces])[order]
    weights = [piece.weight for piece in pieces if piece.weight is not None]
    weight = np.concatenate(weights)[order] if weights else None
    firsts = [piece.first for piece in pieces if piece.first is not None]
    first = np.concatenate(firsts)[order] if firsts else None
    return make_slab(X, time[order], event, weight, first, scheme)
