import numpy as np
import pytest
import torch

from drosurv.losses import cox_partial
from drosurv.losses.cox_partial import CoxPartial
from drosurv.patients.target import Target


def sample(n=60, seed=0):
    rng = np.random.default_rng(seed)
    target = Target(rng.random(n) < 0.6, rng.integers(1, 12, n).astype(float))
    return target, rng.normal(size=(n, 3)), np.array([0.5, -1.0, 0.2])


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_losses_sum_to_the_partial_likelihood_of_scikit_survival(ties):
    from sksurv.linear_model.coxph import CoxPHOptimizer

    target, X, theta = sample()
    peer = CoxPHOptimizer(X, target.event, target.time, alpha=np.zeros(3), ties=ties)
    losses = CoxPartial(target, ties)((X @ theta)[None, :])
    assert losses.sum() / len(X) == pytest.approx(peer.nlog_likelihood(theta), rel=1e-12)


def test_events_and_times_broadcast_over_a_batch_of_scores():
    target, X, _ = sample()
    scores = torch.as_tensor(X.T.copy()).reshape(3, 1, -1).expand(3, 2, -1)
    event, time = torch.as_tensor(target.event), torch.as_tensor(target.time)
    shared = cox_partial(scores, event, time)
    own = cox_partial(scores, event.expand(3, 2, -1), time.expand(3, 2, -1))
    assert torch.equal(shared, own)
    np.testing.assert_allclose(shared[1, 0], cox_partial(scores[1, 0], event, time))


def test_rows_of_a_batch_may_differ_in_times_and_events():
    rng = np.random.default_rng(1)
    event, time = torch.as_tensor(rng.random((3, 20)) < 0.5), torch.as_tensor(rng.integers(0, 9, (3, 20)))
    scores = torch.as_tensor(rng.normal(size=(3, 20)))
    together = cox_partial(scores, event, time, ties="efron")
    for b in range(3):
        np.testing.assert_allclose(together[b], cox_partial(scores[b], event[b], time[b], ties="efron"))


def test_rows_of_a_batch_may_differ_in_weights():
    rng = np.random.default_rng(1)
    event, time = torch.as_tensor(rng.random(20) < 0.5), torch.as_tensor(rng.integers(0, 9, 20))
    scores, weight = torch.as_tensor(rng.normal(size=20)), torch.as_tensor(rng.uniform(1, 3, (4, 20)))
    together = cox_partial(scores, event, time, weight=weight)
    for b in range(4):
        np.testing.assert_allclose(together[b], cox_partial(scores, event, time, weight=weight[b]))


def test_event_flags_may_be_zeros_and_ones():
    target, X, _ = sample()
    scores, time = torch.as_tensor(X[:, 0]), torch.as_tensor(target.time)
    flags = torch.as_tensor(target.event)
    for dtype in (torch.float64, torch.int64):
        assert torch.equal(cox_partial(scores, flags.to(dtype), time), cox_partial(scores, flags, time))


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_weight_zero_equals_leaving_a_patient_out(ties):
    target, X, _ = sample()
    scores = torch.as_tensor(X[:, 0]).requires_grad_()
    weight = torch.ones(len(X), dtype=torch.float64)
    weight[::5] = 0.0
    kept = np.flatnonzero(weight.numpy())
    event, time = torch.as_tensor(target.event), torch.as_tensor(target.time)
    if ties == "efron":
        # Efron counts tied events, and an event of weight zero is still an event.
        event = event & (weight > 0)
    losses = cox_partial(scores, event, time, weight=weight, ties=ties)
    wanted = cox_partial(scores[kept], event[kept], time[kept], ties=ties)
    np.testing.assert_allclose(losses[kept].detach(), wanted.detach())
    losses[kept].sum().backward()
    assert torch.isfinite(scores.grad).all()
    assert (scores.grad[::5] == 0).all()


def test_memory_stays_linear_in_the_number_of_patients():
    # An n x n array of this size would need 80 GB.
    n = 100_000
    rng = np.random.default_rng(0)
    target = Target(rng.random(n) < 0.5, rng.integers(0, 1000, n).astype(float))
    scores = rng.normal(size=n)
    in_torch = cox_partial(
        torch.as_tensor(scores), torch.as_tensor(target.event), torch.as_tensor(target.time), ties="efron"
    )
    loss = CoxPartial(target, "efron")
    np.testing.assert_allclose(loss(scores[None, :])[0], in_torch.numpy()[loss.rows], rtol=1e-10, atol=1e-9)


def test_training_steps_do_not_sort(monkeypatch):
    event, time = np.array([True, False, True, True]), np.array([2.0, 1.0, 2.0, 5.0])
    losses = [CoxPartial(Target(event, time), "efron"), CoxPartial(Target(event[::-1].copy(), time), "efron")]
    in_torch, order = CoxPartial.stacked(losses, "cpu")
    scores = torch.linspace(-1.0, 1.0, 24).reshape(2, 3, 4)
    expected = [
        cox_partial(own, torch.as_tensor(loss.target.event), torch.as_tensor(time), ties="efron")
        for own, loss in zip(scores, losses, strict=True)
    ]

    def never(*_, **__):
        raise AssertionError("sorted again")

    for name in ("argsort", "sort", "searchsorted"):
        monkeypatch.setattr(torch, name, never)
    found = in_torch(scores, scores[..., :0])
    np.testing.assert_allclose(
        found, torch.stack(expected).gather(-1, order.expand(found.shape)), rtol=1e-6, atol=1e-6
    )
