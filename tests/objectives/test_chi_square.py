import numpy as np
import pytest

from drosurv.objectives.chi_square import ChiSquare, radius_constant


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
