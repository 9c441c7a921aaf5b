import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sksurv.metrics import concordance_index_censored

from drosurv.metrics import concordance_index, cross_group_concordance
from drosurv.metrics.pair_order import PairOrder
from drosurv.patients.target import Surv, Target, parse_target, with_fields


def random_cases(rng, cases, n, n_times=4, n_scores=4, event_rate=0.6):
    """Events, times and scores, each (cases, n), with ties of every kind."""
    event = rng.random((cases, n)) < event_rate
    time = rng.integers(0, n_times, (cases, n)).astype(float)
    score = rng.integers(0, n_scores, (cases, n)) / 2.0
    return event, time, score


def imparity_pairs(event, time, score):
    """Algorithm B.1: comparable (cases, n, n) and what patient i (second axis) earns against j (third)."""
    d_i, d_j = event[:, :, None], event[:, None, :]
    t_i, t_j = time[:, :, None], time[:, None, :]
    f_i, f_j = score[:, :, None], score[:, None, :]
    skipped = ((t_i < t_j) & ~d_i) | ((t_j < t_i) & ~d_j) | ((t_i == t_j) & ~d_i & ~d_j)
    comparable = ~skipped & ~np.eye(event.shape[1], dtype=bool)
    half_if_equal = np.where(f_i == f_j, 0.5, 0.0)
    earned = np.select(
        [t_i < t_j, t_i > t_j, d_i & d_j, ~d_i & d_j, d_i & ~d_j],
        [
            np.where(f_i > f_j, 1.0, half_if_equal),
            np.where(f_i < f_j, 1.0, half_if_equal),
            np.where(f_i == f_j, 1.0, 0.5),
            np.where(f_i < f_j, 1.0, 0.5),
            np.where(f_i > f_j, 1.0, 0.5),
        ],
        0.0,
    )
    return comparable, np.where(comparable, earned, 0.0)


def harrell_pairs(event, time, score, tolerance=1e-8):
    """Harrell: pairs (cases, n, n) with i the earlier event and j the longer observed, and what they earn."""
    d_i, d_j = event[:, :, None], event[:, None, :]
    t_i, t_j = time[:, :, None], time[:, None, :]
    difference = score[:, :, None] - score[:, None, :]
    comparable = d_i & ((t_i < t_j) | ((t_i == t_j) & ~d_j))
    earned = np.where(np.abs(difference) <= tolerance, 0.5, (difference > 0).astype(float))
    return comparable, np.where(comparable, earned, 0.0)


@pytest.mark.parametrize("n", [1, 2, 9, 13])
def test_counts_for_imparity_are_those_of_all_pairs_by_the_weights_of_both_patients(n):
    rng = np.random.default_rng(n)
    event, time, score = random_cases(rng, cases=120, n=n)
    comparable, earned = imparity_pairs(event, time, score)
    weights = rng.choice([0.0, 0.3, 1.0, 2.7], size=event.shape)
    products = weights[:, :, None] * weights[:, None, :]
    for case in range(len(event)):
        order = PairOrder.for_imparity(Target(event[case], time[case]), score[case])
        counts = order.counts(weights[case])
        np.testing.assert_allclose(counts.numerator, (products * earned)[case].sum(axis=1), atol=1e-12)
        np.testing.assert_allclose(counts.denominator, (products * comparable)[case].sum(axis=1), atol=1e-12)


def test_index_equals_scikit_survival_on_tied_cases():
    rng = np.random.default_rng(4)
    event, time, score = random_cases(rng, cases=200, n=25, n_times=8, n_scores=8, event_rate=0.4)
    event[:, 0], time[:, 0] = True, -1.0
    time += 1
    for case in range(len(event)):
        expected = concordance_index_censored(event[case], time[case], score[case])[0]
        found = concordance_index(Surv.from_arrays(event[case], time[case]), score[case])
        assert found == pytest.approx(expected, abs=1e-14)


