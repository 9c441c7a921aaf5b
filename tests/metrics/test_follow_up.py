import numpy as np
import pytest
from sksurv.nonparametric import (
    CensoringDistributionEstimator,
    kaplan_meier_estimator,
    nelson_aalen_estimator,
)

from drosurv.metrics import FollowUp
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.target import Surv, parse_target


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


@pytest.mark.parametrize("seed", range(10))
def test_weighted_kaplan_meier_counts_copies_as_scikit_survival(seed):
    y, rng = cohort(seed)
    weight = rng.integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    times, survival = kaplan_meier_estimator(y["event"][rows], y["time"][rows])
    found = KaplanMeier.of(parse_target(y), weight.astype(float)).at(times)
    np.testing.assert_allclose(found, survival, atol=1e-12)
    assert KaplanMeier.of(parse_target(y)).at(np.array([0.5])).tolist() == [1.0]


def test_kaplan_meier_ends_with_a_censored_patient_but_not_with_the_last_death():
    censored_last = parse_target(Surv.from_arrays([True, False], [1.0, 2.0]))
    np.testing.assert_array_equal(KaplanMeier.of(censored_last).at(np.array([2.0, 2.5])), [0.5, np.nan])
    died_last = parse_target(Surv.from_arrays([False, True], [1.0, 2.0]))
    assert KaplanMeier.of(died_last).at(np.array([1.5, 2.5])).tolist() == [1.0, 0.0]


def test_knowledge_of_censoring_ends_where_the_last_was_censored_or_observed():
    assert FollowUp.parse(Surv.from_arrays([True, False, False], [1.0, 4.0, 5.0])).end == 5.0
    assert FollowUp.parse(Surv.from_arrays([True, False, True], [1.0, 4.0, 5.0])).end == 5.0
    assert FollowUp.parse(Surv.from_arrays([True, True], [1.0, 5.0])).end == 5.0


def test_patients_observed_to_the_end_are_censored_there():
    follow_up = FollowUp.parse(Surv.from_arrays([True, False], [1.0, 4.0]))
    target = follow_up.censor_at_end(
        parse_target(Surv.from_arrays([True, True, True, False], [3.0, 4.0, 9.0, 9.0]))
    )
    assert target.event.tolist() == [True, False, False, False]
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
