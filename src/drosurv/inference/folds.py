"""Folds: each patient is judged by what was learnt without him."""

from __future__ import annotations

from typing import Any

import numpy as np

from drosurv.target import BoolArray, IntArray


def draw_folds(
    n: int, n_folds: int, rng: np.random.Generator, event: BoolArray | None = None, clusters: Any = None
) -> IntArray:
    """A random fold for each of n rows; with event flags, events are spread evenly over the folds.

    Rows of one cluster, such as those of one patient, share a fold.
    """
    if clusters is not None:
        names, own = np.unique(clusters, return_inverse=True)
        had_event = None if event is None else np.bincount(own, event) > 0
        return draw_folds(len(names), n_folds, rng, had_event)[own]
    order = np.lexsort((rng.random(n), np.zeros(n) if event is None else event))
    folds = np.empty(n, dtype=np.intp)
    folds[order] = np.arange(n) % n_folds
    return folds
