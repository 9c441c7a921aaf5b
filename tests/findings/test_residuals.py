"""PatientResiduals against their definitions: brute force, enumeration of all outcomes, and simulated truth."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.stats import poisson

from drosurv.findings.censoring import fit_censoring
from drosurv.findings.residual_tests import JudgedValue, level, mean, slope, timing
from drosurv.findings.residuals import Sums, martingale_residuals
from drosurv.findings.weighted_residuals import WeightedResiduals, cloglog, observed_times, weighted_residuals
from drosurv.target import Target


def patients(seed, n=200, entry=False):
    """Exponential events whose censoring depends on the risk; cumulative hazards are rate * t."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    rate = 0.3 * np.exp(0.7 * x)
    since = rng.uniform(0, 1, n) if entry else np.zeros(n)
    time = since + rng.exponential(1 / rate)
    end = since + np.minimum(rng.exponential(5 * np.exp(-0.5 * x)), 4.0)
    target = Target(time <= end, np.minimum(time, end), since if entry else None)
    return target, rate, x


def smooth(rate):
    return lambda times: (rate[:, None] * times,) * 2


def test_martingale_residuals_are_events_less_hazards_from_entry_on_in_each_part():
    target, rate, _ = patients(0, entry=True)
    found = martingale_residuals(target, smooth(rate))
    begins = np.append(0.0, found.ends[:-1])
    for i in range(len(target)):
        for j, (begin, end) in enumerate(zip(begins, found.ends, strict=True)):
            inside = target.event[i] and begin < target.time[i] <= end
            exposure = max(min(target.time[i], end) - max(target.entry[i], begin), 0.0)
            assert found.observed[i, j] == inside
            assert found.expected[i, j] == pytest.approx(rate[i] * exposure)
    assert len(found.ends) == 4


def test_parts_have_about_a_quarter_of_the_expected_events():
    target, rate, _ = patients(1, n=2_000)
    expected = martingale_residuals(target, smooth(rate)).expected.sum(axis=0)
    assert np.abs(expected / expected.sum() - 0.25).max() < 0.04


def test_events_after_the_horizon_are_not_counted():
    target, rate, _ = patients(2)
    found = martingale_residuals(target, smooth(rate), until=1.5, parts=1)
    assert found.observed.sum() == (target.event & (target.time <= 1.5)).sum()
    np.testing.assert_allclose(found.expected[:, 0], rate * np.minimum(target.time, 1.5))


def test_the_censoring_curve_without_columns_is_kaplan_meiers_with_events_leaving_first():
    time = np.array([1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 5, 5], float)
    censored = np.array([1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 0, 0], bool)
    model = fit_censoring(time, censored, np.zeros((12, 1)), np.ones(12))
    survival, before = 1.0, {}
    for at in np.unique(time):
        before[at] = survival
        at_risk = ((time > at) | (censored & (time == at))).sum()
        survival *= 1 - (censored & (time == at)).sum() / max(at_risk, 1)
    np.testing.assert_allclose(1 / model.inverse_probability(time), [before[at] for at in time], rtol=1e-6)


def test_the_weight_after_the_last_censoring_has_a_limit():
    """Relative hazards differ so much that the hazard of some patients exceeds the largest exponent."""
    time, columns = np.arange(1.0, 401.0), np.linspace(3.0, -3.0, 400)[:, None] ** 3
    model = fit_censoring(time, np.ones(400, dtype=bool), columns, np.ones(400))
    assert model.cumulative_hazard(np.full(400, 999.0)).max() > 710
    assert model.inverse_probability(np.full(400, 999.0)).max() == pytest.approx(50.0)


def test_patients_who_start_at_different_times_have_censoring_curves_of_their_own():
    rng = np.random.default_rng(8)
    start = np.repeat([0.0, 1.0, 2.0], [60, 80, 12])
    time = start + rng.exponential(1 + start).round(1) + 0.1
    censored = rng.random(152) < 0.6
    both = start > 0  # the last 12 have too few censored patients for a curve
    model = fit_censoring(time, censored, np.zeros((152, 0)), np.ones(152), start)
    for member, since in ((~both, 0.0), (both, 1.0)):
        of_stratum = model.inverse_probability(np.full(152, 2.5), np.full(152, since))[member]
        expected = 1.0
        for t in np.unique(time[member & censored & (time < 2.5)]):
            at_risk = member & (time >= t) & (start < t) & ~((time == t) & ~censored)
            expected *= 1 - np.sum(member & censored & (time == t)) / at_risk.sum()
        np.testing.assert_allclose(of_stratum, 1 / expected, rtol=1e-9)


