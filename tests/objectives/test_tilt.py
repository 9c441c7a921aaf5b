"""Objectives found from sums alone equal those that see every loss."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from drosurv.objectives import ChiSquare, CVaR, Mean
from drosurv.objectives import tilt as tilts
from drosurv.objectives.tilt import Moments, Spread


def spread_of(losses, mass, start=np.nan):
    def sums(low, high, base):
        between = mass * ((losses > low) & (losses < high))
        off = losses - base
        return Moments(mass[losses >= high].sum(), between.sum(), between @ off, (between * off) @ off)

    def members(low, high):
        inside = (losses > low) & (losses <= high)
        return losses[inside], mass[inside]

    return Spread(sums, members, losses.min(), losses.max(), start)


def weights_of(tilt, losses, mass):
    ratio = tilt.level * (losses >= tilt.eta)
    if tilt.slope > 0:
        ratio = np.clip(ratio + tilt.slope * (losses - tilt.eta), 0.0, tilt.cap)
    return mass * ratio


def second_derivative(tilt, losses, mass):
    over = losses - tilt.eta
    active = mass * ((over > 0) & (over * tilt.slope < tilt.cap))
    matrix = np.diag(tilt.scale * active)
    for scale, by_active, by_along in tilt.terms:
        vector = by_active * active + by_along * active * over
        matrix += scale * np.outer(vector, vector)
    return matrix


def drawn(seed, n=60):
    rng = np.random.default_rng(seed)
    losses = np.where(rng.random(n) < 0.3, 0.0, rng.exponential(size=n))
    mass = rng.uniform(0.2, 1.0, n)
    return losses, mass / mass.sum()


CASES = {
    "mean": (lambda: Mean(), lambda s, price: tilts.mean(s), 0.0),
    "chi2": (lambda: ChiSquare(0.2), lambda s, price: tilts.chi_square(s, 0.2**-0.5, price), 0.0),
    "small alpha": (lambda: ChiSquare(0.03), lambda s, price: tilts.chi_square(s, 0.03**-0.5, price), 0.0),
    "priced chi2": (
        lambda: ChiSquare(0.2).smoothed(0.7),
        lambda s, price: tilts.chi_square(s, 0.2**-0.5, price),
        0.7,
    ),
    "dearly priced chi2": (
        lambda: ChiSquare(0.2).smoothed(9.0),
        lambda s, price: tilts.chi_square(s, 0.2**-0.5, price),
        9.0,
    ),
    "priced cvar": (
        lambda: CVaR(0.3).smoothed(0.4),
        lambda s, price: tilts.cvar(s, 0.3, price),
        0.4,
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(5))
def test_value_weights_and_curvature_are_those_of_the_objective_that_sees_every_loss(name, seed):
    make, tilt_of, price = CASES[name]
    losses, mass = drawn(seed)
    objective = make()
    at = objective(losses[None], mass)
    tilt = tilt_of(spread_of(losses, mass), price)
    assert tilt.value == pytest.approx(at.value[0], abs=1e-12)
    np.testing.assert_allclose(weights_of(tilt, losses, mass), at.weights[0], atol=1e-12)
    assert tilt.attained == pytest.approx(at.weights[0] @ losses, abs=1e-12)
    bend = objective.curvature(losses, mass, at)
    if bend is None:
        assert tilt.scale == 0.0
        return
    full = np.diag(bend.diagonal) + bend.vectors.T @ (bend.scales[:, None] * bend.vectors)
    np.testing.assert_allclose(second_derivative(tilt, losses, mass), full, atol=1e-9 * bend.diagonal.max())


# The first call compiles.
@settings(deadline=None)
@given(
    st.lists(st.floats(0.0, 50.0), min_size=2, max_size=30),
    st.floats(0.05, 0.95),
    st.sampled_from(["chi2", "cvar"]),
    st.floats(-1.0, 51.0) | st.just(np.nan),
)
@example([0.0, 0.0, 1e-200], 0.5, "chi2", np.nan)
@example([0.0, 1e-160, 3e-160], 0.3, "chi2", 2e-160)
def test_the_value_is_the_objectives_for_any_losses_from_any_start(values, alpha, ball, start):
    losses = np.array(values)
    mass = np.full(len(losses), 1.0 / len(losses))
    spread = spread_of(losses, mass, start)
    if ball == "chi2":
        tilt, objective = tilts.chi_square(spread, alpha**-0.5), ChiSquare(alpha)
    else:
        tilt, objective = tilts.cvar(spread, alpha), CVaR(alpha)
    expected = objective(losses[None], mass).value[0]
    assert tilt.value == pytest.approx(expected, abs=1e-9 * (1 + losses.max()))


@pytest.mark.parametrize("price", [0.0, 0.05])
@pytest.mark.parametrize("ball", ["chi2", "cvar"])
def test_a_threshold_near_the_one_sought_spares_rounds(ball, price):
    losses, mass = drawn(0, n=20_000)

    def searched(start):
        spread, asked = spread_of(losses, mass, start), []
        counted = spread._replace(sums=lambda *about: asked.append(about) or spread.sums(*about))
        tilt = tilts.chi_square(counted, 2.0) if ball == "chi2" else tilts.cvar(counted, 0.3, price)
        return tilt, len(asked)

    cold, many = searched(np.nan)
    warm, few = searched(cold.eta + 1e-3)
    assert few <= min(many - 2, 8)
    assert many <= 14
    assert warm.value == pytest.approx(cold.value, rel=1e-13)
    assert warm.eta == pytest.approx(cold.eta, rel=1e-9)


def test_equal_losses_at_cvars_threshold_share_what_is_left():
    losses, mass = np.array([0.0] * 7 + [1.0] * 2 + [5.0]), np.full(10, 0.1)
    for alpha, expected in ((0.2, [0.0, 0.25, 0.5]), (0.65, [0.35 / 0.65 / 7, 0.1 / 0.65, 0.1 / 0.65])):
        tilt = tilts.cvar(spread_of(losses, mass), alpha)
        np.testing.assert_allclose((mass * tilt.ratio(losses))[[0, 7, 9]], expected, atol=1e-14)


def test_losses_that_alone_fill_the_ball_are_the_maximum():
    losses, mass = np.array([0.0, 1.0, 2.0, 2.0]), np.full(4, 0.25)
    tilt = tilts.chi_square(spread_of(losses, mass), 0.4**-0.5)
    assert tilt.value == 2.0
    np.testing.assert_allclose(weights_of(tilt, losses, mass), [0, 0, 0.5, 0.5])
    np.testing.assert_allclose(mass * tilt.ratio(losses), [0, 0, 0.5, 0.5])


def test_alpha_one_is_the_mean():
    losses, mass = drawn(0)
    for tilt in (
        tilts.chi_square(spread_of(losses, mass), 1.0),
        tilts.cvar(spread_of(losses, mass), 1.0),
    ):
        assert tilt.value == pytest.approx(mass @ losses)
