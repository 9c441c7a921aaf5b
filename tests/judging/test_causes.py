"""One of several causes: its hazards, its incidence at times, and its probability by the horizon."""

import numpy as np
import pandas as pd
import pytest

from drosurv import CauseSpecificCox, CoxPH, Surv
from drosurv.judging.from_predictions import judged_patients
from drosurv.judging.questions import questions
from drosurv.judging.verdict import PROBLEMS, findings
from drosurv.metrics import aalen_johansen
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.patients.observation import Rows
from drosurv.patients.target import Target, with_fields
from drosurv.predictions import Predictions, as_predictions

FEW, MANY = np.array([1.0, 3.0]), np.linspace(0.2, 6, 30)


def draw(seed, n=400, *, years=False):
    """Features, causes with their times, and the true incidences of both causes as functions of time."""
    rng = np.random.default_rng(seed)
    x = 0.8 * rng.normal(size=n)
    rates = {1: 0.15 * np.exp(x), 2: 0.1 * np.exp(-0.5 * x)}
    total = rates[1] + rates[2]
    T, C = rng.exponential(1 / total), rng.uniform(1, 8, n)
    if years:
        T, C = np.ceil(T), np.ceil(C)
    cause = np.where(T > C, 0, np.where(rng.random(n) < rates[1] / total, 1, 2))

    def incidence(k, times):
        return (rates[k] / total)[:, None] * -np.expm1(-total[:, None] * times)

    return x, Surv.competing(cause, np.minimum(T, C)), incidence


def judged(predictions, y, x, cause=1, **given):
    return judged_patients(as_predictions(predictions, None, len(y)), y, cause=cause, **given)


def problems(found, x):
    members = {("overall", "all"): np.ones(len(x), bool), ("x", "high"): x > 0, ("x", "low"): x <= 0}
    return [row for row in findings(questions(found, members, threshold=0.3), 0.95) if row.status in PROBLEMS]


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("years", [False, True])
def test_right_incidences_are_not_called_wrong_and_wrong_ones_are(years, alone):
    for times in (np.arange(1.0, 8.0),) if years else (FEW, MANY[::3] if alone else MANY):
        wrong = 0
        for seed in range(2):
            x, y, incidence = draw(seed, years=years)
            tables = {k: incidence(k, times) for k in ((1,) if alone else (1, 2))}
            wrong += bool(problems(judged(Predictions(incidence=tables, times=times), y, x), x))
        assert wrong == 0
        half = tables | {1: tables[1] / 2}
        found = judged(Predictions(incidence=half, times=times), y, x)
        assert "level" in {row.question for row in problems(found, x)}


def test_one_incidence_alone_is_judged_at_its_times_however_many():
    x, y, incidence = draw(0)
    alone = judged(Predictions(incidence={1: incidence(1, MANY)}, times=MANY), y, x)
    together = judged(Predictions(incidence={k: incidence(k, MANY) for k in (1, 2)}, times=MANY), y, x)
    assert alone.few_times
    assert not together.few_times
    # As survival of the cause, with the same numbers.
    same = judged(Predictions(survival=1 - incidence(1, MANY), times=MANY), y, x)
    np.testing.assert_allclose(same.residuals.events, alone.residuals.events)
    np.testing.assert_allclose(same.gains, alone.gains)
    # Hazards of the cause, summed while the patient is observed.
    rate = 0.15 * np.exp(x)
    np.testing.assert_allclose(
        together.residuals.expected.sum(axis=1), rate * np.minimum(y["time"], 6.0), rtol=2e-3
    )
    # Rounded incidences have no known hazards.
    rounded = {k: incidence(k, MANY).round(2) for k in (1, 2)}
    assert judged(Predictions(incidence=rounded, times=MANY), y, x).few_times


