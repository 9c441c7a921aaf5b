import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.metrics import log_partial_likelihood
from drosurv.patients.target import Surv


def by_definition(event, time, risk, weight=None):
    weight = np.ones(len(time)) if weight is None else weight
    total = 0.0
    for i in np.flatnonzero(event):
        at_risk = (time >= time[i]) & (weight > 0)
        if weight[i] > 0:
            total += weight[i] * (risk[i] - np.logaddexp.reduce(risk[at_risk] + np.log(weight[at_risk])))
    return total


@pytest.mark.parametrize("spread", [1.0, 30.0, 1e3])
def test_value_equals_the_definition_with_ties_and_large_scores(spread):
    rng = np.random.default_rng(0)
    for _ in range(50):
        event, time = rng.random(30) < 0.6, rng.integers(0, 12, 30).astype(float)
        risk, weight = rng.normal(size=30) * spread, rng.choice([0.0, 0.5, 1.0, 3.0], 30)
        event[0], weight[0] = True, 1.0
        y = Surv.from_arrays(event, time)
        plain, weighted = by_definition(event, time, risk), by_definition(event, time, risk, weight)
        assert log_partial_likelihood(y, risk) == pytest.approx(plain / event.sum(), rel=1e-12)
        assert log_partial_likelihood(y, risk, per="patient") == pytest.approx(plain / 30, rel=1e-12)
        found = log_partial_likelihood(y, risk, sample_weight=weight)
        assert found == pytest.approx(weighted / weight[event].sum(), rel=1e-12)


def test_adding_a_constant_to_all_scores_changes_nothing():
    rng = np.random.default_rng(2)
    y, risk = Surv.from_arrays(rng.random(40) < 0.6, rng.integers(0, 12, 40)), rng.normal(size=40)
    assert log_partial_likelihood(y, risk + 800) == pytest.approx(log_partial_likelihood(y, risk), rel=1e-9)


def test_no_event_is_nan_with_a_warning_and_a_wrong_unit_is_refused():
    y = Surv.from_arrays([False, False], [1.0, 2.0])
    with pytest.warns(UndefinedMetricWarning, match="no patient had the event"):
        assert np.isnan(log_partial_likelihood(y, [0.0, 1.0]))
    with pytest.raises(ValueError, match="'event' or 'patient', got 'row'"):
        log_partial_likelihood(y, [0.0, 1.0], per="row")
