"""Events within strata of predicted risk: Kaplan-Meier in each, and numerical derivatives by weights."""

from dataclasses import replace

import numpy as np
import pytest

from drosurv.metrics.nonparametric import KaplanMeier, aalen_johansen
from drosurv.metrics.risk_strata import (
    EventsByTime,
    copies_per_patient,
    followed_until,
    observed_given_risks,
    risk_strata,
)
from drosurv.patients.target import Target

SETTINGS = ("plain", "tied", "causes", "weights")


def patients(setting, n=300, seed=3):
    rng = np.random.default_rng(seed)
    risk = rng.random(n)
    T, C = rng.exponential(1 / (0.2 + risk)), rng.exponential(2.0, n) + 0.2
    time, event = np.minimum(T, C), T <= C
    if setting == "tied":
        time, risk = np.ceil(4 * time) / 4, np.round(risk, 1)
    other = event & (rng.random(n) < 0.4) if setting == "causes" else None
    weight = rng.choice([0.0, 0.5, 1.0, 2.5], n) if setting == "weights" else np.ones(n)
    return Target(event if other is None else event & ~other, time, other=other), risk, weight


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_sum_over_a_stratum_is_that_of_kaplan_meier_or_aalen_johansen(setting):
    target, risk, weight = patients(setting)
    found = EventsByTime.of(1.3, target, risk, weight)
    assert len(np.unique(found.stratum)) > 2
    for k in np.unique(found.stratum):
        inside = found.stratum == k
        own = target.take(inside)
        if own.other is None:
            share = 1 - KaplanMeier.of(own, weight[inside]).at(np.array([1.3]))[0]
        else:
            cause = np.where(own.event, 1, np.where(own.other, 2, 0))
            share = aalen_johansen(cause, own.time).at(np.array([1.3]))[0]
        expected = weight[inside].sum() * share
        assert np.isclose((weight * found.events)[inside].sum(), expected, rtol=1e-12)


@pytest.mark.parametrize("setting", SETTINGS)
def test_influences_are_derivatives_by_weights(setting):
    target, risk, weight = patients(setting)
    weight, f = np.maximum(weight, 0.5), np.sin(5 * risk)
    found = EventsByTime.of(1.3, target, risk, weight)

    def total(w):
        again = replace(found, weight=w)
        return w @ (f * again.events)

    step, directions = 1e-6, np.random.default_rng(0).normal(size=(8, len(weight)))
    changed = [[total(weight * (1 + sign * step * way)) for sign in (1, -1)] for way in directions]
    numerical = -np.diff(changed)[:, 0] / (2 * step)
    assert np.allclose(directions @ found.influences(f), numerical, rtol=1e-6)


def test_outcomes_add_the_effect_of_conditional_risks_on_the_martingale_of_censoring():
    """Sums over all times of censoring, one patient after the other, of two strata."""
    n, until = 120, 1.3
    target, risk, _ = patients("plain", n)
    risk = 1 - (1 - risk) ** 2
    stratum = (risk > np.median(risk)).astype(int)
    plain = EventsByTime(until, target, np.ones(n), stratum)
    found = EventsByTime(until, target, np.ones(n), stratum, risk)
    passed = -np.log(KaplanMeier.of(target).at(np.append(target.time, until)))
    psi = passed[:-1] / passed[-1]
    expected, variances = plain.outcomes.copy(), np.zeros(n)
    for own in (np.flatnonzero(stratum == k) for k in range(2)):
        mean = risk[own].mean()
        lost = sorted(j for j in own if not target.event[j] and target.time[j] <= until)
        free = {}
        left = 1.0
        for j in sorted(lost, key=lambda j: target.time[j]):
            at_risk = np.sum(target.time[own] >= target.time[j])
            left *= 1 - 1 / at_risk
            free[j] = left, 1 / at_risk
        for i in own:
            for j in lost:
                conditional, at_mean = (1 - (1 - p) ** (1 - psi[j]) for p in (risk[i], mean))
                G, hazard = free[j]
                if target.time[i] >= target.time[j]:
                    expected[i] += (conditional - at_mean) * ((i == j) - hazard) / G
                variances[i] += conditional * (1 - conditional) * (1 - risk[i]) ** psi[j] * hazard / G
    # Conditional risks are computed in 64 intervals of the hazard.
    np.testing.assert_allclose(found.outcomes, expected, atol=0.01)
    np.testing.assert_allclose(found.variances_by_censoring, variances, rtol=0.03, atol=0.003)


