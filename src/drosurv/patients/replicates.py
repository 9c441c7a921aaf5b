"""Seeds of replicates, and work that is shared among threads or the workers of a cluster."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import joblib
import numpy as np
from joblib import Parallel, delayed
from joblib.parallel import LokyBackend, get_active_backend
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.patients.observation import no_seed

T = TypeVar("T")
_BATCHES_PER_THREAD = 8
# For fewer patients a replicate takes so little time that threads mostly wait for each other.
_MIN_PATIENTS_FOR_THREADS = 2_500


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
