from itertools import permutations

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.metrics import (
    concordance_imparity,
    concordance_imparity_test,
    parse_groups,
    permutation_test,
)
from drosurv.metrics.imparity_influence import ImparityInfluence
from drosurv.metrics.pair_order import PairOrder
from drosurv.target import Surv, parse_target


def cohort(seed, n=60):
    rng = np.random.default_rng(seed)
    y = Surv.from_arrays(rng.random(n) < 0.6, rng.integers(1, 40, n))
    return y, rng.normal(size=n), rng.integers(0, 2, n)


def test_p_value_approaches_that_of_all_permutations():
    y, risk, _ = cohort(0, n=7)
    labels = np.array([0, 0, 0, 1, 1, 1, 1])
    observed = concordance_imparity(y, risk, labels)
    gaps = [concordance_imparity(y, risk, order) for order in set(permutations(labels.tolist()))]
    exact = np.mean(np.array(gaps) >= observed - 1e-12)
    found = concordance_imparity_test(y, risk, labels, studentized=False, permutations=4000, random_state=0)
    assert found.p_value == pytest.approx(exact, abs=0.03)
    assert found.gap == found.statistic == pytest.approx(observed)


@pytest.mark.parametrize("studentized", [True, False])
def test_p_values_do_not_depend_on_the_threads_but_on_the_seed(studentized):
    y, risk, groups = cohort(1)
    options = {"studentized": studentized, "permutations": 60}
    first = concordance_imparity_test(y, risk, groups, random_state=0, threads=1, **options)
    assert first == concordance_imparity_test(y, risk, groups, random_state=0, threads=3, **options)
    others = {concordance_imparity_test(y, risk, groups, random_state=s, **options).p_value for s in range(5)}
    assert len(others) > 1


@pytest.mark.parametrize("studentized", [True, False])
def test_labels_that_mean_nothing_are_rejected_as_often_as_promised(studentized):
    p_values = [
        concordance_imparity_test(
            *cohort(seed), studentized=studentized, permutations=59, random_state=seed, threads=1
        ).p_value
        for seed in range(150)
    ]
    assert 0.4 < np.mean(p_values) < 0.6
    assert np.mean(np.array(p_values) <= 0.1) < 0.18


def test_standard_errors_keep_the_promise_when_groups_differ_in_more_than_concordance():
    """A small group censored early has noisier fractions, though both groups are ordered at random."""
    p_values = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        small = rng.random(200) < 0.15
        time, censoring = rng.exponential(size=200), np.where(small, rng.exponential(0.15, 200), 20.0)
        y, risk = Surv.from_arrays(time <= censoring, np.minimum(time, censoring)), rng.normal(size=200)
        options = {"permutations": 39, "random_state": seed, "threads": 1}
        p_values.append(
            [
                concordance_imparity_test(y, risk, small, studentized=studentized, **options).p_value
                for studentized in (True, False)
            ]
        )
    with_errors, without = np.mean(np.array(p_values) <= 0.05, axis=0)
    assert with_errors < 0.15
    assert without > 0.2


def test_a_group_ranked_at_random_is_found():
    rng = np.random.default_rng(2)
    risk = rng.normal(size=400)
    y = Surv.from_arrays(np.ones(400, dtype=bool), rng.exponential(size=400) / np.exp(2 * risk))
    groups = np.repeat(["seen", "unseen"], 200)
    risk[200:] = rng.normal(size=200)
    for studentized in (True, False):
        test = concordance_imparity_test(
            y, risk, groups, studentized=studentized, permutations=99, random_state=0
        )
        assert test.p_value == 0.01


def test_influence_is_the_derivative_of_the_fractions_in_the_patients_weights():
    y, risk, codes = cohort(3, n=25)
    groups = parse_groups(codes)
    order = PairOrder.for_imparity(parse_target(y), risk)

    def fractions(weight):
        counts = order.imparity_counts(weight)
        return groups.sums(counts.numerator) / groups.sums(counts.denominator)

    found = ImparityInfluence.of(order, order.imparity_counts(np.ones(25)), groups).influence
    step = 1e-5
    for k in range(25):
        nudge = step * (np.arange(25) == k)
        slope = (fractions(1 + nudge) - fractions(1 - nudge)) / (2 * step)
        np.testing.assert_allclose(found[k], slope, atol=1e-8)


def test_any_gap_can_be_tested():
    values = np.arange(30.0)
    groups = parse_groups(values >= 15)

    def gap_of_means(groups):
        means = groups.sums(values) / groups.sizes
        return abs(means[0] - means[1])

    test = permutation_test(gap_of_means, groups, permutations=199, random_state=0)
    assert test.p_value == 1 / 200
    assert test.gap == 15.0


def test_an_undefined_gap_has_no_p_value():
    y = Surv.from_arrays([True, True, False], [2.0, 3.0, 1.0])
    with pytest.warns(UndefinedMetricWarning, match="for 'b' of groups"):
        test = concordance_imparity_test(y, [1.0, 2.0, 3.0], ["a", "a", "b"], permutations=9, random_state=0)
    assert np.isnan([test.gap, test.statistic, test.p_value]).all()


def test_permutations_without_a_value_are_left_out_of_the_p_value():
    groups = parse_groups(np.arange(30) >= 15)

    def undefined_unless_unshuffled(shuffled):
        return 1.0 if shuffled.codes[0] == 0 else np.nan

    test = permutation_test(undefined_unless_unshuffled, groups, permutations=99, random_state=0)
    assert test.p_value == 1.0


def test_no_permutation_is_refused():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        concordance_imparity_test(*cohort(4), permutations=0)
