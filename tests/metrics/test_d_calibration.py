import numpy as np
import pytest
from scipy.stats import chisquare, kstest
from sksurv.functions import StepFunction

from drosurv.metrics import d_calibration
from drosurv.target import Surv


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
    assert (found.statistic, found.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    assert found.n == 5


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
    grid = np.linspace(0, 12, 3000)
    p_values = []
    for _ in range(60):
        rate = np.exp(rng.normal(size=100))
        time = rng.exponential(size=100) / rate
        y = Surv.from_arrays(np.ones(100, dtype=bool), time)
        curves = [StepFunction(grid, np.exp(-grid * value)) for value in rate]
        p_values.append(d_calibration(y, curves).p_value)
    assert kstest(p_values, "uniform").pvalue > 0.001


def test_a_model_that_kills_too_fast_is_rejected_with_and_without_censoring():
    rng = np.random.default_rng(1)
    time, censoring = rng.exponential(size=400), rng.uniform(0, 2, 400)
    y = Surv.from_arrays(time <= censoring, np.minimum(time, censoring))
    grid = np.linspace(0, 12, 3000)
    right = [StepFunction(grid, np.exp(-grid))] * 400
    wrong = [StepFunction(grid, np.exp(-2 * grid))] * 400
    assert d_calibration(y, right).p_value > 0.01
    assert d_calibration(y, wrong).p_value < 1e-6


def test_too_few_bins_are_refused():
    with pytest.raises(ValueError, match="at least 2, got 1"):
        d_calibration(*reached([True], [0.5]), times=[1.0], n_bins=1)
