import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare, kstest
from sklearn.exceptions import UndefinedMetricWarning
from sksurv.functions import StepFunction
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.nonparametric import kaplan_meier_estimator

from drosurv.metrics import calibration_at, d_calibration, integrated_calibration_index
from drosurv.metrics.calibration import _event_probability
from drosurv.metrics.partial_likelihood import CoxRows
from drosurv.metrics.scores import ScoredTarget
from drosurv.patients.target import Surv, Target

GRID = np.linspace(0, 8, 801)


def event_probability(target, columns, horizon, ridge):
    rows = CoxRows.of(ScoredTarget(target, np.zeros(len(target)), np.ones(len(target))))
    found = np.empty(len(target))
    found[target.order] = _event_probability(rows, columns[target.order], horizon, ridge)
    return found


def cohort(seed, n=300):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    time = rng.exponential(size=n) / np.exp(x)
    censoring = rng.uniform(0.5, 4, n)
    y = Surv.from_arrays(time <= censoring, np.minimum(time, censoring))
    return x, y, [StepFunction(GRID, np.exp(-GRID * np.exp(value))) for value in x]


def test_observed_is_kaplan_meier_with_its_interval_and_predicted_the_mean_curve():
    x, y, survival = cohort(0)
    horizons = [0.5, 1.0, 2.0]
    table = calibration_at(y, survival, horizons)
    steps, heights, bounds = kaplan_meier_estimator(y["event"], y["time"], conf_type="log-log")
    for row, horizon in zip(table.itertuples(), horizons, strict=True):
        last = np.flatnonzero(steps <= horizon)[-1]
        assert row.observed == pytest.approx(heights[last])
        assert (row.low, row.high) == pytest.approx(tuple(bounds[:, last]))
        assert row.predicted == pytest.approx(np.exp(-horizon * np.exp(x)).mean(), rel=1e-6)
        assert row.at_risk == (y["time"] >= horizon).sum()
    np.testing.assert_allclose(table["difference"], table["predicted"] - table["observed"])
    # Greenwood's interval is not that of weights.
    weighted = calibration_at(y, survival, horizons, sample_weight=np.full(len(y), 2.0))
    assert weighted[["low", "high"]].isna().all(axis=None)


def test_beyond_follow_up_observed_is_unknown_after_a_censoring_and_zero_after_the_last_death():
    flat = [StepFunction(np.array([0.0, 9.0]), np.array([1.0, 0.5]))] * 2
    censored_last = calibration_at(Surv.from_arrays([True, False], [1.0, 2.0]), flat, [3.0])
    assert censored_last["observed"].isna().all()
    died_last = calibration_at(Surv.from_arrays([False, True], [1.0, 2.0]), flat, [3.0])
    assert died_last[["observed", "low", "high"]].to_numpy().tolist() == [[0.0, 0.0, 0.0]]


def test_calibrated_curves_have_a_small_index_and_distorted_ones_a_large_one():
    x, y, survival = cohort(3, n=1000)
    right = integrated_calibration_index(y, survival, 1.0)
    assert right < 0.03
    # Everybody's probability of the event halved: off by the mean of half of it.
    halved = [StepFunction(GRID, 0.5 + 0.5 * function.y) for function in survival]
    expected = 0.5 * (1 - np.exp(-np.exp(x))).mean()
    assert integrated_calibration_index(y, halved, 1.0) == pytest.approx(expected, abs=0.02)


def test_index_of_equal_predictions_is_their_distance_from_kaplan_meier():
    _, y, _ = cohort(4)
    flat = [StepFunction(np.array([0.0, 0.5, 9.0]), np.array([1.0, 0.6, 0.6]))] * len(y)
    observed = calibration_at(y, flat, [1.0])["observed"].item()
    assert integrated_calibration_index(y, flat, 1.0) == pytest.approx(abs(0.6 - observed))


def test_index_of_two_distinct_predictions_is_finite():
    x, y, _ = cohort(5)
    two = np.where(x > 0, 0.3, 0.7)[:, None]
    value = integrated_calibration_index(y, two, 1.0, times=[1.0])
    # Two values leave one slope: each half against its own Kaplan-Meier, up to proportional hazards.
    halves = [calibration_at(y[half], two[half], [1.0], times=[1.0]) for half in (x > 0, x <= 0)]
    expected = pd.concat(halves)["difference"].abs().mean()
    assert value == pytest.approx(expected, abs=0.05)


