import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import PoissonRegressor
from sksurv.linear_model import CoxPHSurvivalAnalysis

from drosurv.metrics import calibration_slope, calibration_slope_interval, calibration_slope_of_curves
from drosurv.patients.target import Surv, with_fields


def cohort(seed, n=80, effect=0.7):
    rng = np.random.default_rng(seed)
    risk = rng.normal(size=n)
    time = np.ceil(8 * rng.exponential(size=n) / np.exp(effect * risk))
    return Surv.from_arrays(rng.random(n) < 0.7, time), risk, rng


@pytest.mark.parametrize("seed", range(4))
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


def test_heavy_tails_do_not_lose_the_maximum():
    for seed in range(8):
        y, risk, rng = cohort(seed, n=30, effect=0.0)
        risk = rng.standard_cauchy(30) ** 3
        slope = calibration_slope(y, risk)
        model = CoxPHSurvivalAnalysis(ties="breslow", tol=1e-12, n_iter=500)
        standard = (risk / risk.std())[:, None]
        assert slope == pytest.approx(model.fit(standard, y).coef_[0] / risk.std(), rel=1e-4, abs=1e-8)


def test_undefined_and_infinite_slopes_warn():
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


def by_definition(time, event, risk, entry, stratum, weight):
    """Slope that maximises the partial likelihood, written as loops."""

    def loss(b):
        total = 0.0
        for i in np.flatnonzero(event & (weight > 0)):
            at_risk = (time >= time[i]) & (entry < time[i]) & (stratum == stratum[i])
            total -= weight[i] * (b * risk[i] - np.log(weight[at_risk] @ np.exp(b * risk[at_risk])))
        return total

    return minimize_scalar(loss, bounds=(-10, 10), method="bounded", options={"xatol": 1e-9}).x


@pytest.mark.parametrize("seed", range(2))
def test_entry_times_and_strata_limit_the_risk_sets(seed):
    y, risk, rng = cohort(seed)
    entry, stratum = np.floor(y["time"] * rng.random(80)) - 0.5, rng.choice(["a", "b", "c"], 80)
    weight = rng.integers(0, 3, 80).astype(float)
    everybody, always = np.zeros(80), np.full(80, -1.0)
    for given in ({"entry": entry.clip(0)}, {"strata": stratum}, {"entry": entry.clip(0), "strata": stratum}):
        expected = by_definition(
            y["time"], y["event"], risk, given.get("entry", always), given.get("strata", everybody), weight
        )
        late = with_fields(y, entry=given.get("entry"))
        found = calibration_slope(late, risk, sample_weight=weight, strata=given.get("strata"))
        assert found == pytest.approx(expected, abs=1e-6)


def test_undefined_and_infinite_slopes_warn_with_late_entry():
    y = Surv.from_arrays([True, True, True], [1.0, 2.0, 4.0])
    with pytest.warns(UndefinedMetricWarning, match="highest"):
        assert calibration_slope(with_fields(y, entry=[0.0, 0.0, 2.0]), [3.0, 2.0, 5.0]) == np.inf
    with pytest.warns(UndefinedMetricWarning, match="do not vary"):
        assert np.isnan(calibration_slope(with_fields(y, entry=[0.0, 1.0, 2.0]), [3.0, 2.0, 5.0]))


def test_slope_of_curves_is_that_of_a_poisson_model():
    rng = np.random.default_rng(0)
    z, expected = rng.normal(size=300), rng.exponential(size=300)
    events, weight = rng.poisson(expected * np.exp(0.3 - 0.4 * z)), rng.integers(0, 3, 300).astype(float)
    model = PoissonRegressor(alpha=0.0, tol=1e-12, max_iter=1000)
    model.fit(z[:, None], events / expected, sample_weight=weight * expected)
    found = calibration_slope_of_curves(events, expected, z, sample_weight=weight)
    assert found == pytest.approx(1 + model.coef_[0], abs=1e-5)
    rows = np.repeat(np.arange(300), weight.astype(int))
    assert calibration_slope_of_curves(events[rows], expected[rows], z[rows]) == pytest.approx(found)
    # A patient who is expected to have no event, whatever the score, tells nothing.
    further = {"events": [0, 0], "expected": [0, 0], "log_risk": [-4000.0, 4000.0], "sample_weight": [1, 1]}
    given = {"events": events, "expected": expected, "log_risk": z, "sample_weight": weight}
    with_extremes = {name: np.append(given[name], further[name]) for name in given}
    assert calibration_slope_of_curves(**with_extremes) == pytest.approx(found, rel=1e-12)


