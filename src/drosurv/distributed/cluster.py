"""Slabs in the memory of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from drosurv.distributed.columns import Columns, Rows, read_rows
from drosurv.distributed.sorting import Layout, Outline, cut, join, outline
from drosurv.solvers.slab import Slab


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

    def __init__(self, frame: Any, client: Any) -> None:
        self.frame, self.workers = frame, Cluster(client)
        self.names: list[str] = [str(name) for name in frame.columns]

    def outlines(self, columns: Columns) -> list[Outline]:
        """One outline per partition."""
        return self.workers.gather(self.workers.map(outline, self._rows(columns)))

    def slabs(self, columns: Columns, layout: Layout) -> list[Any]:
        """Slabs on the workers, from the longest to the shortest times.

        Each partition is cut into one piece per slab and each slab put together from its pieces: plain tasks, so that
        a lost worker costs its share of them and nothing else.
        """
        n = len(layout.first)
        pieces = self.workers.map(cut, self._rows(columns), [layout] * n, range(n))
        own = [self.workers.map(_piece, pieces, [k] * n) for k in reversed(range(len(layout.cuts)))]
        slabs = [self.workers.client.submit(join, each, layout.scheme, pure=False) for each in own]
        sizes = self.workers.gather(self.workers.map(_size, slabs))
        return [slab for slab, size in zip(slabs, sizes, strict=True) if size]

    def _rows(self, columns: Columns) -> list[Any]:
        """The checked rows of every partition, on the workers."""
        parts = self.workers.client.compute(self.frame[columns.all].to_delayed())
        names = [f"partition {k}" for k in range(len(parts))]
        return self.workers.map(read_rows, parts, [columns] * len(parts), names)


def _piece(pieces: list[Rows], k: int) -> Rows:
    return pieces[k]


def _size(slab: Slab) -> int:
    return len(slab.time)
