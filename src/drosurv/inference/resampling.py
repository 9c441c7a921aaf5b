"""Random draws that do not depend on how many threads make them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """One seed for all replicates, from an int, None, or a generator, which it advances."""
    if isinstance(random_state, np.random.SeedSequence):
        return random_state
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(2**63, size=2).tolist())
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(random_state.randint(2**31, size=4).tolist())
    return np.random.SeedSequence(random_state)


def replicate_rng(streams: np.random.SeedSequence, replicate: int) -> np.random.Generator:
    """The random stream of one replicate, the same whoever computes it."""
    key = (*streams.spawn_key, replicate)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(streams.entropy, spawn_key=key)))


def in_threads(work: Callable[[int], None], count: int, threads: int | None) -> None:
    """Call ``work`` on 0 ... count - 1, in threads; undefined values there are counted, not warned of."""
    from sklearn.exceptions import UndefinedMetricWarning

    n_threads = max(1, min(threads or os.cpu_count() or 1, count))

    def share(first: int) -> None:
        for item in range(first, count, n_threads):
            work(item)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        if n_threads == 1:
            share(0)
            return
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(share, range(n_threads)))
