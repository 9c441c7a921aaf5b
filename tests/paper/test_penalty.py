"""One contract for every training penalty, checked against dense definitions that torch differentiates."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from drosurv.losses.cox_partial import CoxPartial
from drosurv.objectives.objective import Mean, uniform_mass
from drosurv.paper.penalties import PENALTIES
from drosurv.patients.target import Target
from drosurv.solvers import Criterion, TorchCriterion

N_GROUPS = 5  # group 3 holds nobody, group 4 a single patient
SCALE = 0.05


def training_set(seed=0, n=90, d=5):
    """Features with repeated and zero rows, times with ties, an empty group and one of a single patient."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[n // 2 : n // 2 + 8] = X[:8]
    X[-3:] = 0.0
    event = rng.random(n) < 0.4
    time = rng.integers(1, 25, size=n).astype(float)
    codes = rng.integers(0, 3, size=n)
    codes[rng.integers(n)] = 4
    return X, Target(event, time), codes


def situations(n, seed=0):
    rng = np.random.default_rng(seed)
    spread = rng.normal(size=n)
    tied = rng.integers(-2, 3, size=n).astype(float)
    return {
        "spread": spread,
        "equal": np.full(n, 0.3),
        "inside the hinge": 1e-6 * spread,
        "at the hinge": 0.02 * spread,
        "tied": tied,
        "half tied, half spread": np.where(np.arange(n) % 2, tied, spread),
        "large": 20.0 * spread,
        "one outlier": np.where(np.arange(n) == n // 2, 40.0, 0.01 * spread),
        "very small": spread - 30.0,
    }


def dense_distances(X):
    length = X.norm(dim=-1, keepdim=True)
    U = torch.where(length > 0, X / torch.where(length > 0, length, 1.0), 0.0)
    return (U[:, None] - U[None]).norm(dim=-1)


def dense_hinges(h, X, scale):
    return torch.relu((h[:, None] - h[None]).abs() - scale * dense_distances(X))


def dense_keya_individual(h, X, event, time, codes, scale):
    n = len(h)
    return dense_hinges(h, X, scale).triu(1).sum() / max(n * (n - 1), 1)


def dense_rp_individual(h, X, event, time, codes, scale):
    pairs = ~event[:, None] & event[None] & (time[:, None] <= time[None])
    return (dense_hinges(h, X, scale) * pairs).sum() / max((~event).sum() * event.sum(), 1)


def dense_rp_group(h, X, event, time, codes, scale):
    pairs = ~event[:, None] & event[None] & (time[:, None] <= time[None]) & (codes[:, None] == codes[None])
    return (dense_hinges(h, X, scale) * pairs).sum() / max((~event).sum() * event.sum(), 1)


def smoothed_means(h, codes):
    return [(h[codes == g].sum() + 0.5) / ((codes == g).sum() + 1) for g in sorted(set(codes.tolist()))]


def dense_keya_group(h, X, event, time, codes, scale):
    return torch.stack([(mean - h.mean()).abs() for mean in smoothed_means(h, codes)]).max(dim=0).values


def dense_keya_intersectional(h, X, event, time, codes, scale):
    logs = torch.stack(smoothed_means(h, codes)).log()
    return logs.max(dim=0).values - logs.min(dim=0).values


DENSE = {
    "keya_individual": dense_keya_individual,
    "keya_group": dense_keya_group,
    "keya_intersectional": dense_keya_intersectional,
    "rp_individual": dense_rp_individual,
    "rp_group": dense_rp_group,
}
PAIRWISE = ["keya_individual", "rp_individual", "rp_group"]


def prepared(name, X, target, codes, scale=SCALE):
    return PENALTIES[name](X, target, codes, N_GROUPS, scale)


def dense(name, scores, X, target, codes, scale=SCALE):
    leaf = torch.tensor(scores, requires_grad=True)
    parts = map(torch.as_tensor, (X, target.event, target.time, codes))
    value = DENSE[name](leaf.exp(), *parts, scale)
    value.backward()
    return value.item(), leaf.grad.numpy()


def assert_close(actual, expected):
    """To 1e-8 of the larger of 1 and the largest expected entry."""
    expected = np.asarray(expected)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-8 * max(1.0, np.abs(expected).max()))


