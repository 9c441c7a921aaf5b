import warnings

import numpy as np
import pytest
import torch
from scipy.optimize import minimize, minimize_scalar

from drosurv import MLP, CoxPH, DROCox, Surv


def sample(n=200, seed=0, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    time = np.ceil(10 * rng.exponential(size=n) * np.exp(-X[:, 0]))
    return X, Surv.from_arrays(rng.random(n) < 0.7, time)


def losses_of(risk, y):
    """Cox losses of all patients, from the definition."""
    out = np.zeros(len(y))
    for i in np.flatnonzero(y["event"]):
        out[i] = np.log(np.exp(risk[y["time"] >= y["time"][i]]).sum()) - risk[i]
    return out


def constant(alpha, ball):
    return {"chi2": alpha**-0.5, "paper": np.sqrt(2 * (1 / alpha - 1) ** 2 + 1)}[ball]


def worst_case(losses, alpha, ball):
    """The robust objective by a bounded search over eta."""
    if ball == "cvar":
        return min(eta + np.maximum(losses - eta, 0).mean() / alpha for eta in losses)

    def dual(eta):
        return eta + constant(alpha, ball) * np.sqrt((np.maximum(losses - eta, 0) ** 2).mean())

    bounds = losses.min() - 100, losses.max()
    found = minimize_scalar(dual, bounds=bounds, method="bounded", options={"xatol": 1e-12})
    # A bounded search settles near the largest loss, not on it.
    return min(found.fun, dual(losses.max()))


@pytest.mark.parametrize("network", ["linear", MLP(max_iter=15)], ids=["linear", "mlp"])
@pytest.mark.parametrize("ball", ["chi2", "paper", "cvar"])
def test_alpha_one_is_plain_cox(ball, network):
    X, y = sample()
    settings = {"network": network, "random_state": 0}
    robust, plain = DROCox(1.0, ball, **settings, recalibrate=False).fit(X, y), CoxPH(**settings).fit(X, y)
    np.testing.assert_allclose(robust.predict(X), plain.predict(X), atol=1e-8)
    assert robust.objective_ == pytest.approx(plain.objective_, rel=1e-12)
    np.testing.assert_allclose(robust.worst_case_weights_, np.full(200, 1 / 200), rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.7])
@pytest.mark.parametrize("ball", ["chi2", "paper", "cvar"])
def test_objective_eta_and_weights_belong_together(alpha, ball):
    X, y = sample()
    model = DROCox(alpha, ball, recalibrate=False).fit(X, y)
    losses = losses_of(model.predict(X), y)
    assert model.converged_
    assert model.objective_ == pytest.approx(worst_case(losses, alpha, ball), rel=1e-9)
    weights = model.worst_case_weights_
    assert weights @ losses == pytest.approx(model.objective_, rel=1e-9)
    # A loss at the threshold, computed here in another order, may fall a rounding short of it.
    assert (weights[losses < model.eta_ - 1e-12] == 0).all()
    over = np.maximum(losses - model.eta_, 0)
    if ball != "cvar" and over.any():
        c = constant(alpha, ball)
        np.testing.assert_allclose(weights, c * over / (200 * np.sqrt((over**2).mean())), atol=1e-10)
    elif ball == "cvar":
        assert weights.max() <= 1 / (200 * alpha) + 1e-12
    else:
        # The optimum lies where the largest losses are equal.
        assert losses[weights > 0] == pytest.approx(losses.max(), rel=1e-6)


@pytest.mark.parametrize(("ball", "tol"), [("chi2", 1e-7), ("paper", 1e-7), ("cvar", 2e-5)])
def test_no_other_coefficients_do_better(ball, tol):
    X, y = sample(n=60, d=2)
    model = DROCox(0.4, ball, recalibrate=False).fit(X, y)
    found = minimize(
        lambda theta: worst_case(losses_of(X @ theta, y), 0.4, ball),
        model.coef_,
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-12},
    )
    assert model.objective_ <= found.fun * (1 + tol)


