"""What every Cox-type loss must do, in its compiled form and in its torch form."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from drosurv.losses import cox_partial, cox_split
from drosurv.losses.cox_partial import CoxPartial
from drosurv.losses.cox_split import CoxSplit
from drosurv.patients.target import Target

from ..differences import differences

SEEDS = range(4)
each_seed = pytest.mark.parametrize("seed", SEEDS)


def log_sum(scores, weight):
    """Log of the sum of weight * exp(scores), minus infinity for nobody."""
    used = weight > 0
    return np.logaddexp.reduce(scores[used] + np.log(weight[used]), initial=-np.inf)


def define_breslow(scores, target, weight):
    losses = np.zeros(len(scores))
    for i in np.flatnonzero(target.event):
        at_risk = target.time >= target.time[i]
        losses[i] = log_sum(scores[at_risk], weight[at_risk]) - scores[i]
    return losses


def define_efron(scores, target, weight):
    losses = np.zeros(len(scores))
    for i in np.flatnonzero(target.event):
        at_risk = target.time >= target.time[i]
        tied = (target.time == target.time[i]) & target.event
        m = tied.sum()
        terms = [log_sum(scores[at_risk], (weight * (1 - k / m * tied))[at_risk]) for k in range(m)]
        losses[i] = np.mean(terms) - scores[i]
    return losses


def define_split(scores, target, weight, in_first, both):
    losses = np.zeros(len(scores))
    for i in np.flatnonzero(target.event):
        if in_first[i] or both:
            at_risk = (in_first != in_first[i]) & (target.time >= target.time[i])
            others = log_sum(scores[at_risk], weight[at_risk])
            losses[i] = np.logaddexp(scores[i], others) - scores[i]
    return losses


def torch_split(scores, target, weight, in_first, both):
    losses = torch.zeros_like(scores)
    for own in (in_first, ~in_first) if both else (in_first,):
        own, other = np.flatnonzero(own), np.flatnonzero(~own)
        part = cox_split(
            scores[..., own],
            torch.as_tensor(target.event[own]),
            torch.as_tensor(target.time[own]),
            scores[..., other],
            torch.as_tensor(target.time[other]),
            reference_weight=None if weight is None else torch.as_tensor(weight[other], dtype=scores.dtype),
        )
        losses = losses.index_add(-1, torch.as_tensor(own), part)
    return losses


def torch_partial(scores, target, weight, ties):
    w = None if weight is None else torch.as_tensor(weight, dtype=scores.dtype)
    return cox_partial(
        scores, torch.as_tensor(target.event), torch.as_tensor(target.time), weight=w, ties=ties
    )


def alternating(target):
    return np.arange(len(target)) % 2 == 0


@dataclass(frozen=True)
class Member:
    """One loss of the family, three times: prepared, in torch, and by the definition."""

    prepare: object
    in_torch: object
    define: object


MEMBERS = {
    "breslow": Member(
        lambda target, weight=None: CoxPartial(target, "breslow", weight),
        lambda scores, target, weight=None: torch_partial(scores, target, weight, "breslow"),
        define_breslow,
    ),
    "efron": Member(
        lambda target, weight=None: CoxPartial(target, "efron", weight),
        lambda scores, target, weight=None: torch_partial(scores, target, weight, "efron"),
        define_efron,
    ),
    "split": Member(
        lambda target, weight=None: CoxSplit(target, alternating(target), weight),
        lambda scores, target, weight=None: torch_split(scores, target, weight, alternating(target), True),
        lambda scores, target, weight: define_split(scores, target, weight, alternating(target), True),
    ),
    "split one side": Member(
        lambda target, weight=None: CoxSplit(target, alternating(target), weight, both=False),
        lambda scores, target, weight=None: torch_split(scores, target, weight, alternating(target), False),
        lambda scores, target, weight: define_split(scores, target, weight, alternating(target), False),
    ),
}


@pytest.fixture(params=MEMBERS)
def member(request):
    return MEMBERS[request.param]


def sample(seed, n=24, tied=True):
    """A target with ties by default, scores, weights, features."""
    rng = np.random.default_rng(seed)
    time = rng.integers(0, 8, n).astype(float) if tied else rng.exponential(size=n)
    event = rng.random(n) < 0.6
    event[:2] = True
    return Target(event, time), rng.normal(size=n), rng.uniform(0.2, 3, n), rng.normal(size=(n, 3))


def everyone(loss, scores):
    """Losses of all n patients from a prepared loss, which returns those of its rows."""
    out = np.zeros_like(scores)
    out[:, loss.rows] = loss(scores)
    return out


@st.composite
def patients(draw):
    n = draw(st.integers(1, 12))
    time = draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    event = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    scores = draw(st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=n, max_size=n))
    weight = draw(st.none() | st.lists(st.floats(1e-3, 1e3), min_size=n, max_size=n))
    return (
        Target(np.array(event), np.array(time, dtype=float)),
        np.array(scores),
        None if weight is None else np.array(weight),
    )


@settings(deadline=None, max_examples=30)
@given(case=patients(), name=st.sampled_from(sorted(MEMBERS)))
def test_losses_equal_the_definition_for_any_ties_scores_and_weights(case, name):
    target, scores, weight = case
    member = MEMBERS[name]
    wanted = member.define(scores, target, np.ones(len(scores)) if weight is None else weight)
    # At scores of a thousand a loss is a difference of two numbers that carry 1e-13 of rounding.
    close = {"rtol": 1e-10, "atol": 1e-11}
    found = everyone(member.prepare(target, weight), scores[None, :])[0]
    np.testing.assert_allclose(found, wanted, **close)
    np.testing.assert_allclose(member.in_torch(torch.as_tensor(scores), target, weight), wanted, **close)


@pytest.mark.parametrize("spread", [1.0, 1e3])
def test_torch_losses_keep_their_digits_in_float32(member, spread):
    for seed in SEEDS:
        target, scores, weight, _ = sample(seed)
        scores = (spread * scores).astype(np.float32)
        wanted = member.define(scores.astype(np.float64), target, weight)
        found = member.in_torch(torch.as_tensor(scores), target, weight)
        assert found.dtype == torch.float32
        rounding = 8 * np.finfo(np.float32).eps * max(np.abs(scores).max(), 1.0)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=rounding)


def test_leading_axes_are_a_batch(member):
    target, scores, weight, _ = sample(0)
    rows = np.stack([scores, -scores, 3 * scores, 0 * scores])
    one_by_one = np.stack([member.define(row, target, weight) for row in rows])
    loss = member.prepare(target, weight)
    np.testing.assert_allclose(everyone(loss, rows), one_by_one, rtol=1e-10, atol=1e-12)
    # A prepared loss keeps work space between calls; another batch size must not meet the old one's.
    np.testing.assert_allclose(everyone(loss, rows[1:2]), one_by_one[1:2], rtol=1e-10, atol=1e-12)
    found = member.in_torch(torch.as_tensor(rows.reshape(2, 2, -1)), target, weight)
    np.testing.assert_allclose(found.reshape(4, -1), one_by_one, rtol=1e-10, atol=1e-12)


def test_censored_patients_have_loss_exactly_zero(member):
    target, scores, weight, _ = sample(1)
    losses = member.in_torch(torch.as_tensor(scores), target, weight).numpy()
    assert (losses[~target.event] == 0).all()
    assert target.event[member.prepare(target).rows].all()


def test_only_the_order_of_times_matters(member):
    target, scores, weight, _ = sample(2)
    later = Target(target.event, np.expm1(target.time) * 40 + 3)
    np.testing.assert_array_equal(
        member.prepare(target, weight)(scores[None, :]), member.prepare(later, weight)(scores[None, :])
    )


def test_adding_a_constant_to_all_scores_changes_nothing(member):
    target, scores, weight, _ = sample(3)
    losses = member.prepare(target, weight)(np.stack([scores, scores + 700, scores - 700]))
    np.testing.assert_allclose(losses[1:], losses[[0, 0]], rtol=1e-11, atol=1e-11)


# Copies are ties, which Efron's form tells apart from weights.
@pytest.mark.parametrize("name", sorted(set(MEMBERS) - {"efron"}))
def test_weights_equal_copies(name):
    member = MEMBERS[name]
    target, scores, _, _ = sample(4, n=20)
    counts = np.random.default_rng(0).integers(1, 4, 20)
    rows = np.repeat(np.arange(20), counts)
    wanted = member.define(scores, target, counts.astype(float))[rows]
    in_first = alternating(target)[rows]
    if isinstance(member.prepare(target), CoxSplit):
        copied = CoxSplit(target.take(rows), in_first, both=member.prepare(target).both)
    else:
        copied = CoxPartial(target.take(rows))
    np.testing.assert_allclose(everyone(copied, scores[None, rows])[0], wanted, rtol=1e-10, atol=1e-12)


@each_seed
def test_gradients_follow_finite_differences_and_autograd(member, seed):
    target, scores, weight, _ = sample(seed)
    q = np.random.default_rng(seed).random((2, len(scores)))
    rows = np.stack([scores, 2 * scores])
    loss = member.prepare(target, weight)
    loss(rows)
    found, _ = loss.pullback(np.ascontiguousarray(q[:, loss.rows]))
    tensor = torch.as_tensor(rows).requires_grad_()
    (torch.as_tensor(q) * member.in_torch(tensor, target, weight)).sum().backward()
    for b in range(2):
        slope = differences(lambda f, b=b: q[b] @ member.define(f, target, weight), rows[b])
        np.testing.assert_allclose(found[b], slope, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(tensor.grad, found, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_stay_finite_and_sum_to_zero_at_scores_of_a_thousand(member, dtype):
    for seed in SEEDS:
        target, scores, weight, _ = sample(seed)
        scores = 1e3 * scores
        loss = member.prepare(target, weight)
        loss(scores[None, :])
        compiled = loss.pullback(np.ones((1, len(loss.rows))))[0][0]
        tensor = torch.as_tensor(scores, dtype=dtype).requires_grad_()
        member.in_torch(tensor, target, weight).sum().backward()
        for gradient in (compiled, tensor.grad.numpy()):
            assert np.isfinite(gradient).all()
            # A constant added to all scores changes nothing; float32 holds a thousand to 1e-4.
            assert abs(gradient.sum()) < (1e-10 if gradient.dtype == np.float64 else 1e-2)
        np.testing.assert_allclose(tensor.grad, compiled, atol=1e-8 if dtype == torch.float64 else 1e-2)


@each_seed
def test_derivatives_in_linear_coefficients_follow_finite_differences(member, seed):
    target, _, weight, X = sample(seed)
    theta = np.random.default_rng(seed).normal(size=3)
    loss = member.prepare(target, weight)
    q = np.random.default_rng(seed + 1).random((1, len(loss.rows)))

    def losses(at):
        return loss((X @ at)[None, :])[0]

    def slope(at):
        loss((X @ at)[None, :])
        return loss.pullback(q)[0][0] @ X

    jacobian, hessian = differences(losses, theta), differences(slope, theta)
    losses(theta)
    which = np.arange(len(loss.rows))[::2]
    np.testing.assert_allclose(loss.jacobian(X, which), jacobian[which], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(loss.hessian(q, X), hessian, rtol=1e-6, atol=1e-7)


def test_take_equals_the_loss_of_those_patients(member):
    target, scores, weight, _ = sample(5)
    rows = np.sort(np.random.default_rng(0).permutation(len(scores))[:12])
    full = member.prepare(target, weight)
    part = full.take(rows)
    assert part.n == 12
    if isinstance(full, CoxSplit):
        wanted = define_split(
            scores[rows], target.take(rows), weight[rows], alternating(target)[rows], full.both
        )
    else:
        wanted = member.define(scores[rows], target.take(rows), weight[rows])
    np.testing.assert_allclose(everyone(part, scores[None, rows])[0], wanted, rtol=1e-10, atol=1e-12)


def test_without_some_patients_it_is_the_loss_of_the_others(member):
    target, scores, weight, X = sample(6)
    left_out = np.random.default_rng(1).random(len(scores)) < 0.3
    kept = np.flatnonzero(~left_out)
    full = member.prepare(target, weight)
    found, wanted = full.without(left_out), full.take(kept)
    np.testing.assert_allclose(found(scores[None]), wanted(scores[None, kept]), rtol=1e-10, atol=1e-12)
    q = np.random.default_rng(2).random((1, len(wanted.rows)))
    gradient = found.pullback(q)[0]
    np.testing.assert_allclose(gradient[:, kept], wanted.pullback(q)[0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(gradient[:, left_out], 0.0, atol=1e-15)
    np.testing.assert_allclose(found.hessian(q, X), wanted.hessian(q, X[kept]), rtol=1e-9, atol=1e-12)


def test_in_order_of_time_it_is_the_same_loss(member):
    target, scores, weight, X = sample(7)
    loss = member.prepare(target, weight)
    found, order = loss.sorted_by_time()
    assert (np.diff(target.time[order]) >= 0).all()
    np.testing.assert_allclose(found(scores[None, order]), loss(scores[None]), rtol=1e-12, atol=1e-14)
    q = np.random.default_rng(2).random((1, len(loss.rows)))
    np.testing.assert_allclose(found.pullback(q)[0], loss.pullback(q)[0][:, order], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.hessian(q, X[order]), loss.hessian(q, X), rtol=1e-10, atol=1e-12)
    first = np.arange(len(scores)) < 12
    np.testing.assert_allclose(
        found.without(first[order])(scores[None, order]), loss.without(first)(scores[None]), rtol=1e-12
    )


def test_a_single_patient_has_loss_zero(member):
    for event in (True, False):
        target = Target(np.array([event]), np.array([3.0]))
        loss = member.prepare(target)
        assert everyone(loss, np.array([[7.0]])).tolist() == [[0.0]]
        assert loss.pullback(np.ones((1, len(loss.rows))))[0].tolist() == [[0.0]]
        scores = torch.tensor([7.0], requires_grad=True)
        losses = member.in_torch(scores, target)
        losses.sum().backward()
        assert losses.tolist() == [0.0]
        assert scores.grad.tolist() == [0.0]


def test_losses_are_empty_without_events(member):
    target = Target(np.zeros(5, bool), np.arange(5.0))
    loss = member.prepare(target)
    assert loss(np.zeros((2, 5))).shape == (2, 0)
    assert loss.pullback(np.ones((2, 0)))[0].tolist() == np.zeros((2, 5)).tolist()
    assert member.in_torch(torch.ones(5), target).tolist() == [0.0] * 5