def test_tolerance_ties_scores_pairwise_not_transitively():
    """Chains of scores, each within 1e-8 of its neighbours but not of the ones after, as scikit-survival."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        n = 20
        event, time = rng.random(n) < 0.7, rng.integers(0, 10, n).astype(float)
        event[0], time[0] = True, 0.0
        time[1:] += 1
        score = rng.integers(0, 40, n) * 2.5e-9 + rng.choice([0.0, 1.0, 1e3], n)
        expected = concordance_index_censored(event, time, score)[0]
        assert concordance_index(Surv.from_arrays(event, time), score) == pytest.approx(expected, abs=1e-14)
        comparable, earned = harrell_pairs(event[None], time[None], score[None])
        assert expected == pytest.approx(earned.sum() / comparable.sum(), abs=1e-14)


def test_negative_zero_ties_with_zero():
    y = Surv.from_arrays([True, False], [1.0, 2.0])
    assert concordance_index(y, [0.0, -0.0]) == 0.5
    order = PairOrder.for_imparity(parse_target(y), np.array([-0.0, 0.0]))
    assert order.counts(np.ones(2)).numerator.tolist() == [0.5, 0.5]


def test_index_ignores_row_order_and_increasing_maps_of_the_score():
    rng = np.random.default_rng(6)
    event, time = rng.random(200) < 0.5, rng.integers(0, 50, 200).astype(float)
    score = rng.integers(0, 60, 200) / 10
    y = Surv.from_arrays(event, time)
    value = concordance_index(y, score)
    shuffled = rng.permutation(200)
    assert concordance_index(y[shuffled], score[shuffled]) == value
    assert concordance_index(y, np.exp(score) - 3) == value
    assert concordance_index(y, -score) == pytest.approx(1 - value)


def test_no_comparable_pair_is_nan_with_a_warning():
    y = Surv.from_arrays([False, False], [1.0, 2.0])
    with pytest.warns(UndefinedMetricWarning, match="no pair of the 2 patients is comparable"):
        assert np.isnan(concordance_index(y, [1.0, 2.0]))


def test_cross_group_concordance_equals_the_double_loop():
    rng = np.random.default_rng(7)
    event, time, score = random_cases(rng, cases=60, n=30, n_times=6)
    comparable, earned = harrell_pairs(event, time, score)
    weights = rng.integers(1, 4, event.shape).astype(float)
    products = weights[:, :, None] * weights[:, None, :]
    groups = np.array(["a", "b", "c"])[np.arange(30) % 3]
    for case in range(len(event)):
        table = cross_group_concordance(
            Surv.from_arrays(event[case], time[case]), score[case], groups, sample_weight=weights[case]
        )
        for a in "abc":
            for b in "abc":
                cell = np.ix_(groups == a, groups == b)
                expected = (products * earned)[case][cell].sum() / (products * comparable)[case][cell].sum()
                assert table.loc[a, b] == pytest.approx(expected)


def test_diagonal_of_cross_group_concordance_is_each_groups_own_index():
    rng = np.random.default_rng(8)
    y = Surv.from_arrays(rng.random(300) < 0.5, rng.integers(1, 40, 300))
    score, groups = rng.normal(size=300), rng.integers(0, 2, 300)
    table = cross_group_concordance(y, score, groups)
    for label in (0, 1):
        assert table.loc[label, label] == pytest.approx(
            concordance_index(y[groups == label], score[groups == label])
        )


def test_cross_group_cells_without_pairs_are_named():
    y = Surv.from_arrays([True, True, False], [1.0, 2.0, 3.0])
    with pytest.warns(UndefinedMetricWarning, match="'b' before 'b'"):
        table = cross_group_concordance(y, [3.0, 2.0, 1.0], ["a", "a", "b"])
    assert np.isnan(table.loc["b", "b"])
    assert table.loc["a", "b"] == 1.0


def test_cross_group_tables_of_intersections_keep_tuples_as_labels():
    y = Surv.from_arrays([True] * 4, [1.0, 2.0, 3.0, 4.0])
    groups = np.array([["m", "old"], ["f", "old"], ["m", "old"], ["f", "old"]])
    table = cross_group_concordance(y, [4.0, 3.0, 2.0, 1.0], groups)
    assert list(table.index) == [("f", "old"), ("m", "old")]


def observed_late(seed, n=60):
    """Times, events, entries, strata, weights and scores, with ties of every kind."""
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 12, n).astype(float)
    entry = time - rng.integers(1, 8, n) * rng.choice([0.5, 1.0], n)
    score, weight = rng.integers(0, 6, n) / 2.0, rng.integers(1, 4, n).astype(float)
    return pd.DataFrame(
        {
            "time": time,
            "event": rng.random(n) < 0.6,
            "entry": entry,
            "stratum": rng.choice(["x", "y"], n),
            "weight": weight,
            "score": score,
        }
    )


@pytest.mark.parametrize("parts", [("entry",), ("strata",), ("entry", "strata", "sample_weight")])
def test_only_patients_at_risk_in_one_stratum_are_compared(parts):
    for seed in range(10):
        data = observed_late(seed)
        given = {"strata": data["stratum"], "sample_weight": data["weight"]}
        given = {name: values for name, values in given.items() if name in parts}
        comparable, earned = (
            part[0] for part in harrell_pairs(*(data[[c]].to_numpy().T for c in ("event", "time", "score")))
        )
        if "entry" in parts:
            comparable &= data["entry"].to_numpy() < data["time"].to_numpy()[:, None]
        if "strata" in parts:
            comparable &= data["stratum"].to_numpy() == data["stratum"].to_numpy()[:, None]
        weight = data["weight"].to_numpy() if "sample_weight" in parts else np.ones(len(data))
        wanted = weight @ (comparable * earned) @ weight / (weight @ comparable @ weight)
        y = Surv.from_dataframe("event", "time", data, entry="entry" if "entry" in parts else None)
        assert concordance_index(y, data["score"], **given) == pytest.approx(wanted, rel=1e-12)


def test_concordance_of_late_entries_is_that_of_r(run_r):
    data = observed_late(3, n=200)
    r = run_r(
        """
d <- read.csv("d.csv"); d$event <- d$event == "True"
for (weighted in c(FALSE, TRUE)) for (stratified in c(FALSE, TRUE)) {
  formula <- Surv(entry, time, event) ~ score
  if (stratified) formula <- Surv(entry, time, event) ~ score + strata(stratum)
  weights <- if (weighted) d$weight else rep(1, nrow(d))
  found <- concordance(formula, d, weights = weights, reverse = TRUE, timefix = FALSE)$concordance
  give(paste(weighted, stratified), found)
}
""",
        d=data,
    )
    y = Surv.from_dataframe("event", "time", data)
    for weighted in (False, True):
        for stratified in (False, True):
            found = concordance_index(
                with_fields(y, entry=data["entry"]),
                data["score"],
                data["weight"] if weighted else None,
                strata=data["stratum"] if stratified else None,
            )
            assert found == pytest.approx(r[f"{weighted} {stratified}".upper()].item(), rel=1e-12)


def test_patients_who_are_never_observed_together_have_no_concordance_under_any_weights():
    rng = np.random.default_rng(0)
    time = np.arange(1.0, 41.0)
    y = Surv.from_arrays(np.ones(40, dtype=bool), time)
    for weight in rng.random((20, 40)):
        with pytest.warns(UndefinedMetricWarning, match="no pair"):
            assert np.isnan(concordance_index(with_fields(y, entry=time - 0.5), rng.normal(size=40), weight))
