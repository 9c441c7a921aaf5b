import numpy as np
import pytest
from sksurv import functions, metrics
from sksurv.linear_model import CoxPHSurvivalAnalysis

from drosurv import CoxPH, datasets
from drosurv.curves import StepFunction
from drosurv.metrics import integrated_brier_score

TIMES, VALUES = np.array([1.0, 2.0, 4.0]), np.array([0.9, 0.5, 0.2])


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.0), (2.0, -0.5)])
def test_values_equal_scikit_survivals_between_the_first_and_the_last_step(a, b):
    theirs = functions.StepFunction(TIMES, VALUES, a=a, b=b)
    ours = StepFunction(TIMES, VALUES, a, b)
    grid = np.linspace(1.0, 4.0, 31)
    np.testing.assert_array_equal(ours(grid), theirs(grid))
    np.testing.assert_array_equal(ours.x, theirs.x)
    np.testing.assert_array_equal(ours.y, theirs.y)
    assert (ours.a, ours.b) == (theirs.a, theirs.b)


def test_first_value_before_the_first_step_and_last_value_after_the_last():
    step = StepFunction(TIMES, VALUES)
    assert (step(0.0), step(100.0)) == (0.9, 0.2)
    assert step.domain == (0.0, np.inf)


def test_curves_work_in_metrics_of_scikit_survival_and_the_other_way_round():
    data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    X, y = data.X, data.y
    times = np.quantile(y[y.dtype.names[1]], [0.2, 0.4, 0.6])
    ours = CoxPH().fit(X, y).predict_survival_function(X)
    theirs = CoxPHSurvivalAnalysis(ties="breslow").fit(X, y).predict_survival_function(X)
    stacked = np.array([[curve(t) for t in times] for curve in ours])
    expected = metrics.integrated_brier_score(y, y, stacked, times)
    assert (
        metrics.integrated_brier_score(y, y, np.vstack([curve(times) for curve in ours]), times) == expected
    )
    assert integrated_brier_score(y, y, ours, times=times) == pytest.approx(expected)
    assert integrated_brier_score(y, y, theirs, times=times) == pytest.approx(expected, rel=1e-4)