def test_follow_up_that_is_counted_from_entry_does_not_condemn_right_predictions():
    at, sums = np.array([1.0, 2.0, 5.0]), []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        entry = np.where(rng.random(4000) < 0.5, rng.uniform(0, 2, 4000), 0.0)
        T, C = rng.exponential(4, 4000), entry + rng.uniform(0.5, 6, 4000)
        kept = entry < T
        target = Target((T <= C)[kept], np.minimum(T, C)[kept], entry[kept])
        F = np.tile(1 - np.exp(-at / 4), (kept.sum(), 1))
        sums.append(weighted_residuals(target, at, F, np.empty((kept.sum(), 0))).total.mean())
    assert abs(np.mean(sums)) < 3.3 * np.std(sums, ddof=1) / np.sqrt(40)


def test_coefficients_of_censoring_maximise_efrons_partial_likelihood():
    rng = np.random.default_rng(0)
    time, censored = rng.integers(1, 8, 80).astype(float), rng.random(80) < 0.5
    columns = rng.normal(size=(80, 2))
    model = fit_censoring(time, censored, columns, np.ones(80))
    Z = model.columns

    def loss(coef):
        score, total = Z @ coef, 0.5 * coef @ coef
        for at in np.unique(time[censored]):
            tied = np.flatnonzero(censored & (time == at))
            everyone = np.exp(score[(time > at) | (censored & (time == at))]).sum()
            for k in range(len(tied)):
                total -= score[tied[k]] - np.log(everyone - k / len(tied) * np.exp(score[tied]).sum())
        return total

    best = minimize(loss, np.zeros(2)).x
    np.testing.assert_allclose(np.log(model.relative), Z @ best, atol=1e-4)


def test_a_sum_of_weighted_values_changes_by_its_sensitivity_to_the_hazards_of_censoring():
    target, _, x = patients(3)
    model = fit_censoring(target.time, ~target.event, x[:, None], np.ones(len(x)))
    until, values = np.minimum(target.time, 2.0), np.sin(np.arange(len(x)))
    found = model.derivatives((values * model.inverse_probability(until))[:, None], until)[0][:, 0]
    for k in (0, 5, 20):
        hazard = model.hazard.copy()
        hazard[k] += 1e-6
        changed = np.append(0.0, np.cumsum(hazard))[np.searchsorted(model.times, until, side="left")]
        total = (values * np.exp(model.relative * changed)).sum()
        before = (values * model.inverse_probability(until)).sum()
        assert (total - before) / 1e-6 == pytest.approx(found[k], rel=1e-3, abs=1e-4)


def test_variances_under_the_model_are_those_of_all_outcomes():
    """One patient with events at 1, 2, 3 or later and censoring just before 1, 2, 3 or later, all enumerated."""
    event, censoring = np.array([0.2, 0.3, 0.1, 0.4]), np.array([0.1, 0.2, 0.3, 0.4])
    G = np.cumsum(censoring[::-1])[::-1]  # probability of no censoring before each time
    at = (1, 3)
    F = np.array([event[:t].sum() for t in at])
    product_sum = np.zeros((2, 2))
    for (T, p), (C, q) in product(enumerate(event, 1), enumerate(censoring, 1)):
        # Censoring k is just before time k.
        r = []
        for k, t in enumerate(at):
            if T <= t and T < C:  # noqa: SIM300
                r.append((1 - F[k]) / G[T])
            elif min(T, C) > t:
                r.append(-F[k] / G[t])
            else:
                r.append(0.0)
        product_sum += p * q * np.outer(r, r)
    at_events = [sum(event[T - 1] / G[T] for T in range(1, t + 1)) / F[k] for k, t in enumerate(at)]
    at_end = [1 / G[t] for t in at]
    row = {"observed": F * 0, "expected": np.diff(F, prepend=0), "probability": F, "at_events": at_events}
    row |= {"at_free": at_end, "at_end": at_end, "before": at, "inverse": at, "happened": at, "start": 0.0}
    row |= {"censored": 0.0, "variances": F * 0}
    arrays = {name: np.array([value], float) for name, value in row.items()}
    found = WeightedResiduals(ends=np.array(at, float), time=np.ones(1), weight=np.ones(1), **arrays)
    until_ends = np.tril(np.ones((2, 2))) @ found.covariance(np.ones(1)) @ np.tril(np.ones((2, 2))).T
    np.testing.assert_allclose(until_ends, product_sum)


