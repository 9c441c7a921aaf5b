import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.functions import StepFunction

from drosurv import CoxPH, Surv, evaluate, repair
from drosurv.predictions import Predictions, as_predictions

X = np.array([[0.0], [1.0]])
TIMES = np.array([1.0, 2.0, 4.0])
HAZARDS = np.array([[0.1, 0.3, 0.4], [0.5, 0.6, 2.0]])


class HazardOnly:
    def predict_cumulative_hazard_function(self, X):
        # Twice half the hazard plus and minus the same offset: factor and offset must both be read.
        return [StepFunction(TIMES, (h - 0.05) / 2, a=2.0, b=0.05) for h in HAZARDS]


class SurvivalToo(HazardOnly):
    def predict_survival_function(self, X):
        return [StepFunction(TIMES, np.exp(-h)) for h in HAZARDS]


class NamedAsOurs(SurvivalToo):
    _baseline = "a user's model may use this name too"


@pytest.mark.parametrize("model", [HazardOnly(), SurvivalToo(), NamedAsOurs(), (TIMES, np.exp(-HAZARDS))])
def test_models_and_arrays_give_the_same_survival_after_the_first_step(model):
    curves = as_predictions(model, X, 2).survival_curves
    np.testing.assert_allclose(curves.survival(np.array([1.0, 2.0, 9.0])), np.exp(-HAZARDS))
    np.testing.assert_allclose(curves.survival(np.array([[2.0], [5.0]]))[:, 0], np.exp([-0.3, -2.0]))


def test_exact_smooth_predictions_expect_the_sum_of_hazards():
    rng = np.random.default_rng(0)
    rate = 0.1 * np.exp(0.6 * rng.normal(size=1000))
    time, censored = rng.exponential(1 / rate), rng.exponential(1.2, 1000)
    y = Surv.from_arrays(time <= censored, np.minimum(time, censored))
    grid = np.linspace(0, 12, 100)
    given = Predictions(survival=np.exp(-np.outer(rate, grid)), times=grid, curve_type="smooth")
    found = evaluate(given, None, y)
    everybody = found.groups.iloc[0]
    assert everybody["expected"] == pytest.approx(rate @ np.minimum(time, censored), rel=1e-6)
    assert everybody["gain"] > 0
    assert set(found.findings["status"]) <= {"clear", "unclear"}


def test_nested_models_take_their_own_columns_of_one_table():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 3)), columns=["a", "b", "c"])
    y = Surv.from_arrays(np.arange(80) % 4 > 0, np.arange(1.0, 81.0))
    small, full = CoxPH().fit(X[["b"]], y), make_pipeline(StandardScaler(), CoxPH()).fit(X, y)
    reordered = X[["c", "b", "a"]]
    for model, own in ((small, X[["b"]]), (full, X)):
        found, expected = as_predictions(model, reordered, 80), as_predictions(model, own, 80)
        np.testing.assert_array_equal(found.risk, expected.risk)
        at = np.array([10.0, 40.0])
        np.testing.assert_array_equal(found.curves.survival(at), expected.curves.survival(at))
    repaired = repair(small, X, y, frozen=True, random_state=0)
    assert repaired.repairs_ == []
    np.testing.assert_array_equal(repaired.predict(X), small.predict(X[["b"]]))
