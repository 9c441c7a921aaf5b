"""Knots and standardised designs."""

import numpy as np
import pytest

from drosurv.estimators.spline_design import (
    HARRELL,
    SplineDesign,
    _standard_basis,
    find_knots,
    knots_for_events,
)
from drosurv.metrics.calibration import spline_columns

RNG = np.random.default_rng(0)


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
    columns = np.vstack([spline_columns(x, t) for x, t in zip(X.T, design.knots, strict=True)])
    scores = design.in_units(coef) @ columns
    wanted = design.standardised(X) @ coef
    np.testing.assert_allclose(scores - scores.mean(), wanted - wanted.mean(), atol=1e-8)
    np.testing.assert_allclose(design.standardised(X).std(axis=0), [1, 0.5, 0.5, 0.5] * 2, atol=1e-8)


def test_a_column_that_repeats_another_becomes_zero():
    x = np.linspace(0, 1, 50)
    columns = np.stack([x, 2 * x + 1, x**2])
    basis = _standard_basis(np.cov(columns, bias=True), columns.max(axis=1))
    assert (basis[:, 1] == 0).all()
    assert basis[2, 2] > 0
