"""Observed risk within strata of predicted risk: brute force, derivatives by weights, and intervals of right models."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from drosurv.metrics.estimates import Estimates
from drosurv.metrics.nonparametric import KaplanMeier, aalen_johansen, incidence_estimates
from drosurv.metrics.risk_strata import EventsByTime, ObservedRisk, observed_given_risks
from drosurv.patients.target import Target


def patients(n, seed, *, other=False, early=1.0):
    """Right risks by time 3 and outcomes; patients at high risk are censored earlier."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    rate = 0.15 * np.exp(0.8 * x)
    time, left = rng.exponential(1 / rate), rng.exponential(8 * np.exp(-early * x))
    event, seen = time <= left, np.minimum(time, left)
    mark = event & (rng.random(n) < 0.4) if other else None
    target = Target(event if mark is None else event & ~mark, seen, other=mark)
    return target, 1 - np.exp(-3 * rate)


@pytest.mark.parametrize("other", [False, True])
def test_it_is_near_the_mean_of_the_curves_of_the_strata(other):
    target, risk = patients(400, 0, other=other)
    found = ObservedRisk.of(target, risk, 3.0)
    by_then = target.event & (target.time <= 3.0)
    outcomes = EventsByTime.of(3.0, target, risk)
    stratum = outcomes.stratum
    cause = np.where(target.event, 1, 0 if target.other is None else 2 * target.other)
    expected = sum(
        aalen_johansen(cause[own], target.time[own]).at(np.array([3.0]))[0] * own.mean()
        for own in (stratum == k for k in np.unique(stratum))
    )
    assert len(np.unique(stratum)) == by_then.sum() // 20
    # Predicted risks inside of a stratum change the mean a little.
    assert found.observed.value == pytest.approx(expected, abs=0.02)
    without = observed_given_risks(replace(outcomes, risk=None), risk)
    assert without.value == pytest.approx(expected, rel=1e-12)
    assert found.predicted == pytest.approx(risk.mean())
    assert (found.patients, found.left_out) == (400, 0)


def test_without_censoring_it_is_the_share_of_patients_with_the_event():
    target, risk = patients(200, 1)
    target = Target(np.ones(200, bool), target.time)
    found = ObservedRisk.of(target, risk, 3.0)
    assert found.observed.value == pytest.approx(np.mean(target.time <= 3.0))


