import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from drosurv.metrics import log_partial_likelihood, share_of_gain
from drosurv.metrics.partial_likelihood import gain_over_null
from drosurv.patients.target import Surv


def cohort(seed=0, n=150):
    rng = np.random.default_rng(seed)
    risk = rng.normal(size=(n, 3)) @ [0.8, -0.4, 0.0]
    return Surv.from_arrays(rng.random(n) < 0.7, np.ceil(10 * rng.exponential(size=n) / np.exp(risk))), risk


def test_the_null_model_gains_nothing_and_its_likelihood_is_that_of_the_risk_set_sizes():
    y, risk = cohort()
    assert gain_over_null(y, np.full(len(y), 7.0)) == pytest.approx(0, abs=1e-12)
    sizes = [(y["time"] >= time).sum() for event, time in y if event]
    expected = log_partial_likelihood(y, risk) + np.log(sizes).mean()
    assert gain_over_null(y, risk) == pytest.approx(expected)


def test_without_events_there_is_no_gain_and_one_warning():
    y = Surv.from_arrays([False, False], [1.0, 2.0])
    with pytest.warns(UndefinedMetricWarning, match="no patient had the event") as told:
        assert np.isnan(gain_over_null(y, [1.0, 2.0]))
    assert len(told) == 1


def test_share_is_one_for_the_reference_itself_and_small_for_its_shadow():
    y, risk = cohort()
    assert share_of_gain(y, risk + 3, risk) == pytest.approx(1.0)
    assert 0 < share_of_gain(y, 0.02 * risk, risk) < 0.1
    with pytest.warns(UndefinedMetricWarning, match="the reference gains -"):
        assert np.isnan(share_of_gain(y, risk, -risk))
