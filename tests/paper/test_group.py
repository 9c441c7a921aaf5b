import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drosurv.paper.penalties import KeyaGroup, KeyaIntersectional
from drosurv.paper.penalties.group import group_gap, log_ratio_gap
from drosurv.patients.target import Target


def penalty(codes, n_groups):
    """Of patients of whom only the groups count."""
    n = len(codes)
    return KeyaGroup(np.zeros((n, 1)), Target(np.ones(n, dtype=bool), np.arange(float(n))), codes, n_groups)


def plain_gap(h, codes, smooth):
    """The definition, group by group."""
    gaps = []
    for g in sorted(set(codes.tolist())):
        inside = [h[i] for i in range(len(h)) if codes[i] == g]
        mean = (sum(inside) + 0.5) / (len(inside) + 1) if smooth else sum(inside) / len(inside)
        gaps.append(abs(mean - sum(h) / len(h)))
    return max(gaps)


@settings(deadline=None, max_examples=40)
@given(n=st.integers(1, 15), n_groups=st.integers(1, 6), seed=st.integers(0, 2**32 - 1), smooth=st.booleans())
def test_gap_equals_the_definition_whichever_groups_are_present(n, n_groups, seed, smooth):
    rng = np.random.default_rng(seed)
    h, codes = np.exp(rng.normal(size=n)), rng.integers(0, n_groups, size=n)
    expected = plain_gap(h, codes, smooth)
    assert group_gap(h, codes, n_groups, smooth) == pytest.approx(expected, rel=1e-12, abs=1e-14)
    if smooth:
        assert penalty(codes, n_groups)(np.log(h)[None])[0][0] == pytest.approx(
            expected, rel=1e-12, abs=1e-14
        )


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


def intersectional_penalty(codes, n_groups):
    """Of patients of whom only the groups count."""
    n = len(codes)
    return KeyaIntersectional(
        np.zeros((n, 1)), Target(np.ones(n, dtype=bool), np.arange(float(n))), codes, n_groups
    )


def plain_log_ratio(h, codes, smooth):
    """The definition, over all pairs of groups."""
    logs = []
    for g in sorted(set(codes.tolist())):
        inside = [h[i] for i in range(len(h)) if codes[i] == g]
        logs.append(
            math.log((sum(inside) + 0.5) / (len(inside) + 1) if smooth else sum(inside) / len(inside))
        )
    return max(abs(a - b) for a in logs for b in logs)


@settings(deadline=None, max_examples=40)
@given(n=st.integers(1, 15), n_groups=st.integers(1, 6), seed=st.integers(0, 2**32 - 1), smooth=st.booleans())
def test_log_ratio_equals_the_definition_whichever_groups_are_present(n, n_groups, seed, smooth):
    rng = np.random.default_rng(seed)
    h, codes = np.exp(rng.normal(size=n)), rng.integers(0, n_groups, size=n)
    expected = plain_log_ratio(h, codes, smooth)
    assert log_ratio_gap(h, codes, n_groups, smooth) == pytest.approx(expected, rel=1e-12, abs=1e-14)
    if smooth:
        values, _ = intersectional_penalty(codes, n_groups)(np.log(h)[None])
        assert values[0] == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_an_absent_group_never_sets_an_extreme():
    h, codes = np.full(50, 100.0), np.arange(50) % 2
    assert log_ratio_gap(h, codes, 3, smooth=True) == 0.0
    assert intersectional_penalty(codes, 3)(np.log(h)[None])[0][0] == 0.0


def test_log_ratio_ignores_a_common_factor():
    rng = np.random.default_rng(0)
    h, codes = np.exp(rng.normal(size=40)), rng.integers(0, 4, size=40)
    assert log_ratio_gap(7.0 * h, codes, 4, smooth=False) == pytest.approx(
        log_ratio_gap(h, codes, 4, smooth=False), rel=1e-12
    )


def test_a_single_group_has_no_log_ratio_and_no_gradient():
    values, gradient = intersectional_penalty(np.zeros(5, dtype=int), 1)(np.linspace(-1, 1, 5)[None])
    assert values[0] == 0.0
    np.testing.assert_array_equal(gradient, 0.0)
