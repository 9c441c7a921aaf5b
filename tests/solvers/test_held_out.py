"""What patients who are not trained on say of a model: the criterion, in the worst case that training found."""

import numpy as np
import pytest

from drosurv.losses import CoxPartial, PiecewiseExponential
from drosurv.objectives import ChiSquare, CVaR, Mean
from drosurv.solvers import Criterion
from drosurv.solvers.criterion import validation_criterion
from drosurv.solvers.neighborhoods import known_groups
from drosurv.target import Target

RNG = np.random.default_rng(0)
N = 120
TARGET = Target(RNG.random(N) < 0.7, RNG.exponential(size=N))
GROUPS = np.arange(N) % 3
ROWS, VALIDATION = np.flatnonzero(np.arange(N) % 4 > 0), np.flatnonzero(np.arange(N) % 4 == 0)
SCORES = RNG.normal(size=(1, N))
MASS = np.full(N, 1.0 / N)


def never():
    raise AssertionError("nobody asked for these scores")


def test_without_neighbourhoods_it_is_the_criterion_of_the_watched():
    criterion = Criterion(CoxPartial(TARGET), ChiSquare(0.4), MASS)
    found = validation_criterion(criterion, ROWS, VALIDATION, never)(SCORES[:, VALIDATION])
    np.testing.assert_allclose(found[0], criterion.take(VALIDATION)(SCORES[:, VALIDATION])[0])


def regrets(loss):
    return loss(SCORES, loss.start[None])[0] - loss.null_losses()


def test_training_says_which_group_is_worst_off_and_the_watched_how_it_fares():
    loss = PiecewiseExponential(TARGET, 4)
    criterion = Criterion(
        loss, CVaR(0.2), MASS, neighborhoods=known_groups(GROUPS), null_losses=loss.null_losses()
    )
    (found,) = validation_criterion(criterion, ROWS, VALIDATION, lambda: SCORES[:, ROWS])(
        SCORES[:, VALIDATION]
    )
    own = regrets(loss)
    means = [own[ROWS][GROUPS[ROWS] == g].mean() for g in range(3)]
    # A fifth of the patients lies inside one group: the worst of them, among those trained on.
    assert found[0] == pytest.approx(own[VALIDATION][GROUPS[VALIDATION] == np.argmax(means)].mean())


def test_the_average_of_everybody_weighs_everybody_alike():
    loss = PiecewiseExponential(TARGET, 4)
    criterion = Criterion(
        loss, Mean(), MASS, neighborhoods=known_groups(GROUPS), null_losses=loss.null_losses()
    )
    (found,) = validation_criterion(criterion, ROWS, VALIDATION, lambda: SCORES[:, ROWS])(
        SCORES[:, VALIDATION]
    )
    assert found[0] == pytest.approx(regrets(loss)[VALIDATION].mean())
