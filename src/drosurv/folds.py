"""Folds for cross-validation: events spread evenly, rows of one patient or cluster kept together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def draw_folds(
    n: int,
    n_folds: int,
    rng: np.random.Generator,
    event: ArrayLike | None = None,
    clusters: Any = None,
) -> NDArray[np.intp]:
    """Draw a random fold, 0 to `n_folds` - 1, for each of n rows.

    Parameters
    ----------
    n : int
        Number of rows.
    n_folds : int
        Number of folds.
    rng : numpy.random.Generator
        Source of randomness.
    event : (n,) bool, optional
        Event flags; the events are spread evenly over the folds. Without them the folds do not depend on outcomes,
        as the repair of a frozen model requires.
    clusters : (n,) labels, optional
        Rows with the same label, such as those of one patient, share a fold; a cluster counts as an event if one of
        its rows has one.

    Examples
    --------
    >>> event = np.array([True, False] * 10)
    >>> folds = draw_folds(20, 5, np.random.default_rng(0), event)
    >>> np.bincount(folds, event).tolist()
    [2.0, 2.0, 2.0, 2.0, 2.0]
    """
    if clusters is not None:
        labels, cluster = np.unique(clusters, return_inverse=True)
        had_event = None if event is None else np.bincount(cluster, np.asarray(event)) > 0
        return draw_folds(len(labels), n_folds, rng, had_event)[cluster]
    order = np.lexsort((rng.random(n), np.zeros(n) if event is None else np.asarray(event)))
    folds = np.empty(n, dtype=np.intp)
    folds[order] = np.arange(n) % n_folds
    return folds
