import numpy as np
import pytest
import torch

from drosurv.objectives import chi_square, cvar
from drosurv.objectives.cvar import CVaR
from drosurv.objectives.objective import uniform_mass


def test_patients_of_equal_loss_share_their_weight():
    losses = torch.tensor([2.0, 2.0, 2.0, 5.0, 1.0], dtype=torch.float64, requires_grad=True)
    cvar(losses, 0.4).backward()
    np.testing.assert_allclose(losses.grad, [1 / 6, 1 / 6, 1 / 6, 0.5, 0], rtol=1e-12)
    found = CVaR(0.4)(losses.detach().numpy()[None, :], uniform_mass(5))
    np.testing.assert_allclose(found.weights[0], losses.grad, rtol=1e-12)


def test_one_row_of_losses_with_several_alphas():
    losses, alphas = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0.25, 0.5, 1.0])
    for objective in (cvar, chi_square):
        together = objective(losses, alphas)
        np.testing.assert_allclose(together, [objective(losses, float(a)) for a in alphas], rtol=1e-6)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_losses_that_are_not_finite_give_nan(wrong):
    losses = np.where(np.arange(6) < 3, wrong, 1.0)
    for objective in (CVaR(0.3), CVaR(0.3).smoothed(0.1)):
        found = objective(losses[None, :], uniform_mass(6))
        assert np.isnan(found.value).all()
        assert np.isnan(found.weights).all()
