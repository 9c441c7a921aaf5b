"""Sort distributed patients by time: choose cut points, cut each partition into pieces, join pieces to chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drosurv.errors import ArgumentError, InputError, require, row_number
from drosurv.patients.target import BoolArray, FloatArray
from drosurv.solvers.chunk_likelihood import ChunkState, Marks, Scheme, make_chunk

# Number of quantiles of the times of each partition. The sizes of chunks differ by about one part in this many.
_QUANTILES = 512


class Outline(NamedTuple):
    """Summary of one partition of n rows, from which cut points are chosen.

    `feature_sums` (d,) are weighted; `times` are evenly spaced quantiles of the times, including the shortest and the
    longest, and `all_times` (n,) all of them, if something is drawn for the rows.
    """

    n: int
    flags: BoolArray
    weights: FloatArray | None
    feature_sums: FloatArray
    times: FloatArray
    all_times: FloatArray | None = None


def outline(rows: PartRows, draws: bool = False) -> Outline:
    """Summarise a partition; `draws` says whether folds or halves are drawn for the rows."""
    n, w = len(rows.time), rows.weight
    if n == 0:
        return Outline(0, rows.event, w, np.zeros(rows.X.shape[1]), np.zeros(0), rows.time if draws else None)
    sums = rows.X.sum(axis=0, dtype=np.float64) if w is None else w @ rows.X.astype(np.float64)
    quantiles = np.linspace(0.0, 1.0, min(n, _QUANTILES))
    found = Outline(n, rows.event, w, sums, np.quantile(rows.time, quantiles, method="nearest"))
    if not draws:
        return found
    return found._replace(all_times=rows.time)


def cut_times(outlines: Sequence[Outline], n_chunks: int) -> FloatArray:
    """Return the ascending times at which chunks start, at most `n_chunks`; the first is minus infinity."""
    parts = [part for part in outlines if part.n]
    times = np.concatenate([part.times for part in parts])
    shares = np.concatenate([np.full(len(part.times), part.n / len(part.times)) for part in parts])
    order = np.argsort(times, kind="stable")
    cumulative = np.cumsum(shares[order])
    sizes = np.arange(1, n_chunks) * (cumulative[-1] / n_chunks)
    cuts = np.unique(times[order][np.searchsorted(cumulative, sizes).clip(max=len(times) - 1)])
    return np.concatenate([[-np.inf], cuts[cuts > times[order[0]]]])


class Layout(NamedTuple):
    """How to make chunks from the rows of all partitions.

    `cuts` (K,) are the times at which chunks start, from :func:`cut_times`; `centre` (d,) is subtracted from the
    features; `marks` are those of the rows of each partition.
    """

    cuts: FloatArray
    centre: FloatArray
    marks: Sequence[Marks]
    scheme: Scheme


def cut(rows: PartRows, layout: Layout, partition: int) -> list[PartRows]:
    """Return the rows of a partition by chunk, with centred features; some chunks may have none."""
    chunk = np.searchsorted(layout.cuts, rows.time, side="right") - 1
    order = np.argsort(chunk, kind="stable")
    ends = np.searchsorted(chunk[order], np.arange(len(layout.cuts)), side="right")
    centre, weight, marks = layout.centre.astype(rows.X.dtype), rows.weight, layout.marks[partition]
    return [
        PartRows(
            rows.X[piece] - centre,
            rows.time[piece],
            rows.event[piece],
            None if weight is None else weight[piece],
            marks.take(piece),
        )
        for piece in np.split(order, ends[:-1])
    ]


def join(pieces: Sequence[PartRows], scheme: Scheme) -> ChunkState:
    """Join pieces to a chunk, sorted from the longest to the shortest time."""
    time = np.concatenate([piece.time for piece in pieces])
    order = np.argsort(-time, kind="stable")
    X = np.ascontiguousarray(np.concatenate([piece.X for piece in pieces])[order].T)
    event = np.concatenate([piece.event for piece in pieces])[order]
    weights = [piece.weight for piece in pieces if piece.weight is not None]
    weight = np.concatenate(weights)[order] if weights else None
    marks = Marks.joined([piece.marks for piece in pieces]).take(order)
    return ChunkState(make_chunk(X, time[order], event, weight, marks, scheme))


class Columns(NamedTuple):
    """Names of the columns of a table that are read."""

    time: str
    event: str
    features: tuple[str, ...]
    weight: str | None

    @classmethod
    def chosen(
        cls, found: Sequence[str], time: str, event: str, features: Sequence[str] | None, weight: str | None
    ) -> Columns:
        """Check column names against the columns found in a table; by default features are all other columns."""
        taken = {time, event, weight}
        require(not isinstance(features, str), "features", "list columns", features, f"write [{features!r}]")
        wanted = [name for name in found if name not in taken] if features is None else list(features)
        weights = [] if weight is None else [weight]
        named = {"time": [time], "event": [event], "features": wanted, "sample_weight": weights}
        for argument, names in named.items():
            for name in names:
                require(name in found, argument, f"be among the columns {list(found)}", name)
        require(wanted, "features", "name at least one column besides time, event and weight", features)
        chosen = cls(time, event, tuple(wanted), weight)
        if twice := [name for name, times in Counter(chosen.all).items() if times > 1]:
            raise ArgumentError.must("features", "name every column only once", twice[0])
        return chosen

    @property
    def all(self) -> list[str]:
        """Every column that is read."""
        return [*self.features, self.time, self.event, *([] if self.weight is None else [self.weight])]


class PartRows(NamedTuple):
    """Checked rows of one partition."""

    X: NDArray[Any]
    time: FloatArray
    event: BoolArray
    weight: FloatArray | None
    marks: Marks = Marks()


def read_rows(frame: Any, columns: Columns, partition: str, start: int = 0) -> PartRows:
    """Read the rows of a pandas DataFrame, and check them.

    Errors name the column, the partition and the row, counted from `start`. Features in float32 stay float32, all
    others become float64.
    """
    missing = [name for name in columns.all if name not in frame.columns]
    if missing:
        raise InputError(
            f"{partition} has no column {missing[0]!r}; every partition needs {list(columns.all)}."
        )
    dtypes = {str(frame[name].dtype) for name in columns.features}
    if dates := [name for name in columns.features if frame[name].dtype.kind in "mM"]:
        raise InputError(
            f"{partition}: column {dates[0]!r} holds dates; turn it into a number, such as an age or a number of days."
        )
    dtype = np.float32 if dtypes == {"float32"} else np.float64
    try:
        X = frame[list(columns.features)].to_numpy(dtype=dtype)
    except (TypeError, ValueError) as error:
        raise InputError(f"{partition}: features must be numbers: {error}.") from error
    where = partition, start
    time = _numbers(frame[columns.time], columns.time, *where)
    weight = None if columns.weight is None else _numbers(frame[columns.weight], columns.weight, *where)
    # A sum needs no memory and is finite only if all its terms are; only if it is not, look for the column.
    if not np.isfinite(X.sum(dtype=np.float64)):
        for j, name in enumerate(columns.features):
            _raise_if_any(~np.isfinite(X[:, j]), name, *where)
    if len(time) and time.min() < 0:
        raise InputError(f"{partition}: column {columns.time!r} has a negative time, {time.min():g}.")
    if weight is not None and len(weight) and weight.min() < 0:
        raise InputError(
            f"{partition}: column {columns.weight!r} has a weight of {weight.min():g}; weights must not be negative."
        )
    _raise_if_any(frame[columns.event].isna().to_numpy(), columns.event, *where)
    flags = frame[columns.event].to_numpy()
    if flags.dtype != np.bool_:
        if not np.isin(flags, (0, 1)).all():
            bad = next(value for value in flags.tolist() if value not in (0, 1))
            raise InputError(
                f"{partition}: column {columns.event!r} must hold 0 (censored) and 1 (event), found {bad!r}."
            )
        flags = flags.astype(np.bool_)
    if weight is not None and not weight.all():
        # Drop patients of weight zero, as estimators do.
        kept = weight > 0
        return PartRows(X[kept], time[kept], flags[kept], weight[kept])
    return PartRows(X, time, flags, weight)


def _numbers(column: Any, name: str, partition: str, start: int) -> FloatArray:
    try:
        values: FloatArray = column.to_numpy(dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{partition}: column {name!r} must hold numbers: {error}.") from error
    _raise_if_any(~np.isfinite(values), name, partition, start)
    return values


def _raise_if_any(bad: BoolArray, name: str, partition: str, start: int) -> None:
    if bad.any():
        raise InputError(
            f"{partition}: column {name!r} has {bad.sum()} missing or infinite values (first at its row "
            f"{row_number(start + bad.argmax())}); drop or fill those rows."
        )
