import numpy as np
import pytest
from scipy.optimize import brentq

from drosurv.objectives.chi_square import ChiSquare, radius_constant
from drosurv.objectives.objective import uniform_mass


def slope(eta, losses, mass, c):
    """Derivative in eta of C sqrt( sum p [l - eta]_+^2 ) + eta."""
    over = np.maximum(losses - eta, 0)
    return 1 - c * (mass @ over) / np.sqrt(mass @ over**2)


@pytest.mark.parametrize("constant", ["tight", "paper"])
@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.5, 0.9])
def test_eta_minimises_the_dual_function(alpha, constant):
    c = float(radius_constant(alpha, constant))
    for seed in range(10):
        rng = np.random.default_rng(seed)
        losses, mass = rng.exponential(size=200), rng.dirichlet(np.ones(200))
        found = ChiSquare(alpha, constant)(losses[None, :], mass)
        top = np.argmax(losses)
        if c**2 * mass[top] >= 1:
            assert found.eta[0] == losses.max()
            continue
        low, high = losses.min() - 100 / (c - 1), losses.max() - 1e-9
        wanted = brentq(slope, low, high, (losses, mass, c), xtol=1e-13, rtol=1e-15)
        assert found.eta[0] == pytest.approx(wanted, abs=1e-9)


def test_constants_protect_the_documented_masses():
    # 1/C^2 at the paper's alphas.
    for alpha, mass in [
        (0.1, 0.0061),
        (0.15, 0.0153),
        (0.2, 0.0303),
        (0.3, 0.0841),
        (0.4, 0.182),
        (0.5, 0.333),
    ]:
        assert float(radius_constant(alpha, "paper")) ** -2 == pytest.approx(mass, rel=0.01)
        assert float(radius_constant(alpha, "tight")) ** -2 == pytest.approx(alpha, rel=1e-12)


def test_every_subpopulation_of_mass_alpha_loses_no_more_than_the_tight_objective():
    rng = np.random.default_rng(0)
    losses = rng.exponential(size=50)
    for k in (1, 5, 10, 25, 50):
        value = ChiSquare(k / 50)(losses[None, :], uniform_mass(50)).value[0]
        worst = np.sort(losses)[-k:].mean()
        assert worst <= value + 1e-12


def test_weights_grow_linearly_above_eta_and_vanish_below():
    losses = np.random.default_rng(0).exponential(size=100)
    found = ChiSquare(0.2)(losses[None, :], uniform_mass(100))
    weights, eta = found.weights[0], found.eta[0]
    assert (weights[losses <= eta] == 0).all()
    inside = losses > eta
    ratio = weights[inside] / (losses[inside] - eta)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)


def test_eta_is_exact_for_few_losses_far_apart():
    def by_trying_every_set(losses, mass, c):
        order = np.argsort(-losses)
        values, parts = losses[order], mass[order]
        for k in range(1, len(losses) + 1):
            share, mean = parts[:k].sum(), np.average(values[:k], weights=parts[:k])
            excess, below = c**2 * share - 1, values[k] if k < len(losses) else -np.inf
            if excess > 1e-9:
                eta = mean - np.sqrt(np.average((values[:k] - mean) ** 2, weights=parts[:k]) / excess)
                if below - 1e-9 <= eta < values[k - 1]:
                    return eta
        return losses.max()

    rng = np.random.default_rng(0)
    for _ in range(300):
        # Few losses, far apart and tied: every change of the set moves eta a long way.
        n = rng.integers(2, 8)
        losses, mass = (
            np.round(rng.exponential(size=n) * 5) * 10.0 ** rng.integers(-2, 3),
            rng.dirichlet(np.ones(n)),
        )
        objective = ChiSquare(rng.uniform(0.02, 0.95))
        objective._start = np.array([rng.choice([-np.inf, losses.min(), losses.max(), losses.mean()])])
        found, wanted = (
            objective(losses[None, :], mass),
            by_trying_every_set(losses, mass, objective.radius[0]),
        )
        assert found.eta[0] == pytest.approx(wanted, rel=1e-6, abs=1e-9)
