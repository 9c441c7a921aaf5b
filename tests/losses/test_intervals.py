import numpy as np
import pytest

from drosurv.losses.intervals import Intervals
from drosurv.losses.tie_blocks import block_sums
from drosurv.target import Target


def target_of(time, event=None):
    time = np.asarray(time, dtype=float)
    return Target(np.ones(len(time), bool) if event is None else np.asarray(event, bool), time)


def test_each_interval_holds_as_many_events_when_times_are_distinct():
    rng = np.random.default_rng(0)
    target = target_of(rng.exponential(size=400), rng.random(400) < 0.5)
    intervals = Intervals.from_target(target, 20)
    index = intervals.place(target.time[target.event]).index
    counts = np.bincount(index)
    assert len(counts) == intervals.n_intervals == 20
    assert counts.max() - counts.min() <= 1


def test_few_distinct_event_times_give_fewer_intervals_each_with_an_event():
    target = target_of([1, 1, 1, 2, 2, 5, 9], [1, 1, 1, 1, 1, 1, 0])
    intervals = Intervals.from_target(target, 20)
    np.testing.assert_array_equal(intervals.cut_points, [1, 2])
    assert np.bincount(intervals.place(target.time[target.event]).index).tolist() == [3, 2, 1]


@pytest.mark.parametrize("time", [[3.0, 3.0], [0.0, 0.0, 2.0], [4.0]])
def test_degenerate_times_keep_every_interval_of_positive_width(time):
    intervals = Intervals.from_target(target_of(time), 5)
    assert intervals.n_intervals == 1
    assert (intervals.widths > 0).all()


def test_weight_two_cuts_where_two_copies_would():
    rng = np.random.default_rng(1)
    time, event, weight = rng.exponential(size=60), rng.random(60) < 0.7, rng.integers(0, 4, 60)
    copies = target_of(np.repeat(time, weight), np.repeat(event, weight))
    np.testing.assert_array_equal(
        Intervals.from_target(target_of(time, event), 7, weight.astype(float)).cut_points,
        Intervals.from_target(copies, 7).cut_points,
    )


def test_cumulative_and_exposure_sums_follow_the_exposure_matrix():
    rng = np.random.default_rng(2)
    cuts = np.sort(rng.exponential(size=4))
    intervals = Intervals(cuts)
    time = np.concatenate([rng.exponential(2.0, size=50), cuts, [0.0]])
    edges = np.concatenate([[0.0], cuts, [np.inf]])
    exposure = np.clip(time[:, None] - edges[:-1], 0, np.diff(edges))
    spent = intervals.place(time)
    rates, values = rng.random((2, 3, 5)), rng.normal(size=(2, 3, len(time)))
    np.testing.assert_allclose(spent.cumulative(rates), rates @ exposure.T)
    np.testing.assert_allclose(spent.exposure_sums(values), values @ exposure, atol=1e-12)
    np.testing.assert_allclose(spent.take(np.arange(7)).exposures(), exposure[:7], atol=1e-12)
    holds = (time[:, None] <= edges[1:]) & (
        (time[:, None] > edges[:-1]) | (edges[:-1] == 0) & (time[:, None] == 0)
    )
    np.testing.assert_allclose(block_sums(values, spent.index, 5), values @ holds, atol=1e-12)


def test_fewer_than_one_interval_is_refused():
    with pytest.raises(ValueError, match="n_intervals must be a whole number, at least 1, got 0"):
        Intervals.from_target(target_of([1.0]), 0)
