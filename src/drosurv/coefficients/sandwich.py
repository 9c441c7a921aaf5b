"""Robust covariance of the coefficients of a linear Cox model."""

from __future__ import annotations

import numpy as np

from drosurv.coefficients.fitted_cox import FittedCox
from drosurv.coefficients.residuals import dfbeta
from drosurv.target import FloatArray, IntArray


def sandwich(fit: FittedCox, clusters: IntArray | None = None) -> FloatArray:
    """Sum of squares (d, d) of what each patient, or each cluster, moves the coefficients by.

    It holds where the model is wrong, where the weights are sampling weights, and, with clusters (n,), where members of
    one cluster are alike.
    """
    moves = dfbeta(fit)
    if clusters is not None:
        order = np.argsort(clusters, kind="stable")
        moves = np.add.reduceat(moves[order], np.flatnonzero(np.diff(clusters[order], prepend=-1)), axis=0)
    return moves.T @ moves
