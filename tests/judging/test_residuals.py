"""PatientResiduals against their definitions: brute force, enumeration of all outcomes, and simulated truth."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import poisson

from drosurv.judging.few_times import ResidualsAtTimes, cloglog
from drosurv.judging.residual_tests import JudgedValue, level, mean, slope, timing
from drosurv.judging.residuals import Sums, cut, design_effect, martingale_residuals
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.patients.target import Target


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


@pytest.mark.parametrize("seed", range(5))
def test_rounding_errors_choose_no_end_of_a_part(seed):
    # Ten events of the training data of a Cox model: 2 and 3 are as near to a quarter, 7 and 8 to three quarters.
    expected = np.arange(1.0, 11.0) * (1 + 1e-15 * np.random.default_rng(seed).normal(size=10))
    assert expected[cut(expected, 4)].round(9).tolist() == [2.0, 5.0, 7.0, 10.0]


def test_events_after_the_horizon_are_not_counted():
    target, rate, _ = patients(2)
    found = martingale_residuals(target, smooth(rate), until=1.5, parts=1)
    assert found.observed.sum() == (target.event & (target.time <= 1.5)).sum()
    np.testing.assert_allclose(found.expected[:, 0], rate * np.minimum(target.time, 1.5))


def test_patients_of_weight_0_are_as_if_they_were_not_there():
    target, rate, x = patients(4)
    inside, times = x > 0, np.array([1.0, 2.0, 3.0])
    F = -np.expm1(-rate[:, None] * times)
    some = ResidualsAtTimes.of(target, times, F, inside.astype(float)).sums((x > 0.5) * 1.0)
    alone = ResidualsAtTimes.of(target.take(inside), times, F[inside]).sums((x[inside] > 0.5) * 1.0)
    for ours, theirs in zip(some[:5], alone[:5], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("few_times", [False, True])
def test_copies_of_each_patient_in_clusters_are_as_sure_as_one_of_each(few_times):
    target, rate, _ = patients(5, n=400)
    rows = np.repeat(np.arange(400), 5)
    times = np.array([2.0])
    if few_times:
        F = -np.expm1(-rate[:, None] * times)
        one = ResidualsAtTimes.of(target, times, F)
        five = ResidualsAtTimes.of(target.take(rows), times, F[rows], clusters=rows)
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


def test_the_interval_excludes_the_right_value_exactly_if_p_is_small():
    sums = Sums(np.array([30.0, 10, 12, 14]), np.array([15.0, 12, 12, 12]), np.diag([15.0, 12, 12, 12]))
    target, rate, x = patients(7)
    estimates = [
        level(sums),
        timing(sums, np.arange(1.0, 5.0)),
        slope(martingale_residuals(target, smooth(rate)), 2 * x, np.ones(200, bool)),
        mean(x + 0.1, np.ones(200, bool)),
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


def test_expected_events_after_a_factor_of_hazards_are_those_of_each_patients_changed_probabilities():
    target, rate, x = patients(9, n=60)
    member, times, factor = (x > 0) * 1.0, np.array([1.0, 2.0, 3.0]), 0.7
    at_times = ResidualsAtTimes.of(target, times, -np.expm1(-rate[:, None] * times))
    shares = np.diff(-np.expm1(-factor * rate[:, None] * times), axis=1, prepend=0.0)
    np.testing.assert_allclose(at_times.sums(member).if_wrong(factor), member @ shares, rtol=1e-9)


@pytest.mark.parametrize("factor", [0.7, 1.5])
@pytest.mark.parametrize(
    ("times", "scale"), [("throughout", "hazards"), ("three times", "hazards"), ("three times", "risks")]
)
def test_one_factor_of_all_hazards_or_all_risks_is_no_wrong_timing(times, factor, scale):
    rng, n = np.random.default_rng(3), 8_000
    rate = 0.12 * np.exp(0.5 * rng.normal(size=n))
    u = rng.random(n)
    happens = -np.log(u) / factor if scale == "hazards" else -np.log1p(-np.minimum(u / factor, 1 - 1e-12))
    end = np.minimum(rng.exponential(8, n), 5.0)
    target = Target(happens / rate <= end, np.minimum(happens / rate, end))
    at = np.array([1.0, 3.0, 5.0])

    def judged(target):
        residuals = martingale_residuals(target, smooth(rate))
        if times == "three times":
            residuals = ResidualsAtTimes.of(target, at, -np.expm1(-rate[:, None] * at))
        sums = residuals.sums(np.ones(n))
        return level(sums), timing(sums, residuals.ends)

    number, parts = judged(target)
    assert number.p < 1e-6
    assert parts.p > 0.01
    # Events at the rate of the predictions until time 2, and at another one later.
    late = np.where(-np.log(u) < 2 * rate, -np.log(u) / rate, 2 + (-np.log(u) - 2 * rate) / factor / rate)
    assert judged(Target(late <= end, np.minimum(late, end)))[1].p < 0.01


def test_a_right_total_does_not_hide_a_wrong_shape():
    expected = np.full(4, 100.0)
    found = timing(Sums(np.array([160.0, 80, 80, 80]), expected, np.diag(expected)), np.arange(1.0, 5.0))
    assert found.p < 1e-4
    assert (found.since, found.time) == (0.0, 1.0)
    assert found.value == pytest.approx(160 / (240 / 3))


@pytest.mark.parametrize("seed", range(5))
def test_of_parts_that_differ_by_rounding_errors_only_the_first_is_named(seed):
    # All parts of the training data of a Cox model have as many events as are expected.
    observed = np.array([28.0, 28.0, 27.0, 28.0])
    expected = observed * (1 + 1e-15 * np.random.default_rng(seed).normal(size=4))
    assert timing(Sums(observed, expected, np.diag(expected)), np.arange(1.0, 5.0)).time == 1.0


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
    found = level(ResidualsAtTimes.of(target, np.array([1.0, 3.0]), F, unit=unit).sums(np.ones(500)))
    low, high = found.interval(0.05)
    assert found.p < 1e-6
    if survival:
        assert min(found.value, low) > 1_000
        return
    # Predictions of certain events know nothing of censoring: the interval is about Kaplan-Meier's, or wider if they
    # were rounded to tenths.
    ends = KaplanMeier.of(target).interval(np.array([3.0]))
    half = (ends[1] - ends[0]).item() / 2
    assert high < 1
    if unit:
        assert 1.1 * half < (high - low) / 2 < 1.3 * half
    else:
        assert (high - low) / 2 == pytest.approx(half, rel=0.02)


@pytest.mark.parametrize("few_times", [False, True])
def test_a_slope_of_many_patients_does_not_depend_on_their_order_and_hardly_on_bins(few_times, monkeypatch):
    target, rate, _ = patients(9, n=3_000)
    score = np.log(rate.round(2))

    def found(rows):
        own, time = Target(target.event[rows], target.time[rows]), np.array([2.0])
        F = -np.expm1(-2.0 * np.exp(score[rows, None]))
        residuals = (
            ResidualsAtTimes.of(own, time, F)
            if few_times
            else martingale_residuals(own, smooth(np.exp(score[rows])))
        )
        return slope(residuals, score[rows], np.ones(3_000, bool))

    one, other = found(np.arange(3_000)), found(np.random.default_rng(0).permutation(3_000))
    assert one.value == pytest.approx(other.value, abs=1e-8)
    assert one.interval(0.05) == pytest.approx(other.interval(0.05), abs=1e-8)
    monkeypatch.setattr("drosurv.judging.residual_tests._MOST_BINS", 3_000)
    exact = found(np.arange(3_000))
    assert one.value == pytest.approx(exact.value, abs=1e-4)
    assert one.interval(0.05) == pytest.approx(exact.interval(0.05), abs=1e-4)


@pytest.mark.parametrize("few_times", [False, True])
def test_a_slope_is_recovered(few_times):
    target, rate, _ = patients(8, n=4_000)
    times, F = np.array([2.0]), -np.expm1(-2.0 * rate[:, None])
    everyone = np.ones(4_000, bool)
    if few_times:
        # Predicted log hazards are half as far apart as the true ones.
        half = -np.expm1(-2.0 * (rate[:, None] ** 0.5))
        found = slope(ResidualsAtTimes.of(target, times, half), cloglog(half[:, 0]), everyone)
        right = slope(ResidualsAtTimes.of(target, times, F), cloglog(F[:, 0]), everyone)
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
            residuals, score = ResidualsAtTimes.of(target, times, F), cloglog(F[:, 1])
        else:
            residuals, score = martingale_residuals(target, smooth(rate)), np.log(rate)
        rejected["level"] += level(residuals.sums(np.ones(300))).p < 0.05
        rejected["group"] += level(residuals.of_group(group).sums(group * 1.0)).p < 0.05
        at_end = residuals.by(1) if few_times else residuals
        rejected["slope"] += slope(at_end, score, everyone).p < 0.05
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
    residuals = ResidualsAtTimes.of(target, np.array([1.0]), probability[:, None])
    found = level(residuals.sums(np.ones(n)))
    low, high = found.interval(0.05)
    half = 1.96 * np.sqrt(risk * (1 - risk) * n) / probability.sum()
    assert found.value == pytest.approx(event.sum() / probability.sum())
    assert found.value - low == pytest.approx(half, rel=0.15)
    assert high - found.value == pytest.approx(half, rel=0.15)


def test_the_design_effect_compares_sums_of_clusters_with_rows_in_each_group():
    target, rate, _ = patients(5, n=120)
    rng = np.random.default_rng(5)
    clusters, groups = rng.integers(0, 15, 120), rng.integers(-1, 2, 120)
    found = martingale_residuals(target, smooth(rate), clusters=clusters)
    residual = target.event - rate * target.time
    for given in (None, groups):
        together = alone = 0.0
        for group in (0, 1) if given is not None else (None,):
            member = np.ones(120, bool) if group is None else groups == group
            own = np.unique(clusters[member])
            sums = [residual[member & (clusters == k)].sum() for k in own]
            together += len(own) / (len(own) - 1) * np.square(sums).sum()
            alone += (residual[member] ** 2).sum()
        assert design_effect(found, given) == pytest.approx(max(together / alone, 1.0))


def test_the_slope_is_that_of_a_poisson_regression_with_the_expected_events_as_offset():
    target, rate, _ = patients(6, n=300)
    rate = rate**1.5 / np.mean(rate) ** 0.5
    found = martingale_residuals(target, smooth(rate))
    score, expected = np.log(rate), rate * target.time

    def loss(theta):
        mean = expected * np.exp(theta[0] + (theta[1] - 1) * score)
        return mean.sum() - target.event @ np.log(mean)

    best = minimize(loss, [0.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10}).x
    assert slope(found, score, np.ones(300, bool)).value == pytest.approx(best[1], abs=1e-5)


def test_the_slope_at_one_time_is_that_of_a_complementary_log_log_regression():
    rng = np.random.default_rng(7)
    F = rng.uniform(0.05, 0.9, 300)
    score = cloglog(F)
    happened = rng.random(300) < -np.expm1(-np.exp(0.2 + 0.7 * score))
    target = Target(happened, np.where(happened, 0.5, 2.0))
    found = ResidualsAtTimes.of(target, np.array([1.0]), F[:, None])

    def loss(theta):
        hazard = np.exp(theta[0] + theta[1] * score)
        return -(np.log(-np.expm1(-hazard))[happened].sum() - hazard[~happened].sum())

    best = minimize(loss, [0.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10}).x
    fitted = slope(found, score, np.ones(300, bool)).value
    # The score test weights by the variance under the slope that is tested, here the fitted one.
    assert fitted == pytest.approx(best[1], abs=0.02)


def test_a_dispersion_of_probabilities_is_that_of_hazards_with_a_common_factor():
    rng = np.random.default_rng(8)
    F, w = rng.uniform(0.02, 0.95, 400), rng.uniform(0, 2, 400)
    happened = rng.random(400) < F
    target = Target(happened, np.where(happened, 0.5, 2.0))
    sums = ResidualsAtTimes.of(target, np.array([1.0]), F[:, None]).sums(w)
    for factor in (0.3, 1.0, 2.5):
        changed = 1 - (1 - F) ** factor
        ratio = (w @ changed) / (w @ F)
        wanted = (w @ (changed * (1 - changed)) / (w @ changed)) / (w @ (F * (1 - F)) / (w @ F))
        # Probabilities are in 256 bins.
        assert sums.relative_dispersion(ratio) == pytest.approx(wanted, rel=0.01)
