"""Random draws, of folds and of replicates, that do not depend on how many threads make them."""

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

from drosurv.errors import ArgumentError

T = TypeVar("T")
_PORTIONS = 8
# The numbers of fewer patients take so little time that threads would mostly wait for each other.
_WORTH_SHARING = 2_500


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """One seed for all replicates, from an int, None, or a generator, which it advances."""
    if isinstance(random_state, np.random.SeedSequence):
        return random_state
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(2**63, size=2).tolist())
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(random_state.randint(2**31, size=4).tolist())
    try:
        return np.random.SeedSequence(random_state)
    except (TypeError, ValueError) as error:
        raise _no_seed(random_state) from error


def generator(random_state: Any) -> np.random.Generator:
    """A random generator, from an int, None, or a generator, which it is."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise _no_seed(random_state) from error


def _no_seed(random_state: Any) -> ArgumentError:
    return ArgumentError.must("random_state", "be a whole number that is not negative, or None", random_state)


def replicate_rng(streams: np.random.SeedSequence, replicate: int) -> np.random.Generator:
    """The random stream of one replicate, the same whoever computes it."""
    key = (*streams.spawn_key, replicate)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(streams.entropy, spawn_key=key)))


def in_parallel(
    work: Callable[[int], T], count: int, threads: int | None, patients: int = _WORTH_SHARING
) -> Iterator[T]:
    """What ``work`` gives for 0 ... count - 1, in order; undefined values there are counted, not warned of.

    In threads, or where the backend of a ``joblib.parallel_config`` says, such as on the workers of a Dask cluster; for
    so few patients that it does not pay, only where one of these is asked for.
    """
    numbers = range(count)
    with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
        backend, asked = get_active_backend()
        # What joblib has where nobody has configured it.
        by_default = asked is None and isinstance(backend, LokyBackend)
        if threads is None and patients < _WORTH_SHARING and by_default:
            threads = 1
        n_threads = 1 if threads == 1 or count < 2 else joblib.effective_n_jobs(threads or -1)
        if n_threads == 1:
            yield from map(work, numbers)
            return
        # Several portions for each thread, so that all end at about the same time.
        size = -(-count // (_PORTIONS * n_threads))
        portions = [numbers[k : k + size] for k in range(0, count, size)]
        pool = Parallel(n_threads, prefer="threads", batch_size=1, return_as="generator")
        for found in pool(delayed(_portion)(work, portion, os.getpid()) for portion in portions):
            yield from found


def _portion(work: Callable[[int], T], numbers: range, home: int) -> list[T]:
    if os.getpid() == home:
        # Threads share the filters of their process, which are set where they were started.
        return [work(number) for number in numbers]
    with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
        return [work(number) for number in numbers]
