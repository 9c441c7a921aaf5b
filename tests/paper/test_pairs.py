import numpy as np
import pytest

from drosurv.paper.penalties.pairs import AllPairs, unit_rows


def test_zero_rows_stay_zero_and_extreme_rows_do_not_overflow():
    X = np.array([[0.0, 0.0], [3e200, 4e200], [3e-200, 4e-200]])
    np.testing.assert_allclose(unit_rows(X), [[0.0, 0.0], [0.6, 0.8], [0.6, 0.8]], rtol=1e-14)


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
