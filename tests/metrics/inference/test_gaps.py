import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drosurv.groups import Groups, parse_groups
from drosurv.metrics import bootstrap, concordance_index, paired_comparison
from drosurv.metrics.inference import (
    Draws,
    holm,
    judge_gaps,
    largest_deviation,
    largest_difference,
    permutation_test,
    studentized_ratio,
)
from drosurv.target import Surv


def test_the_p_value_counts_replicates_further_off_than_no_gap():
    gap = largest_difference(np.array([0.3, 0.0]), np.array([[0.3, 0.0], [0.9, 0.0], [0.0, 0.0], [0.4, 0.0]]))
    # Off by 0, 0.6, 0.3 and 0.1 from a gap of 0.3: two are at least as far.
    assert gap.p == pytest.approx((1 + 2) / (1 + 4))


def test_groups_without_a_value_are_left_out_of_gaps():
    estimate = np.array([0.7, np.nan, 0.5])
    gap = largest_difference(estimate, np.array([[0.7, np.nan, 0.5], [0.8, 0.1, 0.5], [np.nan] * 3]))
    assert gap.estimate == pytest.approx(0.2)
    np.testing.assert_allclose(gap.largest_errors, [0.0, 0.1, np.nan], atol=1e-12)


def test_a_gap_between_fewer_than_two_groups_is_nan_and_so_are_its_interval_and_test():
    alone = largest_difference(np.array([0.7, np.nan]), np.array([[0.7, 0.2], [0.6, 0.3], [0.5, 0.1]]))
    interval = alone.interval(0.95)
    assert np.isnan([alone.estimate, interval.low, interval.high, alone.p]).all()


def test_replicates_of_other_groups_than_the_estimated_ones_give_no_interval():
    gap = largest_difference(np.array([0.7, 0.5, np.nan]), np.array([[0.7, np.nan, 0.5], [0.6, np.nan, 0.2]]))
    interval = gap.interval(0.95)
    assert gap.estimate == pytest.approx(0.2)
    assert np.isnan([interval.low, interval.high, gap.p]).all()


def test_the_largest_deviation_is_from_the_centre_not_between_groups():
    found = largest_deviation(np.array([1.0, 4.0]), 3.0, np.array([[1.0, 3.5]]), np.array([3.0]))
    assert found.estimate == 2.0
    assert found.draws.tolist() == [2.0]
    assert found.largest_errors.tolist() == [0.5]


def test_without_replicates_there_is_no_interval_and_no_test():
    for number in (
        largest_difference(np.array([0.7, 0.5]), np.empty((0, 2))),
        largest_deviation(np.array([0.7, 0.5]), 0.6, np.empty((0, 2)), np.empty(0)),
        Draws(0.1, np.empty(0), largest_errors=np.empty(0)),
    ):
        interval = number.interval(0.95)
        assert np.isnan([interval.low, interval.high, interval.standard_error, number.p]).all()


def test_gap_interval_covers_all_differences_at_once_and_is_cut_at_zero():
    rng = np.random.default_rng(0)
    estimate = np.array([0.1, 0.15, 0.5])
    centred = rng.normal(size=(500, 3)) * 0.02
    gap = largest_difference(estimate, estimate + centred).interval(0.9)
    width = np.quantile(np.ptp(centred, axis=1), 0.9)
    assert gap.estimate == pytest.approx(0.4)
    assert (gap.low, gap.high) == pytest.approx((0.4 - width, 0.4 + width))
    noise = largest_difference(0 * estimate, centred).interval(0.95)
    assert (noise.estimate, noise.low) == (0.0, 0.0)
    assert noise.high > 0


def noisy(values, spread=0.02, replicates=999, seed=0, largest=np.inf):
    values = np.array(values)
    noise = np.random.default_rng(seed).normal(size=(replicates, len(values)))
    return largest_difference(values, values + spread * noise, largest)


def test_an_interval_of_a_gap_stays_within_the_largest_gap_possible():
    wide = noisy([0.95, 0.05], spread=0.2, largest=1.0).interval(0.95)
    assert noisy([0.95, 0.05], spread=0.2).interval(0.95).high > 1.0
    assert (wide.estimate, wide.high) == (pytest.approx(0.9), 1.0)


def test_a_gap_alone_is_judged_as_if_there_were_no_family():
    gap = noisy([0.7, 0.6])
    (found,) = judge_gaps({"sex": gap}).values()
    alone = gap.interval(0.95)
    assert (found.low, found.high, found.p) == (alone.low, alone.high, gap.p)
    assert found.test == "bootstrap"


def test_a_family_widens_intervals_and_raises_p_values_to_match():
    family = {
        name: noisy([0.7, 0.7 - size], seed=k)
        for k, (name, size) in enumerate({"sex": 0.1, "race": 0.03, "age": 0.01}.items())
    }
    found = judge_gaps(family, level=0.95)
    for name, gap in found.items():
        assert gap.p == min(3 * family[name].p, 1.0)
        # A third of the doubt each: the interval of the 98.3 % level.
        assert gap.high == family[name].interval(1 - 0.05 / 3).high
        # What is not beyond chance has an interval that says so.
        assert gap.p < 0.05 or gap.low == 0.0
    assert [gap.p < 0.05 for gap in found.values()] == [True, False, False]


