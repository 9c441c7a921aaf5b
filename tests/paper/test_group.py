import numpy as np

from drosurv.paper.penalties import KeyaGroup, KeyaIntersectional
from drosurv.patients.target import Target


def penalty(codes, n_groups, kind=KeyaGroup):
    """Of patients of whom only the groups count."""
    n = len(codes)
    return kind(np.zeros((n, 1)), Target(np.ones(n, dtype=bool), np.arange(float(n))), codes, n_groups)


def test_a_gap_of_zero_has_gradient_zero():
    # One group whose smoothed mean is the mean: (1 + .5)/(2 + 1) = 1/2.
    values, gradient = penalty(np.array([0, 0]), 1)(np.log([[0.5, 0.5]]))
    assert values[0] == 0.0
    np.testing.assert_array_equal(gradient, 0.0)


def test_a_single_group_has_no_log_ratio_and_no_gradient():
    single = penalty(np.zeros(5, dtype=int), 1, KeyaIntersectional)
    values, gradient = single(np.linspace(-1, 1, 5)[None])
    assert values[0] == 0.0
    np.testing.assert_array_equal(gradient, 0.0)