@pytest.mark.parametrize("late", [False, True])
def test_the_risk_of_a_decision_is_the_incidence(late):
    x, y, _ = draw(1)
    entry = np.where(np.arange(len(x)) % 2, 0.4 * y["time"], 0.0) if late else None
    model = CauseSpecificCox().fit(x[:, None], with_fields(y, entry=entry))
    found = judged_patients(
        as_predictions(model, x[:, None], len(y)), y, Rows(entry=entry), cause=2, horizon=2.0
    )
    since = np.zeros(len(y)) if entry is None else entry
    for i in range(0, len(y), 97):
        at = [since[i], since[i] + 2.0]
        by = model.predict_cumulative_incidence(x[[i], None], times=at, cause=2)[0]
        alive = model.predict_survival_function(x[[i], None], times=at)[0, 0]
        assert found.risk[i] == pytest.approx((by[1] - (by[0] if late else 0)) / alive)


def test_one_curve_for_everybody_is_that_of_the_cause():
    x, y, _ = draw(2)
    # A model that knows only Aalen-Johansen's incidence gains nothing over it, up to the correction for its fit.
    curve = aalen_johansen(y["cause"], y["time"])
    flat = np.tile(curve.at(FEW), (len(y), 1))
    found = judged(Predictions(incidence={1: flat}, times=FEW), y, x)
    assert found.gains.sum() == pytest.approx(len(FEW) / 2, abs=0.2)
    # If events of other causes counted as censored, it would gain: their Kaplan-Meier curve is too low.
    censored = KaplanMeier.of(Target(y["cause"] == 1, y["time"])).at(FEW)
    low = judged(Predictions(survival=np.tile(censored, (len(y), 1)), times=FEW), y, x)
    assert low.gains.sum() < found.gains.sum() - 3


@pytest.mark.parametrize("times", [FEW, MANY, np.arange(1.0, 8.0)])
def test_one_cause_gives_the_numbers_of_an_event(times):
    rng = np.random.default_rng(0)
    n, x = 400, 0.8 * rng.normal(size=400)
    T, C = rng.exponential(np.exp(-x) * 4), rng.uniform(1, 8, n)
    if len(times) == 7:
        T, C = np.ceil(T), np.ceil(C)
    event, time = T <= C, np.minimum(T, C)
    survival = np.exp(-np.outer(np.exp(x) / 4, times))
    plain = judged_patients(as_predictions((times, survival), None, n), Surv.from_arrays(event, time))
    for given in (
        Predictions(incidence={1: 1 - survival}, times=times),
        Predictions(survival=survival, times=times),
    ):
        found = judged_patients(as_predictions(given, None, n), Surv.competing(event, time), cause=1)
        for name in ("score", "risk", "gains"):
            np.testing.assert_allclose(getattr(found, name), getattr(plain, name), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found.residuals.observed, plain.residuals.observed, atol=1e-10)
        np.testing.assert_allclose(found.residuals.expected, plain.residuals.expected, rtol=1e-8, atol=1e-10)


def test_a_model_of_one_cause_gives_the_numbers_of_cox():
    rng = np.random.default_rng(0)
    X, time, event = rng.normal(size=(500, 2)), rng.exponential(size=500), rng.random(500) < 0.6
    y, causes = Surv.from_arrays(event, time), Surv.competing(event, time)
    half = slice(None, 250), slice(250, None)
    cox, one = CoxPH().fit(X[half[0]], y[half[0]]), CauseSpecificCox().fit(X[half[0]], causes[half[0]])
    test = X[half[1]]
    plain = judged_patients(as_predictions(cox, test, 250), y[half[1]])
    found = judged_patients(as_predictions(one, test, 250), causes[half[1]], cause=1)
    np.testing.assert_allclose(found.residuals.expected, plain.residuals.expected)
    np.testing.assert_allclose(found.risk, plain.risk)
    asked = [
        pd.DataFrame(findings(questions(each, {("overall", "all"): np.ones(250, bool)}), 0.95)).set_index(
            "question"
        )
        for each in (plain, found)
    ]
    shown = ["value", "low", "high", "p"]
    # One curve for everybody is that of the training patients for Cox, and of these patients for a cause.
    without = [table.drop(index="gain")[shown] for table in asked]
    pd.testing.assert_frame_equal(*without, rtol=1e-3)
