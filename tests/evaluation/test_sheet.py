import numpy as np
import pytest

from drosurv.evaluation.sheet import Cell, Draws, Extreme, Sheet, largest_deviation, largest_difference
from drosurv.metrics import Replicates, gap_intervals


def test_a_gap_has_the_interval_that_holds_all_differences_at_once():
    rng = np.random.default_rng(0)
    estimate = np.array([0.7, 0.5, 0.62])
    draws = estimate + 0.05 * rng.normal(size=(400, 3))
    found = largest_difference(estimate, draws).interval(0.9)
    expected = gap_intervals(Replicates(estimate, draws), ["a", "b", "c"], level=0.9).gap
    assert (found.estimate, found.low, found.high) == pytest.approx(
        (expected.estimate, expected.low, expected.high)
    )
    assert found.standard_error == pytest.approx(expected.standard_error)


def test_the_p_value_counts_replicates_further_off_than_no_gap():
    gap = largest_difference(np.array([0.3, 0.0]), np.array([[0.3, 0.0], [0.9, 0.0], [0.0, 0.0], [0.4, 0.0]]))
    # Off by 0, 0.6, 0.3 and 0.1 from a gap of 0.3: two are at least as far.
    assert gap.p_value == pytest.approx((1 + 2) / (1 + 4))


def test_groups_without_a_value_are_left_out_of_gaps():
    estimate = np.array([0.7, np.nan, 0.5])
    gap = largest_difference(estimate, np.array([[0.7, np.nan, 0.5], [0.8, 0.1, 0.5], [np.nan] * 3]))
    assert gap.estimate == pytest.approx(0.2)
    np.testing.assert_allclose(gap.errors, [0.0, 0.1, np.nan], atol=1e-12)
    alone = largest_difference(np.array([0.7, np.nan]), np.empty((0, 2)))
    assert np.isnan(alone.estimate)
    assert np.isnan(alone.p_value)


def test_the_largest_deviation_is_from_the_centre_not_between_groups():
    found = largest_deviation(np.array([1.0, 4.0]), 3.0, np.array([[1.0, 3.5]]), np.array([3.0]))
    assert found.estimate == 2.0
    assert found.draws.tolist() == [2.0]
    assert found.errors.tolist() == [0.5]


def test_without_replicates_numbers_have_no_interval():
    for number in (
        Draws(0.5, np.empty(0), lowest=0.0),
        largest_difference(np.array([0.7, 0.5]), np.empty((0, 2))),
        largest_deviation(np.array([0.7, 0.5]), 0.6, np.empty((0, 2)), np.empty(0)),
    ):
        interval = number.interval(0.95)
        assert np.isnan([interval.low, interval.high, interval.standard_error]).all()
    assert np.isnan(Extreme(0.1, np.empty(0), np.empty(0)).p_value)


def test_intervals_are_cut_at_the_lowest_value_there_can_be():
    draws = np.linspace(0.0, 0.2, 101)
    assert Draws(0.02, draws, lowest=0.0, method="basic").interval(0.9).low == 0.0
    assert Draws(0.02, draws, method="basic").interval(0.9).low < 0.0


def test_linear_replicates_follow_the_weights_and_are_not_asked_for_without_any():
    weights = np.array([[2, 0, 1], [1, 1, 1]], dtype=np.uint16)
    cells = [Cell("overall", "all", "x")]
    sheet = Sheet(cells, np.array([1.0]), np.zeros((2, 1)), weights)
    assert sheet.linear(5.0, lambda: np.array([0.5, 0.25, 7.0])).draws.tolist() == [5.25, 5.0]

    def fail():
        raise AssertionError

    empty = Sheet(cells, np.array([1.0]), np.zeros((0, 1)), weights[:0])
    assert len(empty.linear(5.0, fail).draws) == 0
