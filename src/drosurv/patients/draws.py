"""Random draws of patients that do not depend on the order of the rows; seeds and threads of replicates.

Folds, halves and simulated outcomes are drawn for the rows in an order of their own: by time and, where times are
tied, by all that is known about the rows. Rows that agree in all of that are copies of each other, and their order does
not matter.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import joblib
import numba
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from joblib.parallel import LokyBackend, get_active_backend
from numpy.typing import ArrayLike, NDArray
from pandas.util import hash_array
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.errors import ArgumentError, arg
from drosurv.patients.arrays import is_tensor, without_rounding
from drosurv.patients.observation import in_pandas, no_seed
from drosurv.patients.target import BoolArray, FloatArray, IntArray, Target

T = TypeVar("T")
_BATCHES_PER_THREAD = 8
# For fewer patients a replicate takes so little time that threads mostly wait for each other.
_MIN_PATIENTS_FOR_THREADS = 2_500
# Numbers beyond this are ordered as if they were equal to it.
_LARGEST = 1e300


def row_order(target: Target, X: Any = None, *columns: ArrayLike | None) -> IntArray:
    """Return the rows (n,) from the longest to the shortest time, in an order that does not depend on the given one.

    Rows of tied times are sorted by event, then by one column of X after the other, then by entry time and further
    `columns` (n,), so that neither units nor constant columns matter. Strata, which may have clocks of their own, are
    put one after the other. Of the rows (entry, time] of a patient the last one comes first.
    """
    others = [np.asarray(values) for values in (target.entry, *columns) if values is not None]
    steps = chain([target.event.__getitem__], _columns(X), (values.__getitem__ for values in others))
    return break_ties(target.order, target.time, steps, target.stratum)


def break_ties(
    order: IntArray,
    time: FloatArray,
    steps: Iterable[Callable[[IntArray], NDArray[Any]]],
    stratum: IntArray | None = None,
) -> IntArray:
    """Return the order (n,) of descending times in each stratum (n,), given that of ascending times of all rows.

    Each step returns values of some rows, by which rows are sorted that the steps before could not tell apart.
    """
    ascending = time[order]
    new = np.ones(len(order), dtype=np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=new[1:])
    order = order.copy()
    for values_of in steps:
        tied = np.flatnonzero(~(new & np.append(new[1:], True)))
        if len(tied) == 0:
            break
        values = values_of(order[tied])
        by = np.lexsort((values, np.cumsum(new)[tied]))
        order[tied], values = order[tied][by], values[by]
        # Missing values are equal.
        new[tied[1:]] |= (values[1:] != values[:-1]) & ~(
            (values[1:] != values[1:]) & (values[:-1] != values[:-1])
        )
    order = order[::-1]
    return order if stratum is None else order[np.argsort(stratum[order], kind="stable")]


def order_by_content(
    values: Sequence[FloatArray], codes: NDArray[Any], clusters: IntArray | None = None
) -> IntArray:
    """Return the rows (n,) sorted by numbers `values` (n,), the first ones first, that are equal up to rounding errors.

    Ties are broken by `codes` (n, d) of columns and by numbered `clusters` (n,), but not by what columns, their values
    or clusters are called, nor by the order of the columns: a value is known by the rows that have it.
    """
    n = len(codes)
    rank = np.zeros(n, np.intp)
    for each in values:
        limited = np.nan_to_num(each, nan=_LARGEST, posinf=_LARGEST, neginf=-_LARGEST)
        rank = _ranks(rank, without_rounding(np.clip(limited, -_LARGEST, _LARGEST)))
    partitions = [np.unique(column, return_inverse=True)[1] for column in codes.T]
    if clusters is not None:
        partitions.append(clusters)
    found = -1
    while found < (found := int(rank.max(initial=0))) < n - 1:
        own, shared = hash_array(rank), np.zeros(n, np.uint64)
        for number, partition in enumerate(partitions):
            sums = np.zeros(partition.max() + 1, np.uint64)
            np.add.at(sums, partition, own)
            of_clusters = number == codes.shape[1]
            shared += (hash_array(hash_array(sums)) if of_clusters else hash_array(sums))[partition]
        rank = _ranks(rank, shared)
    return np.lexsort((*partitions[::-1], rank))


def _ranks(rank: IntArray, values: NDArray[Any]) -> IntArray:
    """Return ranks (n,), equal for equal rows, of rows that are sorted by their ranks so far, then by values (n,)."""
    order = np.lexsort((values, rank))
    new = (np.diff(rank[order]) != 0) | (values[order][1:] != values[order][:-1])
    found = np.empty(len(rank), np.intp)
    found[order] = np.append(0, np.cumsum(new))
    return found


def _columns(X: Any) -> Iterator[Callable[[IntArray], NDArray[Any]]]:
    """Yield for each column of X a function that returns numbers for some rows; for text and dates, those of a hash."""
    if X is None:
        return
    X = in_pandas(X)
    if is_tensor(X):
        X = X.detach().cpu().numpy()
    elif not isinstance(X, pd.DataFrame):
        X = np.asarray(X)
    if not isinstance(X, pd.DataFrame):
        X = X.reshape(len(X), -1)
        if X.dtype.kind in "biuf":
            for j in range(X.shape[1]):
                yield X[:, j].__getitem__
            return
        X = pd.DataFrame(X)
    for j in range(X.shape[1]):
        yield partial(_numbers, X.iloc[:, j])


def _numbers(column: pd.Series[Any], rows: IntArray) -> NDArray[Any]:
    part = column.iloc[rows]
    if pd.api.types.is_numeric_dtype(part.dtype):
        return part.to_numpy(np.float64, na_value=np.nan)
    return pd.util.hash_pandas_object(part, index=False).to_numpy()


def draw_folds(
    n: int,
    n_folds: int,
    rng: np.random.Generator,
    event: ArrayLike | None = None,
    clusters: Any = None,
    strata: ArrayLike | None = None,
    order: IntArray | None = None,
) -> NDArray[np.intp]:
    """Draw a random fold, 0 to `n_folds` - 1, for each of n rows.

    Events (n,) are spread evenly over the folds, also those of each of the `strata` (n,), numbered from 0. Without
    event flags the folds do not depend on outcomes, as the repair of a frozen model requires. Rows of one of the
    `clusters` (n,), any labels, such as those of one patient, share a fold; a cluster counts as an event if one of its
    rows has one. With the `order` (n,) of :func:`row_order` the folds do not depend on the order of the rows.
    """
    key = np.zeros(n, dtype=np.intp) if event is None else np.asarray(event).astype(np.intp)
    if strata is not None:
        key = key * (1 + np.asarray(strata, dtype=np.intp))
    if order is not None:
        folds = np.empty(n, dtype=np.intp)
        labels = None if clusters is None else np.asarray(clusters)[order]
        folds[order] = _drawn_folds(key[order], n_folds, rng, labels)
        return folds
    return _drawn_folds(key, n_folds, rng, clusters)


def _drawn_folds(key: IntArray, n_folds: int, rng: np.random.Generator, clusters: Any) -> NDArray[np.intp]:
    """Draw folds for rows (n,), with the rows of each key spread evenly; a cluster has its largest key."""
    if clusters is None:
        return _dealt(key, n_folds, rng)
    # Clusters are numbered in the order of their first rows.
    cluster, labels = pd.factorize(np.asarray(clusters))
    of_cluster = np.zeros(len(labels), dtype=np.intp)
    np.maximum.at(of_cluster, cluster, key)
    return _dealt(of_cluster, n_folds, rng)[cluster]


def _dealt(key: IntArray, n_folds: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw folds for rows, all equally likely of which each has its share of the rows of every key."""
    # As many places in each fold as if the rows, sorted by key, took the folds in turn.
    counts = np.bincount(key)
    fold = np.arange(n_folds)
    reached = [(end - fold + n_folds - 1) // n_folds for end in (0, *np.cumsum(counts))]
    return draw_places(key, np.diff(reached, axis=0), rng)


def first_half(
    event: BoolArray, n1: float, seed: int | None, *, both: bool, position: IntArray | None = None
) -> BoolArray:
    """Return flags (n,) of D1, the share n1 of the patients, drawn at random and stratified by event.

    Without a seed D1 is the patients with the smallest `position` (n,), by default the first ones. Raise where a half
    that is scored has no event.
    """
    n = len(event)
    if seed is None:
        ranks = np.arange(n) if position is None else position.argsort().argsort()
        in_first = ranks < round(n * n1)
    else:
        sizes = np.bincount(event, minlength=2)
        ends = np.floor(np.array([sizes[0], n]) * float(n1) + 1e-9).astype(np.intp)
        first = np.diff(ends, prepend=0)
        places = np.stack([first, sizes - first], axis=1)
        # Not the random numbers of folds, which are drawn with the same seed.
        rng = np.random.default_rng([seed, 1])
        in_first = draw_places(event.astype(np.intp), places, rng) == 0
    require_events(event, in_first, n1, both=both)
    return in_first


def require_events(event: BoolArray, in_first: BoolArray, n1: float, *, both: bool) -> None:
    """Raise if a half is empty, or one that is scored has no event."""
    n = len(event)
    for half, name in ((in_first, "D1"), (~in_first, "D2")):
        if not half.any():
            raise ArgumentError(
                "n1", f"{arg('n1', n1)} leaves {name} empty among {n} patients; choose n1 nearer to 0.5."
            )
    if not (event & in_first).any() or (both and not (event & ~in_first).any()):
        raise ArgumentError(
            "n1",
            f"{arg('n1', n1)} leaves a half without events ({int(event.sum())} in all); choose n1 nearer to 0.5.",
        )


def draw_places(key: IntArray, places: ArrayLike, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw a part for each row (n,) without replacement: part k has `places[key, k]` rows of each key."""
    free = np.array(places, dtype=np.intp)
    return _draw_places(key, free, free.sum(axis=1), rng.random(len(key)))


@numba.njit(cache=True, nogil=True)
def _draw_places(key: IntArray, places: IntArray, left: IntArray, draws: FloatArray) -> NDArray[np.intp]:
    """Assign each row in turn to one of the places left, all equally likely; `places` and their sums are used up."""
    drawn = np.empty(len(key), dtype=np.intp)
    for i in range(len(key)):
        row, part = places[key[i]], 0
        place = int(draws[i] * left[key[i]])
        while place >= row[part]:
            place -= row[part]
            part += 1
        row[part] -= 1
        left[key[i]] -= 1
        drawn[i] = part
    return drawn


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """Return one seed for all replicates from an int, None, or a generator, which is advanced."""
    if isinstance(random_state, np.random.SeedSequence):
        return random_state
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(2**63, size=2).tolist())
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(random_state.randint(2**31, size=4).tolist())
    try:
        return np.random.SeedSequence(random_state)
    except (TypeError, ValueError) as error:
        raise no_seed(random_state) from error


def replicate_rng(seed: np.random.SeedSequence, replicate: int) -> np.random.Generator:
    """Return the random generator of one replicate, the same in every thread and process."""
    key = (*seed.spawn_key, replicate)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed.entropy, spawn_key=key)))


def in_parallel(
    work: Callable[[int], T], count: int, n_jobs: int | None, patients: int = _MIN_PATIENTS_FOR_THREADS
) -> Iterator[T]:
    """Yield ``work(0), ..., work(count - 1)``, without warnings about undefined values.

    The calls run in threads, or on the backend of a ``joblib.parallel_config``, such as the workers of a Dask cluster.
    With few patients they run one after another, unless `n_jobs` or such a backend is given.
    """
    numbers = range(count)
    with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
        backend, asked = get_active_backend()
        # Without a parallel_config, joblib reports its default backend.
        by_default = asked is None and isinstance(backend, LokyBackend)
        if n_jobs is None and patients < _MIN_PATIENTS_FOR_THREADS and by_default:
            n_jobs = 1
        n_threads = 1 if n_jobs == 1 or count < 2 else joblib.effective_n_jobs(n_jobs or -1)
        if n_threads == 1:
            yield from map(work, numbers)
            return
        # Several batches per thread, so that all threads end at about the same time.
        size = -(-count // (_BATCHES_PER_THREAD * n_threads))
        batches = [numbers[k : k + size] for k in range(0, count, size)]
        pool = Parallel(n_threads, prefer="threads", batch_size=1, return_as="generator")
        for found in pool(delayed(_run_batch)(work, batch, os.getpid()) for batch in batches):
            yield from found


def _run_batch(work: Callable[[int], T], numbers: range, parent: int) -> list[T]:
    if os.getpid() == parent:
        # Threads share the warning filters of their process, which in_parallel has set.
        return [work(number) for number in numbers]
    with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
        return [work(number) for number in numbers]
