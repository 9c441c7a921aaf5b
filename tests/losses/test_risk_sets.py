import numpy as np
import pytest
from scipy.special import logsumexp

from drosurv.losses import risk_sets as module
from drosurv.losses.risk_sets import RiskSets, exponentials
from drosurv.patients.arrays import distinct


def sample(seed, spread, n=30, latest=10):
    rng = np.random.default_rng(seed)
    time = rng.integers(0, latest, n).astype(float)
    # Some event times lie between, before and after all observed ones.
    at = np.unique(np.concatenate([rng.integers(0, latest, n // 7), [-1.0, 3.5, 2.0 * latest]]).astype(float))
    return time, at, spread * rng.normal(size=(2, n)), rng.uniform(0.1, 4, n), rng.normal(size=(n, 3))


def shares(time, at, scores, weight):
    """Each patient's share (K, n) of the risk at each time; zeros where nobody is at risk."""
    out = np.zeros((len(at), len(time)))
    for k, wanted in enumerate(at):
        inside = np.flatnonzero(time >= wanted)
        if len(inside):
            out[k, inside] = np.exp(
                scores[inside] + np.log(weight[inside]) - logsumexp(scores[inside], b=weight[inside])
            )
    return out


@pytest.mark.parametrize(
    ("values", "index"), [([], []), ([2.0], [0]), ([0.0, 0.0, 1.5, 4.0, 4.0], [0, 0, 1, 2, 2])]
)
def test_distinct_times_are_numpys_unique_values(values, index):
    times, found = distinct(np.array(values))
    np.testing.assert_array_equal(times, np.unique(values))
    assert found.tolist() == index


@pytest.mark.parametrize("spread", [1.0, 300.0])
@pytest.mark.parametrize("weighted", [True, False])
def test_thousands_of_patients_follow_the_definition(spread, weighted):
    time, at, scores, weight, _ = sample(0, spread, n=9000, latest=4000)
    w = weight if weighted else np.ones(len(time))
    risk_sets = RiskSets(time, at, weight if weighted else None)
    found = risk_sets.log_sums(scores)
    assert found.shape[1] > 1024
    for k in range(0, len(at), 50):
        inside = time >= at[k]
        wanted = logsumexp(scores[:, inside], b=w[inside], axis=1) if inside.any() else -np.inf
        np.testing.assert_allclose(found[:, k], wanted, rtol=1e-12, atol=1e-12)


def test_risk_sets_contain_only_the_given_patients():
    time, at, scores, weight, _ = sample(1, 1.0)
    members = np.flatnonzero(time % 2 == 0)
    among = RiskSets(time, at, weight, members[np.argsort(time[members])])
    alone = RiskSets(time[members], at, weight[members])
    np.testing.assert_allclose(among.log_sums(scores), alone.log_sums(scores[:, members]), rtol=1e-12)
    gradient = np.full(scores.shape, 7.0)
    among.pullback(np.ones((2, len(at))), gradient)
    np.testing.assert_allclose(gradient[:, members], alone.pullback(np.ones((2, len(at)))), rtol=1e-12)
    assert (np.delete(gradient, members, axis=1) == 7.0).all()


@pytest.mark.parametrize("spread", [1.0, 300.0, 1e4])
@pytest.mark.parametrize("weighted", [True, False])
def test_log_sums_means_and_pullback_follow_the_definition(spread, weighted):
    for seed in range(5):
        time, at, scores, weight, X = sample(seed, spread)
        risk_sets = RiskSets(time, at, weight if weighted else None)
        w = weight if weighted else np.ones(len(time))
        found = risk_sets.log_sums(scores)
        pull = np.random.default_rng(seed).normal(size=found.shape)
        pulled, means = risk_sets.pullback(pull), risk_sets.means(X)
        for b in range(2):
            for k, wanted in enumerate(at):
                inside = time >= wanted
                log_sum = logsumexp(scores[b, inside], b=w[inside]) if inside.any() else -np.inf
                assert found[b, k] == pytest.approx(log_sum, rel=1e-12, abs=1e-12)
            expected = pull[b] @ shares(time, at, scores[b], w)
            np.testing.assert_allclose(pulled[b], expected, rtol=1e-8, atol=1e-11)
        np.testing.assert_allclose(means, shares(time, at, scores[0], w) @ X, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("spread", [1.0, 300.0, 1e4])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("features", [3, 30])
def test_second_derivatives_follow_the_definition(spread, weighted, features, monkeypatch):
    time, _, scores, weight, _ = sample(0, spread, n=250, latest=100)
    rng = np.random.default_rng(1)
    # Some times share a risk set, at the last ones nobody is at risk.
    at, X = np.arange(10.0, 105.0), 5.0 + rng.normal(size=(250, features))
    calls, add = [], module._add_to_hessian
    monkeypatch.setattr(module, "_add_to_hessian", lambda *given: calls.append(1) or add(*given))
    monkeypatch.setattr(module, "_READ", 100)
    risk_sets = RiskSets(time, at, weight if weighted else None)
    risk_sets.log_sums(scores[:1])
    share = shares(time, at, scores[0], weight if weighted else np.ones(250))
    pull = np.where(share.any(axis=1), rng.normal(size=len(at)), 0.0)
    expected = sum(c * (X - p @ X).T @ (p[:, None] * (X - p @ X)) for c, p in zip(pull, share, strict=True))
    for centre in (None, X.mean(axis=0)):
        found = risk_sets.hessian(X, pull, centre)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    # More than 24 features take one pass, unless the means are known.
    assert len(calls) == (2 * 3 if features > 24 else 0)
    risk_sets.means(X)
    np.testing.assert_allclose(risk_sets.hessian(X, pull), found, rtol=1e-9, atol=1e-9)


def test_an_empty_risk_set_has_log_sum_minus_infinity():
    risk_sets = RiskSets(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    assert (risk_sets.log_sums(np.array([[5.0, 6.0]])) == -np.inf).all()
    assert risk_sets.pullback(np.ones((1, 2))).tolist() == [[0.0, 0.0]]
    assert risk_sets.means(np.ones((2, 1))).tolist() == [[0.0], [0.0]]


def test_no_event_times_and_no_patients_are_allowed():
    assert RiskSets(np.array([1.0]), np.empty(0)).log_sums(np.zeros((1, 1))).shape == (1, 0)
    assert RiskSets(np.empty(0), np.array([1.0])).log_sums(np.zeros((1, 0))).tolist() == [[-np.inf]]


def test_vector_exponentials_equal_numpys():
    x = np.concatenate([np.linspace(-707, 0, 100_001), -np.logspace(-320, 0, 1000)])
    found = x.copy()
    exponentials(found, 0.0)
    np.testing.assert_allclose(found, np.exp(x), rtol=1e-15)


def test_exponentials_of_very_small_numbers_underflow_to_zero():
    found = np.array([-800.0, -1e4, -1e300])
    exponentials(found, 0.0)
    assert (found < 1e-300).all()
    assert (found >= 0).all()
