"""Robust objectives: from sums over the losses, smoothed, and their second derivatives."""

import copy

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from drosurv.objectives.chi_square import ChiSquare
from drosurv.objectives.cvar import CVaR
from drosurv.objectives.objective import Blocks, LossSums, Mean, Moments, uniform_mass


def sums_of(losses, mass, start=np.nan):
    def moments(low, high, base):
        between = mass * ((losses > low) & (losses < high))
        off = losses - base
        return Moments(mass[losses >= high].sum(), between.sum(), between @ off, (between * off) @ off)

    def members(low, high):
        inside = (losses > low) & (losses <= high)
        return losses[inside], mass[inside]

    return LossSums(moments, members, losses.min(), losses.max(), start)


def weights_of(found, losses, mass):
    ratio = found.level * (losses >= found.eta)
    if found.slope > 0:
        ratio = np.clip(ratio + found.slope * (losses - found.eta), 0.0, found.cap)
    return mass * ratio


def second_derivative(found, losses, mass):
    over = losses - found.eta
    active = mass * ((over > 0) & (over * found.slope < found.cap))
    matrix = np.diag(found.scale * active)
    for scale, by_active, by_excess in found.terms:
        vector = by_active * active + by_excess * active * over
        matrix += scale * np.outer(vector, vector)
    return matrix


def drawn(seed, n=60):
    rng = np.random.default_rng(seed)
    losses = np.where(rng.random(n) < 0.3, 0.0, rng.exponential(size=n))
    mass = rng.uniform(0.2, 1.0, n)
    return losses, mass / mass.sum()


CASES = {
    "mean": Mean(),
    "chi2": ChiSquare(0.2),
    "chi2 with small alpha": ChiSquare(0.03),
    "smoothed chi2": ChiSquare(0.2).smoothed(0.7),
    "much smoothed chi2": ChiSquare(0.2).smoothed(9.0),
    "smoothed cvar": CVaR(0.3).smoothed(0.4),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(5))
def test_from_sums_equals_evaluation_of_all_losses(name, seed):
    losses, mass = drawn(seed)
    objective = copy.copy(CASES[name])
    at = objective(losses[None], mass)
    found = objective.from_sums(sums_of(losses, mass), getattr(objective, "smoothing", 0.0))
    assert found.value == pytest.approx(at.value[0], abs=1e-12)
    np.testing.assert_allclose(weights_of(found, losses, mass), at.weights[0], atol=1e-12)
    assert found.attained == pytest.approx(at.weights[0] @ losses, abs=1e-12)
    second = objective.curvature(losses, mass, at)
    if second is None:
        assert found.scale == 0.0
        return
    full = np.diag(second.diagonal) + second.vectors.T @ (second.scales[:, None] * second.vectors)
    np.testing.assert_allclose(
        second_derivative(found, losses, mass), full, atol=1e-9 * second.diagonal.max()
    )


# The first call compiles.
@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.floats(0.0, 50.0), min_size=2, max_size=30),
    st.floats(0.05, 0.95),
    st.sampled_from(["chi2", "cvar"]),
    st.floats(-1.0, 51.0) | st.just(np.nan),
)
@example([0.0, 0.0, 1e-200], 0.5, "chi2", np.nan)
@example([0.0, 1e-160, 3e-160], 0.3, "chi2", 2e-160)
def test_value_from_sums_is_exact_for_any_losses_and_start(values, alpha, ball, start):
    losses = np.array(values)
    mass = np.full(len(losses), 1.0 / len(losses))
    sums = sums_of(losses, mass, start)
    objective = ChiSquare(alpha) if ball == "chi2" else CVaR(alpha)
    found = objective.from_sums(sums)
    expected = objective(losses[None], mass).value[0]
    assert found.value == pytest.approx(expected, abs=1e-9 * (1 + losses.max()))