def test_weighted_residuals_are_zero_where_censoring_hides_the_answer():
    target = Target(np.array([True, True, False, False, False]), np.array([1.0, 3.0, 1.0, 2.0, 3.0]))
    F = np.full((5, 1), 0.4)
    found = weighted_residuals(target, np.array([2.0]), F, np.zeros((5, 1)))
    # Too few are censored for weights. A patient censored at the time itself is free of the event then.
    np.testing.assert_allclose(found.total, [0.6, -0.4, 0.0, -0.4, -0.4])


def test_late_patients_count_from_the_first_predicted_time_after_entry():
    target = Target(np.array([True, True, False]), np.array([2.5, 0.9, 3.0]), np.array([0.5, 0.2, 2.5]))
    F = np.tile([0.2, 0.5, 0.6], (3, 1))
    found = weighted_residuals(target, np.array([1.0, 2.0, 3.0]), F, np.zeros((3, 1)))
    conditional = (np.array([0.5, 0.6]) - 0.2) / 0.8
    np.testing.assert_allclose(found.expected[0].sum(), conditional[-1])
    assert found.total[0] == pytest.approx(1 - conditional[-1])
    np.testing.assert_allclose(found.total[1:], 0.0)


@pytest.mark.parametrize("few_times", [False, True])
def test_a_weight_of_two_is_two_copies(few_times):
    target, rate, x = patients(4)
    twice = np.where(x > 0, 2.0, 1.0)
    rows = np.repeat(np.arange(len(x)), twice.astype(int))
    times = np.array([1.0, 2.0, 3.0])

    def judged(rows, weight):
        if not few_times:
            return martingale_residuals(target.take(rows), smooth(rate[rows]), weight=weight)
        F = -np.expm1(-rate[rows, None] * times)
        return weighted_residuals(target.take(rows), times, F, x[rows, None], weight=weight)

    weighted, copied = judged(np.arange(len(x)), twice), judged(rows, None)
    ours, theirs = weighted.sums((x > 0.5) * 1.0), copied.sums((x[rows] > 0.5) * 1.0)
    if not few_times:  # The parts are cut at quantiles of the rows.
        ours, theirs = ((np.sum(s.observed), np.sum(s.expected), np.sum(s.model)) for s in (ours, theirs))
    np.testing.assert_allclose(ours[0], theirs[0], rtol=5e-3)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-9)
    np.testing.assert_allclose(ours[2], theirs[2], rtol=2e-2)


@pytest.mark.parametrize("few_times", [False, True])
def test_copies_of_each_patient_in_clusters_are_as_sure_as_one_of_each(few_times):
    target, rate, x = patients(5, n=400)
    rows = np.repeat(np.arange(400), 5)
    times = np.array([2.0])
    if few_times:
        F = -np.expm1(-rate[:, None] * times)
        one = weighted_residuals(target, times, F, x[:, None])
        five = weighted_residuals(target.take(rows), times, F[rows], x[rows, None], clusters=rows)
    else:
        one = martingale_residuals(target, smooth(rate))
        five = martingale_residuals(target.take(rows), smooth(rate[rows]), clusters=rows)
    alone, together = (level(r.sums(np.ones(len(r)))) for r in (one, five))
    assert together.value == pytest.approx(alone.value, rel=2e-2)
    widths = [np.subtract(*np.log(e.interval(0.05))[::-1]) for e in (alone, together)]
    assert widths[1] / widths[0] == pytest.approx(1, abs=0.15)


