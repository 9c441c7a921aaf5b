import numpy as np
import pytest

from drosurv.metrics import FollowUp
from drosurv.metrics.time_grid import auc_times, brier_times
from drosurv.target import Surv, parse_target


def scene(longest_train=100.0, longest_test=90.0):
    rng = np.random.default_rng(0)
    train, test = (
        Surv.from_arrays(rng.random(n) < 0.5, np.append(rng.uniform(5, 40, n - 1), longest))
        for n, longest in ((200, longest_train), (100, longest_test))
    )
    return FollowUp.parse(train), parse_target(test), train, test


def test_table_grids_are_those_of_the_published_tables():
    follow_up, target, train, test = scene()
    np.testing.assert_array_equal(
        auc_times(follow_up, target, grid="table"), np.percentile(test["time"], np.linspace(5, 81, 15))
    )
    start = max(train["time"].min(), test["time"].min())
    np.testing.assert_allclose(
        brier_times(follow_up, target, grid="table"), start + (90 - start) / 50 * np.arange(50)
    )


def test_default_grids_are_the_same_where_those_are_valid():
    follow_up, target, _, _ = scene()
    for times in (auc_times, brier_times):
        np.testing.assert_array_equal(times(follow_up, target), times(follow_up, target, grid="table"))


def test_default_grids_stay_inside_a_shorter_training_follow_up():
    follow_up, target, _, _ = scene(longest_train=45.0)
    assert follow_up.end == 45.0
    grid = brier_times(follow_up, target)
    assert len(grid) == 50
    assert grid[-1] < 45.0
    with pytest.raises(ValueError, match=r"must lie in \[5\.\d*, 45\).*got 5\.\d* to 88"):
        brier_times(follow_up, target, grid="table")


def test_auc_times_before_the_first_event_or_beyond_follow_up_are_left_out_by_default():
    follow_up, target, _, test = scene()
    test["event"][test["time"] < 15] = False
    first = test["time"][test["event"]].min()
    table = auc_times(follow_up, target, grid="table")
    np.testing.assert_array_equal(auc_times(follow_up, parse_target(test)), table[table >= first])
    with pytest.raises(ValueError, match=rf"must lie in \[{first:g}, 90\)"):
        auc_times(follow_up, parse_target(test), grid="table")
    only_late = Surv.from_arrays(test["time"] == np.sort(test["time"])[-2], test["time"])
    spread = auc_times(follow_up, parse_target(only_late))
    assert len(spread) == 15
    assert spread[0] == np.sort(test["time"])[-2]
    assert spread[-1] < 90


def test_given_times_are_sorted_and_distinct():
    follow_up, target, _, _ = scene()
    assert auc_times(follow_up, target, [30.0, 20.0, 30.0]).tolist() == [20.0, 30.0]
    assert brier_times(follow_up, target, [30.0, 20.0, 30.0]).tolist() == [20.0, 30.0]


def test_without_a_valid_time_the_default_grid_is_empty():
    follow_up, _, _, _ = scene()
    one_time = parse_target(Surv.from_arrays([True, True], [50.0, 50.0]))
    assert len(auc_times(follow_up, one_time)) == len(brier_times(follow_up, one_time)) == 0
    with pytest.raises(ValueError, match=r"must lie in \[50, 50\)"):
        auc_times(follow_up, one_time, [50.0])
