import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.metrics import (
    Replicates,
    concordance_fraction_errors,
    concordance_fractions,
    concordance_imparity,
    concordance_imparity_intervals,
    gap_intervals,
    ratio_intervals,
)
from drosurv.target import Surv


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


def test_gap_interval_covers_all_differences_at_once_and_is_cut_at_zero():
    rng = np.random.default_rng(0)
    estimate = np.array([0.1, 0.15, 0.5])
    draws = Replicates(estimate, estimate + rng.normal(size=(500, 3)) * 0.02)
    found = gap_intervals(draws, ["a", "b", "c"], level=0.9)
    centred = draws.draws - estimate
    width = np.quantile(np.ptp(centred, axis=1), 0.9)
    assert found.gap.estimate == pytest.approx(0.4)
    assert (found.gap.low, found.gap.high) == pytest.approx((0.4 - width, 0.4 + width))
    assert set(found.differences) == {("a", "b"), ("a", "c"), ("b", "c")}
    noise = gap_intervals(Replicates(0 * estimate, centred), ["a", "b", "c"])
    assert (noise.gap.estimate, noise.gap.low) == (0.0, 0.0)
    assert noise.gap.high > 0


def test_ratio_intervals_are_those_of_the_group_ratios():
    rng = np.random.default_rng(1)
    gains, groups = rng.normal(size=90), np.repeat(["a", "b", None], 30)
    found = ratio_intervals(gains, 1.0, groups, replicates=200, random_state=0)
    assert found.by_group["a"].estimate == pytest.approx(gains[:30].mean())
    assert found.by_group["a"].standard_error == pytest.approx(gains[:30].std() / 30**0.5, rel=0.2)
    model, null = rng.random(90), rng.random(90) + 1
    skill = ratio_intervals(
        null - model, null, pd.Series(groups), missing="drop", replicates=50, random_state=0
    )
    assert set(skill.by_group) == {"a", "b"}
    assert skill.by_group["b"].estimate == pytest.approx(1 - model[30:60].sum() / null[30:60].sum())
    whole = ratio_intervals(gains, 1.0, ["all"] * 90, replicates=50, random_state=0)
    assert whole.by_group["all"].estimate == pytest.approx(gains.mean())
    assert np.isnan(whole.gap.estimate)


def test_groups_without_comparable_pairs_are_named_and_leave_no_gap():
    y = Surv.from_arrays([True, True, False], [2.0, 3.0, 1.0])
    risk, groups = [1.0, 2.0, 3.0], ["a", "a", "b"]
    with pytest.warns(UndefinedMetricWarning, match="for 'b' of groups"):
        found = concordance_imparity_intervals(y, risk, groups, replicates=20, random_state=0)
    assert np.isnan([found.gap.estimate, found.gap.low, found.gap.high]).all()
    with pytest.warns(UndefinedMetricWarning, match="for 'b' of groups"):
        assert np.isnan(concordance_fraction_errors(y, risk, groups)["b"])


def test_labels_must_name_every_value():
    draws = Replicates(np.zeros(3), np.zeros((5, 3)))
    with pytest.raises(ValueError, match="names 2 groups, the replicates hold 3 values"):
        gap_intervals(draws, ["a", "b"])
