"""The adjustment against the definition: the probability that some test of the family is at least as extreme."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from drosurv.judging.adjustment import Kind, Question, adjust
from drosurv.judging.residual_tests import JudgedValue

pytestmark = pytest.mark.usefixtures("all_draws")


def asked(z, contributions, weights=(1.0, 1.0), sides=(0, 0), attribute="overall"):
    """Two questions with standard normal statistics z, whose right value is 0."""
    return [
        Question(
            Kind(name, "miscalibrated", "", "", side=side, weight=weight),
            attribute,
            "all",
            JudgedValue(value, lambda at, value=value: value - at, 0.0, on_log_scale=False),
            contributions=each,
        )
        for name, value, each, weight, side in zip(
            ("level", "slope"), z, contributions.T, weights, sides, strict=True
        )
    ]


def two_columns(correlation):
    """Contributions (400, 2) with exactly this correlation of sums of squares."""
    q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(400, 2)))
    return q @ np.array([[1.0, correlation], [0.0, np.sqrt(1 - correlation**2)]])


def of_draws(p):
    """Four standard errors of a probability from 20,000 draws."""
    return 4 * np.sqrt(p * (1 - p) / 20_000)


def probability_of_any(p, weights, sides, correlation):
    """P(some p-value over its weight is at most p), of normal statistics; a test with a side rejects only there."""
    # Statistics of a test that rejects on one side only are unbounded on the other.
    limits = [norm.isf(p * weight / 2) for weight in weights]
    low = [-limit if side <= 0 else -40.0 for limit, side in zip(limits, sides, strict=True)]
    high = [limit if side >= 0 else 40.0 for limit, side in zip(limits, sides, strict=True)]
    both = multivariate_normal([0, 0], [[1, correlation], [correlation, 1]])
    inside = both.cdf(high, lower_limit=low)
    return 1 - float(inside)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, -0.9])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, 0.25)])
@pytest.mark.parametrize("sides", [(0, 0), (0, -1)])
def test_an_adjusted_p_value_is_the_probability_of_any_as_extreme_test(correlation, weights, sides):
    z = (2.2, -2.4)
    found = adjust(asked(z, two_columns(correlation), weights, sides), 0.95)
    for one, value, weight in zip(found, z, weights, strict=True):
        p = 2 * norm.sf(abs(value)) / weight
        wanted = probability_of_any(p, weights, sides, correlation)
        assert one.p == pytest.approx(wanted, abs=of_draws(wanted))


@pytest.mark.parametrize(("searched", "share"), [(False, 1.0), (True, 0.75)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_together_the_tests_reject_with_the_error_rate_that_is_theirs(searched, share, level):
    weights, correlation = (1.0, 0.5), 0.7
    found = adjust(asked((0.0, 0.0), two_columns(correlation), weights), level, searched=searched)
    # All tests have the same error rate over their weight.
    p = found[0].alpha / weights[0]
    assert found[1].alpha == pytest.approx(p * weights[1])
    wanted = share * (1 - level)
    assert probability_of_any(p, weights, (0, 0), correlation) == pytest.approx(wanted, abs=of_draws(wanted))
    for one in found:
        assert (one.low, one.high) == pytest.approx((-norm.isf(one.alpha / 2), norm.isf(one.alpha / 2)))


@pytest.mark.parametrize("z", np.linspace(1.5, 3.5, 9))
def test_an_interval_excludes_the_right_value_exactly_if_the_adjusted_p_value_is_small(z):
    for one in adjust(asked((z, -z), two_columns(0.4), (1.0, 0.25)), 0.95, searched=True):
        assert (not one.low <= 0 <= one.high) == (one.p < 0.05) == one.significant


def test_tests_that_were_not_made_take_nothing_and_those_with_few_events_their_part():
    tests = asked((2.5, 2.5), two_columns(0.0))
    alone = adjust(tests[:1], 0.95)[0].p
    small = tests[1]._replace(estimate=None, contributions=None)
    assert adjust([tests[0], small], 0.95)[0].p == pytest.approx(alone)
    counted = adjust([tests[0], small._replace(few_events=True)], 0.95)[0].p
    wanted = 1 - (1 - alone) ** 2
    assert counted == pytest.approx(wanted, abs=of_draws(wanted))