def test_slope_of_curves_of_nearly_equal_skewed_predictions_is_that_of_the_likelihood():
    """Newton's steps alone go back and forth here, and end on the wrong side of zero."""
    rng = np.random.default_rng(0)
    z = 1.5 * rng.gamma(1.0, size=1500)
    time = rng.exponential(size=1500) * np.exp(-z)
    events, follow_up = time <= 1, np.minimum(time, 1)

    def loss(b):
        return (
            events.sum() * np.log(follow_up @ np.exp((b - 1) * 0.01 * z)) - (b - 1) * 0.01 * z[events].sum()
        )

    expected = minimize_scalar(loss, bounds=(-500, 500), method="bounded", options={"xatol": 1e-6}).x
    assert calibration_slope_of_curves(events, follow_up, 0.01 * z) == pytest.approx(expected, rel=1e-3)
    assert expected == pytest.approx(100, rel=0.15)


def test_slope_of_curves_is_one_for_a_right_model_and_the_simulated_one_otherwise():
    rng = np.random.default_rng(0)
    risk = rng.normal(size=20_000)
    time = rng.exponential(size=20_000) / np.exp(0.4 * risk)
    events, follow_up = time <= 1, np.minimum(time, 1)
    assert calibration_slope_of_curves(events, np.exp(risk) * follow_up, risk) == pytest.approx(0.4, abs=0.05)
    right = calibration_slope_of_curves(events, np.exp(0.4 * risk) * follow_up, 0.4 * risk)
    assert right == pytest.approx(1, abs=0.12)


def test_slope_of_curves_is_free_of_units_and_warns_where_undefined():
    z = np.array([0.0, 1.0, 2.0, 3.0])
    hazard = np.array([0.5, 0.5, 1.0, 2.0])
    assert calibration_slope_of_curves([0, 1, 0, 1], hazard, z) == pytest.approx(
        calibration_slope_of_curves([0, 1, 0, 1], hazard, z + np.log(30.4))
    )
    with pytest.warns(UndefinedMetricWarning, match="do not vary"):
        assert np.isnan(calibration_slope_of_curves([0, 1, 0, 1], hazard, np.ones(4)))
    with pytest.warns(UndefinedMetricWarning, match="do not vary"):
        assert np.isnan(calibration_slope_of_curves([0, 0, 0, 0], hazard, z))
    with pytest.warns(UndefinedMetricWarning, match="inf"):
        assert calibration_slope_of_curves([0, 0, 0, 1], hazard, z) == np.inf
    with pytest.raises(ValueError, match="expected must have one value per patient"):
        calibration_slope_of_curves([0, 1, 0, 1], hazard[:2], z)


KINDS = ("plain", "strata", "entry", "cause", "log time")


def right_model(kind, rng, n=400):
    """Events, predicted cumulative hazards while under observation, and log risk of an exactly right model."""
    x, stratum = rng.normal(size=n), rng.integers(3, size=n)
    shape = {"strata": np.array([0.5, 1.0, 3.0])[stratum], "log time": 2.0}.get(kind, 1.0)
    unit = np.array([0.3, 1.0, 2.0])[stratum] if kind == "strata" else 1.0

    def hazard(t):
        return np.exp(x) * (t / unit) ** shape

    entry = rng.uniform(0, 1, n) if kind == "entry" else np.zeros(n)
    time = unit * ((hazard(entry) + rng.exponential(size=n)) / np.exp(x)) ** (1 / shape)
    censored = entry + rng.exponential(2.0, size=n)
    if kind == "cause":
        censored = np.minimum(censored, rng.exponential(np.exp(x)))
    events = time <= censored
    return events, hazard(np.minimum(time, censored)) - hazard(entry), np.log(hazard(1.0))


@pytest.mark.parametrize("kind", KINDS)
def test_right_models_of_every_kind_have_slope_1_at_the_nominal_rate(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    found = [
        calibration_slope_interval(events=d, expected=h, log_risk=z)
        for d, h, z in (right_model(kind, rng) for _ in range(100))
    ]
    assert np.mean([one.estimate for one in found]) == pytest.approx(1.0, abs=0.03)
    # 5 of 100 are expected; none or more than 12 in fewer than one of a hundred cases.
    assert 1 <= sum(one.p < 0.05 for one in found) <= 12


def test_training_events_widen_the_interval_by_the_error_of_the_fit():
    y, risk, _ = cohort(4)
    given, fitted = (
        calibration_slope_interval(y, risk),
        calibration_slope_interval(y, risk, training_events=2 * y["event"].sum()),
    )
    assert fitted.estimate == given.estimate
    reach = 1.959964 * given.standard_error
    assert (given.low, given.high) == pytest.approx((given.estimate - reach, given.estimate + reach))
    assert given.p == pytest.approx(2 * norm.sf(abs(given.estimate - 1) / given.standard_error))
    assert fitted.standard_error == pytest.approx(given.standard_error * np.sqrt(1.5))
