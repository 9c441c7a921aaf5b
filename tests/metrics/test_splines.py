"""Columns of restricted cubic splines."""

import numpy as np

from drosurv.metrics.calibration import spline_columns

RNG = np.random.default_rng(0)


def test_splines_are_cubic_between_knots_and_linear_beyond():
    knots = np.array([-1.0, 0.3, 0.9, 2.0])
    grid = np.linspace(-4, 5, 1801)
    columns = spline_columns(grid, knots)[1:].T
    assert columns.shape == (1801, 2)
    step = grid[1] - grid[0]
    # Second derivatives are continuous, so that they vanish at the outer knots and beyond.
    second = np.diff(columns, n=2, axis=0) / step**2
    outside = (grid[1:-1] < -1.0 - step) | (grid[1:-1] > 2.0 + step)
    np.testing.assert_allclose(second[outside], 0.0, atol=1e-8)
    assert np.abs(np.diff(second, axis=0)).max() < 0.05
    assert np.abs(second[~outside]).max() > 0.5


def test_spline_columns_are_the_written_formula():
    t = np.array([1.0, 3.0, 4.0, 9.0])
    x = np.array([0.0, 2.0, 3.5, 8.0, 20.0])

    def cube(v):
        return max(v, 0.0) ** 3

    for j in range(2):
        wanted = [
            (
                cube(v - t[j])
                - cube(v - t[2]) * (t[3] - t[j]) / (t[3] - t[2])
                + cube(v - t[3]) * (t[2] - t[j]) / (t[3] - t[2])
            )
            / (t[3] - t[0]) ** 2
            for v in x
        ]
        np.testing.assert_allclose(spline_columns(x, t)[1 + j], wanted, rtol=1e-12, atol=1e-12)


def test_without_knots_there_is_only_the_column():
    x = RNG.normal(size=5)
    np.testing.assert_array_equal(spline_columns(x, np.empty(0)), x[None])
