import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import poisson

from drosurv.metrics import observed_over_expected
from drosurv.metrics.intervals import holm


@pytest.mark.parametrize("observed", [0, 3, 27])
def test_ends_are_rates_at_which_so_many_events_have_probability_a_half_alpha(observed):
    found = observed_over_expected(observed, 10.0, level=0.9)
    assert poisson.cdf(observed, 10 * found.high) == pytest.approx(0.05)
    assert (
        found.low == 0 if observed == 0 else poisson.sf(observed - 1, 10 * found.low) == pytest.approx(0.05)
    )


def test_p_value_agrees_with_the_interval():
    for observed in range(1, 30):
        for training in (None, 40):
            found = observed_over_expected(observed, 10.0, training_events=training)
            assert (found.p < 0.05) == (not found.low <= 1 <= found.high)


def test_many_training_events_are_a_given_model():
    alone, trained = observed_over_expected(7, 5.0), observed_over_expected(7, 5.0, training_events=1e9)
    assert (trained.low, trained.high) == pytest.approx((alone.low, alone.high), rel=1e-6)


def test_with_training_events_a_right_rate_is_rarely_rejected():
    # Quantiles at evenly spread points of the unit square, which leave less to chance than draws.
    place = (np.arange(400) + 0.5) / 400
    training = poisson.ppf(place, 100)
    observed = poisson.ppf(np.arange(400) * (np.sqrt(5) - 1) / 2 % 1, 80)
    pairs = list(zip(observed, 80 * training / 100, training, strict=True))
    wrong = [observed_over_expected(o, e, training_events=d).p < 0.05 for o, e, d in pairs]
    assert 0.025 < np.mean(wrong) < 0.055
    # Taken as given, the same models are called wrong too often.
    assert np.mean([observed_over_expected(o, e).p < 0.05 for o, e, _ in pairs[::3]]) > 0.10


def test_no_expected_event_has_no_ratio():
    assert np.isnan(observed_over_expected(0, 0.0).estimate)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.5))
def test_holm_rejects_what_its_steps_reject(p_values, significant):
    # The definition: from the smallest on, reject while p <= significant / (number of those left).
    rejected = set()
    left = sorted(range(len(p_values)), key=lambda place: p_values[place])
    while left and p_values[left[0]] * len(left) <= significant:
        rejected.add(left.pop(0))
    found = holm(p_values)
    assert {place for place, p in enumerate(found) if p <= significant} == rejected
    assert all(p <= adjusted <= 1 for p, adjusted in zip(p_values, found, strict=True))


def test_holm_leaves_out_what_was_not_tested():
    first, second = holm([math.nan, 0.02])
    assert math.isnan(first)
    assert second == 0.02
    assert holm([]) == []
