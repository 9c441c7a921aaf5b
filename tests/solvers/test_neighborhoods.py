"""Neighbourhoods: every kind against its n x n matrix, forests, neighbours, groups, and columns of subgroups."""

import numpy as np
import pytest
from scipy import sparse

from drosurv.solvers.neighborhoods import (
    MatrixAverages,
    Partitions,
    as_neighborhoods,
    chosen_columns,
    forest,
    nearest_neighbors,
    subgroup_columns,
)

N = 90


def matrix():
    weights = np.random.default_rng(3).random((N, N))
    return weights / weights.sum(axis=1, keepdims=True)


RNG = np.random.default_rng(0)
FEATURES, REGRET, WEIGHT = RNG.normal(size=(N, 3)), RNG.normal(size=N), RNG.random(N)
KINDS = {
    "forest": lambda: forest(FEATURES, REGRET, min_group=5, n_trees=4, random_state=0),
    "weighted forest": lambda: forest(FEATURES, REGRET, min_group=5, n_trees=4, sample_weight=WEIGHT),
    "cross-fitted forest": lambda: forest(FEATURES, REGRET, min_group=5, n_trees=4, cross_fit=True),
    "neighbors": lambda: nearest_neighbors(FEATURES, n_neighbors=7),
    "weighted neighbors": lambda: nearest_neighbors(FEATURES, n_neighbors=7, sample_weight=WEIGHT),
    "groups": lambda: Partitions((FEATURES[:, :1] > 0).T),
    "dense matrix": lambda: MatrixAverages.checked(matrix(), N),
    "sparse matrix": lambda: MatrixAverages.checked(sparse.coo_matrix(matrix()), N),
}


@pytest.mark.parametrize("kind", KINDS)
def test_average_is_row_stochastic_and_adjoint_is_its_transpose(kind):
    kernel = KINDS[kind]()
    W = kernel.average(np.eye(N)).T
    assert W.min() >= 0
    np.testing.assert_allclose(W.sum(axis=1), 1)
    np.testing.assert_allclose(kernel.adjoint(np.eye(N)), W, atol=1e-15)
    assert as_neighborhoods(kernel, N) is kernel


@pytest.mark.parametrize("kind", KINDS)
def test_leading_axes_are_a_batch(kind):
    kernel = KINDS[kind]()
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


def planted(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    harmed = X[:, 4] > 1
    return X, harmed, harmed + rng.normal(size=n)


def test_leaves_hold_at_least_min_group_of_the_half_that_grew_them():
    X, _, regret = planted()
    kernel = forest(X, regret, min_group=40, n_trees=5, random_state=0)
    assert all(np.bincount(row).min() >= 40 for row in kernel.labels)
    assert max(row.max() for row in kernel.labels) >= 5


def test_averages_find_the_harmed_patients_under_the_noise():
    X, harmed, regret = planted()
    averages = forest(X, regret, min_group=40, random_state=0).average(regret)
    assert averages[harmed].mean() - averages[~harmed].mean() > 0.6
    assert averages.std() < 0.6 * regret.std()


def test_cross_fitting_keeps_a_patients_own_regret_out_of_its_leaf():
    X, _, regret = planted(n=400)
    first = forest(X, regret, min_group=20, n_trees=1, cross_fit=True, random_state=5)
    moved = regret.copy()
    half = np.random.default_rng(5).permutation(400)[:200]
    moved[half] += 10 * np.random.default_rng(0).normal(size=200)
    second = forest(X, moved, min_group=20, n_trees=1, cross_fit=True, random_state=5)

    def same_cell(kernel, rows):
        labels = kernel.labels[0][rows]
        return labels[:, None] == labels

    other = np.setdiff1d(np.arange(400), half)
    assert (same_cell(first, half) == same_cell(second, half)).all()
    assert (same_cell(first, other) != same_cell(second, other)).any()
    assert not np.intersect1d(first.labels[0][half], first.labels[0][other]).size


def test_noise_pulls_plain_leaves_apart_more_than_cross_fitted_ones():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(1000, 5)), rng.normal(size=1000)
    spread = [
        forest(X, noise, min_group=25, cross_fit=c, random_state=1).average(noise).std()
        for c in (False, True)
    ]
    assert spread[1] < spread[0]


