"""Intervals, gaps and adjusted p-values from influences."""

import numpy as np
import pytest
from scipy.stats import t as student

from drosurv.metrics.estimates import Estimate, Estimates, joint


def means(values, groups):
    """Means of groups with their influences: of patient i of a group of m, (value - mean) / m."""
    found = []
    for label in np.unique(groups):
        inside = groups == label
        mean = values[inside].mean()
        found.append(
            Estimate(mean, np.where(inside, values - mean, 0.0) / inside.sum(), freedom=inside.sum() - 1)
        )
    return found


@pytest.fixture
def sample():
    rng = np.random.default_rng(3)
    return rng.normal(size=90), rng.integers(3, size=90)


def test_the_interval_of_a_mean_is_that_of_the_t_test(sample):
    values, groups = sample
    for estimate, label in zip(means(*sample), range(3), strict=True):
        own = values[groups == label]
        error = own.std(ddof=1) / np.sqrt(len(own))
        found = estimate.interval(0.9)
        reach = student.ppf(0.95, len(own) - 1) * error
        assert found.standard_error == pytest.approx(error)
        assert (found.low, found.high) == pytest.approx((own.mean() - reach, own.mean() + reach))


def test_a_difference_of_two_groups_has_the_welch_standard_error(sample):
    values, groups = sample
    first, second, _ = means(*sample)
    parts = [values[groups == label].var(ddof=1) / (groups == label).sum() for label in (0, 1)]
    assert Estimates([first.minus(second)]).standard_errors[0] ** 2 == pytest.approx(sum(parts), rel=0.02)


def test_clusters_of_copies_give_the_interval_of_one_row_each(sample):
    values, groups = sample
    once = means(*sample)[0].interval(0.95)
    copied = means(np.repeat(values, 4), np.repeat(groups, 4))[0]
    found = copied.interval(0.95, np.repeat(np.arange(len(values)), 4))
    assert (found.low, found.high) == pytest.approx((once.low, once.high))


@pytest.mark.parametrize(("scale", "value"), [("logit", 0.7), ("log", 0.2)])
def test_intervals_on_a_scale_stay_inside_of_its_range(scale, value):
    influence = np.array([0.3, -0.3, 0.2, -0.2])
    found = Estimate(value, influence, scale, 3).interval(0.95)
    assert 0 < found.low < value < found.high < (1 if scale == "logit" else np.inf)


@pytest.mark.parametrize(
    "estimate",
    [
        Estimate(1.0, np.zeros(5), "logit", 4),
        Estimate(0.5, np.array([0.1, 0, 0, 0, 0]), freedom=4),
        Estimate(0.5, np.array([0.1, -0.1, 0, 0, 0]), freedom=0),
        Estimate.undefined(5),
    ],
)
def test_numbers_that_do_not_vary_have_no_interval(estimate):
    found = estimate.interval(0.95)
    assert np.isnan(found.low)
    assert np.isnan(found.high)
    assert np.isnan(Estimates([estimate]).largest_gaps([[0]], 0.95)[0].p)


def test_independent_numbers_have_sidaks_level_and_equal_ones_their_own():
    assert 1 - joint(np.eye(4)).alphas(0.95) == pytest.approx(np.full(4, 0.95 ** (1 / 4)), abs=1e-3)
    assert 1 - joint(np.ones((4, 4))).alphas(0.95) == pytest.approx(np.full(4, 0.95), abs=3e-3)
    assert 1 - joint(np.eye(1)).alphas(0.95) == pytest.approx([0.95])


def test_weights_divide_the_error_rate_and_one_sided_tests_use_half(all_draws):
    weight = np.array([3.0, 1.0, 1.0])
    alphas = joint(np.eye(3), weight).alphas(0.95)
    assert alphas[0] == pytest.approx(3 * alphas[1])
    assert 1 - np.prod(1 - alphas) == pytest.approx(0.05, abs=3e-3)
    one_sided = joint(np.eye(2), side=np.array([-1.0, -1.0])).alphas(0.95)
    assert 1 - np.prod(1 - one_sided / 2) == pytest.approx(0.05, abs=3e-3)


