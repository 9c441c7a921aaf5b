"""Repairs of one of several causes: of a fitted model, and of predicted incidences."""

import numpy as np
import pandas as pd
import pytest

import drosurv
from drosurv import CauseSpecificCox, CoxPH, Surv, repair
from drosurv.evaluation import evaluate_by_cause
from drosurv.predictions import Predictions

TIMES = np.linspace(0.1, 4, 40)
SIMPLE = {"max_conditions": 1, "folds": 3, "random_state": 0}


def cohort(seed, n=1_500, hidden=1.2):
    """Cause 1 is more frequent than the features say where x2 is high; cause 2 is as they say."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["x0", "x1", "x2"])
    first = 0.2 * np.exp(0.6 * X["x0"] + hidden * (X["x2"] > 0.8))
    second = 0.15 * np.exp(0.5 * X["x1"])
    T, C = rng.exponential(1 / (first + second)), rng.uniform(0.5, 5, n)
    cause = np.where(T > C, 0, np.where(rng.random(n) < first / (first + second), 1, 2))
    return X, Surv.competing(cause, np.minimum(T, C))


@pytest.fixture(scope="module")
def model():
    X, y = cohort(0, hidden=0.0)
    return CauseSpecificCox().fit(X, y)


@pytest.fixture(scope="module")
def repaired(model):
    return repair(model, *cohort(1), frozen=True, cause=1, **SIMPLE)


def test_the_hidden_group_of_the_cause_is_repaired_and_the_other_cause_is_not(model, repaired):
    (found,) = [one for one in repaired.repairs_ if one.rule is not None]
    assert "x2 >" in str(found.rule)
    X, y = cohort(2, n=2_000)
    alone = repair(model, X, y, frozen=True, cause=2, **SIMPLE)
    assert all(one.rule is None for one in alone.repairs_)
    high = X["x2"] > 1
    before, after = (
        evaluate_by_cause(m, X[high], y[high], at=[2.0]).set_index("cause") for m in (model, repaired)
    )
    assert after["predicted_minus_observed"].abs()[1] < 0.3 * before["predicted_minus_observed"].abs()[1]
    # With fewer patients left, fewer are predicted to have the other cause.
    assert after["predicted"][2] < before["predicted"][2]
    assert after["predicted_minus_observed"].abs()[2] < before["predicted_minus_observed"].abs()[2]


def test_incidences_and_survival_sum_to_one_and_other_hazards_are_kept(model, repaired, tmp_path):
    X, _ = cohort(3, n=50)
    survival = repaired.predict_survival_function(X, times=TIMES)
    parts = [repaired.predict_cumulative_incidence(X, TIMES, k) for k in (1, 2)]
    np.testing.assert_allclose(sum(parts) + survival, 1.0)
    base, own = model.curves_by_cause(X), repaired.curves_by_cause(X)
    np.testing.assert_array_equal(
        own.of_cause(2).cumulative_hazard(TIMES), base.of_cause(2).cumulative_hazard(TIMES)
    )
    ratio = own.of_cause(1).cumulative_hazard(TIMES) / base.of_cause(1).cumulative_hazard(TIMES)
    np.testing.assert_allclose(ratio[:, -1], np.exp(repaired.log_hazard_ratios(X)), rtol=1e-8)
    repaired.save(tmp_path / "model")
    loaded = drosurv.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_cumulative_incidence(X, TIMES), parts[0])
    np.testing.assert_allclose(loaded.predict(X, cause=2), model.predict(X, 2))


def test_incidences_of_a_table_are_repaired_as_the_model_is(model, repaired):
    X, y = cohort(1)

    def table(X):
        return Predictions(
            incidence={k: model.predict_cumulative_incidence(X, TIMES, k) for k in (1, 2)}, times=TIMES
        )

    found = repair(table(X), X, y, cause=1, **SIMPLE)
    assert [str(one.rule) for one in found.repairs_] == [str(one.rule) for one in repaired.repairs_]
    new, _ = cohort(3, n=50)
    corrected = found.correct(table(new), new)
    np.testing.assert_allclose(sum(corrected.incidence.values()) + corrected.survival, 1.0)
    for k in (1, 2):
        wanted = repaired.predict_cumulative_incidence(new, TIMES, k)
        np.testing.assert_allclose(corrected.incidence[k], wanted, atol=0.02)


def test_one_cause_gives_the_repairs_of_an_event():
    X, y = cohort(1, n=600)
    event = Surv.from_arrays(y["cause"] == 1, y["time"])
    one = Surv.competing(y["cause"] == 1, y["time"])
    train, old = cohort(0, n=600, hidden=0.0)
    cox = CoxPH().fit(train, Surv.from_arrays(old["cause"] == 1, old["time"]))
    causes = CauseSpecificCox().fit(train, Surv.competing(old["cause"] == 1, old["time"]))
    plain = repair(cox, X, event, frozen=True, **SIMPLE)
    found = repair(causes, X, one, frozen=True, cause=1, **SIMPLE)
    assert found.repairs_
    pd.testing.assert_frame_equal(found.to_frame(), plain.to_frame())
    np.testing.assert_allclose(
        found.predict_cumulative_incidence(X, TIMES),
        1 - plain.predict_survival_function(X, times=TIMES),
        atol=1e-9,
    )
    survival = cox.predict_survival_function(X, times=TIMES)
    tables = repair((TIMES, survival), X, event, **SIMPLE)
    incidence = repair(Predictions(incidence={1: 1 - survival}, times=TIMES), X, one, cause=1, **SIMPLE)
    # The words of the table are those at its times; without causes only.
    assert [str(one.rule) for one in incidence.repairs_] == [str(one.rule) for one in tables.repairs_]
    corrected = incidence.correct(Predictions(incidence={1: 1 - survival}, times=TIMES), X)
    np.testing.assert_allclose(corrected.survival, tables.correct((TIMES, survival), X), atol=1e-9)


def test_without_a_cause_events_of_any_cause_are_repaired(model):
    X, y = cohort(1)
    found = repair(model, X, y, frozen=True, **SIMPLE)
    assert found.n_events_ == (y["cause"] > 0).sum()
    assert found.predict_survival_function(X[:5], times=[1.0]).shape == (5, 1)
