"""Scores at times of censoring, such as whole years or the end of follow-up: those censored then are free of the event.

Their weight is 1 / G(t-), and that of events 1 / G(Y-).
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu
from sksurv.metrics import concordance_index_ipcw, cumulative_dynamic_auc
from sksurv.metrics import integrated_brier_score as sksurv_brier

from drosurv.metrics import (
    FollowUp,
    brier_score_by_cause,
    concordance_by_cause,
    integrated_brier_score,
    uno_concordance,
)
from drosurv.metrics.dynamic_auc import dynamic_auc_curve
from drosurv.patients.target import Surv

YEARS = np.array([2.0, 3.0, 4.0])


def yearly(seed, n, censored=True):
    """Events and censoring in whole years, with P(T > k | x) = exp(-.25 k exp(x)); half are of cause 2."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    time = np.ceil(rng.exponential(4.0, n) / np.exp(x))
    last = np.ceil(rng.exponential(5.0, n)) if censored else np.full(n, np.inf)
    # A patient censored in a year was seen at its end.
    event = time <= last
    return x, event * rng.integers(1, 3, n), np.minimum(np.minimum(time, last), 40.0)


def survival(x, at):
    return np.exp(-0.25 * np.asarray(at) * np.exp(x)[:, None])


def not_censored_before(time, event, at):
    """G(t-) by Kaplan-Meier of censoring, events first at ties, from its definition."""
    value = 1.0
    for t in np.unique(time[~event]):
        if t < at:
            at_risk = np.sum(time > t) + np.sum((time == t) & ~event)
            value *= 1 - np.sum((time == t) & ~event) / at_risk
    return value


@pytest.fixture(scope="module")
def small():
    x, cause, time = yearly(0, 150)
    event = cause > 0
    weight = np.array([not_censored_before(time, event, t) for t in time])
    return x, cause, event, time, weight


def test_brier_scores_equal_the_definition(small):
    x, cause, event, time, before = small
    y = Surv.from_arrays(event, time)
    reached = np.array([not_censored_before(time, event, t) for t in YEARS])
    predicted = survival(x, YEARS)
    dead = (time[:, None] <= YEARS) & event[:, None]
    free = (time[:, None] >= YEARS) & ~dead
    weight = np.where(dead, 1 / before[:, None], free / reached)
    # The weights of all patients together are the number of patients.
    np.testing.assert_allclose(weight.mean(axis=0), 1.0)
    expected = (weight * (predicted - free) ** 2).mean(axis=0)
    for k in (0, 1):
        found = integrated_brier_score(y, y, predicted[:, k : k + 2], YEARS[k : k + 2])
        assert found == pytest.approx(expected[k : k + 2].mean())
    happened = dead & (cause == 2)[:, None]
    np.testing.assert_allclose(
        brier_score_by_cause(FollowUp.parse(y), cause, time, 0.5 * (1 - predicted), YEARS, of=2),
        (weight * (happened - 0.5 * (1 - predicted)) ** 2).mean(axis=0),
    )


def test_brier_scores_equal_those_with_the_weights_of_prodlim():
    folder = Path(__file__).parent / "fixtures"
    patients, expected = (pd.read_csv(folder / f"brier_yearly{name}.csv") for name in ("_data", ""))
    cause, time = patients["cause"].to_numpy(), patients["time"].to_numpy(dtype=float)
    y, predicted = Surv.from_arrays(cause > 0, time), survival(patients["x"].to_numpy(), YEARS)
    of_any, of_second = (
        expected.loc[expected["event"] == name, "brier"].to_numpy() for name in ("any", "cause 2")
    )
    for k in (0, 1):
        found = integrated_brier_score(y, y, predicted[:, k : k + 2], YEARS[k : k + 2])
        assert found == pytest.approx(of_any[k : k + 2].mean(), abs=1e-12)
    found = brier_score_by_cause(FollowUp.parse(y), cause, time, 0.5 * (1 - predicted), YEARS, of=2)
    np.testing.assert_allclose(found, of_second, atol=1e-12)


def test_auc_and_uno_s_concordance_equal_the_definition(small):
    x, _, event, time, before = small
    y = Surv.from_arrays(event, time)
    right = (x[:, None] > x) + 0.5 * (x[:, None] == x)
    for year, found in zip(YEARS, dynamic_auc_curve(y, y, x, YEARS).auc, strict=True):
        dead = (time <= year) & event
        pairs = dead[:, None] * ((time >= year) & ~dead) / before[:, None]
        assert found == pytest.approx((pairs * right).sum() / pairs.sum())
    later = (time > time[:, None]) | ((time == time[:, None]) & ~event)
    pairs = event[:, None] * later / before[:, None] ** 2
    np.fill_diagonal(pairs, 0.0)
    assert uno_concordance(y, y, x) == pytest.approx((pairs * right).sum() / pairs.sum())


