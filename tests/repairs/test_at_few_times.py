"""Repairs of predictions at few times: level and slope are right at these times, and numbers are those of an audit."""

import numpy as np
import pandas as pd
import pytest

from drosurv import PublishedCox, Surv, evaluate, repair
from drosurv.patients.observation import Rows
from drosurv.predictions import Predictions, as_predictions
from drosurv.repairs.at_few_times import AtFewTimes
from drosurv.repairs.expected import log_risk

TIMES = np.array([3.0])


def patients(seed, n=600, slope=1.0, shift=0.0, times=TIMES, shape=1.3, censored=(0.5, 6)):
    """Weibull times; predicted log hazards are `slope` times the true ones, plus a shift."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    risk = (0.7 * X["a"] - 0.5 * X["b"]).to_numpy()
    time, end = (rng.exponential(size=n) / np.exp(risk)) ** (1 / shape) * 3, rng.uniform(*censored, n)
    survival = np.exp(-np.outer(np.exp(slope * risk + shift), (times / 3) ** shape))
    return X, Surv.from_arrays(time <= end, np.minimum(time, end)), survival


def judged(survival, y, times=TIMES):
    """Observed over expected events of all patients, and the calibration slope, as an evaluation gives them."""
    found = evaluate((times, survival), None, y).findings.set_index("question")
    return found.loc["level"], found.loc["slope"]


@pytest.mark.parametrize(("slope", "shift"), [(0.5, 0.0), (1.5, 0.7)])
def test_level_and_slope_are_right_at_the_only_time(slope, shift):
    X, y, survival = patients(0, n=800, slope=slope, shift=shift)
    model = repair((TIMES, survival), X, y, max_conditions=1, random_state=0)
    assert [one.kind for one in model.repairs_] == ["everyone"]
    level, corrected = judged(model.correct((TIMES, survival), X), y)
    # The slope is a little shrunken, and constant beyond the 1 and 99 % quantiles; strata are those of other risks.
    assert level["value"] == pytest.approx(1, abs=0.015)
    assert corrected["value"] == pytest.approx(1, abs=0.08)
    X, y, survival = patients(1, n=800, slope=slope, shift=shift)
    level, corrected = judged(model.correct((TIMES, survival), X), y)
    for row in (level, corrected):
        assert row["low"] < 1 < row["high"]


def test_gains_are_those_of_the_log_score_at_the_time():
    X, y, survival = patients(0, n=500, shift=np.log(0.6), censored=(4, 6))
    model = repair((TIMES, survival), X, y, folds=3, random_state=0)
    (found,) = model.repairs_
    # Nobody is censored before the time, so that the score is that of a yes or no.
    died = y["event"] & (y["time"] <= TIMES[0])
    before, after = (s[:, 0] for s in (survival, survival ** np.exp(model.held_out_)[:, None]))
    gains = np.where(died, np.log((1 - after) / (1 - before)), np.log(after / before))
    assert found.gain_inside.value == pytest.approx(gains.mean(), rel=1e-6)
    assert found.gain_inside.value > 0.02
    assert (
        f"the gain in log score per patient at the predicted times is {gains.mean():.3f}"
        in model.in_words()[0]
    )


def test_numbers_of_a_repair_are_those_of_an_evaluation_at_the_times():
    times = np.array([1.0, 3.0, 5.0])
    X, y, survival = patients(0, slope=2.0, times=times)
    (found,) = repair((times, survival), X, y, folds=3, random_state=0).repairs_
    level, _ = judged(survival, y, times)
    assert found.before.value == pytest.approx(level["value"], abs=0.02)
    assert found.by == times[-1]
    assert found.events / found.predicted == pytest.approx(found.before.value)
    assert abs(found.after.value - 1) < 0.05


def test_a_published_score_is_repaired_with_the_numbers_of_its_evaluation():
    X, y, _ = patients(0)
    baseline = {time: float(np.exp(-1.6 * (time / 3) ** 1.3)) for time in (1.0, 3.0, 5.0)}
    score = PublishedCox({"a": 0.7, "b": -0.5}, baseline)
    (found,) = repair(score, X, y, frozen=True, folds=3, random_state=0).repairs_
    level = evaluate(score, X, y).findings.set_index("question").loc["level"]
    assert found.before.value == pytest.approx(level["value"], abs=0.02)
    assert level["value"] < 0.95
    assert found.by == 5.0
    assert abs(found.after.value - 1) < 0.05


def test_the_sentence_says_by_which_time_events_are_counted():
    X, y, survival = patients(0, slope=2.0)
    found = repair((TIMES, survival), X, y, folds=3, random_state=0)
    (said,), (in_years,) = found.in_words(), found.in_words("years")
    assert "events happened by 3 years, with those censored" in in_years
    assert (
        "events happened by time 3, with those censored before counted like others of their risk; the model"
        in said
    )
    assert "completed" not in said


def at_few_times(seed, n, times, censored, slope=1.0):
    _, y, survival = patients(seed, n, slope, times=times, censored=censored)
    predicted = as_predictions((times, survival), None, n)
    return AtFewTimes.of(predicted, y, Rows(), np.ones(n)), y, survival


def test_without_censoring_the_number_that_decides_is_the_likelihood_ratio():
    times = np.array([1.0, 3.0, 5.0])
    found, y, survival = at_few_times(0, 60, times, (6, 7))
    rng = np.random.default_rng(0)
    before, after = 0.3 * rng.normal(size=(2, 60))
    rows = np.arange(60) % 3 > 0
    wanted = 0.0
    for i in np.flatnonzero(rows):
        likelihood = []
        for r in (after[i], before[i]):
            at = np.concatenate([[1.0], survival[i] ** np.exp(r), [0.0]])
            k = np.searchsorted(times, y["time"][i]) if y["event"][i] and y["time"][i] <= 5 else 3
            likelihood.append(at[k] - at[k + 1])
        wanted += np.log(likelihood[0] / likelihood[1])
    assert found.log_ratios(before, after[None], rows)[0] == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("change", [0.5, -0.5])
def test_with_censoring_it_has_the_mean_one_if_predictions_are_right(change):
    times, each = np.array([1.0, 3.0, 5.0]), []
    for seed in range(2):
        found, _, _ = at_few_times(seed, 300, times, (0.2, 7))
        one = np.eye(300, dtype=bool)
        each += [found.log_ratios(np.zeros(300), np.full((1, 300), change), row)[0] for row in one]
    ratios = np.exp(each)
    assert abs(ratios.mean() - 1) < 3 * ratios.std() / np.sqrt(len(ratios))
    # Of wrong predictions it grows.
    found, _, _ = at_few_times(0, 300, times, (0.2, 7), slope=0.0)
    X, _, _ = patients(0, 300)
    truth = (0.7 * X["a"] - 0.5 * X["b"]).to_numpy()
    assert found.log_ratios(np.zeros(300), truth[None], np.ones(300, bool))[0] > 5


def test_events_after_a_correction_have_the_score_of_the_corrected_probabilities():
    found, _, survival = at_few_times(1, 400, TIMES, (0.2, 7))
    r = 0.5 * np.random.default_rng(1).normal(size=400)
    outcome, F = found._at_last(np.zeros(400))
    events, hazard, r, outcome, survival = (
        part[F > 0] for part in (*found.events_after(r), r, outcome, survival)
    )
    assert len(r) > 200
    corrected = 1 - survival[:, 0] ** np.exp(r)
    np.testing.assert_allclose(hazard, -np.log1p(-corrected))
    # The derivative of the log likelihood of a yes or no by the log of the hazard.
    slope = (outcome / corrected - (1 - outcome) / (1 - corrected)) * (1 - corrected) * hazard
    np.testing.assert_allclose(events - hazard, slope, atol=1e-9)


def one_of_two_causes(seed, n=1_000, factor=1.0, shape=1.0):
    """Incidences of two causes by one time; the hazard of the first is `factor` times the predicted one where g = 1."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.normal(size=n), "g": rng.integers(0, 2, n).astype(float)})
    rate, other, k = 0.12 * np.exp(0.5 * X["x"].to_numpy()), 1 / 12, np.where(X["g"] > 0, shape, 1.0)
    first = 5 * (rng.exponential(size=n) / (5 * rate * np.where(X["g"] > 0, factor, 1.0))) ** (1 / k)
    second, end = rng.exponential(1 / other, n), np.minimum(rng.exponential(6, n), 8.0)
    time = np.minimum(np.minimum(first, second), end)
    y = Surv.competing(np.where(time == end, 0, np.where(first < second, 1, 2)), time)
    u = np.linspace(0, 5, 1001)
    H = 5 * rate[:, None] * (u / 5) ** k[:, None]
    S = np.exp(-H - other * u)
    by_five = (np.diff(H, axis=1) * (S[:, 1:] + S[:, :-1]) / 2).sum(axis=1, keepdims=True)
    return X, y, {1: by_five, 2: 1 - S[:, -1:] - by_five}, rate, other


