"""The full likelihood with a baseline hazard for each stratum, against its definition."""

import numpy as np
import pytest

from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.losses.summed_likelihood import RowsOfPatients, StratifiedLikelihood
from drosurv.patients.target import Target

from ..differences import differences

N, D, K = 60, 2, 4


def sample(seed=0):
    """Ties, a time of zero, late entry, weights, an offset; strata on different scales of time."""
    rng = np.random.default_rng(seed)
    stratum = rng.integers(0, 3, N)
    time = np.ceil(4 * rng.exponential(size=N)) * np.array([1.0, 10.0, 0.2])[stratum]
    time[0] = 0.0
    entry = np.where(rng.random(N) < 0.5, 0.6 * time * rng.random(N), -1.0)
    target = Target(rng.random(N) < 0.6, time, entry, stratum)
    return target, rng.uniform(0.3, 3, N), rng.normal(size=N) / 3, rng.normal(size=(N, D)), rng


def defined_cuts(target, weight, stratum):
    """Times at which the weighted events of the stratum reach each share m / K, the last one left out."""
    times = np.unique(target.time[target.event & (target.stratum == stratum)])
    counted = target.event & (target.stratum == stratum)
    reached = np.array([weight[counted & (target.time <= t)].sum() for t in times]) / weight[counted].sum()
    cuts = {times[np.flatnonzero(reached >= m / K - 1e-9)[0]] for m in range(1, K)}
    return np.array(sorted(cut for cut in cuts if 0 < cut < times[-1]))


def defined_losses(z, X, target, weight, offset):
    """Every patient's loss, term by term, at z: the coefficients, then the strata's log hazards in turn."""
    cuts = [defined_cuts(target, weight, s) for s in range(3)]
    ends = D + np.cumsum([len(own) + 1 for own in cuts])
    psi = np.split(z, [D, *ends])[1:]
    losses = []
    for i, stratum in enumerate(target.stratum):
        edges = np.concatenate([[0.0], cuts[stratum], [np.inf]])
        score, loss = X[i] @ z[:D] + offset[i], 0.0
        for m, log_hazard in enumerate(psi[stratum]):
            spent = min(target.time[i], edges[m + 1]) - max(target.entry[i], edges[m], 0.0)
            loss += np.exp(score + log_hazard) * max(spent, 0.0)
            within = edges[m] < target.time[i] <= edges[m + 1] or (m == 0 and target.time[i] == 0)
            loss -= (score + log_hazard) * (target.event[i] and within)
        losses.append(loss)
    return np.array(losses)


