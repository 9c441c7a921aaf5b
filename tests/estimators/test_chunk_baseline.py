"""What a model keeps of chunks of patients is what it keeps of everybody in one place, or points of that."""

import numpy as np
import pytest

from drosurv.estimators import chunk_estimator as over_chunks
from drosurv.metrics import FollowUp
from drosurv.patients.target import Target
from drosurv.solvers.chunk_likelihood import Chunk, ChunkState, Marks, RowsOnDevice, Scheme, device_chunks
from drosurv.solvers.chunk_problem import LocalWorkers

N = 500


def cohort(seed, last_dies):
    rng = np.random.default_rng(seed)
    time, event = rng.integers(1, 120, N).astype(float), rng.random(N) < 0.5
    event[time == time.max()] = last_dies
    return Target(event, time), rng.integers(1, 4, N).astype(float)


@pytest.mark.parametrize("rows", [40, N])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("last_dies", [False, True])
@pytest.mark.parametrize("on", ["numpy", "torch"])
def test_follow_up_is_that_of_one_place(rows, weighted, last_dies, on):
    target, weight = cohort(0, last_dies)
    weight = weight if weighted else None
    patients = RowsOnDevice.of(np.zeros((N, 1)), target.time, target.event, weight, "cpu")
    chunks, _ = device_chunks(patients, Marks(), Scheme((1.0,)), rows)
    if on == "numpy":
        chunks = [
            ChunkState(
                state.chunk._replace(
                    time=state.chunk.time.numpy(),
                    event=state.chunk.event.numpy(),
                    weight=None if weight is None else state.chunk.weight.numpy(),
                )
            )
            for state in chunks
        ]
    found = over_chunks.chunk_follow_up(chunks, N, LocalWorkers())
    expected = FollowUp.of(target, weight)
    np.testing.assert_array_equal(found.times, expected.times)
    np.testing.assert_allclose(found.survival, expected.survival, rtol=1e-13)
    np.testing.assert_allclose(found.censoring, expected.censoring, rtol=1e-13)
    np.testing.assert_array_equal(found.event_percentiles, expected.event_percentiles)
    assert found.end == expected.end
    assert (found.patients, found.events) == pytest.approx((expected.patients, expected.events), rel=1e-13)


def test_thinned_curves_are_exact_where_they_are_kept(monkeypatch):
    monkeypatch.setattr(over_chunks, "MOST_STEPS", 50)
    rng = np.random.default_rng(1)
    target = Target(rng.random(N) < 0.5, rng.exponential(size=N))
    patients = RowsOnDevice.of(np.zeros((N, 1)), target.time, target.event, None, "cpu")
    chunks, _ = device_chunks(patients, Marks(), Scheme((1.0,)), rows=130)
    thinned, whole = over_chunks.chunk_follow_up(chunks, N, LocalWorkers()), FollowUp.of(target)
    assert 50 <= len(thinned.times) <= 55
    np.testing.assert_allclose(thinned.survival, whole.survival_at(thinned.times), rtol=1e-13)
    np.testing.assert_allclose(thinned.censoring, whole.censoring_at(thinned.times), rtol=1e-13)
    assert thinned.end == whole.end
    # Every tenth event: percentiles lie within ten ranks.
    ranks = np.searchsorted(np.sort(target.time[target.event]), thinned.event_percentiles)
    assert np.abs(ranks - np.linspace(0, target.n_events - 1, 101)).max() <= 11


def test_what_is_thinned_keeps_nothing_of_the_others_alive():
    # Views of each chunk's curves held those of all patients: half a gigabyte of thirty million.
    rng = np.random.default_rng(2)
    time = -np.sort(-rng.exponential(size=N))
    state = ChunkState(Chunk(np.zeros((1, N)), (), time, rng.random(N) < 0.5, np.ones(N), Marks()))
    followed = over_chunks._followed(state, 0.0, every=10)
    steps = over_chunks._steps(state, np.zeros(1), 0.0, 0.0, "efron", every=10)
    for values in (*followed, *steps):
        assert len(values) <= N / 10
        assert values.base is None
