"""Trees grown on the gradient and curvature of a criterion."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from drosurv.losses import TorchLoss
from drosurv.losses.cox_partial import CoxPartial
from drosurv.losses.cox_split import CoxSplit
from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.objectives.chi_square import ChiSquare
from drosurv.objectives.objective import Mean
from drosurv.patients.target import Target
from drosurv.solvers import Criterion
from drosurv.solvers.boosting import DEFAULTS, Growth, best_round, boost


def patients(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    latent = rng.exponential(np.exp(-X[:, 0] * (X[:, 1] > 0)))
    censored = rng.exponential(2.0, n)
    return X, Target(latent <= censored, np.minimum(latent, censored))


def uniform(n):
    return np.full(n, 1.0 / n)


LOSSES = {
    "cox": CoxPartial,
    "split": lambda target: CoxSplit(target, np.arange(len(target)) % 2 == 0),
    "full": PiecewiseExponential,
}


@pytest.mark.parametrize("make", [Mean, lambda: ChiSquare(0.4)], ids=["mean", "chi2"])
@pytest.mark.parametrize("name", LOSSES)
def test_the_criterion_falls_round_by_round(name, make):
    X, target = patients()
    loss = LOSSES[name](target)
    blocks = loss.halves if name == "split" else None
    found = boost(Growth(X, Criterion(loss, make(), uniform(len(X)), blocks), lr=0.05), 30)
    assert len(found.history) == 30
    assert (np.diff(found.history) < 1e-12).all()
    assert found.history[-1] < found.history[0] - 0.01


def test_a_known_baseline_gives_the_trees_of_lightgbms_poisson_regression():
    import lightgbm

    _, target = patients()
    # Few distinct values: LightGBM's own bins are then ours.
    X = np.random.default_rng(5).integers(0, 9, (len(target), 3)).astype(float)
    loss = PiecewiseExponential(target, n_intervals=1)
    loss.extra_ridge = 1e12  # holds the baseline where it starts
    found = boost(Growth(X, Criterion(loss, Mean(), uniform(len(X))), lr=0.1), 15)
    exposure = np.exp(loss.start[0]) * target.time
    data = lightgbm.Dataset(X, target.event.astype(float), init_score=np.log(exposure))
    settings = {"objective": "poisson", "poisson_max_delta_step": 1e-9, "boost_from_average": False}
    booster = lightgbm.train({**DEFAULTS, **settings, "learning_rate": 0.1}, data, 15)
    np.testing.assert_allclose(found.trees().scores(X), booster.predict(X, raw_score=True), atol=1e-5)


def test_watched_patients_say_when_to_stop():
    X, target = patients(600)
    watched = np.arange(600) % 3 == 0
    rows, held = np.flatnonzero(~watched), np.flatnonzero(watched)
    criterion = Criterion(CoxPartial(target), Mean(), uniform(600))
    part, theirs = criterion.take(rows), criterion.take(held)
    found = best_round(Growth(X[rows], part, lr=0.1), X[held], theirs, 10, 1000)
    assert 1 <= found < 990
    # Trees grown anew, round after round: none of the next serves the watched better.
    growth, values = Growth(X[rows], part, lr=0.1), []
    for _ in range(found + 10):
        growth.grow()
        values.append(float(theirs(growth.trees().scores(X[held])[None])[0][0]))
    assert int(np.argmin(values)) + 1 == found


def test_extra_parameters_of_a_loss_in_torch_are_where_they_belong_before_the_first_tree():
    X, target = patients()

    def exponential(scores, event, time, level):
        return (scores + level).exp() * time - event * (scores + level)

    # A worst case moves the level far from where training starts.
    criterion = Criterion(TorchLoss(exponential, target, np.zeros(1)), ChiSquare(0.2), uniform(300))
    growth = Growth(X, criterion, lr=0.05)
    growth.grow()
    nobody = np.zeros((1, 300))
    best = minimize_scalar(lambda level: criterion(nobody, np.array([[level]]))[0][0])
    assert best.x < -0.5
    assert growth.extra[0] == pytest.approx(best.x, abs=0.02)


def test_a_feature_that_says_nothing_grows_nothing():
    X, target = patients()
    found = boost(Growth(np.zeros_like(X), Criterion(CoxPartial(target), Mean(), uniform(300)), lr=0.1), 5)
    np.testing.assert_array_equal(found.scores(), np.zeros(300))
    np.testing.assert_array_equal(found.trees().scores(X), np.zeros(300))
