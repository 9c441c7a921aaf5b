"""The estimation error of a Cox model against that of many fitted models."""

import numpy as np
import pandas as pd
import pytest

from drosurv import CoxPH, CoxPHCV, Surv
from drosurv.judging.from_predictions import judged_patients
from drosurv.judging.questions import group_sums
from drosurv.judging.residuals import EstimationError, martingale_residuals
from drosurv.patients.target import Target
from drosurv.predictions import as_predictions
from drosurv.report.cross_fit import cross_fitted, fold_parts


def draw(rng, n):
    X = rng.normal(size=(n, 2))
    time, end = rng.exponential(np.exp(-X @ [0.7, 0.3])), rng.uniform(0.5, 2, n)
    return X, Target(time <= end, np.minimum(time, end))


def test_the_variance_of_expected_events_over_many_training_sets():
    rng = np.random.default_rng(0)
    X, target = draw(rng, 300)
    group = X[:, 0] > 0.5
    totals, trained = [], []
    for _ in range(100):
        X_train, y = draw(rng, 200)
        model = CoxPH().fit(X_train, Surv.from_arrays(y.event, y.time))
        curves, scores = model._curves_and_scores(X)
        totals.append(curves.cumulative_hazard(scores, np.minimum(target.time, 1.9)[:, None])[group].sum())
        trained.append(y.n_events)
    rate = np.exp(X @ [0.7, 0.3])
    residuals = martingale_residuals(target, lambda t: (rate[:, None] * t,) * 2, until=1.9, parts=1)
    found = EstimationError(residuals, np.array([np.mean(trained)]), X).covariance(group * 1.0)
    assert np.sqrt(found[0, 0]) == pytest.approx(np.std(totals), rel=0.25)


def test_errors_of_cross_fitted_predictions_cancel_for_everybody():
    rng = np.random.default_rng(1)
    X, target = draw(rng, 400)
    rate = np.exp(X @ [0.7, 0.3])
    residuals = martingale_residuals(target, lambda t: (rate[:, None] * t,) * 2)
    error = EstimationError(residuals, np.ones(4), X, folds=np.arange(400) % 5)
    sums = residuals.sums(np.ones(400), error.covariance(np.ones(400)))
    ones = np.ones(4)
    assert ones @ (sums.model + sums.error) @ ones < 0.1 * ones @ sums.model @ ones
    assert sums.variance(ones) >= 0.3 * ones @ sums.model @ ones


def test_errors_of_a_parametric_baseline_cancel_only_for_the_whole_follow_up():
    rng = np.random.default_rng(2)
    X, target = draw(rng, 400)
    rate = np.exp(X @ [0.7, 0.3])
    residuals = martingale_residuals(target, lambda t: (rate[:, None] * t,) * 2)
    nonparametric_baseline, parametric = (
        EstimationError(
            residuals, np.ones(4), folds=np.arange(400) % 5, nonparametric_baseline=known
        ).covariance(np.ones(400))
        for known in (True, False)
    )
    total, contrast = np.ones(4), np.array([1.0, -1.0, 0.0, 0.0])
    assert total @ parametric @ total == pytest.approx(total @ nonparametric_baseline @ total, rel=0.05)
    assert abs(contrast @ parametric @ contrast) < 0.1 * -contrast @ nonparametric_baseline @ contrast


def test_the_variance_of_cross_fitted_predictions_over_many_cohorts():
    """Of everybody, of a group by a column of the model, and of one by chance: 7 coefficients, 100 events."""
    ratios = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(150, 7))
        time, end = rng.exponential(np.exp(-X[:, :2] @ [0.6, 0.4])), rng.uniform(0.5, 2.5, 150)
        y = Surv.from_arrays(time <= end, np.minimum(time, end))
        found = cross_fitted(CoxPH(), X, y, fold_parts(y["event"], 5, seed))
        judged = judged_patients(as_predictions(found, None, 150), y)
        groups = np.ones(150, bool), X[:, 0] > 0, rng.random(150) < 0.5
        for mask in groups:
            sums = group_sums(judged.residuals, mask, judged.error)
            ones = np.ones(len(sums.observed))
            ratios.append((sums.observed - sums.expected).sum() / np.sqrt(sums.variance(ones)))
    everybody, by_column, by_chance = np.std(np.reshape(ratios, (-1, 3)), axis=0)
    assert everybody < by_chance
    # Standard deviations of 20 cohorts vary by a sixth.
    assert by_column < 1.1 * by_chance
    assert 0.7 < by_chance < 1.25


@pytest.mark.parametrize("estimator", [CoxPH(), CoxPHCV(l2s=[0.1])], ids=["CoxPH", "CoxPHCV"])
def test_a_column_of_text_has_the_estimation_error_of_the_same_column_of_numbers(estimator):
    rng = np.random.default_rng(0)
    age, male = rng.normal(size=(200, 1)), rng.random(200) < 0.5
    time = rng.exponential(np.exp(-0.7 * age[:, 0] - 0.5 * male))
    y = Surv.from_arrays(time < 2, np.minimum(time, 2))
    covariances = []
    for sex in (np.where(male, "m", "f"), male.astype(float)):
        X = pd.DataFrame({"age": age[:, 0], "sex": sex})
        predicted = as_predictions(estimator.fit(X[:100], y[:100]), X[100:], 100)
        judged = judged_patients(predicted, y[100:])
        assert judged.error.columns is not None
        covariances.append(judged.error.covariance(age[100:, 0] * ~male[100:]))
    np.testing.assert_allclose(*covariances, rtol=1e-6)
