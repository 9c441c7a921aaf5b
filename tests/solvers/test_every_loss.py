"""Neighbourhood averages between every loss and every objective, from the definitions written out."""

import numpy as np
import pytest
from scipy import optimize
from scipy.special import logsumexp

from drosurv.losses.cox_partial import CoxPartial
from drosurv.losses.cox_split import CoxSplit
from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.objectives.chi_square import ChiSquare
from drosurv.objectives.cvar import CVaR
from drosurv.objectives.objective import Blocks, Mean
from drosurv.patients.target import Target
from drosurv.solvers import Criterion, LinearProblem, minimise
from drosurv.solvers.adam import adam
from drosurv.solvers.neighborhoods import Partitions

from ..differences import differences

RNG = np.random.default_rng(0)
N, D, ALPHA = 40, 2, 0.3
X = RNG.normal(size=(N, D))
TIME = np.ceil(10 * RNG.exponential(size=N) * np.exp(-0.8 * X[:, 0]))
EVENT = RNG.random(N) < 0.7
TARGET = Target(EVENT, TIME)
FIRST = np.arange(N) % 2 == 0
WEIGHT = RNG.integers(1, 4, N).astype(float)
LABELS = np.stack([RNG.integers(0, 4, N) for _ in range(3)])


def averaging(weight):
    """The matrix that averages over the patients of the same cell, by weight."""
    same = (LABELS[:, :, None] == LABELS[:, None]) * weight
    return (same / same.sum(axis=2, keepdims=True)).mean(axis=0)


W = averaging(np.ones(N))


def partial_likelihood(scores, psi):
    at_risk = TIME[None, :] >= TIME[:, None]
    return EVENT * (logsumexp(np.where(at_risk, scores, -np.inf), axis=1) - scores)


def split_likelihood(scores, psi):
    compared = (FIRST[:, None] != FIRST) & (TIME[None, :] >= TIME[:, None]) | np.eye(N, dtype=bool)
    return EVENT * (logsumexp(np.where(compared, scores, -np.inf), axis=1) - scores)


def cumulative(psi):
    edges = np.concatenate([[0.0], PiecewiseExponential(TARGET, 3).intervals.cut_points, [np.inf]])
    spent = np.maximum(np.minimum(TIME[:, None], edges[1:]) - edges[:-1], 0.0)
    return spent @ np.exp(psi), (TIME[:, None] > edges[None, 1:-1]).sum(axis=1)


def full_likelihood(scores, psi):
    base, interval = cumulative(psi)
    return np.exp(scores) * base - EVENT * (scores + psi[interval])


LOSSES = {
    "partial": (lambda: CoxPartial(TARGET), partial_likelihood),
    "split": (lambda: CoxSplit(TARGET, FIRST), split_likelihood),
    "full": (lambda: PiecewiseExponential(TARGET, 3), full_likelihood),
}
HALVES = [np.flatnonzero(FIRST), np.flatnonzero(~FIRST)]
OBJECTIVES = {
    "mean": (Mean, None),
    "paper": (lambda: ChiSquare(ALPHA, "paper"), None),
    "tight": (lambda: ChiSquare(ALPHA), None),
    "cvar": (lambda: CVaR(ALPHA), None),
    "halves": (lambda: CVaR(ALPHA), HALVES),
}


def criterion_of(name, objective, offset=None, weight=None):
    make, blocks = OBJECTIVES[objective]
    mass = np.full(N, 1 / N) if weight is None else weight / weight.sum()
    around = Partitions(LABELS, weight)
    return Criterion(LOSSES[name][0](), make(), mass, blocks, neighborhoods=around, null_losses=offset)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", LOSSES)
def test_any_objective_takes_the_averages_of_any_loss(name, objective, weight):
    offset = RNG.normal(size=N)
    criterion = criterion_of(name, objective, offset, weight)
    share = np.ones(N) if weight is None else weight
    W, mass = averaging(share), share / share.sum()
    scores, start = RNG.normal(size=N), criterion.loss.start
    extra = start + 0.3 * RNG.normal(size=len(start))
    make, blocks = OBJECTIVES[objective]
    scalar = make() if blocks is None else Blocks(make(), blocks)

    def value(joint):
        losses = LOSSES[name][1](joint[:N], joint[N:])
        ridge = 0.5e-6 * float(((joint[N:] - start) ** 2).sum())
        return float(scalar((W @ (losses - offset))[None], mass).value[0]) + ridge

    found, by_score, by_extra = criterion(scores[None], extra[None])
    assert found[0] == pytest.approx(value(np.append(scores, extra)), rel=1e-10)
    expected = differences(value, np.append(scores, extra))
    np.testing.assert_allclose(np.append(by_score, by_extra), expected, atol=2e-7)


@pytest.mark.parametrize("objective", ["mean", "tight"])
@pytest.mark.parametrize("name", LOSSES)
def test_curvature_is_the_derivative_of_the_gradient(name, objective):
    problem = LinearProblem(X, criterion_of(name, objective), l2=0.1)
    z = 0.3 * RNG.normal(size=problem.size)

    def gradient(point):
        problem.value(point)
        return problem.gradient()

    expected = differences(gradient, z)
    problem.value(z)
    np.testing.assert_allclose(problem.curvature()[1], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["partial", "split"])
def test_without_a_baseline_the_optimum_is_scipys(name):
    solution = minimise(LinearProblem(X, criterion_of(name, "tight"), l2=0.05), tol=1e-8, max_iter=300)
    centred = X - X.mean(axis=0)

    def dual(joint):
        averages = W @ LOSSES[name][1](centred @ joint[:D], None)
        excess = np.maximum(averages - joint[D], 0.0)
        return joint[D] + np.sqrt((excess**2).mean() / ALPHA) + 0.025 * joint[:D] @ joint[:D]

    best = optimize.minimize(dual, np.append(np.zeros(D), -1.0), method="BFGS", options={"gtol": 1e-9})
    assert solution.status == "converged"
    assert solution.value == pytest.approx(best.fun, abs=1e-7)
    np.testing.assert_allclose(solution.x, best.x[:D], atol=1e-3)


def test_the_null_models_losses_are_those_of_equal_scores():
    loss = LOSSES["partial"][0]()
    np.testing.assert_allclose(loss.null_losses(), partial_likelihood(np.zeros(N), None), atol=1e-12)
    assert loss.event_share == EVENT.mean()


@pytest.mark.parametrize("name", LOSSES)
def test_adam_lowers_the_worst_average_of_any_loss(name):
    from torch import nn

    from drosurv.solvers.networks import ModuleBatch, build

    module = build(lambda d: nn.Sequential(nn.Linear(d, 4), nn.Tanh(), nn.Linear(4, 1)), D, 0)
    criterion = criterion_of(name, "cvar")
    extra = criterion.loss.start[None].copy() if criterion.loss.n_extra else None
    history = adam(ModuleBatch([module], X), criterion, np.array([0.02]), 60, extra=extra)[0]
    assert history[-1] < history[0] - 0.02
