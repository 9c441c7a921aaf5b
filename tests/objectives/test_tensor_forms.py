import numpy as np
import pytest
import torch

from drosurv.objectives.chi_square import ChiSquare
from drosurv.objectives.cvar import CVaR

KINDS = {
    "tight": lambda losses, alpha, mass=None: ChiSquare(alpha, "tight").torch_evaluation(losses, mass),
    "paper": lambda losses, alpha, mass=None: ChiSquare(alpha, "paper").torch_evaluation(losses, mass),
    "cvar": lambda losses, alpha, mass=None: CVaR(alpha).torch_evaluation(losses, mass),
}
ALPHAS = [0.05, 0.2, 0.5, 0.9, 1.0]


def censored_losses(seed, batch=4, n=60):
    """Half of the losses zero, as those of censored patients, and some others equal."""
    rng = np.random.default_rng(seed)
    losses = rng.exponential(size=(batch, n)) * (rng.random((batch, n)) < 0.5)
    return np.where(rng.random((batch, n)) < 0.2, losses.round(1), losses)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("kind", KINDS)
def test_masses_count_as_in_the_compiled_objective(kind, alpha):
    losses = censored_losses(seed=1)
    mass = np.random.default_rng(2).random(losses.shape[1])
    mass /= mass.sum()
    objective = CVaR(alpha) if kind == "cvar" else ChiSquare(alpha, kind)
    at = objective(losses, mass)
    value, weights = KINDS[kind](torch.tensor(losses), alpha, torch.tensor(7.0 * mass))
    np.testing.assert_allclose(value, at.value, rtol=1e-11)
    np.testing.assert_allclose(weights, at.weights, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_masses_differ_by_batch_and_alpha_by_row(kind):
    losses = censored_losses(seed=3, batch=6)
    losses = torch.tensor(losses).reshape(2, 3, -1)
    mass = torch.tensor(np.random.default_rng(4).random((2, 1, losses.shape[-1])))
    alphas = torch.tensor([0.1, 0.4, 1.0], dtype=torch.float64).expand(2, 3)
    value, weights = KINDS[kind](losses, alphas, mass)
    for r, b in np.ndindex(2, 3):
        alone, own = KINDS[kind](losses[r, b], float(alphas[r, b]), mass[r, 0])
        np.testing.assert_allclose(value[r, b], alone, rtol=1e-13, atol=0.0)
        np.testing.assert_allclose(weights[r, b], own, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("constant", ["tight", "paper"])
def test_worst_losses_that_nearly_tie_keep_the_exact_optimum(constant):
    # Where a robust model is trained to its optimum the worst losses meet, up to rounding. Shifting them by the
    # largest loss is exact, and leaves a problem without large numbers to compare with.
    gaps = np.array([0.0, -3e-14, -7e-14, -2e-13])
    losses = np.concatenate([4.0 + gaps, np.linspace(0.0, 3.0, 36)])
    alpha = 0.3 if constant == "paper" else 0.09
    shifted = (losses - 4.0) * 2.0**40
    value, weights = ChiSquare(alpha, constant).torch_evaluation(torch.tensor(losses))
    expected, own = ChiSquare(alpha, constant).torch_evaluation(torch.tensor(shifted))
    np.testing.assert_allclose(value, 4.0 + expected.numpy() / 2.0**40, rtol=1e-15)
    np.testing.assert_allclose(weights, own, atol=1e-12)
    over = np.maximum(shifted[:, None] - np.linspace(-1.0, 0.0, 20_001), 0.0)
    c = np.sqrt(1.0 / alpha if constant == "tight" else 2.0 * (1.0 / alpha - 1.0) ** 2 + 1.0)
    dual = c * np.sqrt((over**2).mean(axis=0)) + np.linspace(-1.0, 0.0, 20_001)
    assert float(expected) == pytest.approx(dual.min(), abs=1e-6)
