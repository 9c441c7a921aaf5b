"""Judged patients: exact predictions of many kinds are not called wrong, wrong ones are, and bad input is named."""

from itertools import product

import numpy as np
import pytest

from drosurv import CoxPH, RepairedCox, Surv
from drosurv.curves import parse_survival
from drosurv.judging.from_predictions import judged_patients
from drosurv.judging.judged import Cohort, judge_curves
from drosurv.judging.questions import questions
from drosurv.judging.residual_tests import standard_error
from drosurv.judging.verdict import PROBLEMS, findings, judge
from drosurv.metrics import FollowUp
from drosurv.patients.observation import Rows
from drosurv.patients.target import parse_target
from drosurv.predictions import Predictions, as_predictions
from drosurv.report.cross_fit import cross_fitted


def draw(kind, seed, n=600):
    """Exact survival S(t) of two groups, and their outcomes; censoring depends on the risk."""
    rng = np.random.default_rng(seed)
    g, eta = rng.random(n) < 0.5, 0.7 * rng.normal(size=n)
    e, u = np.exp(eta), rng.random(n)
    C = np.minimum(rng.exponential(6 / np.exp(0.4 * eta)), 6.0)
    if kind == "log-logistic":
        T, S = np.sqrt(1 / u - 1) / e / 0.4, lambda t: 1 / (1 + (0.4 * t * e[:, None]) ** 2)
    elif kind == "arms":
        k = np.where(g, 0.6, 1.6)
        T, S = 3 * (-np.log(u) / e) ** (1 / k), lambda t: np.exp(-e[:, None] * (t / 3) ** k[:, None])
    else:
        T, S = -np.log(u) / e / 0.35, lambda t: np.exp(-0.35 * t * e[:, None])
    happened, Y = T <= C, np.minimum(T, C)
    if kind == "whole years":
        C = np.ceil(C)
        happened, Y = T <= C, np.ceil(np.minimum(T, C))
    return Surv.from_arrays(happened, Y), S, g, eta


def rows_of(survival, times, y, g, rows=None, **how):
    judged = judged_patients(as_predictions((times, survival), None, len(y)), y, rows)
    members = {("overall", "all"): np.ones(len(y), bool), ("arm", "a"): g, ("arm", "b"): ~g}
    return findings(questions(judged, members, **how), 0.95)


def problems(*args, **how):
    return [row for row in rows_of(*args, **how) if row.status in PROBLEMS]


TIMES = {
    "one": [3.0],
    "three": [1.0, 2.0, 4.0],
    "many": list(np.linspace(0.1, 6, 60)),
    "years": [1.0, 2, 3, 4, 5, 6],
}


@pytest.mark.parametrize(
    ("kind", "times"),
    [("exponential", "one"), *product(("exponential", "log-logistic", "arms"), ("three", "many"))],
)
def test_exact_predictions_are_not_called_wrong(kind, times):
    at = np.array(TIMES[times])
    found = []
    for seed in range(2):
        y, S, g, _ = draw(kind, seed)
        found += problems(S(at), at, y, g, threshold=0.5)
    assert found == []


@pytest.mark.parametrize(
    ("kind", "decimals"), [("whole years", None), ("whole years", 3), ("exponential", 2)]
)
def test_whole_years_and_rounded_probabilities_are_not_called_wrong(kind, decimals):
    at = np.array(TIMES["years"])
    found = []
    for seed in range(2):
        y, S, g, _ = draw(kind, seed)
        survival = S(at) if decimals is None else S(at).round(decimals)
        found += problems(survival, at, y, g)
    assert found == []


@pytest.mark.parametrize("times", ["three", "many"])
def test_a_right_total_with_a_wrong_shape_is_found(times):
    rng, n, at = np.random.default_rng(0), 2_000, np.array(TIMES[times])
    e = np.exp(0.8 * rng.normal(size=n))
    T, C = np.sqrt(rng.exponential(size=n) / e) / 0.4, rng.uniform(2, 6.5, n)
    y = Surv.from_arrays(T <= C, np.minimum(T, C))
    rate = (T <= C).sum() / (e * np.minimum(T, C)).sum()
    wrong = problems(np.exp(-rate * at * e[:, None]), at, y, rng.random(n) < 0.5)
    assert "timing" in {row.question for row in wrong}


