import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from drosurv.objectives import chi_square, cvar, power


def defined(losses, alpha, p):
    """R_p by a bounded search over eta, from its definition."""

    def dual(eta):
        over = np.maximum(losses - eta, 0)
        top = max(over.max(), 1e-300)
        return eta + top * (np.mean((over / top) ** p) / alpha) ** (1 / p)

    spread = np.ptp(losses)
    found = minimize_scalar(
        dual,
        bounds=(losses.min() - 50 * p * spread / (1 - alpha), losses.max()),
        method="bounded",
        options={"xatol": 1e-13 * spread, "maxiter": 2000},
    )
    return min(found.fun, *(dual(eta) for eta in losses))


@pytest.mark.parametrize("p", [1.0, 1.2, 1.5, 2.0, 3.0, 7.5, 20.0, 50.0])
@pytest.mark.parametrize("alpha", [0.02, 0.2, 0.6, 0.9])
def test_value_follows_the_definition(p, alpha):
    losses = np.random.default_rng(0).exponential(size=40)
    found = power(torch.as_tensor(losses), alpha, p).item()
    assert found == pytest.approx(defined(losses, alpha, p), abs=1e-9)


def test_orders_one_and_two_are_cvar_and_chi_square():
    losses = torch.as_tensor(np.random.default_rng(0).normal(size=(3, 40)))
    for alpha in (0.05, 0.3, 1.0):
        torch.testing.assert_close(power(losses, alpha, 1.0), cvar(losses, alpha), rtol=1e-12, atol=0)
        torch.testing.assert_close(power(losses, alpha, 2.0), chi_square(losses, alpha), rtol=1e-12, atol=0)
        # The general search joins them without a jump.
        torch.testing.assert_close(
            power(losses, alpha, 2.0 + 1e-9), chi_square(losses, alpha), rtol=1e-7, atol=0
        )
        torch.testing.assert_close(power(losses, alpha, 1.0 + 1e-9), cvar(losses, alpha), rtol=1e-6, atol=0)


@settings(deadline=None, max_examples=25)
@given(
    losses=st.lists(st.floats(-10, 10).map(lambda x: round(x, 4)), min_size=1, max_size=15),
    alpha=st.sampled_from([0.05, 0.3, 0.8, 1.0]),
)
def test_higher_orders_are_more_cautious_up_to_the_largest_loss(losses, alpha):
    tensor = torch.tensor(losses, dtype=torch.float64)
    values = [power(tensor, alpha, p).item() for p in (1, 1.5, 2, 3, 6)]
    assert (np.diff(values) >= -1e-9).all()
    assert tensor.mean().item() - 1e-9 <= values[0]
    assert values[-1] <= tensor.max().item() + 1e-9


@pytest.mark.parametrize("p", [1.3, 2.5, 4.0])
def test_gradient_is_a_set_of_weights(p):
    losses = torch.as_tensor(np.random.default_rng(2).exponential(size=(2, 6))).requires_grad_()
    assert torch.autograd.gradcheck(lambda l: power(l, 0.4, p), losses)
    power(losses, torch.tensor([0.2, 0.9], dtype=torch.float64), p).sum().backward()
    assert (losses.grad >= 0).all()
    np.testing.assert_allclose(losses.grad.sum(-1), 1, rtol=1e-9)


def test_equal_losses_and_the_mean_are_exact():
    same = torch.full((5,), 2.0, dtype=torch.float64, requires_grad=True)
    value = power(same, 0.3, 3.0)
    value.backward()
    assert value.item() == pytest.approx(2.0, rel=1e-12)
    np.testing.assert_allclose(same.grad, np.full(5, 0.2), rtol=1e-9)
    losses = torch.as_tensor(np.random.default_rng(0).normal(size=9))
    assert power(losses, 1.0, 3.0).item() == pytest.approx(losses.mean().item(), rel=1e-12)


def test_high_orders_near_the_entropic_value_at_risk():
    losses = np.random.default_rng(0).exponential(size=40)
    entropic = minimize_scalar(
        lambda t: t * (logsumexp(losses / t) - np.log(len(losses) * 0.3)),
        bounds=(1e-3, 1e3),
        method="bounded",
    ).fun
    assert power(torch.as_tensor(losses), 0.3, 1000.0).item() == pytest.approx(entropic, rel=2e-3)


def test_orders_below_one_or_without_end_are_refused():
    for p in (0.5, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="p must be at least 1 and finite"):
            power(torch.ones(3), 0.5, p)
