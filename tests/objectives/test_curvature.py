"""Second derivatives in the losses, where an objective has any: the Newton steps of the convex solver."""

import numpy as np
import pytest

from drosurv.objectives import Blocks, ChiSquare, CVaR, Mean, uniform_mass

N = 30
HALVES = [np.arange(0, N, 2), np.arange(1, N, 2)]
OBJECTIVES = {
    "mean": Mean,
    "chi2": lambda: ChiSquare(0.3),
    "chi2 at alpha one": lambda: ChiSquare(1.0),
    "paper": lambda: ChiSquare(0.4, "paper"),
    "priced chi2, ball decides": lambda: ChiSquare(0.3).smoothed(0.01),
    "priced chi2, price decides": lambda: ChiSquare(0.3).smoothed(5.0),
    "smoothed cvar": lambda: CVaR(0.3).smoothed(0.5),
    "blocks of chi2": lambda: Blocks(ChiSquare(0.3), HALVES),
    "blocks of smoothed cvar": lambda: Blocks(CVaR(0.3).smoothed(0.5), HALVES),
}


def dense(curvature):
    if curvature is None:
        return np.zeros((N, N))
    return np.diag(curvature.diagonal) + curvature.vectors.T @ (curvature.scales[:, None] * curvature.vectors)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("weighted", [False, True])
def test_curvature_is_the_derivative_of_the_weights(name, weighted):
    rng = np.random.default_rng(0)
    losses = rng.exponential(size=N)
    mass = rng.dirichlet(np.full(N, 5.0)) if weighted else uniform_mass(N)
    objective, step = OBJECTIVES[name](), 1e-6

    def weights(at):
        return OBJECTIVES[name]()(at[None, :], mass).weights[0].copy()

    slope = np.stack([(weights(losses + e) - weights(losses - e)) / (2 * step) for e in step * np.eye(N)])
    found = dense(objective.curvature(losses, mass, objective(losses[None, :], mass)))
    np.testing.assert_allclose(found, slope, atol=1e-7)
    # An objective is convex, and a constant added to all losses leaves the weights alone.
    assert np.linalg.eigvalsh(found).min() > -1e-10
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-10)


@pytest.mark.parametrize("name", sorted(set(OBJECTIVES) - {"blocks of chi2", "blocks of smoothed cvar"}))
def test_curvature_follows_patients_wherever_they_stand(name):
    # Another order rounds sums otherwise; nobody may enter or leave the worst case by that.
    rng = np.random.default_rng(1)
    losses, mass, objective = rng.exponential(size=N), uniform_mass(N), OBJECTIVES[name]()
    wanted = dense(objective.curvature(losses, mass, objective(losses[None, :], mass)))
    for _ in range(20):
        order = rng.permutation(N)
        found = objective.curvature(losses[order], mass, objective(losses[None, order], mass))
        np.testing.assert_allclose(dense(found), wanted[np.ix_(order, order)], atol=1e-10)


@pytest.mark.parametrize("objective", [ChiSquare(0.1), CVaR(0.1)])
def test_no_curvature_is_claimed_where_the_objective_has_none(objective):
    losses, mass = np.array([1.0, 5.0, 2.0]), uniform_mass(3)
    assert objective.curvature(losses, mass, objective(losses[None, :], mass)) is None
