import numpy as np
import pytest

from drosurv.metrics.extremes import Extreme, largest_deviation, largest_difference


def test_the_p_value_counts_replicates_further_off_than_no_gap():
    gap = largest_difference(np.array([0.3, 0.0]), np.array([[0.3, 0.0], [0.9, 0.0], [0.0, 0.0], [0.4, 0.0]]))
    # Off by 0, 0.6, 0.3 and 0.1 from a gap of 0.3: two are at least as far.
    assert gap.p_value == pytest.approx((1 + 2) / (1 + 4))


def test_groups_without_a_value_are_left_out_of_gaps():
    estimate = np.array([0.7, np.nan, 0.5])
    gap = largest_difference(estimate, np.array([[0.7, np.nan, 0.5], [0.8, 0.1, 0.5], [np.nan] * 3]))
    assert gap.estimate == pytest.approx(0.2)
    np.testing.assert_allclose(gap.errors, [0.0, 0.1, np.nan], atol=1e-12)


def test_a_gap_between_fewer_than_two_groups_is_nan_and_so_are_its_interval_and_test():
    alone = largest_difference(np.array([0.7, np.nan]), np.array([[0.7, 0.2], [0.6, 0.3], [0.5, 0.1]]))
    interval = alone.interval(0.95)
    assert np.isnan([alone.estimate, interval.low, interval.high, alone.p_value]).all()


def test_replicates_of_other_groups_than_the_estimated_ones_give_no_interval():
    gap = largest_difference(np.array([0.7, 0.5, np.nan]), np.array([[0.7, np.nan, 0.5], [0.6, np.nan, 0.2]]))
    interval = gap.interval(0.95)
    assert gap.estimate == pytest.approx(0.2)
    assert np.isnan([interval.low, interval.high, gap.p_value]).all()


def test_the_largest_deviation_is_from_the_centre_not_between_groups():
    found = largest_deviation(np.array([1.0, 4.0]), 3.0, np.array([[1.0, 3.5]]), np.array([3.0]))
    assert found.estimate == 2.0
    assert found.draws.tolist() == [2.0]
    assert found.errors.tolist() == [0.5]


def test_without_replicates_there_is_no_interval_and_no_test():
    for number in (
        largest_difference(np.array([0.7, 0.5]), np.empty((0, 2))),
        largest_deviation(np.array([0.7, 0.5]), 0.6, np.empty((0, 2)), np.empty(0)),
        Extreme(0.1, np.empty(0), np.empty(0)),
    ):
        interval = number.interval(0.95)
        assert np.isnan([interval.low, interval.high, interval.standard_error, number.p_value]).all()
