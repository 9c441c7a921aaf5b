import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from drosurv.losses.full_likelihood import Intervals, PiecewiseExponential, full_likelihood
from drosurv.losses.loss import block_sums
from drosurv.patients.target import Target

from ..differences import differences


def sample(n=40, seed=0, zeros=2):
    rng = np.random.default_rng(seed)
    time = np.round(rng.exponential(3.0, size=n), 1) + 0.1
    time[:zeros] = 0.0
    event = rng.random(n) < 0.6
    event[: zeros + 1] = True
    return Target(event, time), rng


def defined_loss(f, psi, event, time, cuts):
    """The loss of one patient, term by term from its definition."""
    edges = np.concatenate([[0.0], cuts, [np.inf]])
    loss = 0.0
    for m in range(len(psi)):
        spent = max(0.0, min(time, edges[m + 1]) - edges[m])
        loss += np.exp(f) * spent * np.exp(psi[m])
        if event and (edges[m] < time <= edges[m + 1] or (m == 0 and time == 0)):
            loss -= f + psi[m]
    return loss


def defined_losses(scores, psi, target, cuts):
    return np.array(
        [defined_loss(f, psi, d, t, cuts) for f, d, t in zip(scores, target.event, target.time, strict=True)]
    )


@pytest.mark.parametrize("n_intervals", [1, 4, 20])
def test_losses_and_gradients_follow_the_definition(n_intervals):
    target, rng = sample(n=24)
    loss = PiecewiseExponential(target, n_intervals)
    cuts = loss.intervals.cut_points
    scores, psi = rng.normal(size=(2, len(target))), rng.normal(size=(2, loss.n_intervals))
    q = rng.random(scores.shape)
    losses = loss(scores, psi)
    by_score, by_psi = loss.pullback(q)
    for b in range(2):
        np.testing.assert_allclose(losses[b], defined_losses(scores[b], psi[b], target, cuts), rtol=1e-12)
        slope = differences(lambda f, b=b: q[b] @ defined_losses(f, psi[b], target, cuts), scores[b])
        np.testing.assert_allclose(by_score[b], slope, rtol=1e-6, atol=1e-8)
        slope = differences(lambda p, b=b: q[b] @ defined_losses(scores[b], p, target, cuts), psi[b])
        np.testing.assert_allclose(by_psi[b], slope, rtol=1e-6, atol=1e-8)


def test_torch_agrees_in_value_and_gradient():
    target, rng = sample(seed=2)
    loss = PiecewiseExponential(target, 6)
    scores, psi = rng.normal(size=(2, 3, len(target))), rng.normal(size=(2, 3, loss.n_intervals))
    log_risk, log_rates = torch.tensor(scores, requires_grad=True), torch.tensor(psi, requires_grad=True)
    event, time = torch.tensor(target.event), torch.tensor(target.time)
    losses = full_likelihood(log_risk, log_rates, event, time, torch.tensor(loss.intervals.cut_points))
    q = rng.random(scores.shape)
    np.testing.assert_allclose(losses.detach().numpy(), loss(scores, psi), rtol=1e-12)
    (losses * torch.tensor(q)).sum().backward()
    by_score, by_psi = loss.pullback(q)
    np.testing.assert_allclose(log_risk.grad.numpy(), by_score, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(log_rates.grad.numpy(), by_psi, rtol=1e-10, atol=1e-12)


def test_start_minimises_the_mean_loss_of_the_null_model():
    target, rng = sample(n=80, seed=3)
    weight = rng.random(80) + 0.5
    loss = PiecewiseExponential(target, 8, weight)
    null = loss.null_losses()
    losses = loss(np.zeros(80), loss.start)
    np.testing.assert_allclose(losses, null)
    np.testing.assert_allclose(loss.pullback(weight)[1], 0, atol=1e-12)


def test_null_model_with_one_interval_is_events_over_follow_up():
    target, _ = sample(n=50, seed=4)
    loss = PiecewiseExponential(target, 1)
    assert loss.start == pytest.approx([np.log(target.event.sum() / target.time.sum())])


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1000), st.sampled_from([1 / 365.25, 12.0, 1e6]))
def test_regret_does_not_change_with_the_unit_of_time(seed, unit):
    target, rng = sample(seed=seed)
    scores, shift = rng.normal(size=len(target)), rng.normal()
    regrets = []
    for scaled in (target, Target(target.event, target.time * unit)):
        loss = PiecewiseExponential(scaled, 5)
        regrets.append(loss(scores, loss.start + shift) - loss.null_losses())
    np.testing.assert_allclose(regrets[0], regrets[1], rtol=1e-9, atol=1e-9)


