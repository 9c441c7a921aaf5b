"""Ridge paths against scikit-survival's elastic net, and against single fits."""

from dataclasses import replace

import numpy as np
import pytest

from drosurv import CoxPH, Surv
from drosurv.losses.cox_partial import CoxPartial
from drosurv.patients.target import parse_target
from drosurv.solvers import Problem, TrainingData
from drosurv.solvers.convex import LinearProblem, minimise
from drosurv.solvers.ridge_path import Start, ridge_fits, ridge_path


def sample(n=300, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    time = rng.exponential(size=n) * np.exp(-X[:, 0] + 0.5 * X[:, 1])
    return X, Surv.from_arrays(rng.random(n) < 0.6, time)


def path(X, y, l2s, **loss):
    ridges = np.outer(l2s, np.ones(X.shape[1]))
    found, status = ridge_path(
        X, CoxPartial(parse_target(y), **loss), np.full(len(X), 1 / len(X)), ridges, 1e-10
    )
    assert set(status) == {"converged"}
    return found


def test_the_path_is_that_of_scikit_survivals_elastic_net():
    from sksurv.linear_model import CoxnetSurvivalAnalysis

    X, y = sample()
    l2s = np.geomspace(1.0, 1e-3, 8)
    # Its objective is the mean loss plus alpha ((1 - l1_ratio) / 2 ||b||^2 + l1_ratio ||b||_1).
    peer = CoxnetSurvivalAnalysis(alphas=l2s, l1_ratio=1e-12, normalize=False, tol=1e-14, max_iter=10**6)
    np.testing.assert_allclose(path(X, y, l2s), peer.fit(X, y).coef_.T, atol=1e-5)


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_each_point_is_the_fit_with_its_penalty_in_any_order(ties):
    X, y = sample(200, 4, seed=1)
    y["time"] = np.ceil(5 * y["time"])
    l2s = [0.01, 1.0, 0.0, 0.1]
    found = path(X, y, l2s, ties=ties)
    for l2, coef in zip(l2s, found, strict=True):
        np.testing.assert_allclose(coef, CoxPH(l2=l2, ties=ties, tol=1e-10).fit(X, y).coef_, atol=1e-5)


def test_a_penalty_of_each_coefficient_is_a_change_of_units():
    X, y = sample(150, 3, seed=2)
    ridge, loss = np.array([0.01, 0.1, 1.0]), CoxPartial(parse_target(y))
    found = ridge_path(X, loss, np.full(150, 1 / 150), ridge[None], 1e-10)[0][0]
    wanted = CoxPH(l2=1.0).fit(X / np.sqrt(ridge), y).coef_ / np.sqrt(ridge)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_more_columns_than_rows_have_the_same_optima():
    X, y = sample(40, 70, seed=3)
    factor = np.where(np.arange(70) % 3 == 0, 5.0, 1.0)
    ridges = np.stack([0.3 * np.ones(70), 0.1 * factor, 3.0 * np.ones(70), 2.0 * factor])
    found, status = ridge_path(X, CoxPartial(parse_target(y)), np.full(40, 1 / 40), ridges, 1e-10)
    assert set(status) == {"converged"}
    for ridge, coef in zip(ridges, found, strict=True):
        wanted = CoxPH(l2=1.0, tol=1e-10).fit(X / np.sqrt(ridge), y).coef_ / np.sqrt(ridge)
        np.testing.assert_allclose(coef, wanted, atol=1e-5)


def test_separated_data_have_no_optimum_without_a_penalty():
    X = np.arange(40.0)[:, None] / 40
    y = Surv.from_arrays(np.ones(40, dtype=bool), np.arange(40.0)[::-1] + 1)
    loss = CoxPartial(parse_target(y))
    found, status = ridge_path(X, loss, np.full(40, 1 / 40), np.array([[0.1], [0.0]]))
    assert status == ["converged", "separated"]
    assert np.isfinite(found).all()


def test_models_that_are_fitted_together_have_the_optima_of_the_path():
    X, y = sample(400, 5, seed=5)
    loss, mass = CoxPartial(parse_target(y)), np.full(400, 1 / 400)
    l2s = np.geomspace(10.0, 1e-4, 20)
    ridges = np.outer(l2s, [1.0, 1.0, 3.0, 3.0, 1.0])
    wanted = ridge_path(X, loss, mass, ridges, 1e-12)[0]
    found, start = ridge_fits(X, loss, mass, ridges, tol=1e-12)
    np.testing.assert_allclose(found, wanted, atol=1e-7)
    # From the start of other patients; without a good one, models are fitted one by one.
    rows = np.arange(300)
    part = loss.take(rows), np.full(300, 1 / 300)
    wanted = ridge_path(X[rows], *part, ridges, 1e-12)[0]
    np.testing.assert_allclose(ridge_fits(X[rows], *part, ridges, start, 1e-12)[0], wanted, atol=1e-7)
    flat = Start(np.full(5, 3.0), 1e-3 * np.eye(5))
    np.testing.assert_allclose(ridge_fits(X[rows], *part, ridges, flat, 1e-12)[0], wanted, atol=1e-7)


def test_separated_patients_are_fitted_by_their_penalties():
    X, y = sample(60, 2, seed=6)
    X[:, 0] = -np.argsort(np.argsort(y["time"])) / 60
    ridges = np.outer([1.0, 1e-2, 1e-4], np.ones(2))
    loss, mass = CoxPartial(parse_target(y)), np.full(60, 1 / 60)
    wanted = ridge_path(X, loss, mass, ridges, 1e-12)[0]
    np.testing.assert_allclose(ridge_fits(X, loss, mass, ridges, tol=1e-12)[0], wanted, rtol=1e-5)


class ReadRows:
    """Features that are not an array: rows are copied when they are read."""

    def __init__(self, X):
        self.given, self.shape = X, X.shape

    def __len__(self):
        return len(self.given)

    def __getitem__(self, rows):
        return self.given[rows].copy()

    def __array__(self, dtype=None, copy=None):
        return self.given


@pytest.mark.parametrize(("features", "late"), [(3, False), (30, False), (3, True)])
def test_rows_that_are_computed_when_read_give_the_same_models(features, late):
    X, y = sample(1200, features, seed=7)
    target = parse_target(y)
    target = replace(target, entry=0.1 * target.time) if late else target
    loss, mass = CoxPartial(target), np.full(1200, 1 / 1200)
    ridges = np.outer(np.geomspace(1.0, 1e-3, 4), np.ones(features))
    wanted = ridge_fits(X, loss, mass, ridges, tol=1e-12)[0]
    np.testing.assert_allclose(ridge_fits(ReadRows(X), loss, mass, ridges, tol=1e-12)[0], wanted, atol=1e-9)


def test_the_optimum_is_that_of_features_in_memory():
    X, y = sample(20_000, 13, seed=8)
    # One feature is constant among compared patients.
    X[:, 3] = np.arange(20_000) % 2
    target = replace(parse_target(y), stratum=np.arange(20_000) % 2)
    criterion = Problem(TrainingData.parse(X, target, None), CoxPartial(target)).criterion
    problems = [LinearProblem(given, criterion, 0.01) for given in (X, ReadRows(X))]
    wanted, found = (minimise(problem, max_iter=100) for problem in problems)
    assert found.status == wanted.status == "converged"
    assert found.x[3] == 0.0
    np.testing.assert_allclose(found.x, wanted.x, atol=1e-9)
