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
    strata: ArrayLike | None = None,
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
    strata : (n,) int, optional
        Stratum of each row, from 0; the events of each stratum are spread evenly.

    Examples
    --------
    >>> event = np.array([True, False] * 10)
    >>> folds = draw_folds(20, 5, np.random.default_rng(0), event)
    >>> np.bincount(folds, event).tolist()
    [2.0, 2.0, 2.0, 2.0, 2.0]
    """
    key = np.zeros(n, dtype=np.intp) if event is None else np.asarray(event).astype(np.intp)
    if strata is not None:
        key = key * (1 + np.asarray(strata, dtype=np.intp))
    if clusters is not None:
        labels, cluster = np.unique(clusters, return_inverse=True)
        of_cluster = np.zeros(len(labels), dtype=np.intp)
        np.maximum.at(of_cluster, cluster, key)
        return _deal(of_cluster, n_folds, rng)[cluster]
    return _deal(key, n_folds, rng)


def _deal(key: NDArray[np.intp], n_folds: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Deal rows to the folds in turn, those of equal keys after each other in random order."""
    folds = np.empty(len(key), dtype=np.intp)
    folds[np.lexsort((rng.random(len(key)), key))] = np.arange(len(key)) % n_folds
    return folds
