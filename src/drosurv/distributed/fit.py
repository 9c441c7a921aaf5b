"""Fit a linear model on a Dask cluster, or on files larger than memory."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from drosurv.distributed.cluster import Cluster, DaskParts, spread
from drosurv.distributed.columns import Columns
from drosurv.distributed.shelf import ParquetParts, Threads, shelve
from drosurv.distributed.sorting import Outline, cut_times
from drosurv.errors import ArgumentError
from drosurv.estimators.over_slabs import FOLLOWED, SlabPlan, accept, solved
from drosurv.estimators.slab_baseline import baseline
from drosurv.metrics import FollowUp
from drosurv.solvers.slab_problem import SlabProblem, Workers
from drosurv.target import BoolArray, FloatArray, Target

Estimator = TypeVar("Estimator")

# Patients of a slab: what one worker holds of features and running sums at a time.
ROWS = 1 << 18


def fit(
    estimator: Estimator,
    data: Any,
    *,
    time: str,
    event: str,
    features: Sequence[str] | None = None,
    sample_weight: str | None = None,
    rows_per_slab: int = ROWS,
    folder: str | os.PathLike[str] | None = None,
) -> Estimator:
    """Fit a linear Cox model to data that are spread over machines, or do not fit into memory.

    Patients are sorted by time once. Every step of Newton's method is then a few rounds in which each part of the
    patients adds up sums of its own; only those travel. The coefficients are those of ``estimator.fit``.

    Parameters
    ----------
    estimator : CoxPH, DROCox or DROCoxSplit
        With ``network="linear"`` and the convex solver.
    data : Dask DataFrame, or path or pattern of Parquet files
        Files are read by the workers of the current Dask client; without one, by this process, which keeps the
        sorted patients on disk.
    time, event : str
        Names of the columns.
    features : sequence of str, optional
        Names of the feature columns; all others by default.
    sample_weight : str, optional
        Name of a column of weights.
    rows_per_slab : int
        Patients that one worker looks at in one go.
    folder : path, optional
        Where to keep sorted patients while fitting from files without a client; a temporary folder by default.

    Returns
    -------
    estimator
        Fitted. Attributes with one entry per patient are left out, and a baseline hazard of more than 100,000 steps
        is thinned to about that many.
    """
    _check(estimator)
    client = _client()
    if isinstance(data, str | os.PathLike) and client is None:
        with tempfile.TemporaryDirectory(prefix="drosurv-", dir=folder) as shelf:
            threads = Threads(os.cpu_count() or 1)
            files = ParquetParts(data)
            columns = Columns.chosen(files.names, time, event, features, sample_weight)
            outlines = files.outlines(columns, threads)
            cohort = _Cohort(estimator, outlines, rows_per_slab)
            slabs: list[Any] = list(
                shelve(
                    files,
                    columns,
                    cohort.cuts,
                    cohort.centre,
                    cohort.first,
                    cohort.totals,
                    Path(shelf),
                    threads,
                )
            )
            return _solve(estimator, cohort, columns, slabs, threads)
    cluster = Cluster(_needed(client))
    parts = DaskParts(_frame(data), cluster)
    columns = Columns.chosen(parts.names, time, event, features, sample_weight)
    cohort = _Cohort(estimator, parts.outlines(columns), rows_per_slab)
    slabs = spread(parts, columns, cohort.cuts, cohort.centre, cohort.first, cohort.totals)
    return _solve(estimator, cohort, columns, slabs, cluster)


class _Cohort:
    """What follows from the outlines of all parts: who is scored against whom, totals, centre, and where to cut."""

    def __init__(self, estimator: Any, outlines: Sequence[Outline], rows_per_slab: int) -> None:
        self.n = sum(part.n for part in outlines)
        if self.n == 0:
            raise ArgumentError.must("data", "hold at least one patient", self.n)
        flags = np.concatenate([part.flags for part in outlines])
        self.n_events = int(flags.sum())
        if self.n_events == 0:
            raise ValueError(
                "data contains no event: every patient is censored, so there is nothing to learn."
            )
        if min(part.shortest for part in outlines) == max(part.longest for part in outlines):
            raise ValueError("data has a single time for every patient: there is no order to learn from.")
        weights = [part.weights for part in outlines if part.weights is not None]
        weight = np.concatenate(weights) if weights else None
        self.weight = float(self.n) if weight is None else float(weight.sum())
        self.event_weight = float(self.n_events) if weight is None else float(weight[flags].sum())
        self.plan: SlabPlan = estimator._slab_plan(flags, estimator._seed())
        self.totals, self.rests = self.plan.shares(flags, weight)
        sums = np.sum([part.feature_sums for part in outlines], axis=0)
        self.centre: FloatArray = sums / self.weight
        self.cuts = cut_times(outlines, max(math.ceil(self.n / rows_per_slab), 1))
        ends = np.cumsum([part.n for part in outlines])[:-1]
        first = self.plan.in_first
        self.first: list[BoolArray | None] = (
            [None] * len(outlines) if first is None else list(np.split(first, ends))
        )


def _solve(
    estimator: Estimator, cohort: _Cohort, columns: Columns, slabs: list[Any], workers: Workers
) -> Estimator:
    model: Any = estimator
    size = len(columns.features)
    problem = SlabProblem(
        slabs,
        size,
        cohort.rests,
        cohort.plan.tilt,
        smooth=cohort.plan.smooth,
        l2=model.l2,
        workers=workers,
    )
    found = solved(model, problem, cohort.plan)
    steps = baseline(slabs, problem.scores, problem.shift, cohort.n_events, workers)
    every = max(cohort.n // FOLLOWED, 1)
    seen = workers.gather(workers.map(_followed, slabs, [every] * len(slabs)))
    time, event = (np.concatenate([part[k] for part in seen]) for k in (0, 1))
    weight = None if seen[0][2] is None else np.concatenate([part[2] for part in seen])
    accept(
        model,
        problem,
        found,
        cohort.centre,
        steps,
        FollowUp.of(Target(event, time), weight),
        cohort.weight,
        cohort.event_weight,
    )
    model.n_features_in_, model.feature_names_in_ = size, np.array(columns.features, dtype=object)
    return estimator


def _followed(slab: Any, every: int) -> tuple[FloatArray, BoolArray, FloatArray | None]:
    """Times, events and weights of every so many patients."""
    weight = slab.weight
    return slab.time[::every], slab.event[::every], None if weight is None else weight[::every]


def _check(estimator: Any) -> None:
    """Reject what is not defined over parts of the patients."""
    if not hasattr(estimator, "_slab_plan"):
        raise ArgumentError.must("estimator", "be CoxPH, DROCox or DROCoxSplit", type(estimator).__name__)
    estimator._check_parameters()
    for name, wanted in (("network", "linear"), ("ties", "breslow"), ("recalibrate", False)):
        if getattr(estimator, name) != wanted:
            raise ArgumentError.must(
                name, f"be {wanted!r} for a fit over parts of the patients", getattr(estimator, name)
            )
    if estimator.solver == "adam":
        raise ArgumentError.must(
            "solver", "be 'auto' or 'convex' for a fit over parts of the patients", "adam"
        )
    if estimator._slab_plan(np.array([True, False, True, False]), 0) is None:
        raise ArgumentError.must("estimator", "be CoxPH, DROCox or DROCoxSplit", type(estimator).__name__)


def _client() -> Any:
    """The current Dask client, or None."""
    try:
        import distributed
    except ImportError:
        return None
    find: Any = distributed.default_client
    try:
        return find()
    except ValueError:
        return None


def _needed(client: Any) -> Any:
    """A client: the current one, or a new one in this process."""
    if client is not None:
        return client
    try:
        import distributed
    except ImportError as error:
        raise ImportError("a Dask DataFrame needs Dask: pip install 'drosurv[dask]'.") from error
    start: Any = distributed.Client
    return start(processes=False, dashboard_address=":0")


def _frame(data: Any) -> Any:
    if not isinstance(data, str | os.PathLike):
        if not hasattr(data, "to_delayed"):
            raise ArgumentError.must(
                "data", "be a Dask DataFrame or the path of Parquet files", type(data).__name__
            )
        return data
    import dask.dataframe as dd

    return dd.read_parquet(os.fspath(data))
