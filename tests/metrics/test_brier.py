import numpy as np
import pytest
from scipy.integrate import trapezoid
from sklearn.exceptions import UndefinedMetricWarning
from sksurv.functions import StepFunction
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.metrics import integrated_brier_score as reference

from drosurv.metrics import FollowUp, integrated_brier_score
from drosurv.metrics.brier import brier_estimates, brier_scores
from drosurv.patients.target import Surv, parse_target


def cohort(rng, n, longest=100):
    X = rng.normal(size=(n, 2))
    time = np.ceil(rng.exponential(40, n) / np.exp(X[:, 0]))
    censoring = rng.integers(5, longest, n)
    event = time <= censoring
    # Events at whole times, censoring between them: scikit-survival weights ties of the two in another way.
    time = np.where(event, time, censoring + 0.25)
    time[:2] = 1.0, longest
    event[:2] = True, False
    return X, Surv.from_arrays(event, time)


def curves(rng, n, k):
    return np.sort(rng.random((n, k)), axis=1)[:, ::-1]


@pytest.mark.parametrize("seed", range(10))
def test_score_equals_scikit_survival(seed):
    rng = np.random.default_rng(seed)
    (_, train), (_, test) = cohort(rng, 120), cohort(rng, 50, longest=90)
    times = np.sort(rng.choice(np.arange(2, 89), 9, replace=False)).astype(float)
    survival = curves(rng, 50, 9)
    expected = reference(train, test, survival, times)
    assert integrated_brier_score(train, test, survival, times) == pytest.approx(expected, rel=1e-12)
    assert integrated_brier_score(FollowUp.parse(train), test, survival, times) == pytest.approx(expected)
    assert next(brier_scores(train, test, survival, times)).mean() == pytest.approx(expected)


def test_step_functions_of_a_fitted_model_are_read_at_the_times():
    rng = np.random.default_rng(0)
    (X, train), (X_test, test) = cohort(rng, 200), cohort(rng, 80, longest=90)
    functions = CoxPHSurvivalAnalysis().fit(X, train).predict_survival_function(X_test)
    times = np.linspace(5, 80, 20)
    expected = reference(train, test, np.vstack([function(times) for function in functions]), times)
    assert integrated_brier_score(train, test, functions, times) == pytest.approx(expected, rel=1e-12)
    plain = [lambda t, function=function: function(t) for function in functions]
    assert integrated_brier_score(train, test, plain, times) == pytest.approx(expected, rel=1e-12)


def test_default_times_are_those_of_the_tables_where_they_are_valid():
    rng = np.random.default_rng(1)
    (X, train), (X_test, test) = cohort(rng, 200), cohort(rng, 80, longest=90)
    functions = CoxPHSurvivalAnalysis().fit(X, train).predict_survival_function(X_test)
    start = max(train["time"].min(), test["time"].min())
    times = np.linspace(start, test["time"].max(), 50, endpoint=False)
    expected = reference(train, test, np.vstack([function(times) for function in functions]), times)
    assert integrated_brier_score(train, test, functions) == pytest.approx(expected, rel=1e-12)
    assert integrated_brier_score(train, test, functions, grid="table") == pytest.approx(expected, rel=1e-12)


def test_patients_beyond_the_training_follow_up_count_as_observed_to_its_end():
    rng = np.random.default_rng(2)
    (X, train), (X_test, test) = cohort(rng, 200, longest=60), cohort(rng, 80, longest=90)
    train["time"][1] = 60.5
    train["event"][1] = True
    assert train["time"].max() < test["time"].max()
    functions = CoxPHSurvivalAnalysis().fit(X, train).predict_survival_function(X_test)
    times = np.linspace(5, 59, 20)
    survival = np.vstack([function(times) for function in functions])
    with pytest.raises(ValueError, match="largest observed time point"):
        reference(train, test, survival, times)
    ended = Surv.from_arrays(test["event"] & (test["time"] < 60.5), np.minimum(test["time"], 60.5))
    expected = reference(train, ended, survival, times)
    assert integrated_brier_score(train, test, functions, times) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match=r"must lie in \[1, 60.5\).*grid='inside'"):
        integrated_brier_score(train, test, functions, grid="table")
    assert 0 < integrated_brier_score(train, test, functions) < 1


def test_what_happens_after_the_training_follow_up_does_not_matter():
    rng = np.random.default_rng(3)
    (_, train), (_, test) = cohort(rng, 120, longest=50), cohort(rng, 50, longest=90)
    survival, times = curves(rng, 50, 3), [10.0, 20.0, 49.0]
    changed = test.copy()
    late = changed["time"] >= 50
    assert late.any()
    changed["event"][late] = ~changed["event"][late]
    changed["time"][late] += 100
    np.testing.assert_array_equal(
        next(brier_scores(train, test, survival, times)), next(brier_scores(train, changed, survival, times))
    )


def test_small_folds_do_not_fail():
    rng = np.random.default_rng(5)
    _, y = cohort(rng, 60)
    for _ in range(80):
        fold = rng.permutation(60)
        train, test = y[fold[:48]], y[fold[48:]]
        if train["event"].any():
            flat = [StepFunction(np.array([0.0, 40.0]), np.array([1.0, 0.5]))] * 12
            assert np.isfinite(integrated_brier_score(train, test, flat))


def test_patients_of_one_time_are_nan_with_a_warning():
    train, test = Surv.from_arrays([True, False], [1.0, 9.0]), Surv.from_arrays([True, True], [4.0, 4.0])
    flat = [StepFunction(np.array([0.0, 40.0]), np.array([1.0, 0.5]))] * 2
    with pytest.warns(UndefinedMetricWarning, match="the 2 patients were not observed"):
        assert np.isnan(integrated_brier_score(train, test, flat))


def test_groups_with_other_follow_up_have_the_scores_of_complete_follow_up():
    rng = np.random.default_rng(8)
    group = np.repeat(["a", "b"], 15_000)
    time = rng.exponential(size=30_000)
    censored = rng.exponential(1 / np.where(group == "a", 0.2, 2.0))
    y = Surv.from_arrays(time <= censored, np.minimum(time, censored))
    at = np.linspace(0.1, 0.7, 7)
    survival = np.broadcast_to(np.exp(-at), (len(y), len(at)))
    truth = trapezoid(np.exp(-at) * (1 - np.exp(-at)), at) / 0.6
    for label in ("a", "b"):
        own = group == label
        found = brier_estimates(parse_target(y), survival, at, own.astype(float)).score
        assert found.value == pytest.approx(truth, rel=0.03)
    # With one censoring distribution for everybody the groups seem to differ.
    pooled = next(brier_scores(y, y, survival, at))
    assert pooled[group == "a"].mean() > 1.3 * pooled[group == "b"].mean()