@pytest.mark.parametrize("other", [False, True])
def test_the_influence_is_the_derivative_of_observed_less_expected_events(other):
    target, risk = patients(60, 2, other=other)
    stratum, weight = np.digitize(risk, [0.3, 0.5]), np.random.default_rng(0).choice([0.5, 1.0, 2.0], 60)
    outcomes = EventsByTime(3.0, target, weight, stratum)
    # Events expected if predictions are right up to a factor in each stratum.
    factor = [
        weight[own] @ outcomes.events[own] / (weight[own] @ risk[own])
        for own in (stratum == k for k in range(3))
    ]
    expected_events = np.array(factor)[stratum] * risk

    def difference(weight):
        changed = EventsByTime(3.0, target, weight, stratum)
        return float(weight @ (changed.events - expected_events)) / weight.sum()

    expected = np.empty(60)
    for row in range(60):
        step = 1e-4 * (np.arange(60) == row)
        expected[row] = weight[row] * (difference(weight + step) - difference(weight - step)) / 2e-4
    found = observed_given_risks(outcomes, risk)
    np.testing.assert_allclose(found.influence, expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("n", [200, 600])
def test_the_interval_covers_the_true_risk_where_censoring_depends_on_risk_inside_of_strata(n):
    missed, distances = [], []
    for seed in range(40):
        rng = np.random.default_rng([seed, n])
        eta = 0.8 * rng.normal(size=n)
        time, left = rng.exponential(np.exp(-eta)), rng.exponential(np.exp(-eta))
        target = Target(time <= left, np.minimum(time, left))
        found = ObservedRisk.of(target, 1 - np.exp(-0.6 * np.exp(eta)), 0.6)
        # Predictions are right: the true risk of the patients who are judged is their mean predicted one.
        interval = found.observed.interval(0.95)
        missed.append(not interval.low <= found.predicted <= interval.high)
        distances.append(found.observed.value - found.predicted)
    # Of 40 intervals with 95 %, 8 or more are missed in 1 of 1,000. Three standard errors of the mean distance.
    assert np.sum(missed) <= 7
    assert abs(np.mean(distances)) < 3 * np.std(distances, ddof=1) / np.sqrt(40)


def test_right_predictions_are_in_the_interval_where_high_risks_are_censored_early():
    missed, missed_by_kaplan_meier = [], []
    for seed in range(40):
        target, risk = patients(800, seed)
        found = ObservedRisk.of(target, risk, 3.0)
        interval = found.observed.interval(0.95)
        missed.append(not interval.low <= found.predicted <= interval.high)
        plain = incidence_estimates(target, np.array([3.0]))[0].interval(0.95)
        missed_by_kaplan_meier.append(not plain.low <= risk.mean() <= plain.high)
    # Of 40 intervals with 95 %, 8 or more are missed in 1 of 1,000.
    assert np.sum(missed) <= 7
    assert np.mean(missed_by_kaplan_meier) > 0.4


def test_patients_of_high_risk_who_were_not_followed_are_left_out():
    # Who was followed is decided in 13 strata of 60 patients.
    target, risk = patients(780, 3, early=0.0)
    high = risk > np.quantile(risk, 10 / 13)
    time = np.where(high, np.minimum(target.time, 1.5), target.time)
    short = Target(target.event & (time == target.time), time)
    found = ObservedRisk.of(short, risk, 3.0)
    assert found.left_out == pytest.approx(180, abs=1)
    own = ObservedRisk.of(short.take(~high), risk[~high], 3.0)
    assert found.predicted == pytest.approx(own.predicted, rel=0.01)
    assert found.observed.value == pytest.approx(own.observed.value, rel=0.02)


@pytest.mark.parametrize("kind", ["no event", "one patient", "nobody", "equal risks", "not followed"])
def test_degenerate_data_have_a_value_or_nan_and_no_interval(kind):
    n = 1 if kind == "one patient" else 30
    target, risk = patients(n, 4)
    if kind == "no event":
        target = Target(np.zeros(n, bool), np.full(n, 5.0))
    if kind == "equal risks":
        risk = np.zeros(n)
    if kind == "not followed":
        target = Target(target.event & (target.time < 2), np.minimum(target.time, 2.0))
    with warnings.catch_warnings(action="error"):
        rows = np.arange(0 if kind == "nobody" else n)
        found = ObservedRisk.of(target, risk, 3.0, rows=rows)
        interval = found.observed.interval(0.95)
    assert np.isfinite(found.observed.influence).all()
    if kind == "no event":
        assert (found.observed.value, found.value) == (0, 0)
    elif kind == "equal risks":
        assert found.observed.value == pytest.approx(1 - KaplanMeier.of(target).at(np.array([3.0]))[0])
    else:
        assert np.isnan(interval.low)


def test_the_interval_of_a_risk_with_few_events_is_near_the_exact_one():
    """Two events of 88 patients, nobody censored: the exact binomial interval is 0.3 to 8.0 %."""
    n, events = 88, 2
    event = np.arange(n) < events
    target = Target(event, np.where(event, 0.5, 2.0))
    found = ObservedRisk.of(target, np.full(n, 0.03), 1.0)
    (interval,) = Estimates([found.observed], None).intervals(0.95)
    exact = stats.binomtest(events, n).proportion_ci()
    assert interval.estimate == pytest.approx(events / n)
    assert interval.low == pytest.approx(exact.low, abs=0.004)
    assert interval.high == pytest.approx(exact.high, abs=0.01)