def test_an_interval_whose_events_have_no_weight_has_a_finite_rate():
    target = Target(np.array([True, True, False, True]), np.array([1.0, 2.0, 3.0, 4.0]))
    loss = PiecewiseExponential(target, 3, np.array([1.0, 1.0, 1.0, 0.0]))
    assert np.isfinite(loss.start).all()
    assert np.isfinite(loss.null_losses()).all()
    all_censored = PiecewiseExponential(Target(np.zeros(3, bool), np.ones(3)), 3)
    assert all_censored.n_intervals == 1


def test_huge_scores_give_infinite_losses_and_never_nan():
    target = Target(np.array([True, True, False]), np.array([0.0, 1.0, 2.0]))
    loss = PiecewiseExponential(target, 2)
    losses = loss(np.array([1e3, -1e3, 1e3]), np.zeros(loss.n_intervals))
    np.testing.assert_array_equal(losses, [-1e3, 1e3, np.inf])
    by_score, by_psi = loss.pullback(np.array([1.0, 1.0, 0.0]))
    np.testing.assert_array_equal(by_score, [-1.0, -1.0, 0.0])
    assert not np.isnan(by_psi).any()
    log_risk = torch.tensor([1e3, -1e3], requires_grad=True)
    values = full_likelihood(
        log_risk, torch.zeros(1), torch.tensor([1, 1]), torch.tensor([0.0, 1.0]), torch.empty(0)
    )
    values.sum().backward()
    assert values.tolist() == [-1e3, 1e3]
    assert log_risk.grad.tolist() == [-1.0, -1.0]