def test_clusters_never_make_a_variance_smaller():
    target, rate, _ = patients(6)
    clusters = np.arange(len(rate)) // 2
    found = martingale_residuals(target, smooth(rate), clusters=clusters).sums(np.ones(len(rate)))
    ones = np.ones(4)
    assert found.variance(ones) >= ones @ found.model @ ones
    assert 40 < found.freedom < 99


def test_times_beyond_the_follow_up_are_not_used():
    time, nobody = np.linspace(0.1, 10, 100), np.zeros(100, bool)
    times, ones = np.array([1.0, 7.0, 9.9, 12.0]), np.ones(100)
    assert observed_times(times, time, ~nobody, ones).tolist() == [1.0, 7.0]
    # Whoever had the event is not lost.
    assert observed_times(times, time, nobody, ones).tolist() == times.tolist()


def test_the_interval_excludes_the_right_value_exactly_if_p_is_small():
    sums = Sums(np.array([30.0, 10, 12, 14]), np.array([15.0, 12, 12, 12]), np.diag([15.0, 12, 12, 12]))
    target, rate, x = patients(7)
    estimates = [
        level(sums),
        timing(sums, np.arange(1.0, 5.0)),
        slope(martingale_residuals(target, smooth(rate)), 2 * x, np.ones(200, bool)),
        mean(x + 0.1, np.ones(200, bool), np.ones(200)),
    ]
    for found in estimates:
        low, high = found.interval(found.p)
        assert min(abs(low - found.right), abs(high - found.right)) < 1e-6
        assert found.interval(found.p / 2)[0] < low < found.value < high < found.interval(found.p / 2)[1]


@pytest.mark.parametrize("value", [-21.0, 21.0])
def test_the_interval_of_a_very_large_slope_excludes_the_right_value_and_has_one_end(value):
    found = JudgedValue(value, lambda at: value - at, on_log_scale=False)
    near, far = sorted(found.interval(0.05), key=abs)
    assert near == pytest.approx(value - np.sign(value) * 1.959964)
    assert far == np.sign(value) * np.inf


def test_the_variance_of_a_number_of_events_is_never_below_that_of_the_observed_ones():
    target, rate, _ = patients(3)
    right = martingale_residuals(target, smooth(rate)).sums(np.ones(200))
    assert right.excess[-1] < 1.1
    wrong = martingale_residuals(target, smooth(rate[::-1].copy()))
    observed, expected = wrong.events
    ratio = observed.sum() / expected.sum()
    beyond = (observed - ratio * expected) ** 2 - ratio * expected
    # The excess over 1, less the share of it that chance alone would give.
    shrunk = beyond.sum() * (1 - (beyond**2).sum() / beyond.sum() ** 2)
    sums = wrong.sums(np.ones(200))
    assert 1.2 < sums.excess[-1] == pytest.approx(1 + shrunk / observed.sum())
    found, plain = level(sums), level(sums._replace(excess=np.ones(1)))
    assert found.root(1.0) * np.sqrt(sums.excess[-1]) == pytest.approx(plain.root(1.0))
    # Two copies of each patient are two patients.
    twice = replace(wrong, weight=np.full(200, 2.0)).sums(np.ones(200)).excess[-1]
    rows = np.repeat(np.arange(200), 2)
    copied = martingale_residuals(target.take(rows), smooth(rate[::-1][rows])).sums(np.ones(400)).excess[-1]
    assert twice == pytest.approx(copied)


def test_the_variance_of_events_by_one_time_allows_for_predictions_that_are_wrong_for_single_patients():
    target, rate, _ = patients(3)
    F = -np.expm1(-2 * rate[::-1])
    found = weighted_residuals(target, np.array([2.0]), F[:, None], np.empty((200, 0)))
    observed = found.observed.sum()
    factor = brentq(lambda factor: -np.expm1(factor * np.log1p(-F)).sum() - observed, 0.01, 100.0)
    F = -np.expm1(factor * np.log1p(-F))
    variance = F * (1 - F) * ((1 - F) * found.at_events[:, 0] + F * found.at_free[:, 0])
    beyond = (found.inverse[:, 0] * (found.happened[:, 0] - F)) ** 2 - variance
    shrunk = beyond.sum() * (1 - (beyond**2).sum() / beyond.sum() ** 2)
    excess = 1 + shrunk / variance.sum()
    assert 1.1 < found.sums(np.ones(200)).excess[-1] == pytest.approx(excess, rel=1e-3)


