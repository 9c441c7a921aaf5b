import numpy as np
import pytest
from scipy.stats import poisson

from drosurv.metrics import observed_over_expected
from drosurv.metrics.inference import normal_interval


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
            assert (found.p_value < 0.05) == (not found.low <= 1 <= found.high)


def test_many_training_events_are_a_given_model():
    alone, trained = observed_over_expected(7, 5.0), observed_over_expected(7, 5.0, training_events=1e9)
    assert (trained.low, trained.high) == pytest.approx((alone.low, alone.high), rel=1e-6)


def test_with_training_events_a_right_rate_is_rarely_rejected():
    rng = np.random.default_rng(0)
    training, observed = rng.poisson(100, 4000), rng.poisson(80, 4000)
    expected = 80 * training / 100
    pairs = list(zip(observed, expected, training, strict=True))
    wrong = [observed_over_expected(o, e, training_events=d).p_value < 0.05 for o, e, d in pairs]
    assert 0.025 < np.mean(wrong) < 0.055
    # Taken as given, the same models are called wrong too often.
    assert np.mean([observed_over_expected(o, e).p_value < 0.05 for o, e, _ in pairs]) > 0.10


def test_no_expected_event_has_no_ratio():
    assert np.isnan(observed_over_expected(0, 0.0).estimate)


def test_normal_interval_is_the_textbook_one():
    found = normal_interval(2.0, 0.5, level=0.95)
    assert (found.low, found.high) == pytest.approx((2 - 1.959964 * 0.5, 2 + 1.959964 * 0.5))
    assert found.p_value == pytest.approx(6.334e-5, rel=1e-3)
