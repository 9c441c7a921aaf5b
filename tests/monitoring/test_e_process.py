"""Test martingales against integrals, exact distributions and searches on a grid."""

import numpy as np
import pytest
from scipy import integrate, stats

from drosurv.monitoring.e_process import (
    log_detector,
    log_e_value,
    log_likelihood_ratio,
    log_martingale,
    ratio_interval,
)


@pytest.mark.parametrize(("events", "expected"), [(0, 3.0), (12, 7.5), (40, 60.0)])
def test_it_is_the_likelihood_ratio_averaged_over_the_prior(events, expected):
    def weighted(r):
        return r**events * np.exp((1 - r) * expected) * stats.gamma.pdf(r, 10, scale=1 / 10)

    assert np.exp(log_martingale(events, expected)) == pytest.approx(
        integrate.quad(weighted, 0, 8)[0], rel=1e-6
    )


def test_its_mean_is_one_if_the_model_is_right_and_at_most_one_for_events_in_steps():
    counts = np.arange(400)
    poisson = stats.poisson.pmf(counts, 25.0) @ np.exp(log_martingale(counts, 25.0))
    binomial = stats.binom.pmf(counts, 100, 0.25) @ np.exp(log_martingale(counts, 25.0))
    assert poisson == pytest.approx(1.0)
    assert 0.5 < binomial < 1


@pytest.mark.parametrize(
    ("events", "expected", "share"), [(0, 4.0, 0.025), (9, 4.0, 0.01), (80, 100.0, 0.05)]
)
def test_an_interval_holds_the_ratios_whose_e_value_is_small(events, expected, share):
    ratios = np.geomspace(1e-3, 50, 200_001)
    inside = log_martingale(events, expected) - log_likelihood_ratio(events, expected, ratios) < np.log(
        1 / share
    )
    low, high = ratio_interval(np.array([events]), np.array([expected]), share)
    assert high[0] == pytest.approx(ratios[inside].max(), rel=1e-3)
    assert low[0] == pytest.approx(ratios[inside].min() if events else 0.0, rel=1e-3)


@pytest.mark.parametrize("tolerance", [1.0, 1.1, 1.5])
def test_an_e_value_is_large_where_the_interval_leaves_out_what_is_tolerated(tolerance):
    events, expected = (part.ravel() for part in np.meshgrid(np.arange(0, 120, 3), np.linspace(1, 90, 40)))
    low, high = ratio_interval(events, expected, 0.02)
    outside = (low > tolerance) | (high < 1 / tolerance)
    assert (outside == (log_e_value(events, expected, tolerance) >= np.log(1 / 0.02))).all()
    assert 0 < outside.sum() < len(outside)


def test_without_expected_events_nothing_is_known():
    low, high = ratio_interval(np.array([0.0]), np.array([0.0]), 0.05)
    assert (low[0], high[0]) == (0.0, np.inf)
    assert np.exp(log_e_value(0.0, 0.0, 1.1)) == pytest.approx(1.0)


def test_the_detector_sums_the_e_values_of_all_starts():
    events, expected = np.array([0.0, 1, 4, 4, 9]), np.array([0.0, 2, 3, 4, 5])
    starts = np.array([0, 2])
    found, leading = log_detector(events, expected, starts, 1.1)
    for at in range(1, 5):
        own = [log_e_value(events[at] - events[s], expected[at] - expected[s], 1.1) for s in starts if s < at]
        assert found[at] == pytest.approx(np.log(np.exp(own).sum()))
        assert leading[at] == starts[int(np.argmax(own))]
    assert found[0] == -np.inf


def test_the_mean_of_the_detector_is_the_number_of_starts_if_the_model_is_right():
    rng, dates = np.random.default_rng(0), 12
    events = np.cumsum(rng.poisson(2.0, (1500, dates + 1)), axis=1) * 1.0
    expected = 2.0 * np.arange(1, dates + 2)
    found = [np.exp(log_detector(row, expected, np.arange(dates), 1.0)[0][-1]) for row in events]
    assert np.mean(found) == pytest.approx(dates, rel=0.15)
