import numpy as np
import pytest

from drosurv.paper.penalties import KeyaGroup, KeyaIntersectional
from drosurv.paper.penalties.group import group_gap, log_ratio_gap
from drosurv.patients.target import Target


def penalty(codes, n_groups, kind=KeyaGroup):
    """Of patients of whom only the groups count."""
    n = len(codes)
    return kind(np.zeros((n, 1)), Target(np.ones(n, dtype=bool), np.arange(float(n))), codes, n_groups)


def test_an_absent_group_never_sets_the_maximum():
    # Smoothed, an empty group would have mean 1/2, far from everybody else's 100.
    h, codes = np.full(50, 100.0), np.arange(50) % 2
    assert group_gap(h, codes, 3, smooth=True) == group_gap(h, codes, 2, smooth=True)
    values, _ = penalty(codes, 3)(np.log(h)[None])
    assert values[0] == pytest.approx(100.0 - 2500.5 / 26.0)


def test_a_gap_of_zero_has_gradient_zero():
    # One group whose smoothed mean is the mean: (1 + .5)/(2 + 1) = 1/2.
    values, gradient = penalty(np.array([0, 0]), 1)(np.log([[0.5, 0.5]]))
    assert values[0] == 0.0
    np.testing.assert_array_equal(gradient, 0.0)


def test_an_absent_group_never_sets_an_extreme():
    h, codes = np.full(50, 100.0), np.arange(50) % 2
    assert log_ratio_gap(h, codes, 3, smooth=True) == 0.0
    assert penalty(codes, 3, KeyaIntersectional)(np.log(h)[None])[0][0] == 0.0


def test_log_ratio_ignores_a_common_factor():
    rng = np.random.default_rng(0)
    h, codes = np.exp(rng.normal(size=40)), rng.integers(0, 4, size=40)
    assert log_ratio_gap(7.0 * h, codes, 4, smooth=False) == pytest.approx(
        log_ratio_gap(h, codes, 4, smooth=False), rel=1e-12
    )


def test_a_single_group_has_no_log_ratio_and_no_gradient():
    single = penalty(np.zeros(5, dtype=int), 1, KeyaIntersectional)
    values, gradient = single(np.linspace(-1, 1, 5)[None])
    assert values[0] == 0.0
    np.testing.assert_array_equal(gradient, 0.0)
