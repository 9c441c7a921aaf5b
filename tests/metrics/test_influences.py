"""Influences of patients on metrics: numerical derivatives by weights, numbers of R, and degenerate data."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from drosurv.evaluation.calibration_curves import fit_regression
from drosurv.judging.few_times import cloglog
from drosurv.judging.own_curve import OwnCurve
from drosurv.judging.residual_tests import mean_estimate, standard_error
from drosurv.metrics.brier import brier_estimates, brier_skill, integrated_brier_score
from drosurv.metrics.calibration_slope import calibration_slope, slope_estimate, slope_of_curves_estimate
from drosurv.metrics.concordance import concordance_estimate, concordance_index, uno_concordance, uno_estimate
from drosurv.metrics.decisions import DECISION_METRICS, decision_estimates, weighted_decision_estimates
from drosurv.metrics.dynamic_auc import auc_estimate, dynamic_auc
from drosurv.metrics.estimates import Estimate, Estimates
from drosurv.metrics.follow_up import FollowUp
from drosurv.metrics.nonparametric import KaplanMeier, incidence_estimates
from drosurv.metrics.partial_likelihood import (
    gain_over_null,
    likelihood_estimates,
    log_partial_likelihood,
    share_of_gain,
)
from drosurv.metrics.risk_strata import EventsByTime, ObservedRisk
from drosurv.patients.target import Target

TIMES = np.array([0.7, 1.3, 2.2, 3.0])


class Patients:
    """Outcomes, scores and predictions of patients, in one of several settings."""

    def __init__(self, setting, n=30, seed=5):
        rng = np.random.default_rng(seed)
        score = rng.normal(size=n)
        event_time = 3 * (rng.exponential(size=n) / np.exp(0.8 * score)) ** 0.8
        censored = np.minimum(rng.exponential(5.0, n), 6.0)
        time, event = np.minimum(event_time, censored), event_time <= censored
        if setting != "plain":
            # Times of events and censorings, and scores, are tied.
            time, score = np.ceil(4 * time) / 4, np.round(score, 1)
        other = event & (rng.random(n) < 0.4) if setting == "causes" else None
        if other is not None:
            event = event & ~other
        entry = time * rng.choice([0.0, 0.3, 0.5], n) if setting == "entry" else None
        self.target = Target(event, time, entry, other=other)
        self.risk = 0.8 * score
        self.weight = rng.choice([0.5, 1.0, 2.5], n) if setting == "weights" else np.ones(n)
        self.survival = np.exp(-np.exp(self.risk)[:, None] * (TIMES / 3) ** 1.2)


def brier(which, **how):
    return lambda p, w: getattr(brier_estimates(p.target, p.survival, TIMES, w, **how), which)


def likelihood(which):
    return lambda p, w: getattr(likelihood_estimates(p.target, p.risk, w, np.sin(p.risk)), which)


def slope_of_curves(p, w):
    since = 0.0 if p.target.entry is None else p.target.entry**1.2
    expected = np.exp(p.risk) * (p.target.time**1.2 - since) / 3**1.2
    return slope_of_curves_estimate(p.target.event.astype(float), expected, p.risk, w)


def decision(metric):
    def estimate(p, w):
        return decision_estimates(p.target, p.survival[:, 2] < 0.5, 0.5, TIMES[2], w)[metric]

    return estimate


def in_strata(p, w, horizon=TIMES[2]):
    """Events by the horizon, weighted in three strata of predicted risk that do not depend on the weights."""
    target, risk = Target(p.target.event, p.target.time, other=p.target.other), 1 - p.survival[:, 2]
    return EventsByTime(horizon, target, w, np.digitize(risk, [0.4, 0.6]), risk)


def weighted_decision(metric):
    def estimate(p, w):
        # The second threshold divides a stratum.
        thresholds = np.array([0.4, 0.5])
        return weighted_decision_estimates(1 - p.survival[:, 2], in_strata(p, w), thresholds, [metric])[
            metric
        ][1]

    return estimate


def calibration_curve(p, w):
    """Slope of the regression of the outcome at a horizon on predicted risks."""
    risk = 1 - p.survival[:, 2]
    outcomes = ObservedRisk(risk, in_strata(p, w), np.arange(len(w)), None, risk)
    x = cloglog(outcomes.risk)
    fitted = None
    if outcomes.patients > 0 and outcomes.events.any():
        fitted = fit_regression(outcomes, np.column_stack([np.ones(len(x)), x]))
    return Estimate.undefined(len(w)) if fitted is None else Estimate(fitted.coef[1], fitted.influence[:, 1])


SETTINGS = ("plain", "tied", "causes", "weights", "entry")
WITHOUT_ENTRY = SETTINGS[:-1]
# Of each metric: its function of patients and weights, and the settings in which it is defined.
METRICS = {
    "concordance": (lambda p, w: concordance_estimate(p.target, p.risk, w), SETTINGS),
    "uno": (lambda p, w: uno_estimate(p.target, p.risk, w), WITHOUT_ENTRY),
    "uno until": (lambda p, w: uno_estimate(p.target, p.risk, w, until=2.5), WITHOUT_ENTRY),
    "brier": (brier("score"), WITHOUT_ENTRY),
    "brier at a time": (
        lambda p, w: brier_estimates(p.target, p.survival[:, :1], TIMES[:1], w).score,
        WITHOUT_ENTRY,
    ),
    "skill": (brier("skill"), WITHOUT_ENTRY),
    "skill against a given curve": (brier("skill", null=np.exp(-0.2 * TIMES)), WITHOUT_ENTRY),
    "auc": (lambda p, w: auc_estimate(p.target, p.risk, TIMES, w), WITHOUT_ENTRY),
    "auc at a time": (lambda p, w: auc_estimate(p.target, p.risk, TIMES[1:2], w), WITHOUT_ENTRY),
    "incidence": (lambda p, w: incidence_estimates(p.target, TIMES, w)[2], SETTINGS),
    "mean of some": (lambda p, w: mean_estimate(p.risk, p.target.event, w), SETTINGS),
    "slope": (lambda p, w: slope_estimate(p.target, p.risk, w), SETTINGS),
    "slope of curves": (slope_of_curves, SETTINGS),
    "slope of a calibration curve": (calibration_curve, WITHOUT_ENTRY),
    "log partial likelihood": (likelihood("likelihood"), WITHOUT_ENTRY),
    "gain": (likelihood("gain"), WITHOUT_ENTRY),
    "share of gain": (likelihood("share"), WITHOUT_ENTRY),
    **{metric: (decision(metric), WITHOUT_ENTRY) for metric in DECISION_METRICS},
    **{f"weighted {metric}": (weighted_decision(metric), WITHOUT_ENTRY) for metric in DECISION_METRICS},
}
CASES = [(name, setting) for name, (_, settings) in METRICS.items() for setting in settings]


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_influences_are_the_numerical_derivative_in_any_direction_of_the_weights(name, setting):
    patients, metric = Patients(setting), METRICS[name][0]
    found = metric(patients, patients.weight)
    # The values of slopes are those of Newton's method.
    step, tolerance = (2e-3, 1e-6) if name.startswith("slope") else (1e-4, 1e-7)
    directions, expected = np.random.default_rng(0).normal(size=(5, len(patients.weight))), []
    for direction in directions:
        # Differences that are exact for polynomials of degree 4.
        weights = (patients.weight * (1 + steps * step * direction) for steps in (1, -1, 2, -2))
        values = [metric(patients, changed).value for changed in weights]
        expected.append(np.dot([8, -8, -1, 1], values) / (12 * step))
    size = np.abs(expected).max()
    assert size > 0
    np.testing.assert_allclose(directions @ found.influence, expected, atol=tolerance * size)
    # A factor of all weights changes no value.
    assert found.influence.sum() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("depends", [0, 1])
@pytest.mark.parametrize("setting", ["plain", "tied", "causes", "weights", "not followed"])
def test_influences_on_decisions_are_the_derivative_if_thresholds_divide_strata(setting, depends):
    rng, n, thresholds = np.random.default_rng(depends), 400, np.array([0.15, 0.3, 0.5])
    x = rng.normal(size=n)
    risk = -np.expm1(-0.5 * np.exp(x))
    time, left = rng.exponential(np.exp(-x)), rng.exponential(np.exp(-depends * x))
    if setting == "not followed":
        # All patients of the strata with the threshold .15 are censored before the time.
        left[risk < 0.2] = np.minimum(left, 0.3)[risk < 0.2]
    event, time = time <= left, np.minimum(time, left)
    if setting == "tied":
        time, risk = np.ceil(20 * time) / 20, np.round(risk, 2)
    other = event & (rng.random(n) < 0.3) if setting == "causes" else None
    target = Target(event if other is None else event & ~other, time, other=other)
    weight = rng.choice([0.0, 0.5, 1.0, 2.5], n) if setting == "weights" else np.ones(n)
    one = EventsByTime.of(0.5, target, risk, weight)
    for threshold in thresholds:
        sides = [set(one.stratum[own].tolist()) for own in (risk >= threshold, risk < threshold)]
        assert len(sides[0] & sides[1]) == 1

    def values(weight):
        found = weighted_decision_estimates(risk, replace(one, weight=weight), thresholds)
        return np.array([[number.value for number in numbers] for numbers in found.values()])

    step, directions = 3e-6, rng.normal(size=(8, n))
    changes = np.array(
        [
            np.tensordot([8, -8, -1, 1], [values(weight * (1 + k * step * own)) for k in (1, -1, 2, -2)], 1)
            for own in directions
        ]
    ) / (12 * step)
    found = weighted_decision_estimates(risk, one, thresholds)
    for numbers, of_metric in zip(found.values(), changes.transpose(1, 2, 0), strict=True):
        for number, change in zip(numbers, of_metric, strict=True):
            assert np.abs(change).max() > 0
            np.testing.assert_allclose(
                directions @ number.influence, change, atol=1e-6 * np.abs(change).max()
            )


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_a_row_of_weight_two_is_two_rows(name, setting):
    patients, metric = Patients(setting), METRICS[name][0]
    weight = np.where(
        np.arange(len(patients.weight)) % 3 == 0, 2.0, np.arange(len(patients.weight)) % 3 - 1.0
    )
    rows = np.repeat(np.arange(len(weight)), weight.astype(int))
    copied = Patients(setting)
    copied.target, copied.risk = patients.target.take(rows), patients.risk[rows]
    copied.survival = patients.survival[rows]
    found, expected = metric(patients, weight), metric(copied, np.ones(len(rows)))
    if name != "log partial likelihood":  # It depends on the number of rows.
        assert found.value == pytest.approx(expected.value, abs=1e-9 if name.startswith("slope") else 1e-12)
    sums = np.bincount(rows, expected.influence, len(weight))
    np.testing.assert_allclose(found.influence, sums, atol=1e-8 if name.startswith("slope") else 1e-12)


def decisions_by_hand(y, positive, threshold, horizon, w):
    """Measures of a decision from one minus Kaplan-Meier among patients above and below the threshold."""
    share = w[positive].sum() / w.sum()
    risk, risk_below = (
        1 - KaplanMeier.of(y.take(rows), w[rows]).at(np.array([horizon]))[0] for rows in (positive, ~positive)
    )
    tp, fp, fn, tn = (
        *(share * risk, share * (1 - risk)),
        *((1 - share) * risk_below, (1 - share) * (1 - risk_below)),
    )
    values = tp / (tp + fn), tn / (tn + fp), risk, 1 - risk_below, tp - threshold / (1 - threshold) * fp
    return dict(zip(DECISION_METRICS, values, strict=True))


@pytest.mark.parametrize("setting", SETTINGS)
def test_values_are_those_of_the_metrics(setting):
    p = Patients(setting)
    y, w, own = p.target, p.weight, FollowUp.of(p.target, p.weight)
    values = {
        "concordance": concordance_index(y, p.risk, w),
        "uno": uno_concordance(own, y, p.risk, sample_weight=w),
        "uno until": uno_concordance(own, y, p.risk, sample_weight=w, tau=2.5),
        "brier": integrated_brier_score(own, y, p.survival, TIMES, sample_weight=w),
        "skill": brier_skill(own, y, p.survival, TIMES, sample_weight=w),
        "auc": dynamic_auc(own, y, p.risk, TIMES, sample_weight=w),
        "slope": calibration_slope(y, p.risk, sample_weight=w),
        "log partial likelihood": log_partial_likelihood(y, p.risk, sample_weight=w * len(w) / w.sum()),
        "gain": gain_over_null(y, p.risk, sample_weight=w),
        "share of gain": share_of_gain(y, p.risk, np.sin(p.risk), sample_weight=w),
        "incidence": 1 - KaplanMeier.of(y, w, entry=y.entry).at(TIMES[2:3])[0],
    }
    if y.entry is None:
        values |= decisions_by_hand(y, p.survival[:, 2] < 0.5, 0.5, TIMES[2], w)
    for name, expected in values.items():
        if setting in METRICS[name][1]:
            assert METRICS[name][0](p, w).value == pytest.approx(expected, rel=1e-12), name


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(
    "kind",
    ["no events", "all events", "one patient", "two patients", "perfect scores", "one weight", "no weight"],
)
def test_degenerate_data_have_a_value_or_nan_and_no_warning(name, kind):
    patients = Patients("plain", n={"one patient": 1, "two patients": 2}.get(kind, 30))
    n = len(patients.weight)
    if kind == "no events":
        patients.target = replace(patients.target, event=np.zeros(n, bool))
    if kind == "all events":
        patients.target = replace(patients.target, event=np.ones(n, bool))
    if kind == "perfect scores":
        patients.risk = -patients.target.time
    if kind == "one weight":
        patients.weight = (np.arange(n) == 3).astype(float)
    if kind == "no weight":
        patients.weight = np.zeros(n)
    with warnings.catch_warnings(action="error"):
        found = METRICS[name][0](patients, patients.weight)
        interval = found.interval(0.95)
    assert found.influence.shape == (n,)
    assert np.isfinite(found.influence).all()
    assert np.isnan(interval.low) or interval.low <= found.value <= interval.high


def test_gains_over_a_curve_of_these_patients_have_the_standard_error_of_findings():
    rng = np.random.default_rng(0)
    own = OwnCurve(
        interval=rng.integers(0, 4, 80),
        happened=rng.random(80) < 0.5,
        copies=np.ones(80),
        steps=np.full(4, 0.2),
        summed=rng.uniform(0, 0.2, 80),
    )
    gains, member = rng.normal(size=80), rng.random(80) < 0.6
    found = mean_estimate(gains, member, np.ones(80), own)
    assert found.value == pytest.approx(gains[member].mean())
    expected = standard_error(gains, member, own_curve=own)[0]
    # The factors of the variance are n / (n - 1), of all patients and of the members.
    assert Estimates([found]).standard_errors[0] == pytest.approx(expected, rel=0.02)


def test_values_and_standard_errors_are_those_of_r():
    """Numbers of survival::concordance and riskRegression::Score, recorded by fixtures/influences.R."""
    folder = Path(__file__).parent / "fixtures"
    patients, recorded = (pd.read_csv(folder / f"influences{name}.csv") for name in ("_data", ""))
    # R's concordance has no factor n / (n - 1) of the variance, and takes Uno's weights as known. With ties,
    # riskRegression's influences on the curve of censoring differ a little from its derivative.
    tolerances = {"concordance": 1e-9, "uno": 2e-2, "auc": 1e-6, "brier": 1e-4}
    for setting, numbers in recorded.groupby("setting"):
        own = patients[patients["setting"] == setting]
        status, risk = own["status"].to_numpy(), own["risk"].to_numpy()
        target = Target(status == 1, own["time"].to_numpy(), other=status == 2)
        at, survival = np.array([2.1]), 1 - own[["probability"]].to_numpy()
        found = {
            "concordance": concordance_estimate(target, risk),
            "uno": uno_estimate(target, risk),
            "auc": auc_estimate(target, risk, at),
            "brier": brier_estimates(target, survival, at).score,
        }
        for row in numbers.itertuples():
            assert found[row.metric].value == pytest.approx(row.value, rel=1e-9)
            error = Estimates([found[row.metric]]).standard_errors[0]
            if row.metric in ("concordance", "uno"):
                error *= np.sqrt(1 - 1 / len(own))
            tolerance = tolerances[row.metric]
            if setting == "tied" and row.metric != "concordance":
                tolerance = 1e-2
            assert error == pytest.approx(row.error, rel=tolerance), (setting, row.metric)
