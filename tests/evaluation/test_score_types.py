"""Scores that are not log hazards: what needs log hazards is left out, and right models are not called wrong."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv import ensemble, linear_model

from drosurv import AcceleratedFailureTime, CauseSpecificCox, CoxPH, Surv, evaluate
from drosurv.errors import ArgumentError
from drosurv.evaluation import Predictions
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.judging.verdict import PROBLEMS
from drosurv.metrics import calibration_slope
from drosurv.patients.target import with_fields
from drosurv.predictions.predicted import score_type

NEED_LOG_HAZARDS = {
    name
    for name, metric in CATALOGUE.items()
    if metric.label and {"log hazard", "hazards"} & set(metric.needs)
}


def features(rng, n):
    X = rng.normal(size=(n, 3))
    return X, X @ [0.7, -0.4, 0.2], np.where(X[:, 0] > 0.5, "high", "low")


def censored(rng, died, rate=0.4):
    left = rng.exponential(1 / rate, len(died)) * np.median(died)
    return Surv.from_arrays(died <= left, np.minimum(died, left))


def weibull_aft(rng, n, sigma):
    X, log_risk, group = features(rng, n)
    died = np.exp(-log_risk + sigma * np.log(rng.exponential(size=n)))
    return X, censored(rng, died), group


@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_right_accelerated_failure_time_model_is_not_called_wrong(sigma):
    rng = np.random.default_rng(7)
    X, y, group = weibull_aft(rng, 1600, sigma)
    model = AcceleratedFailureTime("weibull").fit(X[:800], y[:800])
    with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
        # Nobody of the group with high risk is free of the event when a tenth of all patients is at risk.
        result = evaluate(
            model, X[800:], y[800:], y_train=y[:800], sensitive_features=group[800:], paper=True
        )
    assert set(result.groups["status"]).isdisjoint(PROBLEMS)
    assert result.groups["judged"].all()
    assert not NEED_LOG_HAZARDS & set(result.table["metric"])
    assert any("log times" in note and "F_I (censoring-aware), F_G," in note for note in result.notes)
    assert result.value("calibration_slope") == pytest.approx(1.0, abs=0.2)


def test_how_distances_are_taken_is_said_only_where_there_are_disparities():
    X, y, _ = weibull_aft(np.random.default_rng(0), 100, 1.0)
    for scores, said in (("log hazard", True), ("log time", False)):
        given = Predictions(risk=X[:, 0], score_type=scores)
        found = evaluate(given, 9 + X, y, paper=True)
        assert any("F_I takes distances" in note for note in found.notes) == said


def test_numbers_of_an_accelerated_failure_time_model_do_not_depend_on_the_unit_of_time_unless_they_are_times():
    rng = np.random.default_rng(1)
    X, y, group = weibull_aft(rng, 500, 1.0)
    months = Surv.from_arrays(y["event"], 30.4 * y["time"])
    tables = [
        evaluate(
            AcceleratedFailureTime("weibull").fit(X, seen), X, seen, sensitive_features=group
        ).table.set_index(["attribute", "group", "metric"])["value"]
        for seen in (y, months)
    ]
    factor = [30.4 if CATALOGUE[name].in_time else 1.0 for *_, name in tables[0].index]
    said = "a metric whose value is a time states in_time=True in the catalogue"
    np.testing.assert_allclose(tables[0], tables[1] / factor, atol=5e-3, err_msg=said)


def test_right_predictions_for_whole_years_have_a_slope_of_1():
    years, slopes = np.arange(1.0, 11.0), []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = 0.8 * rng.normal(size=600)
        died, left = np.ceil(rng.exponential(4 / np.exp(x))), np.ceil(rng.exponential(8.0, len(x)))
        y = Surv.from_arrays(died <= left, np.minimum(died, left))
        found = evaluate(Predictions(x, np.exp(-np.outer(np.exp(x), years) / 4), years), None, y)
        slopes.append(found.value("calibration_slope"))
        assert set(found.groups["status"]).isdisjoint(PROBLEMS)
    assert np.mean(slopes) == pytest.approx(1.0, abs=0.08)
    # A Cox model of tied events is biased.
    assert calibration_slope(y, x) < 0.9


def test_right_stratified_model_is_not_called_wrong():
    rng = np.random.default_rng(2)
    X, log_risk, group = features(rng, 1600)
    strata = rng.integers(0, 2, 1600)
    # Baseline hazards of different shapes and levels.
    died = (rng.exponential(size=1600) / np.exp(log_risk)) ** np.where(strata == 1, 2.0, 0.7) * (
        1 + 3 * strata
    )
    y = censored(rng, died)
    train, test = slice(0, 800), slice(800, None)
    model = CoxPH().fit(X[train], y[train], strata=strata[train])
    result = evaluate(model, X[test], y[test], strata=strata[test], sensitive_features=group[test])
    assert set(result.groups["status"]).isdisjoint(PROBLEMS)
    assert result.value("calibration_slope") == pytest.approx(1.0, abs=0.2)


def test_right_model_of_late_entry_is_not_called_wrong():
    rng = np.random.default_rng(3)
    X, log_risk, group = features(rng, 4000)
    died, entry = rng.exponential(size=4000) / np.exp(log_risk), rng.uniform(0, 1, 4000)
    y, seen = censored(rng, died), died > entry
    seen &= y["time"] > entry
    X, y, entry, group = X[seen], y[seen], entry[seen], group[seen]
    half = len(X) // 2
    model = CoxPH().fit(X[:half], with_fields(y[:half], entry=entry[:half]))
    result = evaluate(
        model, X[half:], with_fields(y[half:], entry=entry[half:]), sensitive_features=group[half:]
    )
    assert set(result.groups["status"]).isdisjoint(PROBLEMS)
    assert result.value("calibration_slope") == pytest.approx(1.0, abs=0.2)


def test_right_model_of_causes_is_not_called_wrong():
    rng = np.random.default_rng(4)
    X, log_risk, group = features(rng, 1600)
    first, second = (
        rng.exponential(size=1600) / np.exp(log_risk),
        rng.exponential(size=1600) / np.exp(-log_risk),
    )
    left = rng.exponential(1.5, 1600)
    time = np.minimum(np.minimum(first, second), left)
    cause = np.where(time == left, 0, np.where(first < second, 1, 2))
    y = Surv.competing(cause, time)
    model = CauseSpecificCox().fit(X[:800], y[:800])
    result = evaluate(model, X[800:], y[800:], sensitive_features=group[800:])
    assert set(result.groups["status"]).isdisjoint(PROBLEMS)
    assert result.value("calibration_slope") == pytest.approx(1.0, abs=0.2)


def test_random_survival_forest_has_no_share_of_gain():
    rng = np.random.default_rng(5)
    X, y, group = weibull_aft(rng, 900, 1.0)
    forest = ensemble.RandomSurvivalForest(10, min_samples_leaf=20, random_state=0).fit(X[:500], y[:500])
    result = evaluate(forest, X[500:], y[500:], y_train=y[:500], sensitive_features=group[500:])
    assert not NEED_LOG_HAZARDS & set(result.table["metric"])
    assert result.value("concordance_index") > 0.6
    assert result.groups["judged"].all()


def test_score_types_of_models():
    log_hazards = [
        CoxPH(),
        make_pipeline(StandardScaler(), CoxPH()),
        linear_model.CoxPHSurvivalAnalysis(),
        linear_model.CoxnetSurvivalAnalysis(),
        ensemble.GradientBoostingSurvivalAnalysis(),
        np.zeros(3),
        Predictions(risk=[0.0]),
    ]
    assert [score_type(model) for model in log_hazards] == ["log hazard"] * 7
    log_times = [
        AcceleratedFailureTime(),
        linear_model.IPCRidge(),
        ensemble.GradientBoostingSurvivalAnalysis(loss="ipcwls"),
        Predictions(risk=[0.0], score_type="log time"),
    ]
    assert [score_type(model) for model in log_times] == ["log time"] * 4

    class Unknown:
        def predict(self, X):
            return np.zeros(len(X))

    assert [score_type(model) for model in (ensemble.RandomSurvivalForest(), Unknown())] == ["other"] * 2
    with pytest.raises(ArgumentError, match="score_type"):
        Predictions(risk=[0.0], score_type="hazard")


def test_predictions_of_another_score_type_lose_only_what_needs_log_hazards():
    rng = np.random.default_rng(6)
    X, y, group = weibull_aft(rng, 300, 1.0)
    risk = CoxPH().fit(X, y).predict(X)
    kinds = ("log hazard", "other")
    full, other = (
        evaluate(Predictions(risk, score_type=kind), X, y, sensitive_features=group, paper=True).table
        for kind in kinds
    )
    lost = set(full["metric"]) - set(other["metric"])
    # There are no curves either, from which a slope could come, and no reference.
    assert lost == NEED_LOG_HAZARDS - {"share_of_gain"} | {"calibration_slope"}
    assert lost >= {"log_partial_likelihood", "gain_over_null", "individual_disparity", "mean_hazard"}
