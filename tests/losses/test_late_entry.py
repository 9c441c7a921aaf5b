"""Risk sets with entry times and strata, against sums over the patients written from the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drosurv.losses.cox_partial import CoxPartial
from drosurv.losses.cox_split import CoxSplit
from drosurv.losses.late_entry import EventTimes, LateEntryRiskSets
from drosurv.patients.target import Target

from ..differences import differences


def sample(seed, n=40, latest=9, strata=2, entry=True):
    rng = np.random.default_rng(seed)
    time = rng.integers(1, latest, n).astype(float)
    event = rng.random(n) < 0.6
    event[:2] = True
    target = Target(
        event,
        time,
        time - rng.integers(1, latest, n) * rng.choice([0.5, 1.0], n) if entry else None,
        rng.integers(0, strata, n) if strata else None,
    )
    return target, rng.normal(size=(2, n)), rng.uniform(0.2, 3, n), rng.normal(size=(n, 3))


def at_risk(target, i):
    """Who is at risk when patient i has the event."""
    inside = target.time >= target.time[i]
    if target.entry is not None:
        inside &= target.entry < target.time[i]
    if target.stratum is not None:
        inside &= target.stratum == target.stratum[i]
    return inside


def log_sum(scores, weight):
    return np.logaddexp.reduce(scores + np.log(weight), initial=-np.inf)


def define(scores, target, weight, ties):
    losses = np.zeros(len(scores))
    for i in np.flatnonzero(target.event):
        inside = at_risk(target, i)
        tied = inside & target.event & (target.time == target.time[i])
        m = tied.sum() if ties == "efron" else 1
        terms = [log_sum(scores[inside], (weight * (1 - k / m * tied))[inside]) for k in range(m)]
        losses[i] = np.mean(terms) - scores[i]
    return losses


def define_split(scores, target, weight, in_first):
    losses = np.zeros(len(scores))
    for i in np.flatnonzero(target.event):
        inside = at_risk(target, i) & (in_first != in_first[i])
        others = log_sum(scores[inside], weight[inside])
        losses[i] = np.logaddexp(scores[i], others) - scores[i]
    return losses


def everyone(loss, scores):
    out = np.zeros_like(scores)
    out[:, loss.rows] = loss(scores)
    return out


KINDS = {"entry": (0, True), "strata": (3, False), "both": (3, True)}
each_kind = pytest.mark.parametrize("kind", KINDS)
each_tie = pytest.mark.parametrize("ties", ["breslow", "efron"])


@st.composite
def patients(draw):
    n = draw(st.integers(1, 14))
    time = np.array(draw(st.lists(st.integers(1, 9), min_size=n, max_size=n)), dtype=float)
    stay = np.array(draw(st.lists(st.integers(1, 9), min_size=n, max_size=n)), dtype=float)
    event = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    stratum = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    scores = np.array(draw(st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=n, max_size=n)))
    weight = np.array(draw(st.lists(st.floats(1e-3, 1e3), min_size=n, max_size=n)))
    entry, stratum = draw(st.sampled_from([(time - stay, None), (None, stratum), (time - stay, stratum)]))
    return Target(event, time, entry, stratum), scores, weight


@settings(deadline=None, max_examples=80)
@given(case=patients(), ties=st.sampled_from(["breslow", "efron"]))
def test_losses_equal_the_definition_for_any_entry_times_and_strata(case, ties):
    target, scores, weight = case
    found = everyone(CoxPartial(target, ties, weight), scores[None, :])[0]
    np.testing.assert_allclose(found, define(scores, target, weight, ties), rtol=1e-10, atol=1e-10)


@each_kind
@pytest.mark.parametrize("spread", [1.0, 400.0])
def test_split_losses_and_their_derivatives_follow_the_definition(kind, spread):
    for seed in range(4):
        target, scores, weight, X = sample(seed, strata=KINDS[kind][0], entry=KINDS[kind][1])
        in_first, offset = np.arange(len(weight)) % 3 > 0, scores[1]
        scores = spread * scores[:1]
        loss = CoxSplit(target, in_first, weight, offset=offset)
        wanted = define_split(scores[0] + offset, target, weight, in_first)
        np.testing.assert_allclose(everyone(loss, scores)[0], wanted, rtol=1e-10, atol=1e-10)
        q = np.random.default_rng(0).random((1, len(loss.rows)))
        loss(scores)
        slope = loss.pullback(q)[0][0]

        def weighted(moved, q=q, loss=loss):
            return float(q[0] @ loss(moved)[0])

        for j in range(0, len(weight), 7):
            step = np.zeros_like(scores)
            step[0, j] = 1e-5
            by_difference = (weighted(scores + step) - weighted(scores - step)) / 2e-5
            assert slope[j] == pytest.approx(by_difference, rel=1e-5, abs=1e-7)
        theta = np.array([0.3, -0.2, 0.1])

        def slope_at(theta, q=q, X=X, loss=loss):
            loss((X @ theta)[None, :])
            return loss.pullback(q)[0][0] @ X

        bend = differences(slope_at, theta, 1e-5)
        loss((X @ theta)[None, :])
        np.testing.assert_allclose(loss.hessian(q, X), bend, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(
            q[0] @ loss.jacobian(X, np.arange(len(loss.rows))), slope_at(theta), rtol=1e-9
        )


def test_small_risk_sets_keep_their_digits_beside_large_risks():
    # Everybody with risk e^40 has gone, or has not come, when the two of small risk are alone at time 2.
    n = 2000
    time = np.concatenate([[2.0, 2.5], np.full(n, 1.0), np.full(n, 4.0)])
    entry = np.concatenate([[0.0, 0.0], np.full(n, 0.0), np.full(n, 3.0)])
    event = np.zeros(len(time), dtype=bool)
    event[[0, 5, -1]] = True
    scores = np.concatenate([[0.3, -0.2], np.full(2 * n, 40.0)])
    loss = everyone(CoxPartial(Target(event, time, entry)), scores[None, :])[0]
    assert loss[0] == pytest.approx(np.log(np.exp(0.3) + np.exp(-0.2)) - 0.3, rel=1e-14)


@each_kind
@each_tie
@pytest.mark.parametrize("spread", [1.0, 300.0])
def test_gradients_follow_finite_differences(kind, ties, spread):
    target, scores, weight, _ = sample(1, strata=KINDS[kind][0], entry=KINDS[kind][1])
    scores = spread * scores
    loss = CoxPartial(target, ties, weight)
    q = np.random.default_rng(0).random((2, len(loss.rows)))
    loss(scores)
    found, _ = loss.pullback(q)
    for b in range(2):
        for j in range(len(target)):
            move = np.zeros(len(target))
            move[j] = 1e-5
            up, down = (loss((scores[b] + side * move)[None, :])[0] for side in (1, -1))
            assert found[b, j] == pytest.approx(q[b] @ (up - down) / 2e-5, rel=1e-5, abs=2e-6)


@each_kind
@each_tie
def test_jacobian_and_hessian_follow_finite_differences(kind, ties):
    target, _, weight, X = sample(2, strata=KINDS[kind][0], entry=KINDS[kind][1])
    loss, theta = CoxPartial(target, ties, weight), np.array([0.4, -0.3, 0.2])
    q = np.random.default_rng(0).random((1, len(loss.rows)))

    def gradient(at):
        loss((X @ at)[None, :])
        return X.T @ loss.pullback(q)[0][0]

    jacobian = differences(lambda at: loss((X @ at)[None, :])[0], theta, 1e-5)
    hessian = differences(gradient, theta, 1e-5)
    loss((X @ theta)[None, :])
    which = np.arange(len(loss.rows))
    np.testing.assert_allclose(loss.jacobian(X, which), jacobian, rtol=1e-6, atol=1e-8)
    loss((X @ theta)[None, :])
    np.testing.assert_allclose(loss.hessian(q, X), hessian, rtol=1e-6, atol=1e-7)


@each_kind
def test_take_equals_the_loss_of_those_patients_with_entry_and_strata(kind):
    target, scores, weight, _ = sample(4, strata=KINDS[kind][0], entry=KINDS[kind][1])
    rows = np.flatnonzero(np.arange(len(target)) % 3 > 0)
    fewer = CoxPartial(target, "efron", weight).take(rows)
    found = everyone(fewer, np.ascontiguousarray(scores[:, rows]))[0]
    wanted = define(scores[0, rows], target.take(rows), weight[rows], "efron")
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


@each_kind
@each_tie
def test_without_some_patients_it_is_the_loss_of_the_others_with_entry_and_strata(kind, ties):
    target, scores, weight, _ = sample(4, strata=KINDS[kind][0], entry=KINDS[kind][1])
    left_out = np.arange(len(target)) % 3 == 0
    kept = np.flatnonzero(~left_out)
    found = CoxPartial(target, ties, weight).without(left_out)
    wanted = define(scores[0, kept], target.take(kept), weight[kept], ties)
    np.testing.assert_allclose(everyone(found, scores)[0][kept], wanted, rtol=1e-10, atol=1e-12)
    fewer = CoxPartial(target, ties, weight).take(kept)
    fewer(np.ascontiguousarray(scores[:, kept]))
    q = np.random.default_rng(0).random((len(scores), len(fewer.rows)))
    np.testing.assert_allclose(found.pullback(q)[0][:, kept], fewer.pullback(q)[0], rtol=1e-9, atol=1e-12)


def test_sums_over_windows_follow_the_definition():
    target, *_ = sample(5, n=500, latest=80)
    times = EventTimes.of(target)
    values = np.random.default_rng(0).normal(size=(len(times.time), 2))
    found = LateEntryRiskSets(times).over_windows(values)
    for j in range(len(target)):
        inside = (
            (times.stratum == target.stratum[j])
            & (target.entry[j] < times.time)
            & (times.time <= target.time[j])
        )
        np.testing.assert_allclose(found[j], values[inside].sum(axis=0), atol=1e-11)
