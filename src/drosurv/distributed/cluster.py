"""Slabs in the memory of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from drosurv.distributed.columns import Columns, read_rows
from drosurv.distributed.sorting import Outline, Piece, TimedSlab, cut, join, outline
from drosurv.target import BoolArray, FloatArray


class Cluster:
    """Works on slabs where they lie. Lost results are computed again from what they came from."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def map(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """One task a slab; results stay on the workers."""
        found: list[Any] = self.client.map(work, *arguments, pure=False)
        return found

    def gather(self, results: list[Any]) -> list[Any]:
        """Results brought to this process."""
        found: list[Any] = self.client.gather(results)
        return found


class DaskParts:
    """The partitions of a Dask DataFrame, in order."""

    def __init__(self, frame: Any, cluster: Cluster) -> None:
        self.frame, self.cluster = frame, cluster
        self.names: list[str] = [str(name) for name in frame.columns]

    def rows(self, columns: Columns) -> list[Any]:
        """The checked rows of every partition, on the workers."""
        parts = self.cluster.client.compute(self.frame[columns.all].to_delayed())
        names = [f"partition {k}" for k in range(len(parts))]
        return self.cluster.map(read_rows, parts, [columns] * len(parts), names)

    def outlines(self, columns: Columns) -> list[Outline]:
        """One outline per partition."""
        return self.cluster.gather(self.cluster.map(outline, self.rows(columns)))


def spread(
    parts: DaskParts,
    columns: Columns,
    cuts: FloatArray,
    centre: FloatArray,
    first: Sequence[BoolArray | None],
    totals: Sequence[float],
) -> list[Any]:
    """Sort the rows of all partitions into slabs on the workers, from the longest to the shortest times.

    Parameters as in :func:`drosurv.distributed.shelf.shelve`. Each partition is cut into one piece per slab and each
    slab put together from its pieces: plain tasks, so that a lost worker costs its share of them and nothing else.
    """
    cluster, n = parts.cluster, len(first)
    pieces = cluster.map(cut, parts.rows(columns), [cuts] * n, [centre] * n, list(first))
    own = [cluster.map(_piece, pieces, [k] * n) for k in reversed(range(len(cuts)))]
    slabs = [cluster.client.submit(join, each, tuple(totals), pure=False) for each in own]
    sizes = cluster.gather(cluster.map(_size, slabs))
    return [slab for slab, size in zip(slabs, sizes, strict=True) if size]


def _piece(pieces: list[Piece], k: int) -> Piece:
    return pieces[k]


def _size(slab: TimedSlab) -> int:
    return len(slab.time)