def test_the_worst_off_lose_less_than_under_plain_cox():
    X, y = sample(n=500)
    robust, plain = DROCox(0.1, "cvar", recalibrate=False).fit(X, y), CoxPH().fit(X, y)
    worst = [np.sort(losses_of(model.predict(X), y))[-50:].mean() for model in (robust, plain)]
    assert worst[0] < worst[1]
    assert losses_of(plain.predict(X), y).mean() < losses_of(robust.predict(X), y).mean()


def test_training_by_adam_is_the_papers_algorithm(torch_adam):
    """Alternate the exact eta with one gradient step, written out with autograd and a bounded search."""
    X, y = sample(n=80)
    model = DROCox(0.3, "paper", solver="adam", lr=0.02, max_iter=25, random_state=4, recalibrate=False).fit(
        X, y
    )
    torch.manual_seed(4)
    theta = torch.nn.Linear(3, 1, bias=False).double().weight
    c, features = constant(0.3, "paper"), torch.as_tensor(X)
    event, time = torch.as_tensor(y["event"].copy()), torch.as_tensor(y["time"].copy())
    at_risk = time[None, :] >= time[:, None]
    step = torch_adam([theta], 0.02)
    for _ in range(25):
        risk = (features @ theta.T)[:, 0]
        losses = event * (torch.where(at_risk, risk[None, :], -torch.inf).logsumexp(1) - risk)
        values = losses.detach().numpy()
        eta = minimize_scalar(
            lambda e, values=values: e + c * np.sqrt((np.maximum(values - e, 0) ** 2).mean()),
            bounds=(values.min() - 100, values.max()),
            method="bounded",
            options={"xatol": 1e-12},
        ).x
        (c * (losses - eta).clamp(min=0).square().mean().sqrt()).backward()
        step()
    np.testing.assert_allclose(model.coef_, theta.detach().numpy()[0], atol=1e-6)


@pytest.mark.parametrize("solver", ["convex", "adam"])
@pytest.mark.parametrize(("ball", "alpha", "least"), [("chi2", 0.01, "0.025"), ("paper", 0.1, "0.1848")])
def test_a_ball_that_reaches_single_patients_is_said_with_the_alpha_that_avoids_it(
    ball, alpha, least, solver
):
    X, y = sample(n=40)
    steps = 500 if solver == "convex" else 60
    with pytest.warns(UserWarning, match=f"alpha={alpha} protects .* use alpha > {least}") as caught:
        model = DROCox(alpha, ball, solver=solver, max_iter=steps, random_state=0, recalibrate=False).fit(
            X, y
        )
    assert len(caught) == 1
    losses = losses_of(model.predict(X), y)
    assert model.objective_ == pytest.approx(losses.max(), rel=1e-9)
    assert model.eta_ == pytest.approx(losses.max(), rel=1e-9)
    if solver == "convex":
        assert model.converged_
        assert model.gap_ <= 1e-8
        # The alpha that was named does avoid it.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            DROCox(float(least) + 1e-6, ball, recalibrate=False).fit(X, y)


def test_optima_on_a_kink_are_reached():
    # Few patients and a small alpha: several largest losses are equal at the optimum.
    X, y = sample(n=60, d=8)
    model = DROCox(0.05, l2=1e-3, recalibrate=False).fit(X, y)
    assert model.converged_
    assert model.gap_ <= 1e-8


def test_smaller_alphas_ask_for_more():
    X, y = sample()
    values = [
        DROCox(alpha, ball, recalibrate=False).fit(X, y).objective_
        for ball in ("cvar", "chi2")
        for alpha in (0.1, 0.3, 0.9)
    ]
    assert values[0] > values[1] > values[2]
    assert values[3] > values[4] > values[5]
    # The chi-square ball holds every subpopulation that CVaR considers.
    assert all(chi >= worst * (1 - 1e-5) for worst, chi in zip(values[:3], values[3:], strict=True))
