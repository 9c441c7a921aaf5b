"""Intervals of means and ratios of correlated rows, against their definitions."""

import numpy as np
import pytest
from scipy import stats

from drosurv.repairs.repair import HeldOutNumber


def test_the_error_of_a_mean_is_that_of_sums_over_clusters():
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, 12, 60)
    values = rng.normal(size=60) + rng.normal(size=12)[cluster]
    sums = [sum(values[cluster == c] - values.mean()) for c in range(12)]
    half = stats.t.ppf(0.975, 11) * np.sqrt(12 / 11 * sum(s**2 for s in sums)) / 60
    found = HeldOutNumber.mean(values, 0.95, cluster)
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half))
    alone, plain = HeldOutNumber.mean(values, 0.95, np.arange(60)), HeldOutNumber.mean(values, 0.95)
    assert (alone.low, alone.high) == pytest.approx((plain.low, plain.high))


def test_copies_do_not_narrow_the_interval_of_a_ratio():
    rng = np.random.default_rng(1)
    expected = rng.exponential(size=200)
    events = (rng.random(200) < 0.5).astype(float)
    once = HeldOutNumber.ratio(events, expected, np.arange(200), 0.95)
    copies = np.tile(np.arange(200), 4)
    found = HeldOutNumber.ratio(events[copies], expected[copies], copies, 0.95)
    assert (found.value, found.low, found.high) == pytest.approx((once.value, once.low, once.high))


def test_the_interval_of_a_ratio_covers_with_correlated_rows():
    """200 clusters of 5 rows that share a frailty of mean 1: the ratio is 1."""
    rng = np.random.default_rng(2)
    cluster, covered = np.repeat(np.arange(200), 5), 0
    for _ in range(300):
        frailty = rng.gamma(2.0, 0.5, 200)[cluster]
        found = HeldOutNumber.ratio(rng.poisson(0.4 * frailty) * 1.0, np.full(1000, 0.4), cluster, 0.95)
        covered += found.low <= 1 <= found.high
    assert 0.92 <= covered / 300 <= 0.98