def test_p_values_of_counts_are_close_to_poissons():
    for observed, expected in ((20, 10), (3, 10), (45, 30)):
        sums = Sums(np.array([float(observed)]), np.array([float(expected)]), np.array([[float(expected)]]))
        tail = poisson.sf(observed, expected) if observed > expected else poisson.cdf(observed - 1, expected)
        exact = 2 * (tail + poisson.pmf(observed, expected) / 2)
        assert level(sums).p == pytest.approx(exact, rel=0.35)


def test_a_wrong_total_is_not_called_a_shape():
    expected = np.array([10.0, 10, 10, 10])
    twice = Sums(2 * expected, expected, np.diag(expected))
    assert level(twice).p < 1e-4
    assert timing(twice, np.arange(1.0, 5.0)).p == 1


def test_a_right_total_does_not_hide_a_wrong_shape():
    expected = np.full(4, 100.0)
    found = timing(Sums(np.array([160.0, 80, 80, 80]), expected, np.diag(expected)), np.arange(1.0, 5.0))
    assert found.p < 1e-4
    assert (found.since, found.time) == (0.0, 1.0)
    assert found.value == pytest.approx(160 / (240 / 3))


@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_part_with_events_and_no_expected_ones_is_found(place):
    expected = np.insert(np.full(3, 100.0), place, 0.0)
    observed = np.insert(np.full(3, 80.0), place, 40.0)
    found = timing(Sums(observed, expected, np.diag(expected)), np.arange(1.0, 5.0))
    assert found.time == place + 1
    assert found.p < 1e-6
    assert found.interval(0.05)[0] > 1_000
    # Where all others were expected, these are too few.
    both = Sums(observed[[place, -1 - place]], np.array([0.0, 100.0]), np.diag([0.0, 100.0]))
    assert timing(both, np.arange(1.0, 3.0)).p < 1e-6
    # Four events may be chance, or rounding.
    few = Sums(np.where(expected > 0, observed, 4.0), expected, np.diag(expected))
    assert timing(few, np.arange(1.0, 5.0)).p > 0.5
    assert timing(Sums(observed, np.zeros(4), np.zeros((4, 4))), np.arange(1.0, 5.0)) is None


def test_right_predictions_with_a_part_of_few_events_have_a_timing_that_is_seldom_rejected():
    rng, p_values = np.random.default_rng(0), []
    for expected in rng.uniform([0.3, 20, 20, 20], [5.0, 60, 60, 60], (2_000, 4)):
        sums = Sums(rng.poisson(expected).astype(float), expected, np.diag(expected))
        p_values.append(timing(sums, np.arange(1.0, 5.0)).p)
    # Bonferroni's p-values are a little too large. 3.5 standard errors above 0.05 are 0.067.
    assert 0.02 < np.mean(np.array(p_values) < 0.05) < 0.067


@pytest.mark.parametrize("survival", [0.0, 1.0])
@pytest.mark.parametrize("unit", [0.0, 0.1])
@pytest.mark.parametrize("censored", [False, True])
def test_certain_predictions_are_wrong_where_events_are_not(survival, unit, censored):
    target = patients(4, n=500)[0]
    if not censored:
        target = Target(target.event, np.where(target.event, target.time, 9.0))
    F = np.full((500, 2), 1 - survival)
    found = level(
        weighted_residuals(target, np.array([1.0, 3.0]), F, np.empty((500, 0)), unit=unit).sums(np.ones(500))
    )
    low, high = found.interval(0.05)
    assert found.p < 1e-6
    if survival:
        assert min(found.value, low) > 1_000
        return
    # Of a share p, the standard error is that of a binomial share.
    half = 1.96 * np.sqrt(found.value * (1 - found.value) / 500)
    assert high < 1
    assert (high - low) / 2 == pytest.approx(half, rel=0.6 if censored or unit else 0.1)