def test_losses_of_two_parts_of_follow_up_sum_to_the_whole():
    # The part before a cut without event, the part from the cut on with an entry time; an offset goes with both.
    rng = np.random.default_rng(0)
    n = 40
    time, event, offset = rng.exponential(size=n), rng.random(n) < 0.6, rng.normal(size=n) / 2
    cut = time * rng.uniform(0.1, 0.9, n)
    whole = PiecewiseExponential(Target(event, time), 6, offset=offset)
    parts = PiecewiseExponential(
        Target(np.r_[np.zeros(n, bool), event], np.r_[cut, time], np.r_[np.full(n, -1.0), cut]),
        6,
        offset=np.r_[offset, offset],
    )
    np.testing.assert_allclose(parts.intervals.cut_points, whole.intervals.cut_points)
    np.testing.assert_allclose(parts.start, whole.start)
    scores, psi = rng.normal(size=(1, n)), whole.start[None] + rng.normal(size=(1, whole.n_intervals)) / 3
    found = parts(np.tile(scores, 2), psi)
    np.testing.assert_allclose(found[:, :n] + found[:, n:], whole(scores, psi), rtol=1e-10)
    # Derivatives too, of each part by its own weight.
    X, q = rng.normal(size=(2 * n, 2)), rng.random((1, 2 * n))
    z = np.concatenate([rng.normal(size=2), psi[0]])

    def losses(z):
        return parts((X @ z[:2])[None], z[None, 2:])[0]

    def gradient(z):
        losses(z)
        by_score, by_psi = parts.pullback(q)
        return np.concatenate([by_score[0] @ X, by_psi[0]])

    moves = 1e-5 * np.eye(len(z))
    jacobian = np.stack([(losses(z + m) - losses(z - m)) / 2e-5 for m in moves], axis=1)
    hessian = np.stack([(gradient(z + m) - gradient(z - m)) / 2e-5 for m in moves])
    np.testing.assert_allclose(gradient(z), q[0] @ jacobian, rtol=1e-6, atol=1e-7)
    losses(z)
    np.testing.assert_allclose(parts.jacobian(X, np.arange(2 * n)), jacobian, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(parts.hessian(q, X), hessian, rtol=1e-5, atol=1e-6)
    some = np.arange(0, 2 * n, 3)
    np.testing.assert_allclose(parts.take(some)((X[some] @ z[:2])[None], psi)[0], losses(z)[some])


def target_of(time, event=None):
    time = np.asarray(time, dtype=float)
    return Target(np.ones(len(time), bool) if event is None else np.asarray(event, bool), time)


def test_intervals_contain_equal_numbers_of_distinct_event_times():
    rng = np.random.default_rng(0)
    target = target_of(rng.exponential(size=400), rng.random(400) < 0.5)
    intervals = Intervals.from_target(target, 20)
    index = intervals.exposure(target.time[target.event]).index
    counts = np.bincount(index)
    assert len(counts) == intervals.n_intervals == 20
    assert counts.max() - counts.min() <= 1


def test_few_distinct_event_times_give_fewer_intervals_each_with_an_event():
    target = target_of([1, 1, 1, 2, 2, 5, 9], [1, 1, 1, 1, 1, 1, 0])
    intervals = Intervals.from_target(target, 20)
    np.testing.assert_array_equal(intervals.cut_points, [1, 2])
    assert np.bincount(intervals.exposure(target.time[target.event]).index).tolist() == [3, 2, 1]


@pytest.mark.parametrize("time", [[3.0, 3.0], [0.0, 0.0, 2.0], [4.0]])
def test_degenerate_times_keep_every_interval_of_positive_width(time):
    intervals = Intervals.from_target(target_of(time), 5)
    assert intervals.n_intervals == 1
    assert (intervals.widths > 0).all()


def test_cut_points_with_weights_equal_those_of_copies():
    rng = np.random.default_rng(1)
    time, event, weight = rng.exponential(size=60), rng.random(60) < 0.7, rng.integers(0, 4, 60)
    copies = target_of(np.repeat(time, weight), np.repeat(event, weight))
    np.testing.assert_array_equal(
        Intervals.from_target(target_of(time, event), 7, weight.astype(float)).cut_points,
        Intervals.from_target(copies, 7).cut_points,
    )


def test_cumulative_hazards_and_weighted_sums_equal_products_with_the_exposure_matrix():
    rng = np.random.default_rng(2)
    cuts = np.sort(rng.exponential(size=4))
    intervals = Intervals(cuts)
    time = np.concatenate([rng.exponential(2.0, size=50), cuts, [0.0]])
    edges = np.concatenate([[0.0], cuts, [np.inf]])
    exposure = np.clip(time[:, None] - edges[:-1], 0, np.diff(edges))
    found = intervals.exposure(time)
    rates, values = rng.random((2, 3, 5)), rng.normal(size=(2, 3, len(time)))
    np.testing.assert_allclose(found.cumulative(rates), rates @ exposure.T)
    np.testing.assert_allclose(found.weighted_sums(values), values @ exposure, atol=1e-12)
    np.testing.assert_allclose(found.take(np.arange(7)).matrix(), exposure[:7], atol=1e-12)
    holds = (time[:, None] <= edges[1:]) & (
        (time[:, None] > edges[:-1]) | (edges[:-1] == 0) & (time[:, None] == 0)
    )
    np.testing.assert_allclose(block_sums(values, found.index, 5), values @ holds, atol=1e-12)
