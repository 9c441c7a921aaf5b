from itertools import permutations

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.metrics import (
    concordance_fraction_errors,
    concordance_fractions,
    concordance_imparity,
    concordance_imparity_intervals,
    concordance_imparity_test,
    parse_groups,
)
from drosurv.metrics.concordance_inference import imparity_influence
from drosurv.metrics.pair_order import PairOrder
from drosurv.target import Surv, parse_target


def tied_cohort(seed, n=60):
    rng = np.random.default_rng(seed)
    y = Surv.from_arrays(rng.random(n) < 0.6, rng.integers(1, 40, n))
    return y, rng.normal(size=n), rng.integers(0, 2, n)


def test_p_value_approaches_that_of_all_permutations():
    y, risk, _ = tied_cohort(0, n=7)
    labels = np.array([0, 0, 0, 1, 1, 1, 1])
    observed = concordance_imparity(y, risk, labels)
    gaps = [concordance_imparity(y, risk, order) for order in set(permutations(labels.tolist()))]
    exact = np.mean(np.array(gaps) >= observed - 1e-12)
    found = concordance_imparity_test(y, risk, labels, studentized=False, permutations=4000, random_state=0)
    assert found.p_value == pytest.approx(exact, abs=0.03)
    assert found.gap == found.statistic == pytest.approx(observed)


@pytest.mark.parametrize("studentized", [True, False])
def test_p_values_do_not_depend_on_the_threads_but_on_the_seed(studentized):
    y, risk, groups = tied_cohort(1)
    options = {"studentized": studentized, "permutations": 60}
    first = concordance_imparity_test(y, risk, groups, random_state=0, threads=1, **options)
    assert first == concordance_imparity_test(y, risk, groups, random_state=0, threads=3, **options)
    others = {concordance_imparity_test(y, risk, groups, random_state=s, **options).p_value for s in range(5)}
    assert len(others) > 1


@pytest.mark.parametrize("studentized", [True, False])
def test_labels_that_mean_nothing_are_rejected_as_often_as_promised(studentized):
    p_values = [
        concordance_imparity_test(
            *tied_cohort(seed), studentized=studentized, permutations=59, random_state=seed, threads=1
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
    y, risk, codes = tied_cohort(3, n=25)
    groups = parse_groups(codes)
    order = PairOrder.for_imparity(parse_target(y), risk)

    def fractions(weight):
        counts = order.counts(weight)
        return groups.sums(counts.numerator) / groups.sums(counts.denominator)

    _, found = imparity_influence(order, order.counts(np.ones(25)), groups)
    step = 1e-5
    for k in range(25):
        nudge = step * (np.arange(25) == k)
        slope = (fractions(1 + nudge) - fractions(1 - nudge)) / (2 * step)
        np.testing.assert_allclose(found[k], slope, atol=1e-8)


def test_an_undefined_gap_has_no_p_value():
    y = Surv.from_arrays([True, True, False], [2.0, 3.0, 1.0])
    with pytest.warns(UndefinedMetricWarning, match="for 'b' of groups"):
        test = concordance_imparity_test(y, [1.0, 2.0, 3.0], ["a", "a", "b"], permutations=9, random_state=0)
    assert np.isnan([test.gap, test.statistic, test.p_value]).all()


def test_no_permutation_is_refused():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        concordance_imparity_test(*tied_cohort(4), permutations=0)


def cohort(seed=0, n=120):
    rng = np.random.default_rng(seed)
    risk = rng.normal(size=n)
    y = Surv.from_arrays(rng.random(n) < 0.6, np.ceil(20 * rng.exponential(size=n) / np.exp(risk)))
    return y, risk, rng.choice(["a", "b"], n, p=[0.3, 0.7])


def test_draws_depend_on_the_seed_and_not_on_the_threads():
    y, risk, groups = cohort()
    runs = [
        concordance_imparity_intervals(y, risk, groups, replicates=50, random_state=seed, threads=threads)
        for seed, threads in ((0, 1), (0, 3), (1, 1))
    ]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    first = concordance_imparity_intervals(
        y, risk, groups, replicates=50, random_state=np.random.default_rng(5), threads=2
    )
    second = concordance_imparity_intervals(
        y, risk, groups, replicates=50, random_state=np.random.default_rng(5), threads=1
    )
    assert first == second


def test_replicates_without_a_group_are_undefined_and_do_not_warn():
    y, risk, groups = cohort(n=40)
    groups[:] = "b"
    groups[np.flatnonzero(y["event"])[0]] = "a"
    found = concordance_imparity_intervals(y, risk, groups, replicates=100, random_state=0)
    assert 20 < found.by_group["a"].undefined < 60
    assert found.gap.undefined == found.by_group["a"].undefined
    assert found.by_group["b"].undefined == 0


def test_estimates_are_the_metrics_themselves():
    y, risk, groups = cohort()
    found = concordance_imparity_intervals(y, risk, groups, replicates=20, random_state=0)
    fractions = concordance_fractions(y, risk, groups)
    assert {label: interval.estimate for label, interval in found.by_group.items()} == fractions
    assert found.gap.estimate == concordance_imparity(y, risk, groups)
    assert found.differences["a", "b"].estimate == pytest.approx(fractions["a"] - fractions["b"])


def test_bootstrap_and_jackknife_errors_of_fractions_are_the_true_sampling_errors():
    """Resampling per-patient counts, the partner held fixed, would miss part of the error."""
    fractions, jackknife, resampled = [], [], []
    for seed in range(300):
        y, risk, groups = cohort(seed)
        fractions.append(list(concordance_fractions(y, risk, groups).values()))
        jackknife.append(list(concordance_fraction_errors(y, risk, groups).values()))
        if seed < 40:
            found = concordance_imparity_intervals(
                y, risk, groups, replicates=100, random_state=seed, threads=1
            )
            resampled.append([interval.standard_error for interval in found.by_group.values()])
    true = np.std(fractions, axis=0)
    np.testing.assert_allclose(np.mean(jackknife, axis=0), true, rtol=0.12)
    np.testing.assert_allclose(np.mean(resampled, axis=0), true, rtol=0.15)


def test_groups_without_comparable_pairs_are_named_and_leave_no_gap():
    y = Surv.from_arrays([True, True, False], [2.0, 3.0, 1.0])
    risk, groups = [1.0, 2.0, 3.0], ["a", "a", "b"]
    with pytest.warns(UndefinedMetricWarning, match="for 'b' of groups"):
        found = concordance_imparity_intervals(y, risk, groups, replicates=20, random_state=0)
    assert np.isnan([found.gap.estimate, found.gap.low, found.gap.high]).all()
    with pytest.warns(UndefinedMetricWarning, match="for 'b' of groups"):
        assert np.isnan(concordance_fraction_errors(y, risk, groups)["b"])