def test_every_definition_has_its_dense_counterpart_here():
    assert set(DENSE) == set(PENALTIES)


@pytest.mark.parametrize("situation", situations(4))
@pytest.mark.parametrize("name", PENALTIES)
def test_value_and_gradient_equal_the_dense_definition(name, situation):
    data = training_set(1)
    scores = situations(90, 1)[situation]
    value, gradient = dense(name, scores, *data)
    values, gradients = prepared(name, *data)(scores[None])
    assert values.shape == (1,)
    assert gradients.shape == (1, 90)
    assert_close(values[0], value)
    if name == "keya_intersectional" and situation == "equal":
        # Equal scores are a kink: which two cells differ most hangs on rounding, and either slope is right.
        assert_close(np.sort(gradients[0]).sum(), np.sort(gradient).sum())
        return
    assert_close(gradients[0], gradient)


@settings(deadline=None, max_examples=120)
@given(
    name=st.sampled_from(sorted(PENALTIES)),
    n=st.integers(1, 15),
    d=st.integers(1, 7),
    seed=st.integers(0, 2**32 - 1),
    event_rate=st.sampled_from([0.0, 0.2, 0.5, 1.0]),
    n_times=st.integers(1, 20),
    spread=st.sampled_from([0.0, 1e-6, 0.1, 10.0]),
    scale=st.sampled_from([0.0, 0.01, 0.5, 3.0]),
)
def test_few_patients_whichever_groups_are_present_have_the_dense_definition(
    name, n, d, seed, event_rate, n_times, spread, scale
):
    rng = np.random.default_rng(seed)
    # Repeated and zero rows are common.
    X = rng.integers(-1, 2, size=(n, d)).astype(float)
    scores = np.log1p(spread * np.where(rng.random(n) < 0.3, rng.integers(0, 3, size=n), rng.random(n)))
    target = Target(rng.random(n) < event_rate, rng.integers(0, n_times, size=n).astype(float))
    data = X, target, rng.integers(0, N_GROUPS, size=n), scale
    value, gradient = dense(name, scores, *data)
    values, gradients = prepared(name, *data)(scores[None])
    assert values[0] == pytest.approx(value, rel=1e-10, abs=1e-10)
    # Two groups that are equally far from the others are a kink.
    if name in PAIRWISE:
        np.testing.assert_allclose(gradients[0], gradient, atol=1e-8)


@pytest.mark.parametrize("situation", situations(4))
@pytest.mark.parametrize("name", PAIRWISE)
def test_tiles_equal_the_dense_definition(name, situation):
    data = training_set()
    scores = situations(90)[situation]
    value, gradient = dense(name, scores, *data)
    values, gradients = prepared(name, *data).tiled(torch.tensor(scores[None]))
    assert_close(values[0], value)
    assert_close(gradients[0], gradient)


@pytest.mark.parametrize(
    ("elements", "rows", "cache_bytes"), [(1, 512, 0), (500, 512, 0), (500, 512, 2**28), (2**23, 7, 2**28)]
)
@pytest.mark.parametrize("name", PAIRWISE)
def test_tiles_of_any_size_and_caching_change_nothing(name, elements, rows, cache_bytes, monkeypatch):
    data = training_set()
    scores = torch.tensor(np.stack(list(situations(90).values())))
    values, gradients = prepared(name, *data).tiled(scores)
    monkeypatch.setattr("drosurv.paper.penalties.pair_tiles.TILE_ELEMENTS", elements)
    monkeypatch.setattr("drosurv.paper.penalties.pair_tiles.TILE_ROWS", rows)
    monkeypatch.setattr("drosurv.paper.penalties.pair_tiles.CACHE_BYTES", cache_bytes)
    penalty = prepared(name, *data)
    for _ in range(2):
        small_values, small_gradients = penalty.tiled(scores)
        np.testing.assert_allclose(small_values, values, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(small_gradients, gradients, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", PENALTIES)
def test_models_along_leading_axes_do_not_touch_each_other(name):
    data = training_set()
    penalty = prepared(name, *data)
    scores = np.random.default_rng(3).normal(size=(2, 3, 90)) * np.array([1e-3, 0.1, 1.0])[:, None]
    values, gradients = penalty(scores)
    assert values.shape == (2, 3)
    for b in np.ndindex(2, 3):
        value, gradient = penalty(scores[b])
        assert value == pytest.approx(values[b], rel=1e-14)
        np.testing.assert_allclose(gradient, gradients[b], rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-4)])