def test_a_permutation_test_wins_over_the_bootstrap_and_its_interval_agrees():
    gap = noisy([0.7, 0.6])
    assert gap.interval(0.95).low > 0
    found = judge_gaps({"sex": gap}, p_values={"sex": 0.2})["sex"]
    assert (found.p, found.test, found.low) == (0.2, "permutation", 0.0)


def test_a_gap_that_was_not_tested_is_left_out_of_the_adjustment():
    nothing = largest_difference(np.array([0.7, np.nan]), np.full((9, 2), np.nan))
    found = judge_gaps({"sex": noisy([0.7, 0.6]), "race": nothing})
    assert found["sex"].p == noisy([0.7, 0.6]).p
    assert found["race"].test == ""


@settings(deadline=None, max_examples=100)
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


def cohort(seed=0, n=200):
    rng = np.random.default_rng(seed)
    risk = rng.normal(size=n)
    y = Surv.from_arrays(rng.random(n) < 0.6, rng.exponential(size=n) / np.exp(risk))
    return y, risk, risk + 0.3 * rng.normal(size=n), rng.normal(size=n)


def statistic(y, risk):
    return lambda weight: concordance_index(y, risk, weight)


def test_a_model_does_not_differ_from_itself():
    y, risk, _, _ = cohort()
    found = paired_comparison(statistic(y, risk), statistic(y, risk), len(y), replicates=50, random_state=0)
    assert (found.difference.estimate, found.difference.low, found.difference.high) == (0.0, 0.0, 0.0)
    assert found.p == 1.0


def test_a_clear_difference_is_seen_in_both_directions():
    y, risk, _, noise = cohort()
    first = paired_comparison(statistic(y, risk), statistic(y, noise), len(y), replicates=199, random_state=0)
    second = paired_comparison(
        statistic(y, noise), statistic(y, risk), len(y), replicates=199, random_state=0
    )
    assert first.first == concordance_index(y, risk)
    assert first.second == concordance_index(y, noise)
    assert first.difference.low > 0 > second.difference.high
    assert first.p == second.p == 1 / 200


def test_pairing_removes_what_the_patients_have_in_common():
    y, risk, similar, _ = cohort()
    paired = paired_comparison(
        statistic(y, risk), statistic(y, similar), len(y), replicates=300, random_state=0
    )
    alone = [
        bootstrap(statistic(y, scores), len(y), replicates=300, random_state=0).interval().standard_error
        for scores in (risk, similar)
    ]
    assert paired.difference.standard_error < 0.6 * np.hypot(*alone)


def test_p_values_are_uniform_when_two_models_are_equally_good():
    p_values = []
    for seed in range(30):
        rng = np.random.default_rng(1000 + seed)
        y, risk, _, _ = cohort(seed, n=100)
        first, second = risk + rng.normal(size=(2, 100))
        test = paired_comparison(
            statistic(y, first), statistic(y, second), 100, replicates=39, random_state=seed, n_jobs=1
        )
        p_values.append(test.p)
    assert 0.3 < np.mean(p_values) < 0.7
    # A rate of 5 % gives more than 5 of 30 in fewer than one of a hundred cases.
    assert (np.array(p_values) <= 0.05).sum() <= 5


def test_rows_can_be_resampled_instead():
    y, risk, _, noise = cohort()
    found = paired_comparison(
        lambda rows: concordance_index(y[rows], risk[rows]),
        lambda rows: concordance_index(y[rows], noise[rows]),
        len(y),
        resample="rows",
        replicates=30,
        random_state=0,
    )
    expected = paired_comparison(
        statistic(y, risk), statistic(y, noise), len(y), replicates=30, random_state=0
    )
    assert found.difference.low == pytest.approx(expected.difference.low)


def test_any_gap_can_be_tested():
    values = np.arange(30.0)
    groups = parse_groups(values >= 15)

    def gap_of_means(groups):
        means = groups.sums(values) / groups.sizes
        return abs(means[0] - means[1])

    test = permutation_test(gap_of_means, groups, permutations=199, random_state=0)
    assert test.p == 1 / 200
    assert test.statistic == 15.0


def test_permutations_without_a_value_are_left_out_of_the_p_value():
    groups = parse_groups(np.arange(30) >= 15)

    def undefined_unless_unshuffled(shuffled):
        return 1.0 if shuffled.codes[0] == 0 else np.nan

    test = permutation_test(undefined_unless_unshuffled, groups, permutations=99, random_state=0)
    assert test.p == 1.0


def test_a_mean_is_compared_in_welchs_standard_errors():
    rng = np.random.default_rng(0)
    values, codes = rng.normal(size=50), rng.integers(2, size=50)
    a, b = values[codes == 0], values[codes == 1]
    expected = abs(a.mean() - b.mean()) / np.sqrt(a.var() / len(a) + b.var() / len(b))
    assert studentized_ratio(values, 1.0)(Groups(codes, ("a", "b"))) == pytest.approx(expected)