@pytest.mark.parametrize("smoothing", [0.0, 0.05])
@pytest.mark.parametrize("ball", ["chi2", "cvar"])
def test_a_start_near_the_threshold_saves_rounds(ball, smoothing):
    losses, mass = drawn(0, n=20_000)

    def searched(start):
        sums, asked = sums_of(losses, mass, start), []
        counted = sums._replace(moments=lambda *about: asked.append(about) or sums.moments(*about))
        found = (
            ChiSquare(0.25).from_sums(counted) if ball == "chi2" else CVaR(0.3).from_sums(counted, smoothing)
        )
        return found, len(asked)

    cold, many = searched(np.nan)
    warm, few = searched(cold.eta + 1e-3)
    assert few <= min(many - 2, 8)
    assert many <= 14
    assert warm.value == pytest.approx(cold.value, rel=1e-13)
    assert warm.eta == pytest.approx(cold.eta, rel=1e-9)


def test_equal_losses_at_the_threshold_of_cvar_share_the_remaining_weight():
    losses, mass = np.array([0.0] * 7 + [1.0] * 2 + [5.0]), np.full(10, 0.1)
    for alpha, expected in ((0.2, [0.0, 0.25, 0.5]), (0.65, [0.35 / 0.65 / 7, 0.1 / 0.65, 0.1 / 0.65])):
        found = CVaR(alpha).from_sums(sums_of(losses, mass))
        np.testing.assert_allclose((mass * found.ratio(losses))[[0, 7, 9]], expected, atol=1e-14)


def test_the_value_is_the_maximum_where_the_largest_losses_fill_the_ball():
    losses, mass = np.array([0.0, 1.0, 2.0, 2.0]), np.full(4, 0.25)
    found = ChiSquare(0.4).from_sums(sums_of(losses, mass))
    assert found.value == 2.0
    np.testing.assert_allclose(weights_of(found, losses, mass), [0, 0, 0.5, 0.5])
    np.testing.assert_allclose(mass * found.ratio(losses), [0, 0, 0.5, 0.5])


def test_alpha_one_is_the_mean():
    losses, mass = drawn(0)
    for objective in (ChiSquare(1.0), CVaR(1.0)):
        found = objective.from_sums(sums_of(losses, mass))
        assert found.value == pytest.approx(mass @ losses)


BALLS = {"chi2": lambda: ChiSquare(0.2), "paper": lambda: ChiSquare(0.4, "paper"), "cvar": lambda: CVaR(0.2)}
# How far from even the weights can be in each ball: sum_i (q_i - p_i)^2 / p_i.
DIVERGENCE = {"chi2": 1 / 0.2 - 1, "paper": 2 * (1 / 0.4 - 1) ** 2, "cvar": 1 / 0.2 - 1}


def losses_of(kind):
    rng = np.random.default_rng(0)
    if kind == "tied at the top":
        return np.concatenate([np.full(15, 3.0), rng.random(25)])
    return rng.exponential(size=40)


@pytest.mark.parametrize("kind", ["spread", "tied at the top"])
@pytest.mark.parametrize("name", BALLS)
@pytest.mark.parametrize("smoothing", [1e-6, 1e-2, 1.0, 100.0])
def test_smoothing_lowers_the_value_by_at_most_half_of_t_times_the_divergence(name, kind, smoothing):
    losses, mass = losses_of(kind), uniform_mass(40)
    plain = BALLS[name]()(losses[None, :], mass)
    smoothed = BALLS[name]().smoothed(smoothing)(losses[None, :], mass)
    weights = smoothed.weights[0]
    distance = smoothing / 2 * mass @ (weights / mass - 1) ** 2
    assert smoothed.value[0] == pytest.approx(weights @ losses - distance, rel=1e-12)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert mass @ (weights / mass - 1) ** 2 <= DIVERGENCE[name] + 1e-9
    # Its weights are allowed, so what they lose is a lower bound of the true objective.
    assert weights @ losses <= plain.value[0] + 1e-12
    assert plain.value[0] - smoothing / 2 * DIVERGENCE[name] <= smoothed.value[0] + 1e-12


@pytest.mark.parametrize("name", BALLS)
def test_smoothing_below_the_last_digit_leaves_all_weight_with_the_largest_losses(name):
    # A line search may try scores so large that losses are 1e12 apart, of which the last digit is 1e-4.
    losses = np.concatenate([np.full(15, 3e12), np.linspace(0, 1e12, 25)])
    found = BALLS[name]().smoothed(1e-7)(losses[None, :], uniform_mass(40))
    assert found.value[0] == pytest.approx(3e12, rel=1e-12)
    np.testing.assert_allclose(found.weights[0, :15], 1 / 15, rtol=1e-12)


