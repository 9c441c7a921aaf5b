import numpy as np
import pytest
from sksurv.linear_model import CoxPHSurvivalAnalysis

from drosurv.metrics.calibration import _event_probability as event_probability
from drosurv.target import Target


@pytest.mark.parametrize("seed", range(4))
def test_probabilities_are_those_of_a_ridge_cox_model_with_ties(seed):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(150, 2))
    time = np.ceil(5 * rng.exponential(size=150) / np.exp(columns[:, 0]))
    target = Target(rng.random(150) < 0.6, time)
    model = CoxPHSurvivalAnalysis(alpha=0.3, ties="breslow", tol=1e-12).fit(columns, target.to_structured())
    expected = [1 - curve(4.0) for curve in model.predict_survival_function(columns)]
    np.testing.assert_allclose(event_probability(target, columns, 4.0, ridge=0.3), expected, rtol=1e-7)


def test_events_in_perfect_order_leave_finite_probabilities():
    target = Target(np.ones(5, dtype=bool), np.arange(1.0, 6.0))
    found = event_probability(target, -np.arange(5.0)[:, None], 3.5, ridge=1e-4)
    assert np.isfinite(found).all()
    assert found[0] > 0.99 > 0.01 > found[4]
