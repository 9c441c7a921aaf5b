"""Calibration curves against R, simulated truth, and what small groups get."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import t

from drosurv import CauseSpecificCox, Surv, evaluate
from drosurv.evaluation.calibration_curves import calibration_curves
from drosurv.metrics.risk_strata import ObservedRisk
from drosurv.patients.target import Target

FIXTURES = Path(__file__).parent / "fixtures"
ALL = ("overall", "all")


def outcomes(risk, happened):
    """Outcomes by time 1 without censoring."""
    time = np.where(happened, 0.5, 2.0)
    return ObservedRisk.of(Target(happened, time), risk, 1.0)


def simulated(n, seed, factor=1.0):
    """Risks by time 1 whose hazards are too small by a factor, with censoring that depends on them."""
    rng = np.random.default_rng(seed)
    hazard = 0.4 * np.exp(0.8 * rng.normal(size=n))
    time, left = rng.exponential(1 / (factor * hazard)), rng.exponential(1 / np.sqrt(hazard))
    target = Target(time <= left, np.minimum(time, left))
    return ObservedRisk.of(target, 1 - np.exp(-hazard), 1.0)


def test_without_censoring_the_curve_and_the_slope_are_those_of_glm_in_r():
    recorded = json.loads((FIXTURES / "calibration_curves.json").read_text())
    risk, y = np.array(recorded["p"]), np.array(recorded["y"]) == 1
    assert 100 <= y.sum() <= 300, "four knots, as in R"
    found = calibration_curves({ALL: outcomes(risk, y)})
    at = np.interp(recorded["at"], found.points["predicted"], found.points["observed"])
    # The curve is read between 41 points.
    np.testing.assert_allclose(at, recorded["cloglog"], atol=0.001)
    np.testing.assert_allclose(at, recorded["logit"], atol=0.02)
    (numbers,) = found.numbers.to_dict("records")
    assert numbers["slope"] == pytest.approx(recorded["slope"], rel=1e-5)
    assert numbers["ratio"] == pytest.approx(y.sum() / risk.sum())


def test_with_censoring_the_curve_is_the_true_one():
    found = calibration_curves({ALL: simulated(20_000, 0, factor=1.7)})
    points = found.points
    truth = 1 - (1 - points["predicted"]) ** 1.7
    assert (points["kind"] == "spline").all()
    assert ((points["low"] < truth) & (truth < points["high"])).all()
    np.testing.assert_allclose(points["observed"], truth, atol=0.06)
    (numbers,) = found.numbers.to_dict("records")
    assert numbers["ici"] == pytest.approx(np.mean(truth - points["predicted"]), abs=0.03)
    assert numbers["slope_low"] < 1 < numbers["slope_high"], "hazards differ by a factor only"
    assert numbers["ratio_low"] > 1.2


def test_the_curve_of_a_right_model_is_mostly_within_its_band():
    inside = 0
    for seed in range(20):
        points = calibration_curves({ALL: simulated(500, seed)}).points
        inside += ((points["low"] <= points["predicted"]) & (points["predicted"] <= points["high"])).all()
    # Of 20 runs with 95 %, fewer than 16 happen in 1 of 400.
    assert inside >= 16


def test_small_groups_get_parts_or_one_point_with_an_interval():
    risk = np.linspace(0.05, 0.3, 100)
    happened = np.arange(100) % 7 == 0
    groups = {("size", str(n)): outcomes(risk[:n], happened[:n]) for n in (100, 10)}
    found = calibration_curves(groups)
    of = dict([*found.points.groupby("group")])
    # 15 events, five for each part.
    assert of["100"]["kind"].unique() == ["parts"]
    assert of["100"]["patients"].sum() == 100
    assert len(of["100"]) == 3
    assert of["100"]["observed"] @ of["100"]["patients"] == pytest.approx(happened.sum())
    (point,) = of["10"].to_dict("records")
    assert point["kind"] == "point"
    assert point["observed"] == pytest.approx(0.2)
    # Two events of ten, with nine degrees of freedom, and the spread around risks in proportion to the predicted ones.
    error = np.std(happened[:10] - 0.2 * risk[:10] / risk[:10].mean(), ddof=1) / np.sqrt(10)
    assert logit(point["high"]) - logit(0.2) == pytest.approx(t.isf(0.025, 9) * error / (0.2 * 0.8))
    assert np.isnan(found.numbers["ici"]).all()


def test_equal_predictions_are_one_point_and_no_event_has_no_interval():
    found = calibration_curves({ALL: outcomes(np.full(60, 0.1), np.zeros(60, bool))})
    assert found.points[["kind", "observed"]].to_numpy().tolist() == [["point", 0.0]]
    assert found.points[["low", "high"]].isna().to_numpy().all()
    (numbers,) = found.numbers.to_dict("records")
    assert numbers["ratio"] == 0
    assert np.isnan([numbers["ratio_low"], numbers["ratio_high"], numbers["slope"]]).all()


def test_the_plot_has_a_panel_for_each_group_with_its_numbers(evaluated):
    result = evaluated()
    figure = result.plot_calibration("site")
    assert [ax.get_title() for ax in figure.axes] == ["site a", "site b"]
    numbers = result.calibration_curves.numbers.set_index(["attribute", "group"]).loc[("site", "a")]
    (corner,) = [text.get_text() for text in figure.axes[0].texts]
    assert corner.startswith(f"O/E {numbers['ratio']:.2f} ({numbers['ratio_low']:.2f} to ")
    counts = result.calibration_curves.histogram.groupby("attribute")["patients"].sum()
    assert (counts == 240).all()
    with pytest.raises(ValueError, match="attribute must be one of"):
        result.plot_calibration("race")


def test_of_one_cause_events_and_risks_are_those_of_its_incidence():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    time, cause = rng.exponential(np.exp(-X[:, 0])), np.where(rng.random(400) < 0.6, 1, 2)
    y = Surv.competing(cause, time)
    model = CauseSpecificCox().fit(X, y)
    result = evaluate(model, X, y, cause=1, horizon=0.8)
    (numbers,) = result.calibration_curves.numbers.to_dict("records")
    # Nobody is censored.
    assert numbers["observed"] == pytest.approx(((cause == 1) & (time <= 0.8)).sum())
    incidence = model.predict_cumulative_incidence(X, times=[0.8], cause=1)
    assert numbers["expected"] == pytest.approx(np.asarray(incidence).sum(), rel=1e-6)
    curve = result.decision_curves
    above = np.asarray(incidence).ravel()[:, None] >= curve["threshold"].to_numpy()
    happened = ((cause == 1) & (time <= 0.8))[:, None]
    odds = curve["threshold"] / (1 - curve["threshold"])
    expected = (above & happened).mean(axis=0) - odds * (above & ~happened).mean(axis=0)
    np.testing.assert_allclose(curve["net_benefit"], expected, atol=1e-12)
