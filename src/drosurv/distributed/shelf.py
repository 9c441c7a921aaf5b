"""Slabs on a disk: files larger than memory, sorted by time once, then read slab by slab in every round."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np

from drosurv.distributed.sorting import Columns, Layout, Outline, Rows, cut, join, outline, read_rows
from drosurv.errors import ArgumentError
from drosurv.solvers.slabs import Slab

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
    """A slab in files, one for each of its fields: what is asked for is read, and let go again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __getattr__(self, name: str) -> Any:
        """A field of :class:`~drosurv.solvers.slabs.Slab`."""
        if name not in Slab._fields:
            raise AttributeError(name)
        array = self.folder / f"{name}.npy"
        return np.load(array) if array.exists() else pickle.loads((self.folder / name).read_bytes())


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
            for name, values in slab._asdict().items():
                if isinstance(values, np.ndarray):
                    np.save(home / f"{name}.npy", values)
                else:
                    scratch = home / name
                    scratch.write_bytes(pickle.dumps(values, protocol=5))
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
        own = [self.workers.map(getitem, pieces, [k] * n) for k in reversed(range(len(layout.cuts)))]
        slabs = [self.workers.client.submit(join, each, layout.scheme, pure=False) for each in own]
        sizes = self.workers.gather(self.workers.map(lambda slab: len(slab.time), slabs))
        return [slab for slab, size in zip(slabs, sizes, strict=True) if size]

    def _rows(self, columns: Columns) -> list[Any]:
        """The checked rows of every partition, on the workers."""
        parts = self.workers.client.compute(self.frame[columns.all].to_delayed())
        names = [f"partition {k}" for k in range(len(parts))]
        return self.workers.map(read_rows, parts, [columns] * len(parts), names)
