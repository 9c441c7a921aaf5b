import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.metrics.pair_order import PairOrder
from drosurv.paper import concordance_fractions, concordance_imparity
from drosurv.patients.target import Surv, parse_target


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
@settings(max_examples=40, deadline=None)
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
    counts = PairOrder.for_imparity(parse_target(y), score).counts(np.ones(len(y)))
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
    counts = PairOrder.for_imparity(parse_target(y[rows]), score[rows]).counts(np.ones(len(rows)))
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
    counts = PairOrder.for_imparity(parse_target(y), score).counts(weight)
    for label, value in concordance_fractions(y, score, groups, sample_weight=weight).items():
        inside = groups == label
        assert value == pytest.approx(counts.numerator[inside].sum() / counts.denominator[inside].sum())
