import numpy as np
import pytest
from sksurv.nonparametric import (
    CensoringDistributionEstimator,
    kaplan_meier_estimator,
    nelson_aalen_estimator,
)

from drosurv.metrics import FollowUp, compare_follow_up, default_horizon, median_follow_up
from drosurv.metrics.follow_up import auc_times, brier_times
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.patients.target import Surv, Target, parse_target


def cohort(seed, n=80):
    rng = np.random.default_rng(seed)
    return Surv.from_arrays(rng.random(n) < 0.5, rng.integers(1, 30, n)), rng


@pytest.mark.parametrize("seed", range(10))
def test_curves_equal_scikit_survival(seed):
    y, rng = cohort(seed)
    follow_up = FollowUp.parse(y)
    at = np.sort(rng.uniform(0, y["time"].max(), 40))
    at[:10] = rng.choice(y["time"], 10)
    np.testing.assert_allclose(
        follow_up.censoring_at(at), CensoringDistributionEstimator().fit(y).predict_proba(at)
    )
    times, hazard = nelson_aalen_estimator(y["event"], y["time"])
    np.testing.assert_allclose(follow_up.cumulative_hazard_at(times), hazard, atol=1e-12)
    times, survival = kaplan_meier_estimator(y["event"], y["time"])
    np.testing.assert_allclose(follow_up.survival_at(times), survival)


def test_kaplan_meier_ends_with_a_censored_patient_but_not_with_the_last_death():
    censored_last = parse_target(Surv.from_arrays([True, False], [1.0, 2.0]))
    np.testing.assert_array_equal(KaplanMeier.of(censored_last).at(np.array([2.0, 2.5])), [0.5, np.nan])
    died_last = parse_target(Surv.from_arrays([False, True], [1.0, 2.0]))
    assert KaplanMeier.of(died_last).at(np.array([1.5, 2.5])).tolist() == [1.0, 0.0]


def test_knowledge_of_censoring_ends_where_the_last_was_censored_or_observed():
    assert FollowUp.parse(Surv.from_arrays([True, False, False], [1.0, 4.0, 5.0])).end == 5.0
    assert FollowUp.parse(Surv.from_arrays([True, False, True], [1.0, 4.0, 5.0])).end == 5.0
    assert FollowUp.parse(Surv.from_arrays([True, True], [1.0, 5.0])).end == 5.0


def test_patients_observed_beyond_the_end_are_censored_there():
    follow_up = FollowUp.parse(Surv.from_arrays([True, False], [1.0, 4.0]))
    y = Surv.from_arrays([True, True, True, False], [3.0, 4.0, 9.0, 9.0])
    target = parse_target(y).until(follow_up.end)
    assert target.event.tolist() == [True, True, False, False]
    assert target.time.tolist() == [3.0, 4.0, 4.0, 4.0]


def test_cumulative_hazard_stays_finite_when_everybody_died():
    follow_up = FollowUp.parse(Surv.from_arrays([True, True], [1.0, 2.0]))
    assert follow_up.survival_at(np.array([2.0])).tolist() == [0.0]
    assert follow_up.cumulative_hazard_at(np.array([0.5, 1.0, 2.0, 3.0])).tolist() == [0.0, 0.5, 1.5, 1.5]


def test_a_follow_up_parses_to_itself_and_needs_an_event():
    follow_up = FollowUp.parse(Surv.from_arrays([True, False], [1.0, 4.0]))
    assert FollowUp.parse(follow_up) is follow_up
    with pytest.raises(ValueError, match="y_train contains no event"):
        FollowUp.parse(Surv.from_arrays([False], [1.0]))


def test_median_follow_up_is_that_of_reverse_kaplan_meier():
    rng = np.random.default_rng(5)
    time, censored = rng.exponential(size=500), rng.exponential(2.0, size=500)
    seen, event = np.minimum(time, censored), time <= censored
    curve = KaplanMeier.of(Target(~event, seen))
    expected = curve.times[np.searchsorted(-curve.survival, -0.5)]
    assert median_follow_up(Surv.from_arrays(event, seen)) == pytest.approx(expected)
    # The median of the censoring distribution, which events have not shortened.
    assert expected == pytest.approx(2 * np.log(2), rel=0.2)


def test_default_horizon_is_the_median_or_the_last_time_with_a_tenth_at_risk():
    time = np.arange(1.0, 101.0)
    assert default_horizon(Surv.from_arrays(np.zeros(100), time)) == 50.0
    # Nearly everybody has the event: the median follow-up is late or unknown.
    assert default_horizon(Surv.from_arrays(np.ones(100), time)) == 91.0
    assert np.isnan(median_follow_up(Surv.from_arrays(np.ones(100), time)))


def test_follow_up_differs_only_where_it_does():
    rng = np.random.default_rng(6)
    group = np.repeat(["a", "b"], 300)
    told = []
    for shorter in (1.0, 0.25):
        censored = rng.exponential(size=600) * np.where(group == "a", 1.0, shorter)
        time = rng.exponential(size=600)
        y = Surv.from_arrays(time <= censored, np.minimum(time, censored))
        found = compare_follow_up(y, group)
        told.append(found.differs)
        assert found.medians["a"] == pytest.approx(np.log(2), rel=0.3)
        assert found.medians["b"] == pytest.approx(shorter * np.log(2), rel=0.3)
    assert told == [False, True]


def test_a_small_group_neither_warns_nor_shortens_the_horizon():
    y = Surv.from_arrays(np.zeros(104), np.concatenate([np.full(4, 0.1), np.arange(1.0, 101.0)]))
    found = compare_follow_up(y, np.repeat(["few", "many"], [4, 100]))
    assert not found.differs
    assert found.horizon == 91.0


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


def test_tied_training_events_are_all_counted():
    y = Surv.from_arrays([True, True, False, True], [1.0, 1.0, 1.0, 2.0])
    assert FollowUp.parse(y).events == 3
    weighted = FollowUp.parse(y, sample_weight=[2.0, 1.0, 1.0, 1.0])
    assert weighted.events == 4


def test_training_events_are_unknown_unless_training_patients_or_their_number_are_given():
    target = parse_target(Surv.from_arrays([True, True], [1.0, 2.0]))
    assert FollowUp.of_test_patients(target).events is None
    assert FollowUp.of_test_patients(target, 7.0).events == 7