def test_hazards_that_are_too_large_are_found_and_a_slope_that_is_too_steep():
    y, S, g, eta = draw("exponential", 1, n=2_000)
    for at in (np.array(TIMES["one"]), np.array(TIMES["many"])):
        assert "level" in {row.question for row in problems(S(at) ** 1.5, at, y, g)}
        steep = np.exp(-0.35 * at * np.exp(1.6 * eta)[:, None])
        assert "slope" in {row.question for row in problems(steep, at, y, g)}


def test_swapped_groups_are_found():
    rng, n, at = np.random.default_rng(2), 2_000, np.array([1.0, 3.0])
    g = rng.random(n) < 0.5
    T, C = rng.exponential(np.where(g, 2.0, 5.0)), rng.uniform(1, 6, n)
    y = Surv.from_arrays(T <= C, np.minimum(T, C))
    swapped = np.exp(-at / np.where(g, 5.0, 2.0)[:, None])
    wrong = {(row.question, row.group) for row in problems(swapped, at, y, g)}
    assert {("level", "a"), ("level", "b"), ("gain", "all")} <= wrong


def test_the_gain_prefers_the_right_hazards():
    y, S, g, _ = draw("exponential", 3, n=1_500)
    at = np.array([1.0, 3.0])
    gain = {}
    for power in (0.6, 1.0, 1.8):
        rows = rows_of(S(at) ** power, at, y, g)
        gain[power] = next(row.value for row in rows if row.question == "gain" and row.group == "all")
    assert gain[1.0] > max(gain[0.6], gain[1.8])
    assert gain[1.0] > 0


def test_predictions_that_end_before_the_follow_up_gain_what_they_gain_until_then():
    y, S, *_ = draw("exponential", 3, n=4_000)
    times = np.linspace(0.01, 2.5, 400)
    cut = Surv.from_arrays(y["event"] & (y["time"] <= 2.5), np.minimum(y["time"], 2.5))
    longer, until_then = (
        judged_patients(as_predictions((times, S(times)), None, len(y)), seen).gains.mean()
        for seen in (y, cut)
    )
    assert longer == pytest.approx(until_then, abs=0.004)


def test_rows_of_one_patient_are_counted_once_and_patients_of_one_hospital_each():
    y, S, g, _ = draw("exponential", 4, n=60)
    i, at = np.repeat(np.arange(60), 5), np.array([1.0, 3.0])
    status = {}
    for name in ("patient", "clusters"):
        rows = rows_of(S(at)[i], at, y[i], g[i], Rows(**{name: i}))
        status[name] = {row.group: row.status for row in rows if row.question == "level"}["a"]
    assert status["patient"] == "too_few"
    assert status["clusters"] != "too_few"


@pytest.mark.parametrize("until", [0.05, 1.0])
def test_an_interval_without_predicted_events_hides_nothing_and_is_named_if_rounding_cannot_explain_it(until):
    rng, n = np.random.default_rng(0), 2_000
    rate = 0.08 * np.exp(0.8 * rng.normal(size=n))
    T, C, at = rng.exponential(1 / rate), rng.uniform(2, 10, n), np.array([0.05, 1.0, 2.0, 5.0])
    T[:4] = [0.01, 0.02, 0.03, 0.04]
    S = np.exp(-rate[:, None] * at)
    S[:, at <= until] = 1.0
    rows = rows_of(S, at, Surv.from_arrays(T <= C, np.minimum(T, C)), rng.random(n) < 0.5)
    assert all(np.isfinite([row.value, row.p]).all() for row in rows)
    # 16 events until 0.05, of 2,000 patients whose risk of less than 0.005 was perhaps rounded to 0.
    assert {row.question for row in judge(rows).problems} == (
        set() if until < 1 else {"timing", "gain", "level by a time"}
    )
    assert {row.time for row in judge(rows).problems if row.question == "timing"} == (
        {until} if until == 1 else set()
    )


def test_a_fitted_model_is_judged_with_its_estimation_error():
    def patients(n):
        X = rng.normal(size=(n, 3))
        T, C = rng.exponential(np.exp(-X @ [0.6, 0.4, 0.0])), rng.uniform(0.5, 3, n)
        return X, Surv.from_arrays(T <= C, np.minimum(T, C))

    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        (X, y), (X_test, y_test) = patients(100), patients(2_000)
        judged = judged_patients(as_predictions(CoxPH().fit(X, y), X_test, 2_000), y_test)
        everyone = np.ones(2_000)
        own, error = judged.residuals.covariance(everyone).sum(), judged.error.covariance(everyone).sum()
        found.append(error / own * y["event"].mean() / y_test["event"].mean())
    # Twenty times as many patients as in training: the mean of 12 has a standard error of 0.6.
    assert np.mean(found) == pytest.approx(20, abs=1.5)


