import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sksurv.linear_model import CoxPHSurvivalAnalysis

from drosurv.metrics import calibration_slope
from drosurv.target import Surv


def cohort(seed, n=80, effect=0.7):
    rng = np.random.default_rng(seed)
    risk = rng.normal(size=n)
    time = np.ceil(8 * rng.exponential(size=n) / np.exp(effect * risk))
    return Surv.from_arrays(rng.random(n) < 0.7, time), risk, rng


@pytest.mark.parametrize("seed", range(20))
def test_slope_is_the_coefficient_of_a_cox_model_on_the_score(seed):
    y, risk, _ = cohort(seed)
    model = CoxPHSurvivalAnalysis(ties="breslow", tol=1e-12).fit(risk[:, None], y)
    assert calibration_slope(y, risk) == pytest.approx(model.coef_[0], rel=1e-6)


def test_scaling_the_scores_divides_the_slope_and_shifting_them_does_nothing():
    y, risk, _ = cohort(0)
    slope = calibration_slope(y, risk)
    assert calibration_slope(y, 1e-6 * risk + 50) == pytest.approx(slope * 1e6, rel=1e-5)
    assert calibration_slope(y, -300 * risk) == pytest.approx(-slope / 300, rel=1e-8)


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200])
def test_scores_of_any_size_have_a_slope(size):
    y, risk, _ = cohort(3)
    risk = np.round(8 * risk)
    assert calibration_slope(y, size * risk) * size == pytest.approx(calibration_slope(y, risk), rel=1e-9)


def test_whole_number_weights_are_copies():
    y, risk, rng = cohort(1)
    weight = rng.integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    expected = calibration_slope(y[rows], risk[rows])
    assert calibration_slope(y, risk, sample_weight=weight) == pytest.approx(expected, rel=1e-8)


def test_heavy_tails_do_not_lose_the_maximum():
    for seed in range(30):
        y, risk, rng = cohort(seed, n=30, effect=0.0)
        risk = rng.standard_cauchy(30) ** 3
        slope = calibration_slope(y, risk)
        model = CoxPHSurvivalAnalysis(ties="breslow", tol=1e-12, n_iter=500)
        standard = (risk / risk.std())[:, None]
        assert slope == pytest.approx(model.fit(standard, y).coef_[0] / risk.std(), rel=1e-4, abs=1e-8)


def test_undefined_and_infinite_slopes_are_told():
    y = Surv.from_arrays([True, True, False], [1.0, 2.0, 3.0])
    with pytest.warns(UndefinedMetricWarning, match=r"undefined \(NaN\)"):
        assert np.isnan(calibration_slope(y, [1.0, 1.0, 1.0]))
    with pytest.warns(UndefinedMetricWarning, match="highest"):
        assert calibration_slope(y, [3.0, 2.0, 1.0]) == np.inf
    with pytest.warns(UndefinedMetricWarning, match="lowest"):
        assert calibration_slope(y, [1.0, 2.0, 3.0]) == -np.inf
    with pytest.warns(UndefinedMetricWarning, match="do not vary"):
        assert np.isnan(calibration_slope(Surv.from_arrays([False, False], [1.0, 2.0]), [1.0, 2.0]))


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore")
def test_slope_equals_lifelines_where_no_times_are_tied():
    from lifelines import CoxPHFitter

    y, risk, rng = cohort(2, n=200)
    y["time"] += rng.random(200)
    data = pd.DataFrame({"risk": risk, "time": y["time"], "event": y["event"]})
    expected = CoxPHFitter().fit(data, "time", "event").params_["risk"]
    assert calibration_slope(y, risk) == pytest.approx(expected, rel=1e-4)
