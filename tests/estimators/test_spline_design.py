"""Knots, spline columns and standardised designs."""

import numpy as np
import pytest

from drosurv.estimators.spline_design import (
    HARRELL,
    SplineDesign,
    _standard_basis,
    find_knots,
    knots_for_events,
    restricted_cubic,
    weighted_quantiles,
)

RNG = np.random.default_rng(0)


def test_whole_number_weights_are_copies_in_quantiles():
    x, counts = RNG.normal(size=60).round(1), RNG.integers(0, 5, 60)
    q = np.linspace(0, 1, 21)
    x, counts = x[counts > 0], counts[counts > 0]
    found = weighted_quantiles(x, counts.astype(float), q)
    np.testing.assert_allclose(found, np.quantile(np.repeat(x, counts), q), rtol=1e-12, atol=1e-12)


def test_the_unit_of_other_weights_does_not_change_quantiles():
    x, weight = RNG.normal(size=80), RNG.random(80) + 0.1
    q = (0.05, 0.5, 0.95)
    np.testing.assert_allclose(
        weighted_quantiles(x, weight, q), weighted_quantiles(x, weight * 1e-6, q), rtol=1e-12
    )
    assert weighted_quantiles(x, weight, (0.5,))[0] == pytest.approx(np.quantile(x, 0.5), abs=0.5)


@pytest.mark.parametrize(("n_events", "knots"), [(10, 3), (99, 3), (100, 4), (300, 4), (301, 5)])
def test_more_events_give_more_knots(n_events, knots):
    assert knots_for_events(n_events) == knots


@pytest.mark.parametrize("n_knots", HARRELL)
def test_knots_are_at_harrells_quantiles(n_knots):
    x = RNG.normal(size=500)
    np.testing.assert_allclose(find_knots(x[:, None], None, n_knots)[0], np.quantile(x, HARRELL[n_knots]))


def test_columns_of_few_values_have_no_knots():
    assert len(find_knots(RNG.integers(0, 8, 300).astype(float)[:, None], None, 4)[0]) == 0
    assert len(find_knots(np.ones(300)[:, None], None, 4)[0]) == 0
    assert len(find_knots(RNG.integers(0, 9, 300).astype(float)[:, None], None, 4)[0]) == 4


def test_a_column_of_mostly_zeros_has_knots_at_its_other_values():
    x = np.concatenate([np.zeros(900), np.arange(1.0, 101.0)])
    knots = find_knots(x[:, None], None, 4)[0]
    assert len(knots) == 4
    assert (np.diff(knots) > 0).all()


def test_splines_are_cubic_between_knots_and_linear_beyond():
    knots = np.array([-1.0, 0.3, 0.9, 2.0])
    grid = np.linspace(-4, 5, 1801)
    columns = restricted_cubic(grid, knots)
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
        np.testing.assert_allclose(restricted_cubic(x, t)[:, j], wanted, rtol=1e-12, atol=1e-12)


def test_design_columns_are_standardised_and_uncorrelated_with_the_weights_of_training():
    X = np.column_stack([RNG.normal(60, 10, 400), RNG.integers(0, 2, 400), np.full(400, 7.0)])
    weight = RNG.integers(1, 4, 400).astype(float)
    design = SplineDesign.learn(X, weight, 4)
    assert design.names(["age", "sex", "site"]) == ["age", "age'", "age''", "sex", "site"]
    assert design.feature.tolist() == [0, 0, 0, 1, 2]
    copies = design.standardised(np.repeat(X, weight.astype(int), axis=0))
    np.testing.assert_allclose(copies.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(copies.std(axis=0), [1, 1, 1, 1, 0], atol=1e-9)
    np.testing.assert_allclose(np.cov(copies[:, :3].T, bias=True), np.eye(3), atol=1e-7)
    # The first is the column itself.
    np.testing.assert_allclose(np.corrcoef(copies[:, 0], np.repeat(X[:, 0], weight.astype(int)))[0, 1], 1.0)


def test_coefficients_in_units_give_the_same_scores():
    X = np.column_stack([RNG.normal(60, 10, 200), RNG.exponential(size=200)])
    design = SplineDesign.learn(X, None, 5).with_nonlinear_penalty(4.0)
    coef = RNG.normal(size=8)
    scores = design.columns(X) @ design.in_units(coef)
    wanted = design.standardised(X) @ coef
    np.testing.assert_allclose(scores - scores.mean(), wanted - wanted.mean(), atol=1e-8)
    np.testing.assert_allclose(design.standardised(X).std(axis=0), [1, 0.5, 0.5, 0.5] * 2, atol=1e-8)


def test_a_column_that_repeats_another_becomes_zero():
    x = np.linspace(0, 1, 50)
    basis = _standard_basis(np.stack([x, 2 * x + 1, x**2]), np.array([0.5, 2.0, 0.3]), np.full(50, 0.02))
    assert (basis[:, 1] == 0).all()
    assert basis[2, 2] > 0