def test_the_last_patients_count_by_their_conditional_risk_if_a_stratum_is_censored_before_the_time():
    time, risk = np.array([1.0, 2.0, 2.0, 3.0]), np.array([0.3, 0.4, 0.6, 0.5])
    target = Target(np.array([True, False, False, False]), time)
    found = EventsByTime(4.0, target, np.ones(4), np.zeros(4, int), risk)
    # All events happen before the first patient is censored: nothing is left to happen.
    assert found.outcomes.sum() == pytest.approx(found.events.sum())
    later = Target(np.array([False, False, False, True]), np.array([1.0, 2.0, 2.0, 9.0]))
    found = EventsByTime(4.0, later.take(np.arange(3)), np.ones(3), np.zeros(3, int), np.full(3, 0.4))
    # Nobody has the event: half of the time is left to the last two when they are censored.
    assert found.events.sum() == 0
    assert found.outcomes.sum() == pytest.approx(3 * (1 - 0.6**0.5), rel=1e-6)


def test_strata_have_about_equal_size_and_hold_equal_risks_together():
    rng = np.random.default_rng(0)
    risk = rng.random(1_000)
    counts = np.bincount(risk_strata(risk, 10))
    assert counts.min() >= 99
    assert counts.max() <= 101
    rounded = np.round(risk, 1)
    stratum = risk_strata(rounded, 40)
    assert all(len(np.unique(stratum[rounded == value])) == 1 for value in rounded)
    # A rounding error of a prediction makes no other strata.
    assert np.array_equal(stratum, risk_strata(rounded * (1 + 1e-15), 40))
    assert (np.diff(stratum[np.argsort(rounded)]) >= 0).all()


def test_the_observed_risk_does_not_depend_on_censoring_by_risk():
    """Where high risks are censored early, plain Kaplan-Meier is too low."""
    rng = np.random.default_rng(1)
    n = 40_000
    risk = np.repeat([0.1, 0.6], n // 2)
    T, C = rng.exponential(-1 / np.log1p(-risk)), rng.exponential(np.where(risk > 0.5, 0.4, 9.0))
    target = Target(T <= C, np.minimum(T, C))
    found = observed_given_risks(EventsByTime.of(1.0, target, risk), risk)
    interval = found.interval(0.999)
    assert interval.low < (T <= 1).mean() < interval.high
    assert 1 - KaplanMeier.of(target).at(np.array([1.0]))[0] < (T <= 1).mean() - 0.03


def test_only_censoring_decides_who_was_followed():
    rng = np.random.default_rng(2)
    n = 800
    risk = np.repeat([0.2, 0.9], n // 2)
    high = risk > 0.5
    # Nearly all of high risk have the event before the time; of low risk, all are censored before it.
    T = np.where(high, rng.exponential(0.1, n), 9.0)
    C = np.where(high, 5.0, rng.uniform(0.1, 0.9, n))
    followed = followed_until(1.0, Target(T <= C, np.minimum(T, C)), risk)
    assert followed[high].all()
    assert not followed[~high].any()


def test_the_design_effect_is_the_variance_of_sums_of_clusters_over_that_of_rows():
    rng = np.random.default_rng(0)
    values, clusters, weight = rng.normal(size=60), rng.integers(0, 20, 60), rng.integers(1, 4, 60) * 1.0
    mean = sum(weight * values) / sum(weight)
    sums = [sum(weight[clusters == k] * (values[clusters == k] - mean)) for k in range(20)]
    alone = sum(weight * (values - mean) ** 2)
    assert copies_per_patient(values, weight, clusters) == pytest.approx(max(sum(np.square(sums)) / alone, 1))
    assert copies_per_patient(values, weight, None) == 1
    assert copies_per_patient(
        np.repeat(values, 3), np.ones(180), np.repeat(np.arange(60), 3)
    ) == pytest.approx(3)


@pytest.mark.parametrize("copies", [2, 5])
def test_copies_in_clusters_are_in_the_strata_of_one_row_each(copies):
    rng = np.random.default_rng(1)
    risk = rng.uniform(0.1, 0.9, 500)
    T, C = rng.exponential(-1 / np.log1p(-risk)), rng.exponential(1.5, 500)
    target, rows = Target(T <= C, np.minimum(T, C)), np.repeat(np.arange(500), copies)
    one = EventsByTime.of(1.0, target, risk)
    several = EventsByTime.of(1.0, target.take(rows), risk[rows], None, rows)
    assert one.stratum.max() > 5
    np.testing.assert_array_equal(several.stratum, one.stratum[rows])
    np.testing.assert_allclose(several.outcomes, one.outcomes[rows], atol=1e-9)
    assert EventsByTime.of(1.0, target.take(rows), risk[rows]).stratum.max() > one.stratum.max()
    kept = followed_until(2.5, target, risk)
    np.testing.assert_array_equal(followed_until(2.5, target.take(rows), risk[rows], None, rows), kept[rows])
