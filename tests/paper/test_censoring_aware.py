import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drosurv.paper.penalties import RPGroup, RPIndividual
from drosurv.paper.penalties.censoring_aware import pairs_within
from drosurv.paper.penalties.pairs import unit_rows
from drosurv.patients.target import Target


def plain_sum(h, U, event, time, codes, scale):
    """The definition, pair by pair."""
    total = 0.0
    for i in np.flatnonzero(~event):
        for j in np.flatnonzero(event):
            if time[i] <= time[j] and codes[i] == codes[j]:
                total += max(abs(h[i] - h[j]) - scale * np.linalg.norm(U[i] - U[j]), 0.0)
    return total


def sum_of_pairs(h, U, event, time, codes, scale):
    return sum(pairs.evaluate(h[pairs.patient], scale)[0] for pairs in pairs_within(U, event, time, codes))


def plain_gradient(h, U, event, time, codes, scale):
    gradient = np.zeros(len(h))
    for i in np.flatnonzero(~event):
        for j in np.flatnonzero(event):
            apart = abs(h[i] - h[j]) > scale * np.linalg.norm(U[i] - U[j])
            if time[i] <= time[j] and codes[i] == codes[j] and apart:
                gradient[i] += np.sign(h[i] - h[j])
                gradient[j] -= np.sign(h[i] - h[j])
    return gradient


@settings(deadline=None, max_examples=40)
@given(
    n=st.integers(1, 15),
    seed=st.integers(0, 2**32 - 1),
    event_rate=st.sampled_from([0.0, 0.2, 0.5, 1.0]),
    n_times=st.integers(1, 20),
    spread=st.sampled_from([0.0, 1e-6, 0.1, 10.0]),
    scale=st.sampled_from([0.0, 0.01, 0.5, 3.0]),
)
def test_sums_and_gradient_equal_the_definition(n, seed, event_rate, n_times, spread, scale):
    rng = np.random.default_rng(seed)
    U = unit_rows(rng.integers(-1, 2, size=(n, 3)).astype(float))
    h = 1.0 + spread * np.where(rng.random(n) < 0.3, rng.integers(0, 3, size=n), rng.random(n))
    event, time = rng.random(n) < event_rate, rng.integers(0, n_times, size=n).astype(float)
    codes = rng.integers(0, 3, size=n)
    everyone = np.zeros(n, dtype=int)
    approximately = {"rel": 1e-10, "abs": 1e-10}
    assert sum_of_pairs(h, U, event, time, np.zeros_like(codes), scale) == pytest.approx(
        plain_sum(h, U, event, time, everyone, scale), **approximately
    )
    assert sum_of_pairs(h, U, event, time, codes, scale) == pytest.approx(
        plain_sum(h, U, event, time, codes, scale), **approximately
    )
    _, gradient = RPGroup(U, Target(event, time), codes, 3, scale)(np.log(h)[None])
    again, factor = np.exp(np.log(h)), max(event.sum() * (~event).sum(), 1)
    expected = plain_gradient(again, U, event, time, codes, scale) * again
    np.testing.assert_allclose(gradient[0] * factor, expected, atol=1e-8)


@pytest.mark.parametrize(
    ("event", "time"),
    [
        ([False] * 4, [1.0, 2.0, 3.0, 4.0]),
        ([True] * 4, [1.0, 2.0, 3.0, 4.0]),
        ([True, True, False, False], [1.0, 2.0, 3.0, 4.0]),
    ],
    ids=["all censored", "no one censored", "every event before every censoring"],
)
@pytest.mark.parametrize("codes", [None, [0, 0, 1, 1]])
def test_without_comparable_pairs_value_and_gradient_are_zero(event, time, codes):
    X, target = np.random.default_rng(0).normal(size=(4, 2)), Target(np.array(event), np.array(time))
    penalty = RPIndividual(X, target, None, 1) if codes is None else RPGroup(X, target, np.array(codes), 2)
    scores = np.random.default_rng(1).normal(size=(2, 4))
    for values, gradient in (penalty(scores), penalty.tiled(_tensor(scores))):
        np.testing.assert_array_equal(values, 0.0)
        np.testing.assert_array_equal(gradient, 0.0)


def _tensor(scores):
    import torch

    return torch.tensor(scores)


def test_single_patient_groups_have_no_pairs():
    X, target = np.eye(4), Target(np.array([False, True, False, True]), np.arange(4.0))
    values, gradient = RPGroup(X, target, np.arange(4), 4)(np.array([[0.0, 1.0, 2.0, 3.0]]))
    assert values[0] == 0.0
    np.testing.assert_array_equal(gradient, 0.0)
