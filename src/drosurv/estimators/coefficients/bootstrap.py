"""Coefficients refitted to patients drawn anew, with replacement."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from drosurv.metrics.inference.resampling import in_parallel, replicate_rng, seed_sequence
from drosurv.presentation.progress import bar
from drosurv.target import FloatArray, IntArray

# A replicate may fail where it holds too few events; a table from fewer than this share of them says little.
_ENOUGH = 0.9


def bootstrap_coefficients(
    refit: Callable[[FloatArray], FloatArray | None],
    clusters: IntArray,
    *,
    n_boot: int = 1000,
    random_state: int = 0,
    threads: int | None = None,
    verbose: bool = False,
) -> FloatArray:
    """Coefficients (R, d) of refits to clusters drawn with replacement; R is n_boot less the refits that fail.

    `refit` takes counts (n,) of how often each row was drawn, zeros among them, to coefficients (d,); it gives None or
    raises ValueError where such data have no fit, and its warnings are not shown. It is called in several threads, by
    default as many as there are processors, on which the draws do not depend. Rows of one of the clusters (n,),
    numbered from 0, are drawn together. `verbose` shows a progress bar.
    """
    n_clusters = int(clusters.max()) + 1
    streams = seed_sequence(random_state)

    def replicate(number: int) -> FloatArray | None:
        drawn = replicate_rng(streams, number).integers(0, n_clusters, n_clusters)
        counts = np.bincount(drawn, minlength=n_clusters)[clusters]
        try:
            return refit(counts.astype(np.float64))
        except ValueError:
            return None

    draws = []
    with bar("bootstrap", n_boot, shown=verbose) as tell, warnings.catch_warnings(action="ignore"):
        for coef in in_parallel(replicate, n_boot, threads):
            if coef is not None and np.isfinite(coef).all():
                draws.append(coef)
            tell()
    if len(draws) < max(2, _ENOUGH * n_boot):
        raise ValueError(
            f"only {len(draws)} of {n_boot} bootstrap refits have a solution: there are too few events for so many "
            "features. Use fewer features, or set l2 > 0."
        )
    return np.stack(draws)
