"""Slabs on a disk: files larger than memory, sorted by time once, then read slab by slab in every round."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drosurv.distributed.columns import Columns, Rows, read_rows
from drosurv.distributed.sorting import Layout, Outline, cut, join, outline
from drosurv.errors import ArgumentError
from drosurv.solvers.slab import ScoredEvents
from drosurv.target import BoolArray, FloatArray

_ARRAYS = ("X", "time", "event", "weight")
# Rows of a file that a thread holds at once.
_BATCH = 1 << 17
# Each thread holds a batch or a slab of its own, so that more of them would take memory by the number of cores.
_MOST_THREADS = 4


class Threads:
    """Works on slabs with a few threads of this process; the kernels let each other run."""

    def __init__(self, n_threads: int) -> None:
        self.pool = ThreadPoolExecutor(n_threads)

    def map(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """All slabs, a few at a time."""
        return list(self.pool.map(work, *arguments))

    def gather(self, results: list[Any]) -> list[Any]:
        """They are here."""
        return results


class ShelvedSlab:
    """A slab in files: what is asked for is read, and let go again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def X(self) -> NDArray[Any]:
        """Centred features (d, m)."""
        return self._held("X")

    @property
    def sides(self) -> tuple[ScoredEvents, ...]:
        """Who is scored against whom."""
        sides: tuple[ScoredEvents, ...] = pickle.loads((self.folder / "sides").read_bytes())
        return sides

    @property
    def time(self) -> FloatArray:
        """Times (m,), falling."""
        return self._held("time")

    @property
    def event(self) -> BoolArray:
        """Event flags (m,)."""
        return self._held("event")

    @property
    def weight(self) -> FloatArray | None:
        """Weights (m,), None where all are one."""
        return self._held("weight") if (self.folder / "weight.npy").exists() else None

    def _held(self, name: str) -> NDArray[Any]:
        values: NDArray[Any] = np.load(self.folder / f"{name}.npy")
        return values


class ParquetParts:
    """The row groups of Parquet files, in the order of their names, and slabs of them in files of a folder."""

    def __init__(self, pattern: str | os.PathLike[str], folder: Path) -> None:
        import pyarrow.parquet as pq

        text = os.fspath(pattern)
        paths = sorted(glob(os.path.join(text, "*.parquet")) if os.path.isdir(text) else glob(text))
        if not paths:
            raise ArgumentError.must("data", "name Parquet files, by a path, a folder or a pattern", text)
        self.parts = [(path, group) for path in paths for group in range(pq.ParquetFile(path).num_row_groups)]
        schema = pq.read_schema(paths[0])
        # An index that pandas wrote beside the columns is none of them.
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        self.names: list[str] = [str(name) for name in schema.names if name not in index]
        self.workers, self.folder = Threads(min(os.cpu_count() or 1, _MOST_THREADS)), folder

    def outlines(self, columns: Columns) -> list[Outline]:
        """One outline per batch."""

        def of_part(k: int) -> list[Outline]:
            return [outline(rows) for rows in self._batches(k, columns)]

        found = self.workers.map(of_part, range(len(self.parts)))
        # The batches of part k are numbered from here on.
        self.first_batch = np.cumsum([0, *(len(part) for part in found)])
        return [each for part in found for each in part]

    def slabs(self, columns: Columns, layout: Layout) -> list[ShelvedSlab]:
        """Slabs on disk, from the longest to the shortest times."""
        homes = [self.folder / f"slab-{k:05d}" for k in range(len(layout.cuts))]
        for home in homes:
            home.mkdir(parents=True)

        def scatter(k: int) -> None:
            for batch, rows in enumerate(self._batches(k, columns), self.first_batch[k]):
                for home, piece in zip(homes, cut(rows, layout, batch), strict=True):
                    if len(piece.time):
                        scratch = home / f"piece-{batch:07d}"
                        scratch.write_bytes(pickle.dumps(piece, protocol=5))

        def bind(home: Path) -> ShelvedSlab | None:
            paths = sorted(home.glob("piece-*"))
            pieces: list[Rows] = [pickle.loads(path.read_bytes()) for path in paths]
            if not pieces:
                return None
            slab = join(pieces, layout.scheme)
            scratch = home / "sides"
            scratch.write_bytes(pickle.dumps(slab.sides, protocol=5))
            for name in _ARRAYS:
                values = getattr(slab, name)
                if values is not None:
                    np.save(home / f"{name}.npy", values)
            for path in paths:
                path.unlink()
            return ShelvedSlab(home)

        self.workers.map(scatter, range(len(self.parts)))
        return [slab for slab in self.workers.map(bind, homes[::-1]) if slab is not None]

    def _batches(self, k: int, columns: Columns) -> Iterator[Rows]:
        """The checked rows of part k, some at a time: row groups may be large."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path, group = self.parts[k]
        file = pq.ParquetFile(path)
        known = set(file.schema_arrow.names)
        wanted = [name for name in columns.all if name in known]
        start, name = 0, f"row group {group} of {os.path.basename(path)}"
        for batch in file.iter_batches(_BATCH, [group], wanted, use_threads=False):
            yield read_rows(batch.to_pandas(), columns, name, start)
            start += len(batch)
        # Arrow would keep what it has read into until the program ends.
        pa.default_memory_pool().release_unused()
