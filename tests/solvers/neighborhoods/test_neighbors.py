import numpy as np
import pytest

from drosurv.solvers.neighborhoods import nearest_neighbors


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


@pytest.mark.parametrize("k", [0, 11])
def test_impossible_numbers_of_neighbours_are_refused(k):
    with pytest.raises(
        ValueError, match=f"n_neighbors must be a whole number from 1 to the 10 patients, got {k}"
    ):
        nearest_neighbors(np.zeros((10, 1)), n_neighbors=k)
