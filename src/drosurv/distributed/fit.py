"""Fit a linear model on a Dask cluster, or on files larger than memory."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from drosurv.distributed.parts import DaskParts, ParquetParts
from drosurv.distributed.sorting import Columns, Layout, Outline, cut_times
from drosurv.errors import InputError, check_count, require, require_extra
from drosurv.estimators.chunk_estimator import ChunkCohort, fit_chunks
from drosurv.patients.arrays import stable_order
from drosurv.patients.draws import break_ties
from drosurv.solvers.chunk_likelihood import Marks

Estimator = TypeVar("Estimator")

# Patients in a chunk: those whose features and cumulative sums a worker has in memory at a time.
ROWS = 1 << 18


def fit(
    estimator: Estimator,
    data: Any,
    *,
    time: str,
    event: str,
    features: Sequence[str] | None = None,
    sample_weight: str | None = None,
    rows_per_chunk: int = ROWS,
    folder: str | os.PathLike[str] | None = None,
) -> Estimator:
    """Fit a linear Cox model to data that are distributed over machines, or do not fit into memory.

    Patients are sorted by time once. In every Newton step the workers compute sums over their patients, and only these
    sums are sent (and the losses, of at most two million events). The coefficients are those of ``estimator.fit``,
    also with recalibration: its folds, and halves, are drawn by the same rule, which needs the times of all rows here.

    Parameters
    ----------
    estimator : CoxPH, DROCox or DROCoxSplit
        An estimator with ``network="linear"`` and the convex solver.
    data : Dask DataFrame, or path or pattern of Parquet files
        Files are read by the workers of the current Dask client. Without a client this process reads them, and stores
        the sorted patients on disk. Parquet needs the extra ``dask`` or ``formats``.
    time, event : str
        Names of the columns of times and of event flags. Times that differ by rounding errors, such as 0.1 + 0.2 and
        0.3, are no ties here: round them first.
    features : sequence of str, optional
        Names of the feature columns; by default all other columns.
    sample_weight : str, optional
        Name of the column of weights.
    rows_per_chunk : int
        Number of patients in a chunk, which one worker processes at a time.
    folder : path, optional
        Where to store the sorted patients while fitting from files without a client; by default a temporary folder.

    Returns
    -------
    estimator
        The fitted estimator, without attributes that have one value per patient. A baseline hazard of more than 100,000
        steps is reduced to about that many.
    """
    _check(estimator)
    check_count("rows_per_chunk", rows_per_chunk)
    with _parts(data, folder) as parts:
        columns = Columns.chosen(parts.names, time, event, features, sample_weight)
        model: Any = estimator
        outlines = parts.outlines(columns, draws=model._recalibrates or hasattr(model, "n1"))
        cohort, marks = _cohort(estimator, outlines, parts, columns)
        layout = _layout(cohort, marks, outlines, rows_per_chunk)
        fit_chunks(estimator, cohort, parts.chunks(columns, layout), layout.centre, parts.workers)
    model.n_features_in_ = len(columns.features)
    model.feature_names_in_ = np.array(columns.features, dtype=object)
    return estimator


@contextmanager
def _parts(data: Any, folder: str | os.PathLike[str] | None) -> Iterator[DaskParts | ParquetParts]:
    """Open the data: by the workers of a Dask client or, for files without a client, by this process."""
    client = _client()
    if client is not None:
        yield DaskParts(_frame(data), client)
    elif isinstance(data, str | os.PathLike):
        with tempfile.TemporaryDirectory(prefix="drosurv-", dir=folder) as chunk_folder:
            yield ParquetParts(data, Path(chunk_folder))
    else:
        frame = _frame(data)
        require_extra("distributed", "dask", "a Dask DataFrame")
        dask: Any = import_module("distributed")
        with dask.Client(processes=False, dashboard_address=":0") as started:
            yield DaskParts(frame, started)


def _cohort(
    estimator: Any, outlines: Sequence[Outline], parts: DaskParts | ParquetParts, columns: Columns
) -> tuple[ChunkCohort, Marks]:
    """Check that the patients can be fitted to, count them, and draw their marks, returned in the given order."""
    require(any(part.n for part in outlines), "data", "hold at least one patient", 0)
    flags = np.concatenate([part.flags for part in outlines])
    if not flags.any():
        raise InputError("data contains no event: every patient is censored, so no model can be fitted.")
    if np.ptp(np.concatenate([part.times for part in outlines])) == 0:
        raise InputError("data has the same time for every patient, so no model can be fitted.")
    weights = [part.weights for part in outlines if part.weights is not None]
    weight = np.concatenate(weights) if weights else None
    order = np.arange(len(flags))
    times = [part.all_times for part in outlines if part.all_times is not None]
    if times:
        # As row_order; a feature is read only if rows are still tied.
        time = np.concatenate(times)
        features = (
            lambda rows, name=name: parts.values(columns._replace(features=(name,)))[rows]
            for name in columns.features
        )
        others = [] if weight is None else [weight.__getitem__]
        order = break_ties(stable_order(time), time, chain([flags.__getitem__], features, others))
    weight = None if weight is None else weight[order]
    cohort = ChunkCohort.of(estimator, flags[order], weight, estimator._seed(), position=order)
    given = np.empty_like(order)
    given[order] = np.arange(len(order))
    return cohort, cohort.marks.take(given)


def _layout(cohort: ChunkCohort, marks: Marks, outlines: Sequence[Outline], rows_per_chunk: int) -> Layout:
    """Choose the cut points, and compute the centre of the features."""
    ends = np.cumsum([part.n for part in outlines])
    rows = [slice(end - part.n, end) for part, end in zip(outlines, ends, strict=True)]
    return Layout(
        cut_times(outlines, max(math.ceil(cohort.n / rows_per_chunk), 1)),
        np.sum([part.feature_sums for part in outlines], axis=0) / cohort.patients,
        [marks.take(part) for part in rows],
        cohort.scheme,
    )


def _check(estimator: Any) -> None:
    """Raise if the estimator cannot be fitted to distributed data."""
    able = getattr(estimator, "capabilities", None)
    fits = able is not None and able.devices == "cluster"
    require(fits, "estimator", "be CoxPH, DROCox or DROCoxSplit", type(estimator).__name__)
    estimator._check_parameters()
    allowed: dict[str, tuple[Any, ...]] = {"network": ("linear",), "solver": ("auto", "convex")}
    for name, choices in allowed.items():
        value, wanted = getattr(estimator, name), " or ".join(map(repr, choices))
        require(value in choices, name, f"be {wanted} in drosurv.distributed.fit", value)


def _client() -> Any:
    """Return the current Dask client, or None."""
    try:
        return import_module("distributed").default_client()
    except (ImportError, ValueError):
        return None


def _frame(data: Any) -> Any:
    if not isinstance(data, str | os.PathLike):
        wanted = "be a Dask DataFrame or the path of Parquet files"
        require(hasattr(data, "to_delayed"), "data", wanted, type(data).__name__)
        return data
    import dask.dataframe as dd

    return dd.read_parquet(os.fspath(data))
