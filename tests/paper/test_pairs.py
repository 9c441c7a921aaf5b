from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drosurv.paper.penalties import KeyaIndividual
from drosurv.paper.penalties.pairs import AllPairs, unit_rows
from drosurv.patients.target import Target


def penalty(X, scale=0.01):
    """Of patients of whom only the features count."""
    n = len(X)
    return KeyaIndividual(X, Target(np.ones(n, dtype=bool), np.arange(float(n))), None, 1, scale)


def plain_sum(h, U, scale):
    """The definition, pair by pair."""
    return sum(
        max(abs(h[i] - h[j]) - scale * np.linalg.norm(U[i] - U[j]), 0.0)
        for i, j in combinations(range(len(h)), 2)
    )


def plain_gradient(h, U, scale):
    gradient = np.zeros(len(h))
    for i, j in combinations(range(len(h)), 2):
        if abs(h[i] - h[j]) > scale * np.linalg.norm(U[i] - U[j]):
            gradient[i] += np.sign(h[i] - h[j])
            gradient[j] -= np.sign(h[i] - h[j])
    return gradient


def test_unit_rows_have_length_one_and_keep_direction():
    X = np.random.default_rng(0).normal(size=(20, 4)) * 10.0 ** np.arange(-10, 10)[:, None]
    U = unit_rows(X)
    np.testing.assert_allclose(np.linalg.norm(U, axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(U * np.linalg.norm(X, axis=1, keepdims=True), X, rtol=1e-13)


def test_zero_rows_stay_zero_and_extreme_rows_do_not_overflow():
    X = np.array([[0.0, 0.0], [3e200, 4e200], [3e-200, 4e-200]])
    np.testing.assert_allclose(unit_rows(X), [[0.0, 0.0], [0.6, 0.8], [0.6, 0.8]], rtol=1e-14)


@settings(deadline=None, max_examples=40)
@given(
    n=st.integers(1, 12),
    d=st.integers(1, 7),
    seed=st.integers(0, 2**32 - 1),
    spread=st.sampled_from([0.0, 1e-6, 0.1, 10.0]),
    scale=st.sampled_from([0.0, 0.01, 0.5, 3.0]),
)
def test_sum_and_gradient_equal_the_definition(n, d, seed, spread, scale):
    rng = np.random.default_rng(seed)
    U = unit_rows(rng.integers(-1, 2, size=(n, d)).astype(float))  # repeated and zero rows are common
    h = 1.0 + spread * np.where(rng.random(n) < 0.3, rng.integers(0, 3, size=n), rng.random(n))
    assert AllPairs.of(U).evaluate(h, scale)[0] == pytest.approx(plain_sum(h, U, scale), rel=1e-10, abs=1e-10)
    _, gradient = penalty(U, scale)(np.log(h)[None])
    again = np.exp(np.log(h))
    factor = n * (n - 1) if n > 1 else 1
    np.testing.assert_allclose(gradient[0] * factor, plain_gradient(again, U, scale) * again, atol=1e-8)


def test_windows_longer_than_a_block_of_columns_are_scanned_whole():
    rng = np.random.default_rng(0)
    n = 1300
    U = unit_rows(rng.normal(size=(n, 7)))
    allowed = 0.01 * np.sqrt(((U[:, None] - U) ** 2).sum(-1))
    for h in (1.0 + 0.03 * rng.random(n), 1.0 + 0.001 * rng.random(n), np.exp(rng.normal(size=n))):
        gaps = np.abs(h[:, None] - h) - allowed
        expected = np.maximum(gaps, 0.0).sum() / 2
        assert AllPairs.of(U).evaluate(h, 0.01)[0] == pytest.approx(expected, rel=1e-10, abs=1e-8)


def test_no_excess_is_exactly_zero():
    rng = np.random.default_rng(1)
    U = unit_rows(rng.normal(size=(300, 4)))
    assert AllPairs.of(U).evaluate(np.full(300, 2.0), 0.01)[0] == 0.0
    assert AllPairs.of(U).evaluate(2.0 + 1e-9 * rng.random(300), 0.01)[0] == 0.0


def test_a_single_patient_has_no_disparity():
    values, gradient = penalty(np.ones((1, 2)))(np.array([[0.7]]))
    assert values[0] == 0.0
    assert gradient[0, 0] == 0.0