def test_the_same_seed_gives_the_same_leaves():
    X, _, regret = planted(n=300)
    runs = [forest(X, regret, min_group=20, n_trees=3, random_state=7).labels for _ in range(2)]
    np.testing.assert_array_equal(*runs)


def test_rounding_of_the_regret_does_not_move_patients_between_leaves():
    # Few columns are tried often, so two thresholds may part a tree's half alike, and only rounding tells them apart.
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, regret = rng.normal(size=(150, 3)), rng.normal(size=150)
        rounded = regret * (1 + 4e-16 * rng.choice([-1, 1], size=150))
        first = forest(X, regret, min_group=20, random_state=seed)
        second = forest(X, rounded, min_group=20, random_state=seed)
        np.testing.assert_array_equal(first.labels, second.labels)


def test_one_column_still_splits_down_to_min_group():
    X, _, regret = planted()
    kernel = forest(X[:, 4:5], regret, min_group=50, n_trees=5, random_state=0)
    assert min(row.max() for row in kernel.labels) >= 3


def test_averages_are_over_the_nearest_in_standard_deviations():
    rng = np.random.default_rng(0)
    X, values = rng.normal(size=(60, 3)) * [1.0, 1000.0, 0.01], rng.normal(size=60)
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    distance = ((z[:, None] - z) ** 2).sum(axis=-1)
    expected = [values[np.argsort(row)[:8]].mean() for row in distance]
    np.testing.assert_allclose(nearest_neighbors(X, n_neighbors=8).average(values), expected)


# Few columns are searched by a tree, many by all distances, which are sums of large numbers.
@pytest.mark.parametrize("n_columns", [2, 20])
@pytest.mark.parametrize("constant", [3.0, 0.1, 1 / 3])
def test_constant_columns_are_ignored(constant, n_columns):
    X = np.random.default_rng(1).normal(size=(40, n_columns))
    with_constant = np.column_stack([X, np.full(40, constant)])
    values = np.arange(40.0)
    wanted = nearest_neighbors(X, n_neighbors=5).average(values)
    np.testing.assert_allclose(nearest_neighbors(with_constant, n_neighbors=5).average(values), wanted)
    np.testing.assert_allclose(nearest_neighbors(X + 1e8, n_neighbors=5).average(values), wanted)


def test_patients_who_are_all_alike_are_all_near():
    assert nearest_neighbors(np.ones((4, 1)), n_neighbors=4).average(np.arange(4.0)).tolist() == [1.5] * 4


def test_a_partition_gives_group_means():
    averages = Partitions(np.array([[2, 5, 2, 5]])).average(np.array([1.0, 2.0, 3.0, 6.0]))
    np.testing.assert_array_equal(averages, [2, 4, 2, 4])


X = np.array([[1.0, 2.0, 3.0], [4.0, 2.0, 5.0]])
NAMES = ["age", "site", "dose"]


def test_columns_are_chosen_by_name_or_position_and_constants_dropped():
    np.testing.assert_array_equal(subgroup_columns(X), X[:, [0, 2]])
    np.testing.assert_array_equal(subgroup_columns(X, ["dose", "site"], NAMES), X[:, [2]])
    np.testing.assert_array_equal(subgroup_columns(X, [0, -1]), X[:, [0, 2]])


def test_chosen_columns_keep_their_places():
    np.testing.assert_array_equal(chosen_columns(X), X)
    np.testing.assert_array_equal(chosen_columns(X, ["dose", "site"], NAMES), X[:, [2, 1]])