@pytest.mark.parametrize("few_times", [False, True])
def test_a_slope_of_many_patients_does_not_depend_on_their_order_and_hardly_on_bins(few_times, monkeypatch):
    target, rate, _ = patients(9, n=3_000)
    score = np.log(rate.round(2))

    def found(rows):
        own, time = Target(target.event[rows], target.time[rows]), np.array([2.0])
        F = -np.expm1(-2.0 * np.exp(score[rows, None]))
        residuals = (
            weighted_residuals(own, time, F, np.empty((3_000, 0)))
            if few_times
            else martingale_residuals(own, smooth(np.exp(score[rows])))
        )
        return slope(residuals, score[rows], np.ones(3_000, bool))

    one, other = found(np.arange(3_000)), found(np.random.default_rng(0).permutation(3_000))
    assert one.value == pytest.approx(other.value, abs=1e-8)
    assert one.interval(0.05) == pytest.approx(other.interval(0.05), abs=1e-8)
    monkeypatch.setattr("drosurv.findings.residual_tests._MOST_BINS", 3_000)
    exact = found(np.arange(3_000))
    assert one.value == pytest.approx(exact.value, abs=1e-4)
    assert one.interval(0.05) == pytest.approx(exact.interval(0.05), abs=1e-4)


@pytest.mark.parametrize("few_times", [False, True])
def test_a_slope_is_recovered(few_times):
    target, rate, x = patients(8, n=4_000)
    times, F = np.array([2.0]), -np.expm1(-2.0 * rate[:, None])
    everyone = np.ones(4_000, bool)
    if few_times:
        # Predicted log hazards are half as far apart as the true ones.
        half = -np.expm1(-2.0 * (rate[:, None] ** 0.5))
        found = slope(weighted_residuals(target, times, half, x[:, None]), cloglog(half[:, 0]), everyone)
        right = slope(weighted_residuals(target, times, F, x[:, None]), cloglog(F[:, 0]), everyone)
    else:
        half = rate**0.5
        found = slope(martingale_residuals(target, smooth(half)), np.log(half), everyone)
        right = slope(martingale_residuals(target, smooth(rate)), np.log(rate), everyone)
    low, high = found.interval(0.001)
    assert low < 2 < high
    assert high - low < 0.9
    assert found.p < 1e-6
    assert right.p > 0.01


@pytest.mark.parametrize("few_times", [False, True])
def test_right_predictions_are_rejected_about_as_often_as_promised(few_times):
    rejected, runs = {"level": 0, "slope": 0, "group": 0}, 40
    for seed in range(runs):
        target, rate, x = patients(100 + seed, n=300)
        group, everyone = x > 0.3, np.ones(300, bool)
        if few_times:
            times = np.array([1.0, 2.0])
            F = -np.expm1(-rate[:, None] * times)
            residuals, score = weighted_residuals(target, times, F, group[:, None] * 1.0), cloglog(F[:, 1])
        else:
            residuals, score = martingale_residuals(target, smooth(rate)), np.log(rate)
        rejected["level"] += level(residuals.sums(np.ones(300))).p < 0.05
        rejected["group"] += level(residuals.sums(group * 1.0)).p < 0.05
        rejected["slope"] += slope(residuals, score, everyone).p < 0.05
    # 9 or more of 40 have the probability 0.0002.
    assert max(rejected.values()) <= 8
    assert sum(rejected.values()) >= 1


def test_an_interval_of_far_too_low_probabilities_is_as_wide_as_that_of_the_observed_share():
    # Some of the probabilities, multiplied by the ratio, would exceed 1.
    rng = np.random.default_rng(5)
    n, risk = 1_500, 0.5
    probability = np.clip(rng.lognormal(np.log(0.05), 0.8, n), 0.0, 0.9)
    event = rng.random(n) < risk
    target = Target(event, np.where(event, rng.uniform(0, 1, n), 2.0), None)
    residuals = weighted_residuals(target, np.array([1.0]), probability[:, None], np.empty((n, 0)))
    found = level(residuals.sums(np.ones(n)))
    low, high = found.interval(0.05)
    half = 1.96 * np.sqrt(risk * (1 - risk) * n) / probability.sum()
    assert found.value == pytest.approx(event.sum() / probability.sum())
    assert found.value - low == pytest.approx(half, rel=0.15)
    assert high - found.value == pytest.approx(half, rel=0.15)