def test_tables_are_known_throughout_if_their_steps_are_small():
    _, S, _, _ = draw("exponential", 6, n=1_000)

    def known(at, decimals=15):
        return parse_survival(S(at).round(decimals), 1_000, at).known_throughout

    assert known(np.array(TIMES["many"]))
    assert not known(np.array(TIMES["many"]), decimals=2)
    assert not known(np.array(TIMES["years"]))
    # Beside many small steps, three that take more than a twentieth of the time.
    at = np.append(np.linspace(0.01, 0.7, 100), [0.8, 0.9, 1.0])
    for share, wanted in ((0.12, True), (0.14, False)):
        risk = np.append(np.linspace(0.01, 1 - 3 * share, 100), 1 - share * np.arange(2.0, -1, -1))
        table = 1 - risk * np.linspace(0.2, 0.9, 50)[:, None] / 1.0000001
        assert parse_survival(table, 50, at).known_throughout == wanted


def test_a_jump_at_the_last_of_many_times_does_not_decide():
    """A Cox model of few patients jumps at its last event, which may be long after the others."""
    times = np.append(np.linspace(0.01, 0.5, 200), 1.0)
    for jump, known in ((0.05, True), (0.2, True), (0.6, False)):
        risk = np.append((1 - jump) * np.linspace(0.005, 1, 200), 1.0) * 0.7 / 1.0000001
        assert parse_survival(1 - risk[None], 1, times).known_throughout == known
    # It does not matter how large it is if the time is known closely.
    times[-1] = 0.505
    assert parse_survival(1 - risk[None], 1, times).known_throughout


@pytest.mark.parametrize(("shape", "n_times", "known"), [(10, 24, False), (10, 120, True), (2, 24, True)])
def test_a_steep_hazard_needs_more_times(shape, n_times, known):
    """Read between 24 times, a right Weibull model of shape 10 expects 7 % more events than happen."""
    at = np.linspace(12 / n_times, 12, n_times)
    scale = np.random.default_rng(0).uniform(3, 9, 200)[:, None]
    assert parse_survival(np.exp(-((at / scale) ** shape)), 200, at).known_throughout == known


@pytest.mark.parametrize("n_times", [19, 20, 24, 40])
def test_samples_of_patients_do_not_decide_whether_an_evenly_spaced_table_is_known_throughout(n_times):
    at, known = np.linspace(0, 6, n_times + 1)[1:].astype(np.float32).astype(float), set()
    for seed in range(20):
        hazard = 0.1 * np.exp(np.random.default_rng(seed).normal(size=30))[:, None]
        known |= {parse_survival(np.exp(-hazard * at), 30, at).known_throughout}
    assert known == {n_times >= 20}


def test_all_patients_of_a_table_decide_how_any_of_them_are_judged():
    at = np.geomspace(0.05, 6, 20)
    hazard = np.repeat([0.05, 5.0], 100)
    table = parse_survival(np.exp(-hazard[:, None] * at), 200, at)
    known = {table.take(rows).known_throughout for rows in (np.arange(200), hazard < 1, hazard > 1)}
    assert known == {table.known_throughout}
    # By themselves, they would not be.
    alone = [parse_survival(np.exp(-h * at)[None], 1, at).known_throughout for h in (0.05, 5.0)]
    assert alone == [False, True]


@pytest.mark.parametrize("times", ["one", "many"])
def test_copies_of_patients_gain_as_much_as_one_of_each_with_the_same_error(times):
    """One curve for everybody that is fitted to five rows of each patient must not seem to fit five times as well."""
    y, S, g, _ = draw("exponential", 3, n=200)
    i, at = np.repeat(np.arange(200), 5), np.array(TIMES[times])
    one = judged_patients(as_predictions((at, S(at)), None, 200), y)
    five = judged_patients(as_predictions((at, S(at)[i]), None, 1_000), y[i], Rows(clusters=i))
    # Copies have more strata.
    assert five.gains.mean() == pytest.approx(one.gains.mean(), abs=0.03)
    for member in (g, np.ones(200, bool)):
        wanted = standard_error(one.gains, member, None, one.own_curve)[0]
        found = standard_error(five.gains, member[i], i, five.own_curve)[0]
        assert found == pytest.approx(wanted, rel=0.25)


