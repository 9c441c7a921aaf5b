import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sksurv.metrics import cumulative_dynamic_auc

from drosurv.metrics import FollowUp, dynamic_auc
from drosurv.metrics.dynamic_auc import dynamic_auc_curve
from drosurv.patients.target import Surv


def cohort(rng, n, longest=100, event_rate=0.5):
    time = rng.integers(1, longest, n).astype(float)
    event = rng.random(n) < event_rate
    event[:2] = True, False
    # Events at whole times, censoring between them: scikit-survival weights ties of the two in another way.
    time += np.where(event, 0.0, rng.uniform(0.2, 0.8, n))
    time[:2] = 0.0, longest
    return Surv.from_arrays(event, time)


@pytest.mark.parametrize("seed", range(8))
def test_curve_and_mean_equal_scikit_survival(seed):
    rng = np.random.default_rng(seed)
    train, test = cohort(rng, 150), cohort(rng, 60, longest=90)
    # Whole numbers for ties; steps below 1e-8 for chains of ties.
    risk = rng.integers(0, 15, 60) + rng.choice([0.0, 6e-9], 60)
    times = np.sort(rng.choice(np.arange(20, 80), 7, replace=False)).astype(float)
    auc, mean = cumulative_dynamic_auc(train, test, risk, times)
    found = dynamic_auc_curve(train, test, risk, times)
    np.testing.assert_allclose(found.auc, auc, rtol=1e-12)
    assert found.mean == pytest.approx(mean, rel=1e-12)
    assert dynamic_auc(FollowUp.parse(train), test, risk, times[:1]) == pytest.approx(auc[0], rel=1e-12)


def test_weights_that_leave_no_case_give_nan_with_a_warning():
    rng = np.random.default_rng(2)
    train, test = cohort(rng, 150), cohort(rng, 60, longest=90)
    with pytest.warns(UndefinedMetricWarning, match="dynamic AUC is undefined"):
        assert np.isnan(dynamic_auc(train, test, rng.normal(size=60), sample_weight=~test["event"]))


def test_default_times_are_those_of_the_tables_where_they_are_valid():
    rng = np.random.default_rng(0)
    train, test = cohort(rng, 300), cohort(rng, 200, longest=90)
    risk = rng.normal(size=200)
    times = np.percentile(test["time"], np.linspace(5, 81, 15))
    expected = cumulative_dynamic_auc(train, test, risk, times)[1]
    assert dynamic_auc(train, test, risk) == pytest.approx(expected, rel=1e-12)
    assert dynamic_auc(train, test, risk, grid="table") == pytest.approx(expected, rel=1e-12)


def test_patients_beyond_the_training_follow_up_count_as_observed_to_its_end():
    rng = np.random.default_rng(1)
    train, test = cohort(rng, 150, longest=50), cohort(rng, 80, longest=90)
    risk = rng.normal(size=80)
    times = np.array([10.0, 20.0, 30.0, 40.0])
    with pytest.raises(ValueError, match=r"largest observed time|censoring survival function is zero"):
        cumulative_dynamic_auc(train, test, risk, times)
    ended = Surv.from_arrays(test["event"] & (test["time"] < 50), np.minimum(test["time"], 50))
    auc, mean = cumulative_dynamic_auc(train, ended, risk, times)
    found = dynamic_auc_curve(train, test, risk, times)
    np.testing.assert_allclose(found.auc, auc, rtol=1e-12)
    assert found.mean == pytest.approx(mean, rel=1e-12)
    assert np.isfinite(dynamic_auc(train, test, risk))


def test_what_happens_after_the_training_follow_up_does_not_matter():
    rng = np.random.default_rng(2)
    train, test = cohort(rng, 150, longest=50), cohort(rng, 80, longest=90)
    risk = rng.normal(size=80)
    changed = test.copy()
    late = changed["time"] >= 50
    changed["event"][late] = ~changed["event"][late]
    changed["time"][late] += rng.random(late.sum()) * 100
    times = [10.0, 25.0, 49.0]
    assert dynamic_auc(train, test, risk, times) == dynamic_auc(train, changed, risk, times)


@pytest.mark.parametrize("event", [[False, True, True], [False, False, True]])
def test_no_event_within_the_training_follow_up_is_nan_with_a_warning(event):
    train = Surv.from_arrays([True, False], [1.0, 2.0])
    test = Surv.from_arrays(event, [1.0, 5.0, 6.0])
    with pytest.warns(UndefinedMetricWarning, match="which ends at 2, before which one of the 3 patients"):
        assert np.isnan(dynamic_auc(train, test, [1.0, 2.0, 3.0]))


def test_only_the_last_patient_with_an_event_is_nan_with_a_warning():
    train = Surv.from_arrays([True, False], [1.0, 20.0])
    with pytest.warns(UndefinedMetricWarning, match="which ends at 20"):
        assert np.isnan(dynamic_auc(train, Surv.from_arrays([False, True], [5.0, 6.0]), [1.0, 2.0]))


def test_small_folds_do_not_fail():
    """Random folds of a small cohort: the longest patient is now in training, now in the scored part."""
    rng = np.random.default_rng(5)
    y = cohort(rng, 60, event_rate=0.3)
    defined = 0
    for _ in range(200):
        fold = rng.permutation(60)
        train, test = y[fold[:48]], y[fold[48:]]
        first = test["time"][test["event"]].min(initial=np.inf)
        if train["event"].any() and first < min(test["time"].max(), train["time"].max()):
            assert 0 <= dynamic_auc(train, test, rng.normal(size=12)) <= 1 + 1e-12
            defined += 1
    assert defined > 150