@pytest.mark.parametrize("weight", [None, np.array([1, 0.25, 1, 0.5, 2])])
def test_an_adjusted_p_value_is_below_alpha_exactly_where_the_interval_excludes_the_value(all_draws, weight):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    tests = joint(root @ root.T, weight)
    for level in (0.9, 0.95, 0.99):
        for p in np.linspace(1e-4, 0.2, 400):
            same = np.full(5, p)
            assert np.array_equal(tests.adjusted(same) < 1 - level, same < tests.alphas(level))


def test_adjusted_p_values_are_never_above_bonferronis_and_at_least_their_own():
    tests, p = joint(np.eye(4) + 0.3), np.array([1e-12, 1e-4, 0.01, 0.4])
    found = tests.adjusted(p)
    assert (found <= np.minimum(4 * p, 1)).all()
    assert (found >= p).all()


def test_the_largest_gap_rejects_exactly_where_its_interval_leaves_out_0():
    rng = np.random.default_rng(5)
    for shift in np.linspace(0, 1, 21):
        groups = rng.integers(3, size=120)
        found = Estimates(means(rng.normal(size=120) + shift * groups, groups)).largest_gaps(
            [[0, 1, 2]], 0.95
        )[0]
        assert (found.p < 0.05) == (found.low > 0)


def test_the_largest_gap_of_two_groups_is_tested_as_their_difference(sample):
    values, groups = sample
    both = means(values[groups < 2], groups[groups < 2])
    gap = Estimates(both).largest_gaps([[0, 1]], 0.95)[0]
    difference = Estimates([both[0].minus(both[1])])
    statistic = gap.estimate / difference.standard_errors[0]
    freedom = min(each.freedom for each in both)
    assert gap.p == pytest.approx(2 * student.sf(statistic, freedom), rel=0.02)


def test_what_is_shown_does_not_depend_on_the_order_of_the_groups(sample):
    """As other names of the groups would change it."""
    estimates, order = means(*sample), [2, 0, 1]
    weight, side = np.array([1.0, 0.5, 1.0]), np.array([0.0, 0.0, -1.0])
    one, other = Estimates(estimates), Estimates([estimates[k] for k in order])
    first, second = (each.largest_gaps([[0, 1, 2]], 0.95)[0] for each in (one, other))
    assert (first.low, first.high, first.p) == pytest.approx((second.low, second.high, second.p), rel=1e-9)
    first = joint(one.covariance, weight, side).alphas(0.95)
    second = joint(other.covariance, weight[order], side[order]).alphas(0.95)
    assert first[order] == pytest.approx(second, rel=1e-9)


def test_equal_groups_are_called_unequal_in_at_most_the_nominal_share():
    rng, rejected = np.random.default_rng(11), 0
    for _ in range(200):
        groups = rng.integers(4, size=160)
        found = Estimates(means(rng.normal(size=160), groups)).largest_gaps([[0, 1, 2, 3]], 0.95)[0]
        rejected += found.p < 0.05
    assert rejected <= 20


def test_an_interval_excludes_a_value_exactly_where_its_test_rejects_it(sample):
    estimates = Estimates(means(*sample))
    for null in np.linspace(-0.6, 0.6, 25):
        rejected = Estimates([each.plus(-null) for each in estimates.estimates]).p_values() < 0.05
        outside = [not each.low <= null <= each.high for each in estimates.intervals(0.95)]
        assert rejected.tolist() == outside


def test_further_influences_add_to_the_variance():
    own = Estimate(1.0, np.array([0.3, -0.3]))
    more = Estimate(1.0, own.influence, further=np.array([0.4, 0.4]))
    plain, wider = (Estimates([each]).covariance[0, 0] for each in (own, more))
    assert wider > plain
    assert more.minus(own).further == pytest.approx([0.4, 0.4])
