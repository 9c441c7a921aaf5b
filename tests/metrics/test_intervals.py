import numpy as np
import pandas as pd
import pytest

from drosurv.metrics import (
    Replicates,
    bootstrap,
    concordance_fraction_errors,
    concordance_fractions,
    concordance_imparity,
    concordance_imparity_intervals,
    concordance_index,
    gap_intervals,
    log_partial_likelihood,
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


def test_weights_and_rows_give_the_same_replicates():
    y, risk, _ = cohort()
    by_weight = bootstrap(
        lambda weight: [
            concordance_index(y, risk, weight),
            log_partial_likelihood(y, risk, sample_weight=weight),
        ],
        len(y),
        replicates=30,
        random_state=0,
    )
    by_row = bootstrap(
        lambda rows: [concordance_index(y[rows], risk[rows]), log_partial_likelihood(y[rows], risk[rows])],
        len(y),
        resample="rows",
        replicates=30,
        random_state=0,
    )
    np.testing.assert_allclose(by_weight.draws, by_row.draws, rtol=1e-12)
    np.testing.assert_allclose(
        by_weight.estimate, [concordance_index(y, risk), log_partial_likelihood(y, risk)]
    )


def test_interval_of_a_mean_is_the_textbook_one():
    values = np.random.default_rng(0).normal(size=400)
    draws = bootstrap(lambda weight: weight @ values / weight.sum(), 400, replicates=4000, random_state=0)
    error = values.std() / 20
    for method in ("percentile", "basic"):
        interval = draws.interval(level=0.9, method=method)
        assert interval.estimate == pytest.approx(values.mean())
        assert interval.standard_error == pytest.approx(error, rel=0.05)
        assert interval.low == pytest.approx(values.mean() - 1.645 * error, abs=0.1 * error)
        assert interval.high == pytest.approx(values.mean() + 1.645 * error, abs=0.1 * error)
        assert (interval.level, interval.replicates, interval.undefined) == (0.9, 4000, 0)


def test_intervals_are_quantiles_of_the_draws_or_those_mirrored():
    draws = Replicates(np.array([2.0]), np.arange(101.0)[:, None])
    percentile = draws.interval(level=0.9)
    assert (percentile.low, percentile.high) == pytest.approx((5.0, 95.0))
    basic = draws.interval(level=0.9, method="basic")
    assert (basic.low, basic.high) == pytest.approx((4.0 - 95.0, 4.0 - 5.0))


def test_undefined_replicates_are_counted_and_left_out():
    values = np.ones((10, 2))
    values[:, 1] = np.arange(10)
    values[:3, 1] = np.nan
    interval = Replicates(np.array([1.0, 5.0]), values).interval(1)
    assert interval.undefined == 3
    assert 3 <= interval.low <= interval.high <= 9
    nothing = Replicates(np.array([1.0]), np.full((10, 1), np.nan)).interval()
    assert np.isnan([nothing.low, nothing.high, nothing.standard_error]).all()


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap(np.mean, 5, replicates=1), "at least 2, got 1"),
        (lambda: bootstrap(np.mean, 5, resample="bags"), "'weights' or 'rows', got 'bags'"),
        (lambda: bootstrap(np.mean, 5).interval(level=95), "between 0 and 1, got 95"),
        (lambda: bootstrap(np.mean, 5).interval(method="bca"), "'percentile' or 'basic', got 'bca'"),
        (lambda: gap_intervals(bootstrap(np.mean, 5), ["a", "b"]), "names 2 groups"),
    ],
)
def test_bad_requests_are_refused_with_the_reason(call, message):
    with pytest.raises(ValueError, match=message):
        call()