def test_yearly_data_recover_the_truth():
    x, cause, time = yearly(1, 40_000)
    _, _, whole = yearly(1, 40_000, censored=False)
    y, predicted = Surv.from_arrays(cause > 0, time), survival(x, YEARS)
    truth = ((predicted - (whole[:, None] > YEARS)) ** 2).mean(axis=0)
    for k in (0, 1):
        found = integrated_brier_score(y, y, predicted[:, k : k + 2], YEARS[k : k + 2])
        assert found == pytest.approx(truth[k : k + 2].mean(), abs=0.004)
        # The published convention gives the events too much weight.
        table = integrated_brier_score(y, y, predicted[:, k : k + 2], YEARS[k : k + 2], grid="table")
        assert table > truth[k : k + 2].mean() + 0.015
    by_cause = brier_score_by_cause(FollowUp.parse(y), cause, time, 0.5 * (1 - predicted), YEARS)
    of_first = (whole[:, None] <= YEARS) & (np.random.default_rng(2).random(len(x)) < 0.5)[:, None]
    np.testing.assert_allclose(by_cause, ((of_first - 0.5 * (1 - predicted)) ** 2).mean(axis=0), atol=0.006)
    assert concordance_by_cause(cause, time, x) > 0.5


def test_the_published_convention_equals_scikit_survival(small):
    x, _, event, time, _ = small
    y = Surv.from_arrays(event, time)
    train, predicted = Surv.from_arrays(np.append(event, False), np.append(time, 50.0)), survival(x, YEARS)
    assert integrated_brier_score(train, y, predicted, YEARS, grid="table") == pytest.approx(
        sksurv_brier(train, y, predicted, YEARS)
    )
    found = dynamic_auc_curve(train, y, x, YEARS, grid="table")
    np.testing.assert_allclose(found.auc, cumulative_dynamic_auc(train, y, x, YEARS)[0])
    # Uno's C has no published table; it follows the definition.
    assert uno_concordance(train, y, x) != pytest.approx(concordance_index_ipcw(train, y, x)[0], rel=1e-6)


@pytest.fixture(scope="module")
def cut():
    """Patients with drop-out, and the same patients censored at time 1.5, where nobody drops out."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=400)
    cause, time, last = rng.integers(1, 3, 400), rng.exponential(np.exp(-x)), rng.exponential(3.0, 400)
    cause, time = np.where(time <= last, cause, 0), np.minimum(time, last)
    later = time > 1.5
    return x, (cause, time), (np.where(later, 0, cause), np.minimum(time, 1.5))


def test_censoring_at_the_last_time_changes_no_score_at_that_time(cut):
    """Where all are censored at the horizon the scores are those of scikit-survival with later follow-up."""
    x, whole, ended = cut
    (y, now), at = (Surv.from_arrays(cause > 0, time) for cause, time in (whole, ended)), [0.5, 1.5]
    predicted = np.exp(-np.array(at) * np.exp(x)[:, None])
    expected = sksurv_brier(y, y, predicted, at)
    for train in (y, now):
        assert integrated_brier_score(train, now, predicted, at) == pytest.approx(expected, rel=1e-12)
        found = dynamic_auc_curve(train, now, x, at).auc
        np.testing.assert_allclose(found, cumulative_dynamic_auc(y, y, x, at)[0], rtol=1e-12)
    by_cause = [
        brier_score_by_cause(
            FollowUp.parse(Surv.from_arrays(cause > 0, time)), cause, time, 1 - predicted, at
        )
        for cause, time in (whole, ended)
    ]
    np.testing.assert_allclose(by_cause[1], by_cause[0], rtol=1e-12)


def test_scores_where_follow_up_ends_are_those_of_complete_follow_up():
    rng = np.random.default_rng(6)
    x, at = rng.normal(size=40_000), np.array([1.0, 1.5])
    whole, last = rng.exponential(np.exp(-x)), np.minimum(rng.exponential(3.0, len(x)), 1.5)
    y = Surv.from_arrays(whole <= last, np.minimum(whole, last))
    predicted, free = np.exp(-at * np.exp(x)[:, None]), whole[:, None] > at
    truth = ((predicted - free) ** 2).mean(axis=0)
    assert integrated_brier_score(y, y, predicted, at) == pytest.approx(truth.mean(), abs=0.002)
    ranks = mannwhitneyu(x[~free[:, 1]], x[free[:, 1]]).statistic / (free[:, 1].sum() * (~free[:, 1]).sum())
    assert dynamic_auc_curve(y, y, x, at).auc[1] == pytest.approx(ranks, abs=0.005)


def test_at_the_last_time_events_come_before_censoring():
    """Of five patients with the last time two have the event then, and three are free of it."""
    y = Surv.from_arrays([1, 0, 1, 1, 0, 0, 0], [1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0])
    predicted, before = np.array([[0.8, 0.6]] * 7), 5 / 6
    at_one = (0.8**2 + 6 * 0.2**2) / 7
    at_two = (0.6**2 + (2 * 0.6**2 + 3 * 0.4**2) / before) / 7
    found = integrated_brier_score(y, y, predicted, [1.0, 2.0])
    assert found == pytest.approx((at_one + at_two) / 2)
    # One event at 1 and two at 2 against three patients who are free of it.
    curve = dynamic_auc_curve(y, y, [3.0, 0.0, 2.0, 0.0, 1.0, 1.0, 1.0], [2.0])
    assert curve.auc[0] == pytest.approx((1 + 1 / before) / (1 + 2 / before))