@pytest.mark.parametrize("n", [400, 600])
def test_a_table_of_many_times_that_are_not_close_enough_gains_as_much_as_one_of_few(n):
    """Many events are before the first time; most intervals have one event or none."""
    rng = np.random.default_rng(n)
    eta = rng.uniform(-1.4, 1.4, n)
    T, C = (rng.exponential(size=n) / np.exp(eta)) ** 2, 2 * rng.uniform(0.1, 1, n)
    y = Surv.from_arrays(T <= C, np.minimum(T, C))

    def gain(at):
        predicted = as_predictions((at, np.exp(-np.exp(eta)[:, None] * at**0.5)), None, n)
        judged = judged_patients(predicted, y, at_its_times=True)
        return judged.gains.mean()

    assert gain(np.arange(1, 401) / 200) == pytest.approx(gain(np.array([0.05, 0.2, 0.5, 1, 1.5])), abs=0.05)


def test_steps_below_the_last_digit_of_probabilities_do_no_harm():
    y, S, g, _ = draw("exponential", 5, n=2_000)
    at = np.linspace(0.005, 0.5, 100)
    short = Surv.from_arrays(y["event"] & (y["time"] <= 0.5), np.minimum(y["time"], 0.5))
    rows = rows_of(S(at).round(2), at, short, g)
    assert not [row.text for row in rows if row.status == "harm"]


def test_events_at_time_zero_are_judged():
    rng = np.random.default_rng(3)
    days = rng.integers(0, 900, 150).astype(float)
    days[0] = 0.0
    y, X = Surv.from_arrays(np.ones(150, dtype=bool), days), rng.normal(size=(150, 1))
    model = RepairedCox(max_conditions=1).fit(X, y)
    found = judged_patients(as_predictions(model, X, 150), y)
    assert np.isfinite(found.residuals.expected).all()


@pytest.mark.parametrize("in_folds", [True, False])
def test_a_model_that_knows_nothing_gains_nothing_if_some_events_are_at_time_zero(in_folds):
    rng = np.random.default_rng(0)
    time = np.where(np.arange(300) < 12, 0.0, rng.exponential(4.0, 300))
    y, X = Surv.from_arrays(rng.random(300) < 0.8, time), rng.normal(size=(300, 1))
    model, fold = CoxPH(l2=1e6), np.arange(300) % 5
    parts = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]
    predicted = cross_fitted(model, X, y, parts) if in_folds else model.fit(X, y)
    judged = judged_patients(as_predictions(predicted, X, 300), y)
    np.testing.assert_allclose(judged.gains, 0.0, atol=1e-5)


def test_a_model_and_its_reference_are_compared_as_long_as_both_are_known():
    y, S, _, _ = draw("exponential", 3)
    long, short = np.linspace(0.1, 6, 60), np.linspace(0.05, 3, 60)

    def compared(times, wrong_times):
        reference = as_predictions((wrong_times, S(wrong_times) ** 1.3), None, len(y))
        model = as_predictions((times, S(times)), None, len(y))
        return judged_patients(model, y, reference=reference).over_reference

    wanted = compared(short, short)
    assert wanted.mean() > 0
    np.testing.assert_allclose(compared(long, short), wanted, atol=1e-9)
    np.testing.assert_allclose(compared(short, long), wanted, atol=1e-9)
    assert not np.allclose(compared(long, long), wanted)


def test_the_kaplan_meier_curve_of_everybody_gains_nothing_over_one_curve():
    y, *_ = draw("exponential", 3, n=300)
    curve = FollowUp.parse(y)
    predicted = as_predictions((curve.times, np.tile(curve.survival, (300, 1))), None, 300)
    found = judged_patients(predicted, y)
    # Less the optimism of a curve that is fitted to these patients: 1/2 in each of 20 intervals.
    np.testing.assert_allclose(found.gains, found.own_curve.optimism, atol=1e-9)
    assert found.gains.sum() == pytest.approx(10.0, abs=0.2)
    # Its gains vary by what the fit adds, about 1 in each interval, although they are nearly equal here.
    error = standard_error(found.gains, np.ones(300, bool), None, found.own_curve)[0]
    assert error * 300 == pytest.approx(np.sqrt(20), rel=0.02)


