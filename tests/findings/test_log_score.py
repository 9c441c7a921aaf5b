"""Log scores at few times against a loop over patients and intervals."""

import numpy as np
import pytest

from drosurv.findings.log_score import log_scores, rounding_unit


def test_the_log_score_is_that_of_every_interval_whose_answer_is_known():
    rng = np.random.default_rng(0)
    n, times = 40, np.array([1.0, 2.0, 4.0])
    time, event = rng.uniform(0.2, 6, n), rng.random(n) < 0.6
    S = np.cumprod(rng.uniform(0.5, 0.95, (n, 3)), axis=1)
    known = (time[:, None] > times) | (event[:, None] & (time[:, None] <= times))
    inverse = known * rng.uniform(1, 3, (n, 3))
    found = log_scores(S, times, time, event, inverse)
    for i in range(n):
        total, before, begin = 0.0, 1.0, 0.0
        for k, end in enumerate(times):
            if time[i] > begin and known[i, k]:
                happened = event[i] and time[i] <= end
                share = S[i, k] / before
                total += inverse[i, k] * np.log(1 - share if happened else share)
            before, begin = S[i, k], end
        assert found[i] == pytest.approx(total)


def test_an_event_where_rounded_probabilities_say_none_costs_what_the_last_digit_leaves():
    one = {"time": np.array([0.5]), "event": np.array([True]), "inverse": np.ones((1, 1))}
    score = log_scores(np.array([[1.0]]), np.array([1.0]), unit=0.001, **one)
    assert score[0] == pytest.approx(np.log(0.00025))


def test_right_probabilities_have_the_highest_mean_log_score():
    rng = np.random.default_rng(1)
    n, times = 20_000, np.array([1.0, 3.0])
    T, C = rng.exponential(2, n), rng.uniform(0, 5, n)
    time, event = np.minimum(T, C), T <= C
    known = (time[:, None] > times) | (event[:, None] & (time[:, None] <= times))
    inverse = known / (1 - np.minimum(time[:, None], times) / 5)
    means = [
        log_scores(np.exp(-times / 2 * factor), times, time, event, inverse).mean()
        for factor in (0.7, 0.9, 1.0, 1.1, 1.4, 1.8)
    ]
    assert means[2] == max(means)


@pytest.mark.parametrize("decimals", [1, 2, 3, 4])
def test_the_last_digit_of_rounded_probabilities_is_found(decimals):
    values = np.random.default_rng(0).random(200)
    assert rounding_unit(values.round(decimals)) == pytest.approx(10.0**-decimals)
    assert rounding_unit(values) == 0