def test_torch_form_agrees_and_differentiates(name, dtype, tolerance):
    penalty = prepared(name, *training_set())
    scores = np.random.default_rng(3).normal(size=(3, 90))
    values, gradients = penalty(scores)
    leaf = torch.tensor(scores, dtype=dtype, requires_grad=True)
    weights = torch.tensor([2.0, -1.0, 0.5], dtype=dtype)
    out = penalty.torch(leaf)
    assert out.dtype == dtype
    (weights * out).sum().backward()
    np.testing.assert_allclose(out.detach(), values, rtol=tolerance)
    expected = weights.double().numpy()[:, None] * gradients
    np.testing.assert_allclose(leaf.grad, expected, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("name", PENALTIES)
def test_training_sets_of_one_batch_have_each_its_own_penalty(name):
    sets = [training_set(seed) for seed in range(3)]
    scores = np.random.default_rng(5).normal(size=(3, 4, 90))
    criteria = [
        Criterion(
            CoxPartial(target),
            Mean(),
            uniform_mass(90),
            penalty=prepared(name, X, target, codes),
            penalty_weight=np.linspace(0.0, 3.0, 4),
        )
        for X, target, codes in sets
    ]
    together = TorchCriterion(criteria, 4, "cpu")(torch.tensor(scores.reshape(12, 90)))
    for r, criterion in enumerate(criteria):
        for part, alone in zip(together[:2], criterion(scores[r])[:2], strict=True):
            np.testing.assert_allclose(part[4 * r : 4 * r + 4], alone, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", PENALTIES)
def test_subset_is_the_penalty_of_those_patients(name):
    X, target, codes = training_set()
    rows = np.random.default_rng(1).permutation(90)[:40]
    scores = np.random.default_rng(2).normal(size=(2, 40))
    few = prepared(name, X, target, codes).subset(rows)
    again = prepared(name, X[rows], target.take(rows), codes[rows])
    for part, other in zip(few(scores), again(scores), strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [name for name, kind in PENALTIES.items() if not kind.needs_groups])
def test_penalties_that_need_no_groups_do_without_codes(name):
    X, target, _ = training_set()
    values, _ = prepared(name, X, target, None)(np.zeros((1, 90)))
    assert values.shape == (1,)


@pytest.mark.parametrize("name", [name for name, kind in PENALTIES.items() if kind.needs_groups])
def test_penalties_that_need_groups_change_with_the_codes(name):
    X, target, codes = training_set()
    scores = situations(90)["spread"][None]
    found, other = (prepared(name, X, target, given)(scores)[0][0] for given in (codes, codes[::-1].copy()))
    assert found != pytest.approx(other, rel=1e-3)


@pytest.mark.parametrize("name", PENALTIES)
def test_an_overflowing_hazard_does_not_pass_for_a_finite_value(name):
    scores = np.zeros((1, 90))
    scores[0, :4] = 800.0
    values, _ = prepared(name, *training_set())(scores)
    assert not np.isfinite(values[0])


@pytest.mark.parametrize("name", PAIRWISE)
def test_memory_does_not_grow_with_the_number_of_pairs(name):
    n = 2000
    penalty = prepared(name, *training_set(n=n))
    scores = np.random.default_rng(0).normal(size=(1, n))
    penalty(scores[:, :])
    tracemalloc.start()
    penalty(scores)
    prepared(name, *training_set(n=n))(scores)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.1 * 8 * n * n


def test_float32_tiles_keep_their_digits_over_a_million_pairs():
    data = training_set(n=1600)
    scores = np.random.default_rng(0).normal(size=(1, 1600))
    penalty = prepared("keya_individual", *data)
    values, _ = penalty.tiled(torch.tensor(scores, dtype=torch.float32))
    assert values.item() == pytest.approx(penalty(scores)[0][0], rel=1e-6)
