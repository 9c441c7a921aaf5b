"""The criterion: merged censored patients change nothing, and the criterion on a validation set."""

import numpy as np
import pytest

from drosurv.losses.cox_partial import CoxPartial
from drosurv.losses.cox_split import CoxSplit
from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.objectives.chi_square import ChiSquare
from drosurv.objectives.cvar import CVaR
from drosurv.objectives.objective import Blocks, Mean, uniform_mass
from drosurv.patients.target import Target
from drosurv.solvers import Criterion
from drosurv.solvers.criterion import validation_criterion
from drosurv.solvers.neighborhoods import Partitions

N = 40
HALVES = [np.arange(0, N, 2), np.arange(1, N, 2)]
OBJECTIVES = {"mean": Mean, "chi2": lambda: ChiSquare(0.3), "cvar": lambda: CVaR(0.7)}


def sample(seed=0, censored=0.5):
    rng = np.random.default_rng(seed)
    event = rng.random(N) >= censored
    target = Target(event, rng.integers(1, 15, N).astype(float))
    return target, rng.normal(size=(3, N)), rng.uniform(0.3, 2.0, N)


def losses_of(target, blocks, weight):
    if blocks is None:
        return CoxPartial(target, "breslow", weight)
    in_first = np.zeros(N, bool)
    in_first[HALVES[0]] = True
    return CoxSplit(target, in_first, weight, both=len(blocks) == 2)


@pytest.mark.parametrize("blocks", [None, HALVES, HALVES[:1]], ids=["everyone", "halves", "one half"])
@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("censored", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("weighted", [False, True])
def test_value_gradient_and_weights_are_those_of_all_patients_one_by_one(blocks, name, censored, weighted):
    target, scores, weight = sample(censored=censored)
    weight = weight if weighted else None
    mass = uniform_mass(N) if weight is None else weight / weight.sum()
    loss = losses_of(target, blocks, weight)
    criterion = Criterion(loss, OBJECTIVES[name](), mass, blocks)
    value, gradient, _ = criterion(scores)
    at = criterion.objective(criterion.losses(scores), criterion.mass)

    full = np.zeros((3, N))
    full[:, loss.rows] = loss(scores)
    make = OBJECTIVES[name]
    wanted = (make() if blocks is None else Blocks(make(), blocks))(full, mass)
    np.testing.assert_allclose(value, wanted.value, rtol=1e-12)
    np.testing.assert_allclose(at.eta, wanted.eta, rtol=1e-9)
    loss(scores)
    slope, _ = loss.pullback(np.ascontiguousarray(wanted.weights[:, loss.rows]))
    np.testing.assert_allclose(gradient, slope, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(criterion.patient_weights(at), wanted.weights, atol=1e-10)


@pytest.mark.parametrize("blocks", [None, HALVES], ids=["everyone", "halves"])
def test_fewer_patients_are_the_criterion_among_them(blocks):
    target, scores, weight = sample()
    mass = weight / weight.sum()
    rows = np.sort(np.random.default_rng(1).permutation(N)[:25])
    part = Criterion(losses_of(target, blocks, weight), ChiSquare(0.4), mass, blocks).take(rows)
    if blocks is None:
        loss, own = CoxPartial(target.take(rows), "breslow", weight[rows]), None
    else:
        loss = CoxSplit(target.take(rows), np.isin(rows, HALVES[0]), weight[rows])
        own = [np.flatnonzero(np.isin(rows, half)) for half in HALVES]
    wanted = Criterion(loss, ChiSquare(0.4), mass[rows] / mass[rows].sum(), own)
    for found, right in zip(part(scores[:, rows].copy()), wanted(scores[:, rows].copy()), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-12)


def test_gradient_follows_finite_differences():
    target, scores, _ = sample()
    criterion = Criterion(CoxPartial(target), ChiSquare(0.3), uniform_mass(N))
    _, gradient, _ = criterion(scores[:1])
    step = 1e-6
    moves = step * np.eye(N)
    slope = (criterion(scores[:1] + moves)[0] - criterion(scores[:1] - moves)[0]) / (2 * step)
    np.testing.assert_allclose(gradient[0], slope, atol=1e-8)


RNG = np.random.default_rng(0)
N_SPLIT = 120
TARGET = Target(RNG.random(N_SPLIT) < 0.7, RNG.exponential(size=N_SPLIT))
GROUPS = np.arange(N_SPLIT) % 3
ROWS, VALIDATION = np.flatnonzero(np.arange(N_SPLIT) % 4 > 0), np.flatnonzero(np.arange(N_SPLIT) % 4 == 0)
SCORES = RNG.normal(size=(1, N_SPLIT))
MASS = np.full(N_SPLIT, 1.0 / N_SPLIT)


def never():
    raise AssertionError("training scores are not needed")


def test_without_neighbourhoods_validation_uses_the_criterion_of_the_validation_set():
    criterion = Criterion(CoxPartial(TARGET), ChiSquare(0.4), MASS)
    found = validation_criterion(criterion, ROWS, VALIDATION, never)(SCORES[:, VALIDATION])
    np.testing.assert_allclose(found[0], criterion.take(VALIDATION)(SCORES[:, VALIDATION])[0])


def regrets(loss):
    return loss(SCORES, loss.start[None])[0] - loss.null_losses()


def test_the_training_set_determines_the_worst_group_whose_validation_regret_is_returned():
    loss = PiecewiseExponential(TARGET, 4)
    criterion = Criterion(
        loss, CVaR(0.2), MASS, neighborhoods=Partitions(GROUPS[None]), null_losses=loss.null_losses()
    )
    (found,) = validation_criterion(criterion, ROWS, VALIDATION, lambda: SCORES[:, ROWS])(
        SCORES[:, VALIDATION]
    )
    regret = regrets(loss)
    means = [regret[ROWS][GROUPS[ROWS] == g].mean() for g in range(3)]
    # The worst fifth of the training patients lies in one group.
    assert found[0] == pytest.approx(regret[VALIDATION][GROUPS[VALIDATION] == np.argmax(means)].mean())


def test_with_the_mean_objective_all_validation_patients_have_equal_weight():
    loss = PiecewiseExponential(TARGET, 4)
    criterion = Criterion(
        loss, Mean(), MASS, neighborhoods=Partitions(GROUPS[None]), null_losses=loss.null_losses()
    )
    (found,) = validation_criterion(criterion, ROWS, VALIDATION, lambda: SCORES[:, ROWS])(
        SCORES[:, VALIDATION]
    )
    assert found[0] == pytest.approx(regrets(loss)[VALIDATION].mean())
