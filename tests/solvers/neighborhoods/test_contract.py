"""Every kind of neighbourhood goes through the same checks against its own n x n matrix."""

import numpy as np
import pytest
from scipy import sparse

from drosurv.solvers.neighborhoods import (
    MatrixAverages,
    Partitions,
    as_neighborhoods,
    forest,
    known_groups,
    nearest_neighbors,
)

N = 90


def matrix():
    weights = np.random.default_rng(3).random((N, N))
    return weights / weights.sum(axis=1, keepdims=True)


def build(kind):
    rng = np.random.default_rng(0)
    X, regret, weight = rng.normal(size=(N, 3)), rng.normal(size=N), rng.random(N)
    return {
        "forest": lambda: forest(X, regret, min_group=5, n_trees=4, random_state=0),
        "weighted forest": lambda: forest(X, regret, min_group=5, n_trees=4, sample_weight=weight),
        "cross-fitted forest": lambda: forest(X, regret, min_group=5, n_trees=4, cross_fit=True),
        "neighbors": lambda: nearest_neighbors(X, n_neighbors=7),
        "weighted neighbors": lambda: nearest_neighbors(X, n_neighbors=7, sample_weight=weight),
        "groups": lambda: known_groups(np.where(X[:, 0] > 0, "high", "low")),
        "dense matrix": lambda: MatrixAverages.checked(matrix(), N),
        "sparse matrix": lambda: MatrixAverages.checked(sparse.coo_matrix(matrix()), N),
    }[kind]()


KINDS = [
    "forest",
    "weighted forest",
    "cross-fitted forest",
    "neighbors",
    "weighted neighbors",
    "groups",
    "dense matrix",
    "sparse matrix",
]


@pytest.mark.parametrize("kind", KINDS)
def test_average_is_row_stochastic_and_adjoint_is_its_transpose(kind):
    kernel = build(kind)
    W = kernel.average(np.eye(N)).T
    assert W.min() >= 0
    np.testing.assert_allclose(W.sum(axis=1), 1)
    np.testing.assert_allclose(kernel.adjoint(np.eye(N)), W, atol=1e-15)
    assert as_neighborhoods(kernel, N) is kernel


@pytest.mark.parametrize("kind", KINDS)
def test_leading_axes_are_a_batch(kind):
    kernel = build(kind)
    values = np.random.default_rng(1).normal(size=(2, 3, N))
    for direction in (kernel.average, kernel.adjoint):
        batch = direction(values)
        assert batch.shape == values.shape
        for b in np.ndindex(2, 3):
            np.testing.assert_allclose(batch[b], direction(values[b]), atol=1e-14)


def test_partitions_average_the_weighted_means_of_cells():
    rng = np.random.default_rng(2)
    labels, weight, values = rng.integers(0, 4, size=(3, 30)) * 7, rng.random(30), rng.normal(size=30)
    expected = [
        np.mean([np.average(values[row == row[i]], weights=weight[row == row[i]]) for row in labels])
        for i in range(30)
    ]
    np.testing.assert_allclose(Partitions(labels, weight).average(values), expected)


def test_a_cell_without_weight_averages_to_zero():
    kernel = Partitions(np.array([[0, 0, 1]]), np.array([0.0, 0.0, 1.0]))
    np.testing.assert_array_equal(kernel.average(np.array([1.0, 2.0, 3.0])), [0, 0, 3])


class Broken:
    def __init__(self, average, adjoint):
        self.average, self.adjoint = average, adjoint


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Broken(lambda r: r[..., :2], lambda q: q), "must keep the shape"),
        (Broken(lambda r: 2 * r, lambda q: 2 * q), "rows must sum to 1"),
        (Broken(lambda r: 2 * r - r[::-1], lambda q: 2 * q - q[::-1]), "negative"),
        (Broken(lambda r: r * 0 + r.mean(), lambda q: q), "not the transpose"),
        (np.eye(3), "must be \\(5, 5\\)"),
        (np.eye(5) * 0.5, "row 0 sums to 0.5"),
        (np.eye(5) + np.diag([-1.0] * 4, 1) - np.diag([-1.0] * 4, -1), "negative, NaN or infinite"),
        (sparse.eye(5) * np.nan, "negative, NaN or infinite"),
        ("forest of trees", "object with average and adjoint"),
    ],
)
def test_what_a_user_kernel_returns_is_checked(kernel, message):
    with pytest.raises(ValueError, match=message):
        as_neighborhoods(kernel, 5)
