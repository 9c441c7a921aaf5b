import numpy as np
import pytest

from drosurv.solvers.neighborhoods import forest


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


def test_groups_too_large_for_the_data_are_refused():
    with pytest.raises(ValueError, match=r"min_group=50 allows no split.*min_group=25 or less"):
        forest(np.zeros((100, 1)), np.zeros(100), min_group=50)