def test_the_influence_of_a_patient_on_the_one_curve_is_its_derivative():
    y, S, g, _ = draw("whole years", 3, n=200)
    at = np.array(TIMES["years"])

    target, steps = parse_target(y), Predictions(survival=S(at), times=at, curve_type="step")

    def gain(weight):
        follow_up = FollowUp.of_test_patients(target, weight=weight)
        judged = judge_curves(
            as_predictions(steps, None, 200).survival_curves, Cohort(target=target, follow_up=follow_up)
        )
        return judged, (judged.gains - judged.own_curve.optimism)[g].sum()

    judged, before = gain(np.ones(200))
    influence = judged.own_curve.influence(g.astype(float))
    np.testing.assert_allclose(judged.own_curve.influence(np.ones(200)), 0.0, atol=1e-12)
    for patient in range(0, 200, 25):
        more = np.ones(200)
        more[patient] += 1e-5
        assert (before - gain(more)[1]) / 1e-5 == pytest.approx(influence[patient], abs=1e-5)


def test_a_model_that_knows_nothing_gains_nothing_in_folds_with_few_events():
    """Some intervals of the follow-up have no event among the training patients of a fold."""
    rng = np.random.default_rng(0)
    time = rng.exponential(4.0, 120)
    y = Surv.from_arrays(time < 1.5, np.minimum(time, 1.5))
    X, fold = rng.normal(size=(120, 1)), np.arange(120) % 5
    parts = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]
    predicted = cross_fitted(CoxPH(l2=100.0), X, y, parts)
    judged = judged_patients(as_predictions(predicted, None, 120), y)
    assert abs(judged.gains.mean()) < 0.05


def test_a_jump_at_the_end_of_a_curve_does_not_make_it_better():
    """The hazard of the last interval is that for which patients were observed, not that of its last patient."""
    rng = np.random.default_rng(0)
    eta = 0.7 * rng.normal(size=1_200)
    T, C = rng.exponential(3 * np.exp(-eta)), rng.uniform(1, 7, 1_200)
    y = Surv.from_arrays(T <= C, np.minimum(T, C))
    test, training = np.arange(600), FollowUp.parse(y[600:])
    at = np.linspace(0.05, training.event_percentiles[-1], 120)
    right = np.exp(-np.exp(eta[test])[:, None] * at / 3)
    # Everybody is predicted to have the event at the last time, when few are observed.
    jump = right.copy()
    jump[:, -1] *= 1e-3
    judged = judged_patients(
        as_predictions(Predictions(survival=right, times=at, curve_type="smooth"), None, 600),
        y[test],
        follow_up=training,
        reference=as_predictions(Predictions(survival=jump, times=at, curve_type="smooth"), None, 600),
    )
    last = y[test]["time"] > at[-2]
    assert last.sum() < 12
    # With the mean hazard of the last interval, as long as it is, the right model would lose 0.05.
    assert judged.over_reference.mean() > -0.02


def test_a_horizon_between_the_times_of_a_table_is_accepted_in_every_sample_and_events_are_counted():
    at = np.linspace(0.15, 6, 40)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rate = 0.1 * np.exp(0.8 * rng.normal(size=300))
        T, C = rng.exponential(1 / rate), np.minimum(rng.exponential(12, 300), 6.5)
        table = as_predictions((at, np.exp(-rate[:, None] * at)), None, 300)
        found = judged_patients(table, Surv.from_arrays(T <= C, np.minimum(T, C)), horizon=3.05)
        assert found.horizon == 3.05
        np.testing.assert_allclose(found.risk, -np.expm1(-3.05 * rate))
        assert found.events(np.ones(300, bool))[0] == ((T <= C) & (T <= 6)).sum()


@pytest.mark.parametrize(("n_times", "floor"), [(50, 0), (200, 0), (50, 1e-9), (200, 1e-4)])
def test_a_table_whose_survival_reaches_zero_expects_as_many_events_as_its_curves(n_times, floor):
    """Uniform lifetimes: the cumulative hazard is infinite at the end, but not where an event was observed.

    Some programs write a small probability in place of 0.
    """
    rng, at = np.random.default_rng(0), np.linspace(10 / n_times, 10, n_times)
    b = rng.uniform(3, 10, 20_000)
    T, C = rng.uniform(0, 1, 20_000) * b, rng.uniform(1, 12, 20_000)
    time = np.minimum(T, C)
    table = as_predictions((at, np.clip(1 - at / b[:, None], floor, 1)), None, 20_000)
    observed, expected = judged_patients(table, Surv.from_arrays(T <= C, time)).events(np.ones(20_000, bool))
    # Where survival is 0 at the next time, an event may be up to one step later than its hazard.
    alive = time < b
    assert expected == pytest.approx(-np.log1p(-time[alive] / b[alive]).sum(), rel=0.01)
    assert observed == (T <= C).sum()
