from functools import partial
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.groups import parse_groups
from drosurv.metrics import concordance_fractions, concordance_imparity, permutation_test
from drosurv.metrics.concordance import concordance_counts
from drosurv.metrics.imparity import imparity_influence, studentized_imparity
from drosurv.metrics.pair_order import PairOrder
from drosurv.target import Surv, parse_target


def algorithm_b1(event, time, score, attribute):
    """The pseudocode of the paper, line by line, over lists."""
    numerator = dict.fromkeys(attribute, 0.0)
    denominator = dict.fromkeys(attribute, 0)
    patients = range(len(time))
    for i in patients:
        for j in patients:
            if j == i:
                continue
            if (
                (time[i] < time[j] and not event[i])
                or (time[j] < time[i] and not event[j])
                or (time[i] == time[j] and not event[i] and not event[j])
            ):
                continue
            denominator[attribute[i]] += 1
            if time[i] < time[j]:
                if score[i] > score[j]:
                    numerator[attribute[i]] += 1
                elif score[i] == score[j]:
                    numerator[attribute[i]] += 0.5
            elif time[i] > time[j]:
                if score[i] < score[j]:
                    numerator[attribute[i]] += 1
                elif score[i] == score[j]:
                    numerator[attribute[i]] += 0.5
            elif event[i] and event[j]:
                numerator[attribute[i]] += 1 if score[i] == score[j] else 0.5
            else:
                event_is_higher = score[i] < score[j] if event[j] else score[i] > score[j]
                numerator[attribute[i]] += 1 if event_is_higher else 0.5
    return {a: numerator[a] / denominator[a] if denominator[a] else np.nan for a in denominator}


