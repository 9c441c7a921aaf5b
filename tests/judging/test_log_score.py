"""Log scores at few times against a loop over patients and intervals."""

import numpy as np
import pytest

from drosurv.curves import rounding_unit
from drosurv.judging.few_times import ResidualsAtTimes
from drosurv.metrics.likelihood_gain import outcome_scores, probability_scores
from drosurv.patients.target import Target


def test_the_log_score_is_the_log_probability_of_the_interval_of_the_event():
    rng = np.random.default_rng(0)
    n, times = 40, np.array([1.0, 2.0, 4.0])
    time = rng.uniform(0.2, 6, n)
    S = np.cumprod(rng.uniform(0.5, 0.95, (n, 3)), axis=1)
    outcome = (time[:, None] <= times).astype(float)
    found = outcome_scores(S, outcome, np.ones((n, 3), bool))
    # Some were followed until the first two times only.
    until_2 = outcome_scores(S, outcome, np.arange(3) < np.full((n, 1), 2))
    for i in range(n):
        edges = [1.0, *S[i], 0.0]
        interval = int(np.searchsorted(times, time[i]))
        assert found[i] == pytest.approx(np.log(edges[interval] - edges[interval + 1]))
        last = np.log(S[i, 1]) if interval > 1 else np.log(edges[interval] - edges[interval + 1])
        assert until_2[i] == pytest.approx(last)


def test_an_event_where_rounded_probabilities_say_none_costs_what_the_last_digit_leaves():
    score = outcome_scores(np.array([[1.0]]), np.ones((1, 1)), np.ones((1, 1), bool), 0.001)
    assert score[0] == pytest.approx(np.log(0.00025))


def test_right_probabilities_have_the_highest_mean_log_score():
    rng = np.random.default_rng(1)
    n, times = 20_000, np.array([1.0, 3.0])
    T, C = rng.exponential(2, n), rng.uniform(0, 5, n)
    target, F = Target(T <= C, np.minimum(T, C)), np.tile(-np.expm1(-times / 2), (n, 1))
    judged = ResidualsAtTimes.of(target, times, F)
    means = [
        outcome_scores(np.exp(-times / 2 * factor)[None], judged.outcome, judged.followed).mean()
        for factor in (0.7, 0.9, 1.0, 1.1, 1.4, 1.8)
    ]
    assert means[2] == max(means)


@pytest.mark.parametrize("decimals", [1, 2, 3, 4])
def test_the_last_digit_of_rounded_probabilities_is_found(decimals):
    values = np.random.default_rng(0).random(200)
    assert rounding_unit(values.round(decimals)) == pytest.approx(10.0**-decimals)
    assert rounding_unit(values) == 0


@pytest.mark.parametrize("late", [False, True])
def test_the_log_likelihood_of_probabilities_at_jumps_is_a_product_over_the_times_at_risk(late):
    rng = np.random.default_rng(2)
    n, times = 60, np.arange(4.0)
    p = rng.uniform(0.05, 0.3, (n, 4))
    entry = rng.integers(0, 2, n).astype(float) if late else None
    target = Target(
        rng.integers(0, 2, n) > 0, rng.integers(2 if late else 0, 5, n).astype(float), entry=entry
    )
    found = probability_scores(p, times, target)
    for i in range(n):
        since = -1.0 if entry is None else entry[i]
        likelihood = 1.0
        for j, time in enumerate(times):
            if since < time <= target.time[i]:
                likelihood *= p[i, j] if target.event[i] and time == target.time[i] else 1 - p[i, j]
        assert found[i] == pytest.approx(np.log(likelihood))
