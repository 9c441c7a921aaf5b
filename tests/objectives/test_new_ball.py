"""A new ball is one module and one line that registers it; everything that takes a ball then knows it."""

import sys
from importlib import import_module

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

import drosurv
from drosurv import datasets
from drosurv.losses.cox_partial import CoxPartial
from drosurv.objectives import balls, worst_case_weights
from drosurv.objectives.balls import BALLS
from drosurv.objectives.objective import Evaluation, uniform_mass

# Weights p_i exp(l_i / t) of smallest t inside the ball sum q log(q / p) <= log(1 / alpha), by bisection.
MODULE = '''
import numpy as np

from drosurv.objectives import RobustObjective, register_ball
from drosurv.objectives.objective import Evaluation
from drosurv.objectives.balls import torch_shares


class KL(RobustObjective):
    """Kullback-Leibler ball of radius log(1 / alpha)."""

    def __call__(self, losses, mass):
        weights = np.empty_like(losses)
        for row in range(len(losses)):
            over, limit = losses[row] - losses[row].max(), -np.log(self.alpha_of_row(row))
            low, high = -40.0, 40.0
            for _ in range(100):
                middle = (low + high) / 2
                q = mass * np.exp(over * np.exp(-middle))
                q /= q.sum()
                inside = q @ np.log(np.maximum(q, 1e-300) / mass) <= limit
                low, high = (low, middle) if inside else (middle, high)
            weights[row] = q
        values = (weights * losses).sum(axis=1)
        return Evaluation(values, weights, values)

    def torch_evaluation(self, losses, mass=None):
        values = losses.double().expand(*self.torch_alpha(losses).shape, losses.shape[-1])
        shares, limit = torch_shares(values, mass), -self.torch_alpha(losses).log().unsqueeze(-1)
        over = values - values.amax(-1, keepdim=True)
        low, high = -40.0 + 0.0 * limit, 40.0 + 0.0 * limit
        for _ in range(100):
            middle = (low + high) / 2
            q = shares * (over * (-middle).exp()).exp()
            q = q / q.sum(-1, keepdim=True)
            inside = (q * (q.clamp(min=1e-300) / shares).log()).sum(-1, keepdim=True) <= limit
            low, high = low.where(inside, middle), middle.where(inside, high)
        return (q * values).sum(-1), q


register_ball("kl", KL, "Kullback-Leibler ball of radius log(1/alpha)")
'''


@pytest.fixture(scope="module", autouse=True)
def kl(tmp_path_factory):
    """The module, imported as a user's; forgotten afterwards."""
    folder = tmp_path_factory.mktemp("ball")
    (folder / "kl_ball.py").write_text(MODULE)
    documented = [(item, item.__doc__) for item, _ in balls._documented]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.setitem(balls.BALLS, "kl", None)
        yield import_module("kl_ball").KL
    sys.modules.pop("kl_ball")
    for item, text in documented:
        item.__doc__ = text


LOSSES = np.random.default_rng(0).exponential(size=(3, 40))


def entropic(losses, alpha):
    """The value by its dual, min over t of t log mean exp(l / t) + t log(1 / alpha)."""

    def dual(log_t):
        t = np.exp(log_t)
        return t * (logsumexp(losses / t) - np.log(len(losses) * alpha))

    return minimize_scalar(dual, bounds=(-6, 8), method="bounded", options={"xatol": 1e-12}).fun


@pytest.mark.parametrize("alpha", [0.2, 0.7])
def test_worst_case_weights_of_arrays_and_tensors_attain_the_dual(alpha):
    weights = worst_case_weights(LOSSES, alpha, ball="kl")
    for row, q in zip(LOSSES, weights, strict=True):
        assert q @ row == pytest.approx(entropic(row, alpha), rel=1e-7)
    in_torch = worst_case_weights(torch.tensor(LOSSES), alpha, ball="kl")
    np.testing.assert_allclose(in_torch.numpy(), weights, rtol=1e-6, atol=1e-9)


def test_it_is_differentiable_on_tensors():
    losses = torch.tensor(LOSSES[0], requires_grad=True)
    BALLS["kl"].objective(np.array(0.3)).torch(losses).backward()
    np.testing.assert_allclose(
        losses.grad, worst_case_weights(LOSSES[0], 0.3, ball="kl"), rtol=1e-6, atol=1e-9
    )


def test_estimators_train_with_it():
    data = datasets.make_hidden_minority(n_samples=200, random_state=0)

    def fitted(**parameters):
        return drosurv.DROCox(alpha=0.4, recalibrate=False, **parameters).fit(data.X, data.y)

    model, in_steps = fitted(ball="kl"), fitted(ball="kl", solver="adam", max_iter=60)
    for one in (model, in_steps):
        assert one.worst_case_weights_.sum() == pytest.approx(1)
    # Every subpopulation of mass alpha is in the ball, so that its worst case is at least CVaR.
    assert fitted(ball="cvar").objective_ < model.objective_ <= in_steps.objective_ + 1e-6
    # No other coefficients are better: the objective rises along random directions.
    loss = CoxPartial(drosurv.patients.target.parse_target(data.y))
    X = np.asarray(data.X, dtype=float)

    objective, mass = BALLS["kl"].objective(np.array(0.4)), uniform_mass(len(X))

    def value(coef):
        return objective(loss.everyone(loss((X @ coef)[None])), mass).value[0]

    rng = np.random.default_rng(1)
    best = value(model.coef_)
    assert best == pytest.approx(model.objective_, rel=1e-6)
    assert all(value(model.coef_ + 0.03 * rng.normal(size=X.shape[1])) > best for _ in range(10))


def test_a_ball_with_kinks_and_without_smoothed_is_told_what_to_write(kl, monkeypatch):
    data = datasets.make_hidden_minority(n_samples=30, n_features=5, random_state=0)

    def jumping(self, losses, mass):
        """All weight on the largest loss."""
        weights = np.eye(losses.shape[1])[losses.argmax(axis=1)]
        return Evaluation(losses.max(axis=1), weights, losses.max(axis=1))

    monkeypatch.setattr(kl, "__call__", jumping)
    with pytest.warns(ConvergenceWarning, match=r"KL has no method smoothed for that; .* solver='adam'"):
        drosurv.DROCox(alpha=0.4, ball="kl", recalibrate=False).fit(data.X, data.y)


def test_docstrings_list_it():
    for documented in (
        drosurv.DROCox,
        drosurv.AcceleratedFailureTime,
        drosurv.CauseSpecificCox,
        worst_case_weights,
    ):
        names = ", ".join(f'"{name}"' for name in BALLS)
        assert names.startswith('"chi2", "paper", "cvar"')
        assert names.endswith('"kl"')
        assert f"ball : {{{names}}}" in documented.__doc__
    assert "kl: Kullback-Leibler ball of radius log(1/alpha)" in worst_case_weights.__doc__


def test_errors_name_it():
    with pytest.raises(ValueError, match=r"ball must be one of \('chi2', .*'kl'\), got 'wasserstein'"):
        worst_case_weights(LOSSES, 0.3, ball="wasserstein")
