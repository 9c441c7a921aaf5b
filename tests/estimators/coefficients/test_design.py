"""Constant, dependent and separating features, against fits that show them."""

import warnings

import numpy as np
import pytest

from drosurv import CoxPH, Surv
from drosurv.estimators import check_design
from drosurv.patients.target import Target


def simulated(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X, time = rng.normal(size=(n, 3)), rng.integers(1, 30, n).astype(float)
    return X, Target(rng.random(n) < 0.6, time), rng


def test_nothing_is_found_in_ordinary_features():
    X, target, _ = simulated()
    check = check_design(X, target, ["a", "b", "c"])
    assert (check.constant, check.collinear, check.separating) == ((), (), ())
    assert check.warnings == []


def test_dependent_features_are_named_with_those_that_determine_them():
    X, target, rng = simulated()
    X = np.column_stack([X, 2 * X[:, 0] - 3 * X[:, 2] + 7, rng.normal(size=len(X)), 1e6 * X[:, 1]])
    check = check_design(X, target, list("abcdef"))
    assert check.collinear == (("d", "a", "c"), ("f", "b"))
    assert "d is a linear combination of a, c" in check.warnings[0]


def test_features_without_standard_errors_are_those_that_are_found():
    X, target, _ = simulated()
    X = np.column_stack([X, np.full(len(X), 3.0), X[:, 0] + X[:, 1]])
    check = check_design(X, target, list("abcde"))
    errors = CoxPH().fit(X, target.to_structured()).summary(names=list("abcde"))["se(coef)"]
    found = {*check.constant, *(name for members in check.collinear for name in members)}
    assert found == set(errors.index[errors.isna()]) == {"a", "b", "d", "e"}


def test_features_are_compared_within_strata():
    X, target, rng = simulated()
    stratum = rng.integers(0, 3, len(X))
    # Constant in every stratum, and dependent in every stratum with another intercept.
    X = np.column_stack([X, stratum**2, X[:, 0] + 10 * stratum])
    names = list("abcde")
    within = check_design(X, Target(target.event, target.time, stratum=stratum), names)
    assert within.constant == ("d",)
    assert within.collinear == (("e", "a"),)
    overall = check_design(X, target, names)
    assert (overall.constant, overall.collinear) == ((), ())


@pytest.mark.parametrize("sign", [1, -1])
def test_a_category_without_events_and_a_perfect_order_are_separating(sign):
    X, target, _ = simulated()
    rare = np.zeros(len(X))
    rare[np.flatnonzero(~target.event)[:9]] = 1
    # The earliest event has the highest value.
    X = np.column_stack([X[:, 0], sign * rare, -sign * target.time])
    check = check_design(X, target, ["a", "rare", "order"])
    assert check.separating == ("rare", "order")
    assert "rare, order: the coefficient is infinite" in check.warnings[-1]
    # The coefficient of a separating feature grows as its ridge shrinks; the other's does not.
    y = Surv.from_arrays(target.event, target.time)
    with warnings.catch_warnings(action="ignore"):
        strong, weak = (CoxPH(l2=l2).fit(X[:, :2], y).coef_ for l2 in (1e-3, 1e-7))
    assert abs(weak[1]) > 3 + abs(strong[1])
    assert weak[0] == pytest.approx(strong[0], abs=0.05)


def test_every_separating_feature_is_extreme_at_every_event():
    # By the definition, risk set by risk set, on small samples with ties and strata.
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(200):
        X, time = rng.integers(0, 2, (6, 4)).astype(float), rng.integers(1, 4, 6).astype(float)
        event, stratum = rng.random(6) < 0.4, rng.integers(0, 2, 6)
        target = Target(event, time, stratum=stratum)
        sets = [(i, (time >= time[i]) & (stratum == stratum[i])) for i in np.flatnonzero(event)]
        highest = np.array([all(X[i, j] == X[r, j].max() for i, r in sets) for j in range(4)])
        lowest = np.array([all(X[i, j] == X[r, j].min() for i, r in sets) for j in range(4)])
        wanted = np.flatnonzero((highest | lowest) & ~(highest & lowest))
        assert check_design(X, target, list("abcd")).separating == tuple("abcd"[j] for j in wanted)
        found += len(wanted)
    assert found > 50
