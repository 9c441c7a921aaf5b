"""Folds: each patient is judged by what was learnt without him."""

from __future__ import annotations

import numpy as np

from drosurv.target import BoolArray, IntArray


def draw_folds(n: int, n_folds: int, rng: np.random.Generator, event: BoolArray | None = None) -> IntArray:
    """A random fold for each of n patients; with event flags, events are spread evenly over the folds."""
    order = np.lexsort((rng.random(n), np.zeros(n) if event is None else event))
    folds = np.empty(n, dtype=np.intp)
    folds[order] = np.arange(n) % n_folds
    return folds
