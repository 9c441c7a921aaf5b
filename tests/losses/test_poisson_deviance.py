import numpy as np
import pytest
import torch

from drosurv.losses import PiecewiseExponential, PoissonDeviance, poisson_deviance
from drosurv.target import Target


def sample(n=30, seed=0):
    rng = np.random.default_rng(seed)
    time, event = np.round(rng.exponential(3.0, size=n), 1) + 0.1, rng.random(n) < 0.6
    time[0], event[0] = 0.0, True
    return Target(event, time), rng


def defined_losses(scores, psi, target, cuts):
    edges = np.concatenate([[0.0], cuts, [np.inf]])
    time = np.where(target.time == 0, target.time[target.time > 0].min() / 2, target.time)
    exposure = np.clip(time[:, None] - edges[:-1], 0, np.diff(edges))
    hazard = np.exp(scores) * (exposure @ np.exp(psi))
    return 2 * (hazard - target.event - target.event * np.log(hazard))


def test_losses_and_gradients_follow_the_definition():
    target, rng = sample()
    loss = PoissonDeviance(target, 4)
    scores, psi, q = rng.normal(size=(2, 30)), rng.normal(size=(2, 4)), rng.random((2, 30))
    losses = loss(scores, psi)
    by_score, by_psi = loss.pullback(q)
    cuts = loss.intervals.cut_points
    for b in range(2):
        np.testing.assert_allclose(losses[b], defined_losses(scores[b], psi[b], target, cuts))
        for gradient, point, at in (
            (by_score[b], 0, scores[b]),
            (by_psi[b], 1, psi[b]),
        ):
            slopes = []
            for step in 1e-5 * np.eye(len(at)):
                moved = [[scores[b], psi[b]], [scores[b], psi[b]]]
                moved[0][point], moved[1][point] = at + step, at - step
                up, down = (q[b] @ defined_losses(*place, target, cuts) for place in moved)
                slopes.append((up - down) / 2e-5)
            np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-8)


def test_an_offset_is_added_to_the_scores():
    target, rng = sample()
    offset, scores, psi = rng.normal(size=30), rng.normal(size=30), rng.normal(size=4)
    loss = PoissonDeviance(target, 4, offset=offset)
    expected = defined_losses(scores + offset, psi, target, loss.intervals.cut_points)
    np.testing.assert_allclose(loss(scores[None], psi[None])[0], expected)


def test_torch_agrees_in_value_and_gradient():
    target, rng = sample(seed=1)
    loss = PoissonDeviance(target, 4)
    scores, psi, q = rng.normal(size=(2, 30)), rng.normal(size=(2, 4)), rng.random((2, 30))
    log_risk, log_rates = torch.tensor(scores, requires_grad=True), torch.tensor(psi, requires_grad=True)
    event, time = torch.tensor(target.event), torch.tensor(target.time)
    losses = poisson_deviance(log_risk, log_rates, event, time, torch.tensor(loss.intervals.cut_points))
    np.testing.assert_allclose(losses.detach().numpy(), loss(scores, psi))
    (losses * torch.tensor(q)).sum().backward()
    by_score, by_psi = loss.pullback(q)
    np.testing.assert_allclose(log_risk.grad.numpy(), by_score, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(log_rates.grad.numpy(), by_psi, rtol=1e-9, atol=1e-12)


def test_worst_patients_do_not_change_with_the_unit_of_time_as_they_do_for_the_likelihood():
    target, rng = sample(n=200, seed=2)
    scores = rng.normal(size=200)
    years = Target(target.event, target.time / 365.25)
    deviances, likelihoods = [], []
    for scaled in (target, years):
        psi = PiecewiseExponential(scaled, 5).start
        deviances.append(PoissonDeviance(scaled, 5)(scores, psi))
        likelihoods.append(PiecewiseExponential(scaled, 5)(scores, psi))
    np.testing.assert_allclose(deviances[0], deviances[1])
    assert set(np.argsort(likelihoods[0])[-20:]) != set(np.argsort(likelihoods[1])[-20:])


def test_deviance_is_zero_exactly_where_an_event_was_expected_once():
    loss = PoissonDeviance(Target(np.array([True, True]), np.array([2.0, 4.0])), 1)
    losses = loss(np.zeros(2), np.log([0.5]))
    assert losses[0] == pytest.approx(0)
    assert losses[1] > 0


def test_follow_up_of_no_time_is_refused():
    with pytest.raises(ValueError, match="every observed time is 0"):
        PoissonDeviance(Target(np.ones(2, bool), np.zeros(2)))
    with pytest.raises(ValueError, match="every observed time is 0"):
        poisson_deviance(
            torch.zeros(2), torch.zeros(1), torch.ones(2, dtype=torch.bool), torch.zeros(2), torch.zeros(0)
        )