@pytest.mark.parametrize("seed", range(3))
def test_losses_and_all_derivatives_follow_the_definition(seed):
    target, weight, offset, X, rng = sample(seed)
    loss = StratifiedLikelihood(target, K, weight, offset)
    z = np.append(rng.normal(size=D) / 2, loss.start + rng.normal(size=loss.n_extra) / 3)
    q = rng.random((1, N))

    def gradient(z):
        loss((X @ z[:D])[None], z[None, D:])
        by_score, by_psi = loss.pullback(q)
        return np.append(by_score[0] @ X, by_psi[0])

    wanted = differences(lambda z: defined_losses(z, X, target, weight, offset), z, 1e-5)
    np.testing.assert_allclose(gradient(z), q[0] @ wanted, rtol=1e-6, atol=1e-6)
    bends = differences(gradient, z, 1e-5)
    found = loss((X @ z[:D])[None], z[None, D:])[0]
    np.testing.assert_allclose(found, defined_losses(z, X, target, weight, offset), rtol=1e-10, atol=1e-12)
    which = rng.permutation(N)[:20]
    np.testing.assert_allclose(loss.jacobian(X, which), wanted[which], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(loss.hessian(q, X), bends, rtol=1e-5, atol=1e-5)
    some = rng.permutation(N)[:25]
    np.testing.assert_allclose(loss.take(some)((X[some] @ z[:D])[None], z[None, D:])[0], found[some])


def test_the_null_model_has_the_best_hazard_of_each_stratum():
    target, weight, offset, _, _ = sample()
    loss = StratifiedLikelihood(target, K, weight, offset)
    assert loss.null_losses().shape == (N,)
    np.testing.assert_allclose(loss.pullback(weight[None])[1], 0, atol=1e-9)
    assert loss.event_share == pytest.approx(target.event.mean())


def test_one_stratum_is_the_loss_without_strata():
    target, weight, offset, X, rng = sample()
    alone = Target(target.event, target.time, target.entry)
    plain = PiecewiseExponential(alone, K, weight, offset)
    # Its number plays no part.
    loss = StratifiedLikelihood(
        Target(alone.event, alone.time, alone.entry, np.full(N, 2)), K, weight, offset
    )
    scores, q = rng.normal(size=(2, N)), rng.random((2, N))
    psi = plain.start + rng.normal(size=(2, plain.n_extra)) / 3
    np.testing.assert_array_equal(loss(scores, psi), plain(scores, psi))
    np.testing.assert_array_equal(loss.hessian(q[:1], X), plain.hessian(q[:1], X))
    for found, wanted in zip(loss.pullback(q), plain.pullback(q), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_patients_of_a_stratum_without_events_have_loss_zero():
    target, weight, offset, X, rng = sample()
    eventless = target.stratum == 1
    without = Target(target.event & ~eventless, target.time, target.entry, target.stratum)
    loss = StratifiedLikelihood(without, K, weight, offset)
    others = np.flatnonzero(~eventless)
    rest = StratifiedLikelihood(target.take(others), K, weight[others], offset[others])
    scores, psi, q = rng.normal(size=(1, N)), rest.start[None], rng.random((1, N))
    losses = loss(scores, psi)
    np.testing.assert_array_equal(losses[:, eventless], 0.0)
    np.testing.assert_array_equal(losses[:, others], rest(scores[:, others], psi))
    np.testing.assert_array_equal(loss.pullback(q)[0][:, eventless], 0.0)
    np.testing.assert_array_equal(loss.hessian(q, X), rest.hessian(q[:, others], X[others]))
    # Events of weight zero are none.
    unweighted = StratifiedLikelihood(target, K, np.where(eventless, 0.0, weight), offset)
    np.testing.assert_array_equal(unweighted(scores, psi), losses)


def test_rows_of_a_patient_sum_to_the_loss_of_the_whole_follow_up():
    rng = np.random.default_rng(0)
    n = 30
    time, event, X = rng.exponential(size=n), rng.random(n) < 0.6, rng.normal(size=(n, 2))
    cut, shuffled = time * rng.uniform(0.1, 0.9, n), rng.permutation(2 * n)
    target = Target(np.r_[np.zeros(n, bool), event], np.r_[cut, time], np.r_[np.full(n, -1.0), cut])
    # Numbers with gaps, as after some patients were drawn.
    patient = 3 * np.r_[:n, :n][shuffled]
    last = np.argsort(shuffled)[n:]
    loss = RowsOfPatients(PiecewiseExponential(target.take(shuffled), 4), patient, last)
    whole = PiecewiseExponential(Target(event, time), 4)
    rows = np.r_[X, X][shuffled]
    theta, psi, q = rng.normal(size=2), whole.start[None] + 0.1, rng.random((1, n))
    np.testing.assert_allclose(loss((rows @ theta)[None], psi), whole((X @ theta)[None], psi))
    (by_score, by_psi), (wanted, of_psi) = loss.pullback(q), whole.pullback(q)
    np.testing.assert_allclose(by_score @ rows, wanted @ X)
    np.testing.assert_allclose(by_psi, of_psi)
    which = np.array([2, 7, 8])
    np.testing.assert_allclose(loss.jacobian(rows, which), whole.jacobian(X, which), atol=1e-12)
    np.testing.assert_allclose(loss.hessian(q, rows), whole.hessian(q, X), atol=1e-12)
    np.testing.assert_allclose(loss.null_losses()[last], whole.null_losses())
    assert loss.event_share == whole.event_share
    # A part of the patients, with all of their rows.
    own = np.flatnonzero(patient < 30)
    part, alone = loss.take(own), whole.take(np.arange(10))
    np.testing.assert_allclose(part((rows[own] @ theta)[None], psi), alone((X[:10] @ theta)[None], psi))
    np.testing.assert_allclose(
        part.everyone(part((rows[own] @ theta)[None], psi)).sum(),
        loss((rows @ theta)[None], psi)[0, :10].sum(),
    )