@pytest.mark.parametrize("name", BALLS)
def test_smoothed_value_equals_a_constrained_optimiser(name):
    rng = np.random.default_rng(1)
    losses, mass, smoothing = rng.exponential(size=6), rng.dirichlet(np.full(6, 5.0)), 0.7
    found = BALLS[name]().smoothed(smoothing)(losses[None, :], mass)
    limits = [(0, p / 0.2 if name == "cvar" else 1) for p in mass]
    constraints = [{"type": "eq", "fun": lambda q: q.sum() - 1}]
    if name != "cvar":
        constraints.append(
            {"type": "ineq", "fun": lambda q: DIVERGENCE[name] - ((q - mass) ** 2 / mass).sum()}
        )
    best = minimize(
        lambda q: smoothing / 2 * ((q - mass) ** 2 / mass).sum() - q @ losses,
        mass,
        bounds=limits,
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.value[0] == pytest.approx(-best.fun, rel=1e-7)
    np.testing.assert_allclose(found.weights[0], best.x, atol=1e-4)


@pytest.mark.parametrize("kind", ["spread", "tied at the top"])
@pytest.mark.parametrize("name", BALLS)
def test_smoothed_objectives_are_differentiable_even_where_largest_losses_are_equal(name, kind):
    losses, mass, step = losses_of(kind), uniform_mass(40), 1e-6
    objective = BALLS[name]().smoothed(0.3)
    weights = objective(losses[None, :], mass).weights[0].copy()
    moves = step * np.eye(40)
    ahead, behind = objective(losses + moves, mass).value, objective(losses - moves, mass).value
    np.testing.assert_allclose((ahead - behind) / (2 * step), weights, atol=1e-6)


def test_a_new_smoothing_replaces_the_old_one_and_does_not_change_the_mean():
    losses, mass = losses_of("spread")[None, :], uniform_mass(40)
    for name in BALLS:
        twice = BALLS[name]().smoothed(5.0).smoothed(0.2)(losses, mass)
        once = BALLS[name]().smoothed(0.2)(losses, mass)
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


N = 30
HALVES = [np.arange(0, N, 2), np.arange(1, N, 2)]
OBJECTIVES = {
    "mean": Mean,
    "chi2": lambda: ChiSquare(0.3),
    "chi2 at alpha one": lambda: ChiSquare(1.0),
    "paper": lambda: ChiSquare(0.4, "paper"),
    "smoothed chi2, ball active": lambda: ChiSquare(0.3).smoothed(0.01),
    "smoothed chi2, ball inactive": lambda: ChiSquare(0.3).smoothed(5.0),
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
    # An objective is convex, and a constant added to all losses does not change the weights.
    assert np.linalg.eigvalsh(found).min() > -1e-10
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-10)


@pytest.mark.parametrize("name", sorted(set(OBJECTIVES) - {"blocks of chi2", "blocks of smoothed cvar"}))
def test_curvature_does_not_depend_on_the_order_of_patients(name):
    # Sums in another order round differently; no patient may enter or leave the worst case by that.
    rng = np.random.default_rng(1)
    losses, mass, objective = rng.exponential(size=N), uniform_mass(N), OBJECTIVES[name]()
    wanted = dense(objective.curvature(losses, mass, objective(losses[None, :], mass)))
    for _ in range(20):
        order = rng.permutation(N)
        found = objective.curvature(losses[order], mass, objective(losses[None, order], mass))
        np.testing.assert_allclose(dense(found), wanted[np.ix_(order, order)], atol=1e-10)


@pytest.mark.parametrize("objective", [ChiSquare(0.1), CVaR(0.1)])
def test_curvature_is_none_where_the_objective_has_none(objective):
    losses, mass = np.array([1.0, 5.0, 2.0]), uniform_mass(3)
    assert objective.curvature(losses, mass, objective(losses[None, :], mass)) is None
