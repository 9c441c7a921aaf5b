"""The parts of distributed data, in Parquet files or a Dask DataFrame, and the chunks of patients made from them.

A chunk contains the patients between two times. Parquet files larger than memory are sorted by time once, into files
with one chunk each, which every evaluation of the objective reads again.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from glob import glob
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np

from drosurv.distributed.sorting import Columns, Layout, Outline, PartRows, cut, join, outline, read_rows
from drosurv.errors import require, require_extra
from drosurv.patients.target import FloatArray
from drosurv.solvers.chunk_likelihood import Chunk, ChunkState
from drosurv.solvers.chunk_problem import LocalWorkers

# Rows of a file that a thread reads at a time.
_BATCH = 1 << 17
# Each thread needs memory for one batch or chunk.
_MOST_THREADS = 4


class ChunkOnDisk:
    """A chunk stored in files, one for each field; each access to a field reads its file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __getattr__(self, name: str) -> Any:
        """Read a field of :class:`~drosurv.solvers.chunk_likelihood.Chunk`."""
        if name not in Chunk._fields:
            raise AttributeError(name)
        # Not a file of numpy, whose header is parsed: parsers in several threads disturb each other in Python 3.11.
        with open(self.folder / name, "rb") as file:
            return pickle.load(file)


class ParquetParts:
    """The row groups of Parquet files, sorted by file name; their chunks are stored in a folder."""

    def __init__(self, pattern: str | os.PathLike[str], folder: Path) -> None:
        require_extra("pyarrow", "formats", "a Parquet file")
        import pyarrow.parquet as pq

        text = os.fspath(pattern)
        paths = sorted(glob(os.path.join(text, "*.parquet")) if os.path.isdir(text) else glob(text))
        require(paths, "data", "name Parquet files, by a path, a folder or a pattern", text)
        self.parts = [(path, group) for path in paths for group in range(pq.ParquetFile(path).num_row_groups)]
        schema = pq.read_schema(paths[0])
        # Leave out the index that pandas wrote.
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        self.names: list[str] = [str(name) for name in schema.names if name not in index]
        self.workers, self.folder = LocalWorkers(min(os.cpu_count() or 1, _MOST_THREADS)), folder

    def outlines(self, columns: Columns, draws: bool) -> list[Outline]:
        """Return one summary per batch of rows; `draws` as in :func:`~drosurv.distributed.sorting.outline`."""

        def of_part(k: int) -> list[Outline]:
            return [outline(rows, draws) for rows in self._batches(k, columns)]

        found = self.workers.map(of_part, range(len(self.parts)))
        # The number of the first batch of each part.
        self.first_batch = np.cumsum([0, *(len(part) for part in found)])
        return [each for part in found for each in part]

    def values(self, columns: Columns) -> FloatArray:
        """Return the values of the one feature of `columns` of all rows."""

        def of_part(k: int) -> list[FloatArray]:
            return [first_feature(rows) for rows in self._batches(k, columns)]

        found = self.workers.map(of_part, range(len(self.parts)))
        return np.concatenate([each for part in found for each in part])

    def chunks(self, columns: Columns, layout: Layout) -> list[ChunkState]:
        """Write the chunks and return them, from the longest to the shortest times."""
        folders = [self.folder / f"chunk-{k:05d}" for k in range(len(layout.cuts))]
        for folder in folders:
            folder.mkdir(parents=True)

        def scatter(k: int) -> None:
            for batch, rows in enumerate(self._batches(k, columns), self.first_batch[k]):
                for folder, piece in zip(folders, cut(rows, layout, batch), strict=True):
                    if len(piece.time):
                        scratch = folder / f"piece-{batch:07d}"
                        scratch.write_bytes(pickle.dumps(piece, protocol=5))

        def join_pieces(folder: Path) -> ChunkState | None:
            paths = sorted(folder.glob("piece-*"))
            pieces: list[PartRows] = [pickle.loads(path.read_bytes()) for path in paths]
            if not pieces:
                return None
            chunk = join(pieces, layout.scheme).chunk
            for name, values in chunk._asdict().items():
                scratch = folder / name
                scratch.write_bytes(pickle.dumps(values, protocol=5))
            for path in paths:
                path.unlink()
            return ChunkState(ChunkOnDisk(folder))

        self.workers.map(scatter, range(len(self.parts)))
        return [chunk for chunk in self.workers.map(join_pieces, folders[::-1]) if chunk is not None]

    def _batches(self, k: int, columns: Columns) -> Iterator[PartRows]:
        """Yield the checked rows of part k in batches, because row groups may be large."""
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
        # Otherwise Arrow keeps its buffers until the program ends.
        pa.default_memory_pool().release_unused()


class Cluster:
    """Calls functions for each chunk on the workers of a Dask cluster; Dask computes lost results again."""

    remote = True

    def __init__(self, client: Any) -> None:
        self.client = client

    def map(self, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
        """Start one task per chunk; the results stay on the workers."""
        found: list[Any] = self.client.map(work, *arguments, pure=False)
        return found

    def gather(self, results: list[Any]) -> list[Any]:
        """Copy results to this process."""
        found: list[Any] = self.client.gather(results)
        return found


def first_feature(rows: PartRows) -> FloatArray:
    """Return the values of the first feature."""
    return rows.X[:, 0]


class DaskParts:
    """The partitions of a Dask DataFrame, in order."""

    def __init__(self, frame: Any, client: Any) -> None:
        self.frame, self.workers = frame, Cluster(client)
        self.names: list[str] = [str(name) for name in frame.columns]

    def outlines(self, columns: Columns, draws: bool) -> list[Outline]:
        """Return one summary per partition; `draws` as in :func:`~drosurv.distributed.sorting.outline`."""
        rows = self._rows(columns)
        return self.workers.gather(self.workers.map(outline, rows, [draws] * len(rows)))

    def values(self, columns: Columns) -> FloatArray:
        """Return the values of the one feature of `columns` of all rows."""
        return np.concatenate(self.workers.gather(self.workers.map(first_feature, self._rows(columns))))

    def chunks(self, columns: Columns, layout: Layout) -> list[Any]:
        """Return the chunks on the workers, from the longest to the shortest times.

        Each partition is cut into one piece per chunk, and each chunk is joined from its pieces. These are separate
        tasks, so that only the tasks of a lost worker are computed again.
        """
        n = len(layout.marks)
        pieces = self.workers.map(cut, self._rows(columns), [layout] * n, range(n))
        by_chunk = [self.workers.map(getitem, pieces, [k] * n) for k in reversed(range(len(layout.cuts)))]
        chunks = [self.workers.client.submit(join, each, layout.scheme, pure=False) for each in by_chunk]
        sizes = self.workers.gather(self.workers.map(lambda state: len(state.chunk.time), chunks))
        return [chunk for chunk, size in zip(chunks, sizes, strict=True) if size]

    def _rows(self, columns: Columns) -> list[Any]:
        """Return the checked rows of every partition, on the workers."""
        parts = self.workers.client.compute(self.frame[columns.all].to_delayed())
        names = [f"partition {k}" for k in range(len(parts))]
        return self.workers.map(read_rows, parts, [columns] * len(parts), names)