patients = st.lists(
    st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 3), st.sampled_from("abc")),
    min_size=2,
    max_size=12,
).filter(lambda rows: len({row[3] for row in rows}) > 1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@settings(max_examples=60, deadline=None)
@given(patients)
def test_fractions_and_imparity_equal_the_paper_s_pseudocode(rows):
    event, time, score, attribute = map(list, zip(*rows, strict=True))
    y = Surv.from_arrays(event, [float(t) for t in time])
    expected = algorithm_b1(event, time, score, attribute)
    found = concordance_fractions(y, score, attribute)
    assert sorted(found) == sorted(expected)
    for label, value in expected.items():
        np.testing.assert_equal(found[label], value)
    defined = [value for value in expected.values() if not np.isnan(value)]
    gap = max(defined) - min(defined) if len(defined) > 1 else np.nan
    np.testing.assert_equal(concordance_imparity(y, score, attribute), gap)


def data(n=200, seed=0):
    rng = np.random.default_rng(seed)
    y = Surv.from_arrays(rng.random(n) < 0.6, rng.integers(1, 60, n))
    return y, rng.integers(0, 80, n) / 8, rng


def test_fractions_of_intersections_are_sums_of_the_same_counts():
    y, score, rng = data()
    attributes = pd.DataFrame({"sex": rng.choice(["f", "m"], 200), "old": rng.random(200) < 0.4})
    counts = concordance_counts(y, score)
    for (sex, old), value in concordance_fractions(y, score, attributes).items():
        cell = (attributes["sex"] == sex) & (attributes["old"] == old)
        assert value == pytest.approx(counts.numerator[cell].sum() / counts.denominator[cell].sum())


def test_imparity_does_not_change_when_all_scores_are_scaled():
    y, score, rng = data()
    groups = rng.integers(0, 3, 200)
    assert concordance_imparity(y, score * 1e-6, groups) == concordance_imparity(y, score, groups)


def test_weights_that_count_copies_only_reweight_pairs_of_different_patients():
    y, score, rng = data(60)
    groups, weights = rng.integers(0, 2, 60), rng.integers(0, 4, 60)
    rows = np.repeat(np.arange(60), weights)
    counts = concordance_counts(y[rows], score[rows])
    # Copies of one event count as each other's concordant pair; take those pairs out again.
    own = np.where(y["event"], weights - 1, 0)[rows]
    for label, value in concordance_fractions(y, score, groups, sample_weight=weights).items():
        inside = groups[rows] == label
        numerator = (counts.numerator - own)[inside].sum()
        assert value == pytest.approx(numerator / (counts.denominator - own)[inside].sum())


def test_a_group_without_comparable_pairs_is_nan_and_named():
    y = Surv.from_arrays([True, True, False, False], [2.0, 3.0, 4.0, 1.0])
    score, groups = [4.0, 3.0, 2.0, 1.0], ["a", "a", "b", "c"]
    with pytest.warns(UndefinedMetricWarning, match="for 'c' of groups"):
        fractions = concordance_fractions(y, score, groups)
    assert np.isnan(fractions["c"])
    with pytest.warns(UndefinedMetricWarning, match="'c'"):
        assert concordance_imparity(y, score, groups) == 0.0
    with pytest.warns(UndefinedMetricWarning, match="'c'"):
        assert np.isnan(concordance_imparity(y, score, ["a", "a", "a", "c"]))


def test_patients_without_a_label_are_a_group_or_leave_every_pair():
    y, score, rng = data()
    labels = rng.choice(["a", "b", None], 200)
    known = pd.notna(labels)
    assert set(concordance_fractions(y, score, labels)) == {"a", "b", "missing"}
    dropped = concordance_fractions(y, score, labels, missing="drop")
    assert dropped == concordance_fractions(y[known], score[known], labels[known])


def test_one_group_only_is_an_error():
    y, score, _ = data()
    with pytest.raises(ValueError, match=r"at least 2 groups, got 1 \('a'\)"):
        concordance_imparity(y, score, ["a"] * 200)


def test_unseen_labels_are_an_error_and_known_but_absent_ones_are_nan():
    y, score, rng = data()
    labels = rng.choice(["a", "b"], 200)
    with pytest.raises(ValueError, match=r"not among the known ones: \['b'\]"):
        concordance_fractions(y, score, labels, labels=["a", "c"])
    with pytest.warns(UndefinedMetricWarning, match="'c'"):
        assert np.isnan(concordance_fractions(y, score, labels, labels=["c", "b", "a"])["c"])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_fractions_are_ratios_of_the_summed_counts_under_any_weights():
    y, score, rng = data(120)
    groups, weight = rng.integers(0, 3, 120), rng.choice([0.0, 0.3, 1.0, 2.7], 120)
    counts = concordance_counts(y, score, sample_weight=weight)
    for label, value in concordance_fractions(y, score, groups, sample_weight=weight).items():
        inside = groups == label
        assert value == pytest.approx(counts.numerator[inside].sum() / counts.denominator[inside].sum())


def tied_cohort(seed, n=60):
    rng = np.random.default_rng(seed)
    y = Surv.from_arrays(rng.random(n) < 0.6, rng.integers(1, 40, n))
    return y, rng.normal(size=n), rng.integers(0, 2, n)


def imparity_test(y, risk, groups, *, studentized=True, **options):
    """The permutation test of equal concordance fractions, as `evaluate` makes it, or of the gap itself."""
    order, parsed = PairOrder.for_imparity(parse_target(y), np.asarray(risk, float)), parse_groups(groups)
    statistic = studentized_imparity(order) if studentized else partial(gap_of, y, risk)
    return permutation_test(statistic, parsed, **options)


def gap_of(y, risk, groups):
    return concordance_imparity(y, risk, groups.codes)


def test_p_value_approaches_that_of_all_permutations():
    y, risk, _ = tied_cohort(0, n=7)
    labels = np.array([0, 0, 0, 1, 1, 1, 1])
    observed = concordance_imparity(y, risk, labels)
    gaps = [concordance_imparity(y, risk, order) for order in set(permutations(labels.tolist()))]
    exact = np.mean(np.array(gaps) >= observed - 1e-12)
    found = imparity_test(y, risk, labels, studentized=False, permutations=800, random_state=0)
    assert found.p == pytest.approx(exact, abs=0.05)
    assert found.statistic == pytest.approx(observed)


@pytest.mark.parametrize("studentized", [True, False])
def test_p_values_do_not_depend_on_the_threads_but_on_the_seed(studentized):
    y, risk, groups = tied_cohort(1)
    options = {"studentized": studentized, "permutations": 60}
    first = imparity_test(y, risk, groups, random_state=0, n_jobs=1, **options)
    assert first == imparity_test(y, risk, groups, random_state=0, n_jobs=3, **options)
    others = {imparity_test(y, risk, groups, random_state=s, **options).p for s in range(5)}
    assert len(others) > 1


@pytest.mark.parametrize("studentized", [True, False])
def test_labels_that_mean_nothing_are_rejected_as_often_as_promised(studentized):
    p_values = [
        imparity_test(
            *tied_cohort(seed), studentized=studentized, permutations=19, random_state=seed, n_jobs=1
        ).p
        for seed in range(40)
    ]
    # At a rate of 10 %, 10 of 40 or more are fewer than one of a hundred cases.
    assert 0.36 < np.mean(p_values) < 0.64
    assert (np.array(p_values) <= 0.1).sum() < 10


def test_the_studentized_test_keeps_its_level_when_groups_differ_in_more_than_concordance():
    """A small group censored early has noisier fractions, though both groups are ordered at random."""
    p_values = []
    for seed in range(35):
        rng = np.random.default_rng(seed)
        small = rng.random(200) < 0.15
        time, censoring = rng.exponential(size=200), np.where(small, rng.exponential(0.15, 200), 20.0)
        y, risk = Surv.from_arrays(time <= censoring, np.minimum(time, censoring)), rng.normal(size=200)
        options = {"permutations": 19, "random_state": seed, "n_jobs": 1}
        p_values.append(
            [
                imparity_test(y, risk, small, studentized=studentized, **options).p
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
        test = imparity_test(y, risk, groups, studentized=studentized, permutations=99, random_state=0)
        assert test.p == 0.01


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
    test = imparity_test(y, [1.0, 2.0, 3.0], ["a", "a", "b"], permutations=9, random_state=0)
    assert np.isnan([test.statistic, test.p]).all()


def test_no_permutation_is_refused():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        imparity_test(*tied_cohort(4), permutations=0)


def cohort(seed=0, n=120):
    rng = np.random.default_rng(seed)
    risk = rng.normal(size=n)
    y = Surv.from_arrays(rng.random(n) < 0.6, np.ceil(20 * rng.exponential(size=n) / np.exp(risk)))
    return y, risk, rng.choice(["a", "b"], n, p=[0.3, 0.7])


def test_errors_from_influence_and_from_the_bootstrap_are_the_true_sampling_errors():
    """Resampling per-patient counts, the partner held fixed, would miss part of the error."""
    fractions, jackknife, resampled = [], [], []
    for seed in range(300):
        y, risk, groups = cohort(seed)
        parsed, order = parse_groups(groups), PairOrder.for_imparity(parse_target(y), risk)
        found, influence = imparity_influence(order, order.counts(np.ones(len(y))), parsed)
        fractions.append(found)
        jackknife.append(np.sqrt((influence**2).sum(axis=0)))
        if seed < 20:
            weights = np.random.default_rng(seed).multinomial(len(y), np.full(len(y), 1 / len(y)), size=60)
            drawn = [list(concordance_fractions(y, risk, groups, sample_weight=w).values()) for w in weights]
            resampled.append(np.std(drawn, axis=0))
    true = np.std(fractions, axis=0)
    np.testing.assert_allclose(np.mean(jackknife, axis=0), true, rtol=0.12)
    np.testing.assert_allclose(np.mean(resampled, axis=0), true, rtol=0.15)
