"""Smoothed objectives: never above the true one, close to it, differentiable, with weights that are still allowed."""

import numpy as np
import pytest
from scipy.optimize import minimize

from drosurv.objectives import Blocks, ChiSquare, CVaR, Mean, uniform_mass

OBJECTIVES = {
    "chi2": lambda: ChiSquare(0.2),
    "paper": lambda: ChiSquare(0.4, "paper"),
    "cvar": lambda: CVaR(0.2),
}
# How far from even the weights can be in each ball: sum_i (q_i - p_i)^2 / p_i.
DIVERGENCE = {"chi2": 1 / 0.2 - 1, "paper": 2 * (1 / 0.4 - 1) ** 2, "cvar": 1 / 0.2 - 1}


def losses_of(kind):
    rng = np.random.default_rng(0)
    if kind == "tied at the top":
        return np.concatenate([np.full(15, 3.0), rng.random(25)])
    return rng.exponential(size=40)


@pytest.mark.parametrize("kind", ["spread", "tied at the top"])
@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("price", [1e-6, 1e-2, 1.0, 100.0])
def test_a_price_lowers_the_value_by_no_more_than_the_adversary_pays(name, kind, price):
    losses, mass = losses_of(kind), uniform_mass(40)
    plain = OBJECTIVES[name]()(losses[None, :], mass)
    priced = OBJECTIVES[name]().smoothed(price)(losses[None, :], mass)
    weights = priced.weights[0]
    paid = price / 2 * mass @ (weights / mass - 1) ** 2
    assert priced.value[0] == pytest.approx(weights @ losses - paid, rel=1e-12)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert mass @ (weights / mass - 1) ** 2 <= DIVERGENCE[name] + 1e-9
    # Its weights are allowed, so what they lose is a lower bound of the true objective.
    assert weights @ losses <= plain.value[0] + 1e-12
    assert plain.value[0] - price / 2 * DIVERGENCE[name] <= priced.value[0] + 1e-12


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_price_below_the_last_digit_leaves_all_weight_with_the_largest_losses(name):
    # A line search may try scores so large that losses are 1e12 apart, of which the last digit is 1e-4.
    losses = np.concatenate([np.full(15, 3e12), np.linspace(0, 1e12, 25)])
    found = OBJECTIVES[name]().smoothed(1e-7)(losses[None, :], uniform_mass(40))
    assert found.value[0] == pytest.approx(3e12, rel=1e-12)
    np.testing.assert_allclose(found.weights[0, :15], 1 / 15, rtol=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_priced_value_is_the_best_that_the_adversary_can_do(name):
    rng = np.random.default_rng(1)
    losses, mass, price = rng.exponential(size=6), rng.dirichlet(np.full(6, 5.0)), 0.7
    found = OBJECTIVES[name]().smoothed(price)(losses[None, :], mass)
    limits = [(0, p / 0.2 if name == "cvar" else 1) for p in mass]
    constraints = [{"type": "eq", "fun": lambda q: q.sum() - 1}]
    if name != "cvar":
        constraints.append(
            {"type": "ineq", "fun": lambda q: DIVERGENCE[name] - ((q - mass) ** 2 / mass).sum()}
        )
    best = minimize(
        lambda q: price / 2 * ((q - mass) ** 2 / mass).sum() - q @ losses,
        mass,
        bounds=limits,
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.value[0] == pytest.approx(-best.fun, rel=1e-7)
    np.testing.assert_allclose(found.weights[0], best.x, atol=1e-4)


@pytest.mark.parametrize("kind", ["spread", "tied at the top"])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_smoothed_objectives_are_differentiable_even_where_largest_losses_are_equal(name, kind):
    losses, mass, step = losses_of(kind), uniform_mass(40), 1e-6
    objective = OBJECTIVES[name]().smoothed(0.3)
    weights = objective(losses[None, :], mass).weights[0].copy()
    moves = step * np.eye(40)
    ahead, behind = objective(losses + moves, mass).value, objective(losses - moves, mass).value
    np.testing.assert_allclose((ahead - behind) / (2 * step), weights, atol=1e-6)


def test_a_new_price_replaces_the_old_one_and_the_mean_has_nothing_to_smooth():
    losses, mass = losses_of("spread")[None, :], uniform_mass(40)
    for name in OBJECTIVES:
        twice = OBJECTIVES[name]().smoothed(5.0).smoothed(0.2)(losses, mass)
        once = OBJECTIVES[name]().smoothed(0.2)(losses, mass)
        assert twice.value == pytest.approx(once.value, rel=1e-12)
    assert Mean().smoothed(5.0)(losses, mass).value == pytest.approx(losses.mean(), rel=1e-12)


def test_smoothed_blocks_sum_their_smoothed_parts():
    losses, mass = losses_of("spread"), uniform_mass(40)
    rows = [np.arange(10), np.arange(10, 40)]
    blocks = Blocks(CVaR(0.2), rows)
    assert not blocks.smooth
    found = blocks.smoothed(0.1)
    parts = [CVaR(0.2).smoothed(0.1)(losses[None, r], uniform_mass(len(r))).value[0] for r in rows]
    assert found(losses[None, :], mass).value[0] == pytest.approx(sum(parts), rel=1e-12)
    assert Blocks(ChiSquare(0.2), rows).smooth
