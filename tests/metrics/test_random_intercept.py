"""Ratios of hospitals against lme4, and what small ones and new ones get."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from drosurv.metrics import random_intercept

RECORDED = Path(__file__).parents[1] / "evaluation" / "fixtures" / "hospitals.json"


def test_the_numbers_are_those_of_glmer_in_r():
    recorded = json.loads(RECORDED.read_text())
    found = random_intercept(recorded["observed"], recorded["expected"])
    assert found.mean == pytest.approx(recorded["mean"], abs=2e-4)
    assert found.mean_error == pytest.approx(recorded["error"], rel=0.01)
    assert found.spread == pytest.approx(recorded["spread"], rel=2e-3)
    np.testing.assert_allclose(found.shrunken, recorded["shrunken"], rtol=2e-3)


def test_a_small_hospital_without_events_is_not_condemned():
    recorded = json.loads(RECORDED.read_text())
    found = random_intercept(recorded["observed"], recorded["expected"])
    assert recorded["observed"][-1] == 0
    assert found.low[-1] < 1 < found.high[-1]
    # Its ratio is nearly the mean of all.
    assert abs(np.log(found.shrunken[-1]) - found.mean) < 0.2
    assert found.new_low < found.low[-1] * 1.2
    assert found.new_low < 1 < found.new_high


def test_hospitals_that_differ_by_chance_only_are_all_alike():
    rng = np.random.default_rng(0)
    expected = rng.uniform(3, 30, 40)
    found = random_intercept(rng.poisson(expected), expected)
    assert found.spread < 0.15
    assert np.ptp(np.log(found.shrunken)) < 0.2
    assert found.mean_error == pytest.approx(1 / np.sqrt(expected.sum()), rel=0.3)


def test_intervals_of_new_hospitals_hold_their_share_of_them():
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(12):
        expected = rng.uniform(5, 60, 25)
        found = random_intercept(rng.poisson(expected * np.exp(rng.normal(0.1, 0.3, 25))), expected)
        new = np.exp(rng.normal(0.1, 0.3, 50))
        inside.append(((found.new_low < new) & (new < found.new_high)).mean())
    assert 0.88 < np.mean(inside) < 0.99


def test_without_events_a_new_hospital_has_no_upper_limit():
    with warnings.catch_warnings(action="error"):
        found = random_intercept(np.zeros(9), np.full(9, 0.1))
    assert (found.new_low, found.new_high) == (0, np.inf)
