"""Predictions at few times: what may and may not change a verdict, and simulated truth."""

import numpy as np
import pandas as pd
import pytest

from drosurv import Surv, compare, evaluate, repair
from drosurv.evaluation import Predictions
from drosurv.judging.drawn_events import Probabilities
from drosurv.judging.few_times import FEWEST_FOLLOWED, ResidualsAtTimes
from drosurv.judging.from_predictions import judged_patients
from drosurv.judging.questions import questions
from drosurv.judging.residual_tests import level, slope
from drosurv.judging.verdict import PROBLEMS, findings
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.patients.observation import Rows
from drosurv.patients.target import Target
from drosurv.predictions import as_predictions

THREE = (1.0, 3.0, 5.0)


def weibull(seed, n, at=THREE, censored=None, shape=1.3):
    """Exact survival at times, outcomes and the one feature; censoring times are `censored(rng, x)`."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    T = (rng.exponential(size=n) / (0.15 * np.exp(0.8 * x))) ** (1 / shape)
    C = rng.exponential(12, n) if censored is None else censored(rng, x)
    S = np.exp(-0.15 * np.exp(0.8 * x)[:, None] * np.array(at) ** shape)
    return np.array(at), S, np.minimum(T, C), T <= C, x


def judged(at, S, time, event, rows=None):
    return judged_patients(as_predictions((at, S), None, len(time)), Surv.from_arrays(event, time), rows)


def asked(found, groups=()):
    members = {("overall", "all"): np.ones(len(found.cohort), bool)}
    return questions(found, members | {("group", str(k)): mask for k, mask in enumerate(groups)})


def p_of(found, question):
    return {q.estimate.time: q.estimate.p for q in asked(found) if q.question == question}


def recent(rng, x):
    """Three of five patients are recent, and followed for half a year to two and a half years."""
    return np.where(rng.random(len(x)) < 0.6, rng.uniform(0.5, 2.5, len(x)), rng.uniform(4, 7, len(x)))


def by_distance(rng, x):
    return rng.exponential(1 / np.where(np.abs(x) > 1, 0.5, 1 / 12))


def short_for_high_risks(rng, x):
    return np.where(x > 0.8, rng.uniform(1, 3.5, len(x)), rng.uniform(4, 8, len(x)))


@pytest.mark.parametrize("censored", [recent, by_distance, short_for_high_risks])
def test_observed_over_expected_events_of_right_predictions_are_near_one(censored):
    ratios, slopes = [], []
    for seed in range(12):
        found = judged(*weibull(seed, 600, censored=censored)[:4])
        values = {q.question: q.estimate.value for q in asked(found)}
        ratios.append(values["level"])
        slopes.append(values["slope"])
    for values in (ratios, slopes):
        assert abs(np.mean(values) - 1) < 3.5 * np.std(values, ddof=1) / np.sqrt(12) + 0.005


@pytest.mark.parametrize("at", [(5.0,), (1.0, 3.0, 5.0), tuple(np.linspace(0.1, 5, 50))], ids=len)
def test_right_predictions_are_right_in_every_period_of_diagnosis_where_the_study_ends_for_all_at_once(at):
    """Patients diagnosed from 2010 to 2020 are followed until the middle of 2020."""
    ratios, plain, wrong = [], [], 0
    for seed in range(8):
        year = np.random.default_rng([41, seed]).uniform(2010, 2020, 600)
        given = weibull(
            seed, 600, at, lambda rng, x, year=year: np.minimum(2020.5 - year, rng.exponential(33, 600))
        )
        _, S, time, event, _ = given
        found = asked(judged(*given[:4]), [year < 2015, year >= 2015])
        # A tenth of the second period was followed for five years, which is not always enough to judge it.
        levels = [q.estimate.value for q in found if q.question == "level" and q.group != "1"]
        ratios.append(levels)
        observed = 1 - KaplanMeier.of(Target(event, time)).at(np.array([5.0]))[0]
        plain.append(observed / (1 - S[:, -1]).mean())
        wrong += any(row.status in PROBLEMS for row in findings(found, 0.95))
    error = np.std(ratios, axis=0, ddof=1) / np.sqrt(8)
    assert (np.abs(np.mean(ratios, axis=0) - 1) < 3 * error + 0.005).all()
    # The end of the study has nothing to do with risk: the plain estimate is right for everybody too.
    if len(at) < 50:
        assert np.array(ratios)[:, 0] == pytest.approx(plain, abs=0.08)
    assert wrong <= 1


def test_a_column_without_effect_changes_no_number():
    """The period decides how long patients are followed; it was a reason to call right predictions wrong."""
    at, S, time, event, x = weibull(3, 1_000, (3.0,), recent)
    y, period = Surv.from_arrays(event, time), (time > 2.5).astype(float)
    columns = [None, pd.DataFrame({"x": x}), pd.DataFrame({"x": x, "period": period})]
    one, *others = (evaluate((at, S), X, y).findings for X in columns)
    for other in others:
        pd.testing.assert_frame_equal(one, other)


def test_a_rounding_error_of_a_time_changes_nothing():
    at, S, time, event, _ = weibull(4, 600)
    moved = np.nextafter(at, [0.0, 9.0, 0.0])
    one, other = (asked(judged(times, S, time, event)) for times in (at, moved))
    for first, second in zip(one, other, strict=True):
        assert first.question == second.question
        assert first.estimate.p == pytest.approx(second.estimate.p, rel=1e-9)


def test_the_timing_at_two_times_does_not_depend_on_the_order_of_rows():
    """The two parts of the follow-up are equally extreme, up to rounding."""
    at, S, time, event, _ = weibull(4, 600, (1.0, 3.0))
    rng, found = np.random.default_rng(0), []
    for _ in range(8):
        order = rng.permutation(600)
        timing = [q for q in asked(judged(at, S[order], time[order], event[order])) if q.question == "timing"]
        found.append(timing[0].estimate)
    assert {each.time for each in found} == {1.0}
    assert [each.value for each in found] == pytest.approx([found[0].value] * 8, rel=1e-9)


@pytest.mark.parametrize("at", [THREE, tuple(np.linspace(0.1, 6, 60))])
@pytest.mark.parametrize("entered", [False, True])
def test_rounding_errors_of_tied_times_change_no_finding(at, entered):
    """As those of differences of two times: 0.3 - 0.1 is not 0.2."""
    times, S, time, event, _ = weibull(6, 400, at)
    time, rng = np.ceil(4 * time) / 4, np.random.default_rng(0)
    entry = {"entry": rng.uniform(0, 0.2, 400)} if entered else {}
    moved = time * (1 + rng.uniform(-1e-14, 1e-14, 400))
    one, other = (evaluate((times, S), None, Surv.from_arrays(event, t, **entry)) for t in (time, moved))
    number = ["value", "low", "high", "p"]
    np.testing.assert_allclose(one.findings[number], other.findings[number], rtol=1e-6)
    of_ranks = one.to_frame().query("metric == 'concordance_index'").value
    np.testing.assert_allclose(of_ranks, other.to_frame().query("metric == 'concordance_index'").value)


def test_ties_that_were_broken_by_small_numbers_are_no_reason_to_call_predictions_harmful():
    """One curve that is fitted to events at nearly the same time has a huge hazard there."""
    at, S, time, event, _ = weibull(6, 400, tuple(np.linspace(0.1, 6, 60)))
    time = np.ceil(4 * time) / 4 + np.random.default_rng(0).uniform(0, 1e-6, 400)
    gain = evaluate((at, S), None, Surv.from_arrays(event, time)).findings.query("question == 'gain'")
    assert gain["value"].item() > 0


@pytest.mark.parametrize("at", [(1.1, 3.3, 5.1), tuple(np.linspace(0.1, 6, 30))])
def test_times_in_single_precision_are_those_of_the_table(at):
    """Times of one decimal, some of which are predicted times."""
    times, S, time, event, _ = weibull(5, 300, at)
    time = np.ceil(10 * time) / 10
    assert np.isin(time[event], times).any()

    def found(times, time):
        result = evaluate((times, S), None, Surv.from_arrays(event, time))
        # Of a table of many times, quarter points of the follow-up are shown, which are other times.
        shown = result.times if len(at) < 20 else result.findings
        return result.findings[["value", "low", "high", "p"]], shown[["low", "high"]]

    single = time.astype(np.float32).astype(float)
    for given in ((times, single), (times.astype(np.float32).astype(float), time)):
        for changed, right in zip(found(*given), found(times, time), strict=True):
            np.testing.assert_allclose(changed, right, atol=1e-6)


def test_outcomes_do_not_decide_in_which_way_predictions_are_judged():
    at = np.linspace(0.15, 6, 40)
    kinds = set()
    for seed in range(6):
        _, S, time, event, _ = weibull(0, 400, tuple(at), shape=1.0)
        rng = np.random.default_rng(seed)
        early = np.minimum(time, rng.exponential(1 + 2 * seed, 400))
        kinds.add(judged(at, S, early, event & (early == time)).few_times)
    assert len(kinds) == 1


def test_the_events_of_a_group_do_not_depend_on_other_patients():
    at, S, time, event, _ = weibull(5, 900, censored=by_distance)
    group = np.arange(900) % 3 == 0
    everybody = asked(judged(at, S, time, event), [group])
    alone = asked(judged(at, S[group], time[group], event[group]))
    named = {(q.question, q.estimate.time): q.estimate for q in everybody if q.attribute == "group"}
    for q in alone:
        if q.question.startswith("level") or q.question == "slope":
            assert named[q.question, q.estimate.time].value == pytest.approx(q.estimate.value, rel=1e-9)
            assert named[q.question, q.estimate.time].p == pytest.approx(q.estimate.p, rel=1e-6)


def test_without_censoring_outcomes_are_those_seen_and_the_sum_is_kaplan_meiers_with_equal_risks():
    at, S, time, event, _ = weibull(6, 400, censored=lambda rng, x: np.full(len(x), 99.0))
    found = ResidualsAtTimes.of(Target(event, time), at, 1 - S)
    np.testing.assert_allclose(found.outcome, time[:, None] <= at)
    _, _, time, event, _ = weibull(7, 400, censored=by_distance)
    equal = ResidualsAtTimes.of(Target(event, time), at, np.full((400, 3), 0.4))
    share = 1 - KaplanMeier.of(Target(event, time)).at(at)
    np.testing.assert_allclose(equal.outcome.mean(axis=0), share)


@pytest.mark.parametrize("at", [(3.0,), THREE])
def test_five_copies_of_each_patient_as_clusters_are_judged_as_one_row_each(at):
    times, S, time, event, _ = weibull(4, 400, at, by_distance)
    five = np.repeat(np.arange(400), 5)
    group = np.arange(400) % 2 > 0
    one = asked(judged(times, S, time, event), [group])
    copied = judged(times, S[five], time[five], event[five], Rows(clusters=five))
    same = asked(copied, [group[five]])
    assert [q.question for q in same] == [q.question for q in one]
    for first, second in zip(one, same, strict=True):
        assert second.estimate.value == pytest.approx(first.estimate.value, abs=0.002)
        assert second.estimate.interval(0.05) == pytest.approx(first.estimate.interval(0.05), abs=0.01)


def test_censoring_adds_the_covariance_of_outcomes_by_two_times():
    """Of one patient, events by two times have the covariance of the variance by the first, times no event between."""
    times, S, time, event, x = weibull(3, 400, THREE, short_for_high_risks)
    found = ResidualsAtTimes.of(Target(event, time), times, 1 - S, np.where(x > 0, 2.0, 1.0))
    w = np.random.default_rng(0).normal(size=400)
    assert (found.followed[:, 0] & ~found.followed[:, 2]).sum() > 0
    expected = np.zeros((3, 3))
    for i in range(400):
        last = max(found.followed[i].sum() - 1, 0)
        by = [found.by_censoring[i, min(j, last)] for j in range(3)]
        free = [S[i, min(j, last)] for j in range(3)]
        # Directions are those of events until each time, and sums of parts of the follow-up have the same variance.
        for j in range(3):
            for k in range(3):
                first, second = min(j, k), max(j, k)
                expected[j, k] += found.weight[i] * w[i] ** 2 * by[first] * free[second] / free[first]
    together = np.tril(np.ones((3, 3)))
    np.testing.assert_allclose(together @ found.added_by_censoring(w) @ together.T, expected, rtol=1e-5)
    alone = found.by(2).added_by_censoring(w)
    assert alone == pytest.approx(float(found.by(2).weight * w**2 @ found.by_censoring[:, 2]))


def test_an_error_at_an_early_time_is_found_where_the_last_time_is_right():
    """141 deaths by one year with 175 predicted were no problem beside a right prediction by five years."""
    at, S, time, event, _ = weibull(3, 2_500, censored=lambda rng, x: np.full(len(x), 9.0))
    S = S.copy()
    S[:, 0] = S[:, 0] ** 1.4
    rows = findings(asked(judged(at, S, time, event)), 0.95)
    wrong = {(row.question, row.time) for row in rows if row.status in PROBLEMS}
    assert ("level by a time", 1.0) in wrong
    assert not {row.status for row in rows if row.question == "level"} & set(PROBLEMS)


def test_patients_whose_stratum_was_not_followed_are_not_judged_and_it_is_said():
    at, S, time, event, x = weibull(9, 1_500, (5.0,), short_for_high_risks)
    found = judged(at, S, time, event)
    left_out = ~found.at_horizon.followed[:, 0]
    assert (x[left_out] > 0.6).all()
    assert left_out.mean() == pytest.approx(0.21, abs=0.06)
    assert f"{left_out.sum():,} of 1,500 patients are not judged at the horizon" in found.not_judged
    assert left_out.sum() > FEWEST_FOLLOWED


def test_patients_at_risk_at_the_first_time_are_judged_from_there_on():
    at, S, time, event, _ = weibull(10, 2_000)
    rng = np.random.default_rng(0)
    entry = np.where(rng.random(2_000) < 0.5, rng.uniform(0, 2, 2_000), 0.0)
    seen = entry < time
    at_risk = seen & (entry <= 1) & (time > 1)
    y = Surv.from_arrays(event[seen], time[seen], entry=entry[seen])
    late = judged_patients(as_predictions((at, S[seen]), None, seen.sum()), y, Rows.parse(y, judged=True))
    alone = judged(at[1:], S[at_risk, 1:] / S[at_risk, :1], time[at_risk], event[at_risk])
    assert late.inside.sum() == at_risk.sum()
    assert p_of(late, "level") == pytest.approx(p_of(alone, "level"), rel=1e-6)
    assert p_of(late, "slope") == pytest.approx(p_of(alone, "slope"), rel=1e-6)
    assert "at risk at the first predicted time" in late.not_judged
    one = judged_patients(
        as_predictions((at[:1], S[seen, :1]), None, seen.sum()), y, Rows.parse(y, judged=True)
    )
    assert np.array_equal(one.inside, entry[seen] == 0)


def test_patients_who_were_followed_until_an_earlier_time_count_with_their_risk_by_it():
    rng, n = np.random.default_rng(5), 3_000
    _, S, time, event, _ = weibull(5, n, censored=lambda rng, x: np.full(n, np.inf))
    # Those of higher risk leave between the first and the second time.
    leaves = np.where(S[:, -1] < np.median(S[:, -1]), rng.uniform(THREE[0], THREE[1], n), np.inf)
    residuals = judged(THREE, S, np.minimum(time, leaves), event & (time <= leaves)).residuals
    sums, followed = residuals.sums(np.ones(n)), residuals.followed
    assert 0.2 < followed[:, -1].mean() < 0.8
    last = np.where(followed[:, 1:], 1 - S[:, 1:], -np.inf).max(axis=1)
    F = np.where(followed[:, 0], np.maximum(last, 1 - S[:, 0]), 0.0)
    assert sums.expected.sum() == pytest.approx(F.sum())
    assert sums.most == pytest.approx(followed[:, 0].sum() / F.sum(), rel=1e-3)
    raised = 1 - (1 - F) ** 1.5
    dispersions = [(G * (1 - G)).sum() / G.sum() for G in (F, raised)]
    found = sums.relative_dispersion(raised.sum() / F.sum())
    assert found == pytest.approx(dispersions[1] / dispersions[0], rel=0.01)


def test_a_group_that_all_have_the_event_by_the_last_time_has_no_more_than_all_events():
    # Few of the patients with high risk are followed until 5, and the last of these has the event.
    rng = np.random.default_rng(3)
    risky = np.arange(400) < 80
    rate = np.where(risky, 0.6, 0.1)
    time, left = rng.exponential(1 / rate), np.where(risky, rng.exponential(1.8, 400), rng.uniform(2, 8, 400))
    time[:8], left[:8] = 4.8, 6.0
    left[(left > 4) & risky & (np.arange(400) >= 8)] = 4.0
    S = np.exp(-rate[:, None] * np.array(THREE) * rng.uniform(0.9, 1.1, 400)[:, None])
    y = Surv.from_arrays(time <= left, np.minimum(time, left))
    result = evaluate((THREE, S), None, y, sensitive_features={"risky": risky})
    row = result.findings.query("question == 'level' and group == 'True'").iloc[0]
    most = 1 / (1 - S[risky, -1].mean())
    assert row["value"] == pytest.approx(most, rel=1e-3)
    assert row["value"] <= row["high"] == pytest.approx(most, rel=1e-3)
    assert "1,000 times" not in result.summary()
    residuals = judged(THREE, S, *(np.minimum(time, left), time <= left)).residuals.of_group(risky).by(2)
    assert residuals.sums(risky.astype(float)).variance(np.ones(1)) < 80**2 / 4


@pytest.mark.parametrize("factor", [0.6, 1.6])
def test_too_many_and_too_few_events_are_found_with_few_of_them(factor):
    """With a normal interval, 11 expected events and a true ratio of 0.4 would never be rejected."""
    found = 0
    for seed in range(20):
        at, S, time, event, _ = weibull(seed, 500, (3.0,))
        F = np.clip((1 - S) / factor, 0, 0.99)
        residuals = ResidualsAtTimes.of(Target(event, time), at, F)
        found += level(residuals.sums(np.ones(500))).p < 0.05
    assert found >= 19


def test_slopes_of_groups_are_rejected_about_as_often_as_promised():
    rejected, runs = 0, 60
    for seed in range(runs):
        at, S, time, event, _ = weibull(1_000 + seed, 500, (3.0,), by_distance)
        residuals = ResidualsAtTimes.of(Target(event, time), at, 1 - S)
        score = np.log(-np.log(S[:, 0]))
        rejected += slope(residuals.by(0), score, np.ones(500, bool)).p < 0.05
    # 9 or more of 60 have the probability 0.003.
    assert rejected <= 8


def test_uniform_lifetimes_whose_survival_reaches_zero_are_right():
    rng, at = np.random.default_rng(1), np.linspace(0.05, 10, 200)
    b = rng.uniform(3, 10, 4_000)
    T, C = rng.uniform(0, 1, 4_000) * b, rng.uniform(1, 12, 4_000)
    S = np.clip(1 - at / b[:, None], 0, 1)
    found = judged(at, S, np.minimum(T, C), T <= C)
    assert not found.few_times
    assert p_of(found, "level")[next(iter(p_of(found, "level")))] > 0.01


def test_right_predictions_at_one_time_are_left_alone_whatever_the_shape_in_a_group():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        n, x = 1_200, rng.normal(size=1_200)
        g = rng.random(n) < 0.4
        k, rate = np.where(g, 2.5, 1.0), np.exp(0.5 * x) * 0.12
        T = 5 * (rng.exponential(size=n) / (5 * rate)) ** (1 / k)
        C = np.minimum(rng.exponential(6, n), 8.0)
        X = pd.DataFrame({"x": x, "g": g.astype(float)})
        y = Surv.from_arrays(T <= C, np.minimum(T, C))
        assert (
            repair(([5.0], np.exp(-5 * rate)[:, None]), X, y, max_conditions=1, random_state=0).repairs_ == []
        )


def test_comparisons_and_names_of_causes_know_times_in_single_precision_too():
    at, S, time, event, _ = weibull(5, 300, (1.1, 3.3, 5.1))
    single = (np.ceil(10 * time) / 10).astype(np.float32)
    y = Surv.competing(np.where(event, 1, 0), single, ["relapse"])
    given = Predictions(incidence={1: 1 - S}, times=at)
    found = evaluate(given, None, y, cause=1)
    assert "relapse" in found.verdict.text + found.settings.event
    other = compare({"one": given}, None, y, cause=1).set_index(["attribute", "metric"])["value"]
    own = found.to_frame().query("attribute == 'overall'").set_index(["attribute", "metric"])["value"]
    shared = own.index.intersection(other.index)
    assert len(shared) > 3
    np.testing.assert_allclose(own[shared].to_numpy(float), other[shared].to_numpy(float), rtol=1e-9)


def test_drawn_events_vary_between_patients_as_residuals_do():
    # Patients of low risk are those who are still followed: what censoring adds is not in proportion to risks.
    sums, at, n = np.zeros((2, 2)), np.arange(1.0, 8.0), 600
    for seed in range(30):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=n)
        rate = 0.3**1.3 * np.exp(0.75 * x)
        time = np.ceil((rng.exponential(size=n) / rate) ** (1 / 1.3))
        left = np.ceil(rng.uniform(0.5, 7, n))
        S = np.exp(-rate[:, None] * at**1.3)
        residuals = judged(at, S, np.minimum(time, left), time <= left).residuals
        last = residuals.known_parts - 1
        drawn = Probabilities.of(residuals, last + 1, residuals.weight)
        variances = drawn.variances_of(slice(None)).reshape(n, last + 1, last + 1)[:, last, last]
        found = (residuals.observed - residuals.expected)[:, last] ** 2
        sums += [[found[own].sum(), variances[own].sum()] for own in (x < -0.5, x >= -0.5)]
    low, high = sums[:, 0] / sums[:, 1]
    assert 0.7 < low < 1.1
    assert low / high == pytest.approx(1.0, abs=0.2)
