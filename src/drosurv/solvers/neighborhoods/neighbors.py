"""Neighbourhoods of the k patients nearest in standardised covariates."""

from __future__ import annotations

import numpy as np

from drosurv.errors import as_whole, require
from drosurv.solvers.neighborhoods.contract import MatrixAverages
from drosurv.standardise import standardise
from drosurv.target import FloatArray


def nearest_neighbors(
    X: FloatArray, *, n_neighbors: int = 50, sample_weight: FloatArray | None = None
) -> MatrixAverages:
    """Average each patient with the k - 1 patients nearest to it, distances in standard deviations.

    .. math:: W_ij = w_j 1[j in N_k(i)] / sum_{l in N_k(i)} w_l

    Parameters
    ----------
    X : (n, d)
        Columns that may define neighbourhoods.
    n_neighbors : int
        k, the patient itself included.
    sample_weight : (n,), optional
        Weights w_j of patients inside the averages.

    Examples
    --------
    >>> x = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> nearest_neighbors(x, n_neighbors=2).average(np.array([0.0, 2.0, 4.0, 8.0]))
    array([1., 1., 6., 6.])
    """
    from scipy import sparse
    from sklearn.neighbors import NearestNeighbors

    n = len(X)
    require(
        1 <= as_whole(n_neighbors) <= n,
        "n_neighbors",
        f"be a whole number from 1 to the {n} patients",
        n_neighbors,
    )
    (z,) = standardise(X)
    # Without a column everyone is equally near; one constant column keeps the search defined.
    z = z if z.shape[1] else np.zeros((n, 1))
    near = NearestNeighbors(n_neighbors=n_neighbors).fit(z).kneighbors(return_distance=False, X=z)
    weight = np.ones(n) if sample_weight is None else sample_weight
    entries = weight[near]
    mass = entries.sum(axis=1, keepdims=True)
    entries = np.divide(entries, mass, out=np.full_like(entries, 1 / n_neighbors), where=mass > 0)
    starts = np.arange(0, n * n_neighbors + 1, n_neighbors)
    return MatrixAverages(sparse.csr_array((entries.ravel(), near.ravel(), starts), shape=(n, n)))