def test_incidences_of_a_cause_are_repaired_as_correct_repairs_them():
    X, y, F, rate, other = one_of_two_causes(0, factor=3.0)
    model = repair(
        Predictions(incidence=F, times=[5.0]), X, y, cause=1, max_conditions=1, folds=3, random_state=0
    )
    assert model.repairs_
    predicted = as_predictions(Predictions(incidence=F, times=[5.0]), None, len(X), cause=1)
    found = AtFewTimes.of(predicted, y, Rows(), np.ones(len(X)), 1)
    np.testing.assert_allclose(found._risks(np.zeros(len(X))), F[1], atol=1e-9)
    # Constant hazards: the incidence of the multiplied one in closed form.
    r = np.random.default_rng(0).normal(size=len(X))
    own = rate * np.exp(r)
    wanted = own / (own + other) * -np.expm1(-5 * (own + other))
    np.testing.assert_allclose(found._risks(r)[:, 0], wanted, rtol=1e-5)
    # That is what is written for patients, and it is nearer to the truth.
    predicted = as_predictions(Predictions(incidence=F, times=[5.0]), None, len(X), cause=1)
    columns = model._ratios(X, None, log_risk(predicted.survival_curves, model._times), model.repairs_)
    corrected = model.correct(Predictions(incidence=F, times=[5.0]), X).incidence
    np.testing.assert_allclose(corrected[1], found._risks(columns), atol=0.005)
    member = X["g"] > 0
    own = 3 * rate
    truth = own / (own + other) * -np.expm1(-5 * (own + other))
    errors = [abs(table[1][member, 0].mean() - truth[member].mean()) for table in (F, corrected)]
    assert errors[1] < errors[0] / 3


def test_right_incidences_of_a_cause_are_left_alone_whatever_the_shape_in_a_group():
    """With incidences completed between 0 and the time, half of such samples were repaired."""
    for seed in range(4):
        X, y, F, _, _ = one_of_two_causes(seed, shape=2.5)
        found = repair(
            Predictions(incidence=F, times=[5.0]), X, y, cause=1, max_conditions=1, folds=3, random_state=0
        )
        assert found.repairs_ == []
