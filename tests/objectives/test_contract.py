"""What every objective must do, in its compiled form and in its torch form."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from drosurv.objectives import chi_square, cvar, worst_case_weights
from drosurv.objectives.balls import BALLS
from drosurv.objectives.chi_square import ChiSquare
from drosurv.objectives.cvar import CVaR
from drosurv.objectives.objective import Mean, uniform_mass


def chi_square_dual(eta, losses, mass, alpha):
    return eta + np.sqrt(mass @ np.maximum(losses - eta, 0) ** 2 / alpha)


def paper_dual(eta, losses, mass, alpha):
    c = np.sqrt(2 * (1 / alpha - 1) ** 2 + 1)
    return eta + c * np.sqrt(mass @ np.maximum(losses - eta, 0) ** 2)


def cvar_dual(eta, losses, mass, alpha):
    return eta + mass @ np.maximum(losses - eta, 0) / alpha


def chi_square_reach(weights, mass, alpha):
    return mass @ (weights / mass - 1) ** 2 - (1 / alpha - 1)


def paper_reach(weights, mass, alpha):
    return mass @ (weights / mass - 1) ** 2 - 2 * (1 / alpha - 1) ** 2


def cvar_reach(weights, mass, alpha):
    return (weights / mass).max() - 1 / alpha


@dataclass(frozen=True)
class Member:
    """One objective: compiled, in torch, its dual function of eta, and how far weights leave its ball."""

    compiled: Any
    in_torch: Any
    dual: Any
    reach: Any
    ball: str


MEMBERS = {
    "chi2": Member(ChiSquare, chi_square, chi_square_dual, chi_square_reach, "chi2"),
    "paper": Member(
        lambda alpha: ChiSquare(alpha, "paper"),
        lambda losses, alpha: chi_square(losses, alpha, constant="paper"),
        paper_dual,
        paper_reach,
        "paper",
    ),
    "cvar": Member(CVaR, cvar, cvar_dual, cvar_reach, "cvar"),
}
# Balls without a dual function of one threshold, each with a test file of its own.
ELSEWHERE: set[str] = set()
BUILT_IN = set(BALLS)
ALPHAS = (0.01, 0.1, 0.2, 0.5, 0.7, 0.95)


@pytest.fixture(params=MEMBERS)
def member(request):
    return MEMBERS[request.param]


def test_every_ball_is_tested_here():
    missing = BUILT_IN - {member.ball for member in MEMBERS.values()} - ELSEWHERE
    assert not missing, (
        "add to MEMBERS of this file its objective, its dual function and the distance of weights from its ball; "
        "without such a dual function, name it in ELSEWHERE and test it in a file of its own"
    )


def dual_minimum(dual, losses, mass, alpha):
    """Smallest value of a convex function of eta, from a bracket that is sure to hold the minimiser."""
    spread = np.ptp(losses) + 1e-12
    lowest = losses.min() - 2 * spread / (1 - np.sqrt(alpha))
    found = minimize_scalar(
        dual, (lowest, losses.max()), (lowest, losses.max()), (losses, mass, alpha), "bounded",
        options={"xatol": 1e-13 * spread, "maxiter": 1000},
    )  # fmt: skip
    # A bounded search settles near a kink or an end, not on it; kinks lie at the losses themselves.
    return min(found.fun, *(dual(eta, losses, mass, alpha) for eta in losses))


def evaluate(objective, losses, mass=None):
    mass = uniform_mass(len(losses)) if mass is None else mass
    at = objective(np.asarray(losses, dtype=float)[None, :], mass)
    return float(at.value[0]), at.weights[0], float(at.eta[0])


@st.composite
def cases(draw):
    n = draw(st.integers(1, 25))
    few = st.integers(0, 3).map(float)
    many = st.floats(-50, 50, allow_subnormal=False).map(lambda x: round(x, 6))
    losses = draw(st.lists(draw(st.sampled_from([few, many])), min_size=n, max_size=n))
    mass = np.array(draw(st.lists(st.integers(1, 9), min_size=n, max_size=n)), dtype=float)
    if draw(st.booleans()):
        mass = np.ones(n)
    return np.array(losses), mass / mass.sum(), draw(st.sampled_from(ALPHAS))


@settings(deadline=None, max_examples=50)
@given(case=cases(), name=st.sampled_from(sorted(MEMBERS)))
def test_value_eta_and_weights_solve_the_dual_and_the_primal_problem(case, name):
    losses, mass, alpha = case
    member = MEMBERS[name]
    value, weights, eta = evaluate(member.compiled(alpha), losses, mass)
    scale = max(np.abs(losses).max(), 1.0)
    assert value == pytest.approx(dual_minimum(member.dual, losses, mass, alpha), abs=1e-9 * scale)
    assert value == pytest.approx(member.dual(eta, losses, mass, alpha), abs=1e-9 * scale)
    # The weights are in the ball and attain the value, so no other subpopulation is worse.
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert weights @ losses == pytest.approx(value, abs=1e-9 * scale)
    assert member.reach(weights, mass, alpha) <= 1e-8 / alpha**2


@settings(deadline=None, max_examples=40)
@given(case=cases(), name=st.sampled_from(sorted(MEMBERS)))
def test_torch_and_compiled_forms_agree(case, name):
    losses, _, alpha = case
    member = MEMBERS[name]
    value, weights, _ = evaluate(member.compiled(alpha), losses)
    tensor = torch.as_tensor(losses).requires_grad_()
    found = member.in_torch(tensor, alpha)
    found.backward()
    scale = max(np.abs(losses).max(), 1.0)
    assert found.item() == pytest.approx(value, abs=1e-11 * scale)
    np.testing.assert_allclose(tensor.grad, weights, atol=1e-9)
    np.testing.assert_array_equal(worst_case_weights(tensor, alpha, ball=member.ball), tensor.grad)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_equal_losses_give_that_loss_and_equal_weights(member, alpha):
    mass = np.array([0.1, 0.2, 0.3, 0.4])
    value, weights, eta = evaluate(member.compiled(alpha), np.full(4, 2.5), mass)
    assert (value, eta) == pytest.approx((2.5, 2.5), rel=1e-14)
    np.testing.assert_allclose(weights, mass, rtol=1e-12)
    found = torch.full((4,), 2.5, dtype=torch.float64, requires_grad=True)
    result = member.in_torch(found, alpha)
    result.backward()
    assert result.item() == 2.5
    assert found.grad.tolist() == [0.25] * 4


def test_a_ball_that_contains_single_patients_gives_the_largest_loss(member):
    losses = np.array([3.0, 1.0, 3.0, 2.0])
    value, weights, eta = evaluate(member.compiled(0.01), losses)
    assert value == eta == 3.0
    np.testing.assert_allclose(weights, [0.5, 0, 0.5, 0], rtol=1e-12)
    np.testing.assert_allclose(
        worst_case_weights(torch.as_tensor(losses), 0.01, ball=member.ball), [0.5, 0, 0.5, 0], rtol=1e-12
    )


def test_alpha_one_is_the_mean(member):
    rng = np.random.default_rng(0)
    losses, mass = rng.normal(size=50), rng.dirichlet(np.ones(50))
    value, weights, _ = evaluate(member.compiled(1.0), losses, mass)
    mean, even, _ = evaluate(Mean(), losses, mass)
    assert value == pytest.approx(losses @ mass, rel=1e-12)
    assert mean == pytest.approx(losses @ mass, rel=1e-14)
    np.testing.assert_allclose(weights, mass, rtol=1e-9)
    np.testing.assert_array_equal(even, mass)
    tensor = torch.as_tensor(losses).requires_grad_()
    found = member.in_torch(tensor, 1.0)
    found.backward()
    assert found.item() == pytest.approx(losses.mean(), rel=1e-12)
    np.testing.assert_allclose(tensor.grad, np.full(50, 0.02), rtol=1e-9)


@pytest.mark.parametrize("alpha", [1 - 1e-12, 1 - 1e-9, 1 - 1e-6])
def test_the_value_is_continuous_at_alpha_one(member, alpha):
    losses = np.random.default_rng(0).exponential(size=200)
    value, weights, _ = evaluate(member.compiled(alpha), losses)
    # Both balls have radius at most sqrt(1/alpha^2 - 1) around the mean's weights.
    assert abs(value - losses.mean()) <= 3 * np.sqrt(1 / alpha - 1) * losses.std() + 1e-9
    assert weights.sum() == pytest.approx(1, abs=1e-9)
    assert member.in_torch(torch.as_tensor(losses), alpha).item() == pytest.approx(value, abs=1e-7)


def test_masses_equal_copies(member):
    rng = np.random.default_rng(0)
    losses, counts = rng.exponential(size=30), rng.integers(1, 5, 30)
    rows = np.repeat(np.arange(30), counts)
    for alpha in ALPHAS:
        value, weights, eta = evaluate(member.compiled(alpha), losses, counts / counts.sum())
        copied, spread, copied_eta = evaluate(member.compiled(alpha), losses[rows])
        assert value == pytest.approx(copied, rel=1e-12)
        assert eta == pytest.approx(copied_eta, rel=1e-9)
        np.testing.assert_allclose(np.bincount(rows, spread), weights, atol=1e-12)


def test_patients_of_mass_zero_change_nothing(member):
    # Ten tenths add up to a little less than one.
    losses, mass = np.append(np.arange(9.0), 10), np.full(10, 0.1)
    for alpha in (0.05, 0.3, 0.9, 1.0):
        value, weights, eta = evaluate(member.compiled(alpha), losses, mass)
        for extra in (-9.0, 3.0, 9.5, 10.0, 11.0):
            found = evaluate(member.compiled(alpha), np.append(losses, extra), np.append(mass, 0.0))
            assert found[0] == pytest.approx(value, rel=1e-12)
            np.testing.assert_allclose(found[1], np.append(weights, 0.0), atol=1e-12)
            assert found[2] == pytest.approx(eta, rel=1e-9)


def test_rows_of_a_batch_are_independent_with_one_alpha_each(member):
    rng = np.random.default_rng(0)
    losses, mass = rng.exponential(size=(4, 40)), rng.dirichlet(np.ones(40))
    alphas = np.array([0.05, 0.3, 0.9, 1.0])
    together = member.compiled(alphas)(losses, mass)
    shared = member.compiled(0.3)(losses, mass)
    in_torch = member.in_torch(
        torch.as_tensor(losses).reshape(2, 2, 40), torch.as_tensor(alphas).reshape(2, 2)
    )
    for b, alpha in enumerate(alphas):
        value, weights, eta = evaluate(member.compiled(alpha), losses[b], mass)
        assert together.value[b] == pytest.approx(value, rel=1e-12)
        assert together.eta[b] == pytest.approx(eta, rel=1e-12)
        np.testing.assert_allclose(together.weights[b], weights, atol=1e-12)
        assert shared.value[b] == pytest.approx(evaluate(member.compiled(0.3), losses[b], mass)[0], rel=1e-12)
        even = evaluate(member.compiled(alpha), losses[b])[0]
        assert in_torch.reshape(-1)[b].item() == pytest.approx(even, rel=1e-12)


def test_values_and_thresholds_do_not_depend_on_earlier_calls(member):
    rng = np.random.default_rng(0)
    objective = member.compiled(0.1)
    for step in range(30):
        # Losses that drift, jump up, jump down, and lose their tail: the search starts from the last threshold.
        spread = 0.0 if step == 10 else 10.0 ** rng.integers(-3, 3)
        losses = rng.exponential(size=500) ** (1 + step % 3) * spread + rng.normal() * 100
        (value, _, eta), (wanted, _, threshold) = (
            evaluate(each, losses) for each in (objective, member.compiled(0.1))
        )
        assert value == pytest.approx(wanted, rel=1e-12)
        assert eta == pytest.approx(threshold, rel=1e-10)


@pytest.mark.parametrize(
    ("scale", "offset"), [(1e-8, 0.0), (1e8, 0.0), (1.0, 1e8), (1e-3, 1e6), (1e150, 0.0)]
)
def test_the_value_follows_shifts_and_scales_of_the_losses(member, scale, offset):
    losses = np.random.default_rng(1).exponential(size=100)
    moved = scale * losses + offset
    for alpha in (0.03, 0.3, 0.9):
        value, weights, _ = evaluate(member.compiled(alpha), losses)
        found, moved_weights, _ = evaluate(member.compiled(alpha), moved)
        rounding = 100 * np.finfo(float).eps * (abs(offset) + scale)
        assert found == pytest.approx(scale * value + offset, abs=rounding, rel=1e-12)
        np.testing.assert_allclose(moved_weights, weights, atol=1e-9 + rounding / scale)
        in_torch = member.in_torch(torch.as_tensor(moved), alpha).item()
        assert in_torch == pytest.approx(found, abs=rounding, rel=1e-12)


def test_the_value_lies_between_mean_and_maximum_and_falls_as_alpha_grows(member):
    losses = np.random.default_rng(2).exponential(size=60)
    values = [evaluate(member.compiled(alpha), losses)[0] for alpha in (0.001, *ALPHAS, 1.0)]
    assert values[0] == pytest.approx(losses.max(), rel=1e-12)
    assert values[-1] == pytest.approx(losses.mean(), rel=1e-12)
    assert (np.diff(values) <= 1e-12).all()


def test_float32_losses_are_summed_in_float64(member):
    losses = (1e4 + np.random.default_rng(0).exponential(size=5000)).astype(np.float32)
    found = member.in_torch(torch.as_tensor(losses), 0.2)
    value, _, _ = evaluate(member.compiled(0.2), losses.astype(float))
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(value, rel=2e-7)


@pytest.mark.parametrize("alpha", [0.0, -0.1, 1.1, np.nan, np.inf])
def test_alpha_outside_its_range_is_refused(member, alpha):
    for make in (
        lambda: member.compiled(alpha),
        lambda: member.in_torch(torch.ones(3), alpha),
        lambda: member.in_torch(torch.ones(2, 3), torch.tensor([0.5, alpha])),
        lambda: worst_case_weights(torch.ones(3), alpha, ball=member.ball),
    ):
        with pytest.raises(ValueError, match=r"alpha must lie in \(0, 1\], as the smallest share .* got"):
            make()
