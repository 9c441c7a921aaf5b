"""Neighbourhoods from the leaves of a forest that predicts who a model serves badly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from drosurv.errors import ArgumentError
from drosurv.solvers.neighborhoods.partitions import Partitions
from drosurv.target import FloatArray, IntArray

LEAST_TRIES = 10


def forest(
    X: FloatArray,
    regret: FloatArray,
    *,
    min_group: int = 50,
    n_trees: int = 30,
    cross_fit: bool = False,
    sample_weight: FloatArray | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Partitions:
    """Average patients over the leaves of extremely randomised trees that predict the regret from x.

    .. math:: W_ij = 1/T sum_t 1[j in leaf_t(i)] / |leaf_t(i)|

    Each tree learns its leaves on a random half of the patients, at least `min_group` of them in a leaf; the average is
    over everyone in the leaf.

    Parameters
    ----------
    X : (n, d)
        Columns that may define neighbourhoods.
    regret : (n,)
        What the trees predict, usually a plain model's loss minus the null model's.
    cross_fit : bool
        Whether a patient's own regret is kept out of the tree that places it: each half's leaves come from a
        tree grown on the other half (two trees per partition), and averages stay inside the half.
    sample_weight : (n,), optional
        Weights of patients in the trees and in the averages.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 400)[:, None]
    >>> averages = forest(x, np.sign(x[:, 0]), min_group=20, random_state=0).average(np.sign(x[:, 0]))
    >>> bool(averages[0] < -0.9 and averages[-1] > 0.9)
    True
    """
    n = len(X)
    if n // 2 < 2 * min_group:
        raise ArgumentError(
            "min_group",
            f"min_group={min_group!r} leaves no room for two groups: a tree sees half of the {n} patients "
            f"and each leaf needs {min_group} of them. Use min_group={max(n // 4, 1)!r} or less, or more "
            "patients.",
        )
    rng = np.random.default_rng(random_state)
    # Trees read float32; converting once saves a copy per tree. A column is tried at one random threshold and
    # a leaf is closed when none works, so few columns are repeated to give their trees as many tries as many.
    x = np.tile(np.asarray(X, dtype=np.float32), -(-LEAST_TRIES // X.shape[1]))
    # Thresholds that part a tree's half alike tie: rounding, say from another unit of time, must not pick one.
    regret = np.asarray(regret, dtype=np.float32).astype(np.float64)
    labels = np.empty((n_trees, n), dtype=np.int32)
    for row in labels:
        order = rng.permutation(n)
        first, second = order[: n // 2], order[n // 2 :]
        if cross_fit:
            row[second] = _leaves(x, regret, first, second, min_group, sample_weight, rng)
            row[first] = -_leaves(x, regret, second, first, min_group, sample_weight, rng)
        else:
            row[:] = _leaves(x, regret, first, slice(None), min_group, sample_weight, rng)
    return Partitions(labels, sample_weight)


def _leaves(
    x: NDArray[np.float32],
    regret: FloatArray,
    grown_on: IntArray,
    placed: IntArray | slice,
    min_group: int,
    sample_weight: FloatArray | None,
    rng: np.random.Generator,
) -> NDArray[np.integer]:
    """Leaf, numbered from 1, of the patients to place in a tree grown on others."""
    from sklearn.tree import ExtraTreeRegressor

    tree = ExtraTreeRegressor(min_samples_leaf=min_group, random_state=int(rng.integers(2**31)))
    tree.fit(x[grown_on], regret[grown_on], None if sample_weight is None else sample_weight[grown_on])
    leaves: NDArray[np.integer] = tree.apply(x[placed]) + 1
    return leaves