def test_an_undefined_index_is_nan_with_a_warning():
    flat = [StepFunction(np.array([0.0, 9.0]), np.array([1.0, 0.5]))] * 2
    with pytest.warns(UndefinedMetricWarning, match="0 of the 2 patients had the event"):
        assert np.isnan(integrated_calibration_index(Surv.from_arrays([False, False], [1.0, 2.0]), flat, 1.5))
    with pytest.warns(UndefinedMetricWarning, match="follow-up ends at 2"):
        assert np.isnan(integrated_calibration_index(Surv.from_arrays([True, False], [1.0, 2.0]), flat, 5.0))


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore")
def test_observed_and_index_agree_with_lifelines():
    import matplotlib

    matplotlib.use("Agg")
    from lifelines import CoxPHFitter, KaplanMeierFitter
    from lifelines.calibration import survival_probability_calibration

    x, y, _ = cohort(6, n=800)
    data = pd.DataFrame({"x": x, "time": y["time"], "event": y["event"]})
    model = CoxPHFitter().fit(data, "time", "event")
    predicted = model.predict_survival_function(data, times=[1.0]).T.to_numpy()
    curve = KaplanMeierFitter().fit(y["time"], y["event"])
    table = calibration_at(y, predicted, [1.0], times=[1.0])
    assert table["observed"].item() == pytest.approx(float(curve.predict(1.0)), rel=1e-9)
    # lifelines smooths with a parametric spline hazard instead of Breslow's: near, not equal.
    _, index, _ = survival_probability_calibration(model, data, t0=1.0)
    assert integrated_calibration_index(y, predicted, 1.0, times=[1.0]) == pytest.approx(
        float(index), abs=0.01
    )


def reached(event, values):
    """One patient per value, whose curve is at that value at its time."""
    n = len(values)
    y = Surv.from_arrays(event, np.ones(n))
    return y, np.asarray(values, dtype=float)[:, None]


def test_events_fall_into_the_bin_of_their_survival_probability():
    y, survival = reached([True] * 5, [0.0, 0.24, 0.25, 0.99, 1.0])
    found = d_calibration(y, survival, times=[1.0], n_bins=4)
    assert found.shares.tolist() == [0.4, 0.2, 0.0, 0.4]
    expected = chisquare([2, 1, 0, 2])
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert found.n == 5


@pytest.mark.parametrize("n", [10, 20, 30, 50])
def test_patients_fall_evenly_into_the_bins_of_their_own_kaplan_meier_curve(n):
    # Many of its probabilities are ends of bins, but for rounding errors.
    time = np.arange(1.0, n + 1)
    survival = np.cumprod(1 - 1 / np.arange(n, 0.0, -1.0))
    found = d_calibration(Surv.from_arrays(np.ones(n, bool), time), np.tile(survival, (n, 1)), times=time)
    np.testing.assert_allclose(found.shares, 0.1)


def test_censored_patients_are_spread_evenly_below_their_survival_probability():
    y, survival = reached([False], [0.6])
    shares = d_calibration(y, survival, times=[1.0], n_bins=4).shares
    np.testing.assert_allclose(shares, [0.25 / 0.6, 0.25 / 0.6, 0.1 / 0.6, 0.0])
    lowest = d_calibration(*reached([False], [0.0]), times=[1.0], n_bins=4).shares
    assert lowest.tolist() == [1.0, 0.0, 0.0, 0.0]
    # Nothing is known of somebody censored at the start.
    np.testing.assert_allclose(d_calibration(*reached([False], [1.0]), times=[1.0]).shares, 0.1)


def test_the_true_model_is_not_rejected_more_often_than_by_chance():
    rng = np.random.default_rng(0)
    grid = np.linspace(0, 12, 1000)
    p_values = []
    for _ in range(60):
        rate = np.exp(rng.normal(size=100))
        time = rng.exponential(size=100) / rate
        y = Surv.from_arrays(np.ones(100, dtype=bool), time)
        curves = [StepFunction(grid, np.exp(-grid * value)) for value in rate]
        p_values.append(d_calibration(y, curves).p)
    assert kstest(p_values, "uniform").pvalue > 0.001


def test_a_model_that_kills_too_fast_is_rejected_with_and_without_censoring():
    rng = np.random.default_rng(1)
    time, censoring = rng.exponential(size=400), rng.uniform(0, 2, 400)
    y = Surv.from_arrays(time <= censoring, np.minimum(time, censoring))
    grid = np.linspace(0, 12, 3000)
    right = [StepFunction(grid, np.exp(-grid))] * 400
    wrong = [StepFunction(grid, np.exp(-2 * grid))] * 400
    assert d_calibration(y, right).p > 0.01
    assert d_calibration(y, wrong).p < 1e-6


@pytest.mark.parametrize("seed", range(2))
def test_probabilities_are_those_of_a_ridge_cox_model_with_ties(seed):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(150, 2))
    time = np.ceil(5 * rng.exponential(size=150) / np.exp(columns[:, 0]))
    target = Target(rng.random(150) < 0.6, time)
    model = CoxPHSurvivalAnalysis(alpha=0.3, ties="breslow", tol=1e-12).fit(columns, target.to_structured())
    expected = [1 - curve(4.0) for curve in model.predict_survival_function(columns)]
    np.testing.assert_allclose(event_probability(target, columns, 4.0, ridge=0.3), expected, rtol=1e-7)


def test_events_in_perfect_order_leave_finite_probabilities():
    target = Target(np.ones(5, dtype=bool), np.arange(1.0, 6.0))
    found = event_probability(target, -np.arange(5.0)[:, None], 3.5, ridge=1e-4)
    assert np.isfinite(found).all()
    assert found[0] > 0.99 > 0.01 > found[4]
