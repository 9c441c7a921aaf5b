"""Chunks of patients give what everybody in one place gives, in NumPy and in torch."""

import numpy as np
import pytest
import torch

from drosurv import CoxPH, DROCox, DROCoxSplit, Surv
from drosurv.objectives.chi_square import ChiSquare
from drosurv.objectives.cvar import CVaR
from drosurv.objectives.objective import Mean
from drosurv.solvers import minimise
from drosurv.solvers.arrays import PIECE, cumulative_sums_at
from drosurv.solvers.chunk_likelihood import Marks, RowsOnDevice, Scheme, device_chunks
from drosurv.solvers.chunk_problem import ChunkProblem

from ..differences import differences

D = 4


def patients(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) + 3.0
    latent = rng.exponential(np.exp(-X @ np.array([0.5, -0.3, 0.2, 0.0])))
    censored = rng.exponential(np.median(latent) * 2, n)
    # Coarse times: ties between events, and between events and the censored.
    time = np.ceil(np.minimum(latent, censored) / np.median(latent) * 8)
    return X, time, latent <= censored, rng.integers(1, 4, n).astype(float)


MODELS = {
    "cox": (CoxPH(), Mean()),
    "chi2": (DROCox(alpha=0.3, tol=1e-11, recalibrate=False), ChiSquare(0.3)),
    "paper": (DROCox(alpha=0.7, ball="paper", tol=1e-11, recalibrate=False), ChiSquare(0.7, "paper")),
    "cvar": (DROCox(alpha=0.3, ball="cvar", tol=1e-10, recalibrate=False), CVaR(0.3)),
    "split": (DROCoxSplit(alpha=0.3, shuffle=False, tol=1e-11, recalibrate=False), ChiSquare(0.3)),
    "efron": (CoxPH(ties="efron"), Mean()),
    "efron chi2": (DROCox(alpha=0.3, ties="efron", tol=1e-11, recalibrate=False), ChiSquare(0.3)),
}


def problem_of(name, *, rows, weighted=False, l2=0.0):
    X, time, event, weight = patients()
    n, w = len(X), weight if weighted else np.ones(len(X))
    first = np.arange(n) < n // 2
    sides = [first, ~first] if name == "split" else [np.ones(n, dtype=bool)]
    device_rows = RowsOnDevice.of(X, time, event, weight if weighted else None, "cpu")
    marks = Marks(first[device_rows.order]) if name == "split" else Marks()
    totals = [w[own].sum() for own in sides]
    rests = [w[own & ~event].sum() / total for own, total in zip(sides, totals, strict=True)]
    model, objective = MODELS[name]
    chunks, _ = device_chunks(device_rows, marks, Scheme(totals, model.ties), rows)
    return ChunkProblem(chunks, D, rests, objective, l2=l2)


# All patients in one chunk, or in five. CVaR, whose many steps take longest: test_same_model_everywhere.py.
@pytest.mark.parametrize(
    ("name", "rows"),
    [*((name, 97) for name in MODELS if name != "cvar"), ("split", 10_000), ("efron chi2", 10_000)],
)
def test_coefficients_are_those_of_one_place(name, rows):
    X, time, event, _ = patients()
    model = MODELS[name][0].fit(X, Surv.from_arrays(event, time))
    found = minimise(problem_of(name, rows=rows), tol=1e-10, max_iter=500)
    assert found.status == "converged"
    np.testing.assert_allclose(found.x, model.coef_, atol=1e-7)
    assert found.value == pytest.approx(model.objective_, rel=1e-8)


@pytest.mark.parametrize("name", ["split", "efron chi2"])
def test_weights_and_ridge_count_as_in_one_place(name):
    X, time, event, weight = patients()
    model = MODELS[name][0].set_params(l2=0.05)
    try:
        model.fit(X, Surv.from_arrays(event, time), sample_weight=weight)
    finally:
        model.set_params(l2=0.0)
    found = minimise(problem_of(name, rows=60, weighted=True, l2=0.05), tol=1e-11, max_iter=500)
    np.testing.assert_allclose(found.x, model.coef_, atol=1e-7)


@pytest.mark.parametrize("name", ["cox", "chi2", "cvar", "split", "efron chi2"])
def test_derivatives_are_those_of_finite_differences(name):
    problem = problem_of(name, rows=97, weighted=True, l2=0.1)
    problem = problem.smoothed(0.2) if name == "cvar" else problem
    at = np.array([0.2, -0.1, 0.3, 0.05])

    def gradient(theta):
        problem.value(theta)
        return problem.gradient()

    np.testing.assert_allclose(gradient(at), differences(problem.value, at, 1e-5), atol=1e-8)
    bends = differences(gradient, at, 1e-5)
    problem.value(at)
    np.testing.assert_allclose(problem.curvature()[1], bends, atol=1e-6)


def test_equal_times_stay_in_one_chunk():
    X, time, event, _ = patients()
    device_rows = RowsOnDevice.of(X, time, event, None, "cpu")
    chunks, centre = device_chunks(device_rows, Marks(), Scheme([len(X)]), rows=10)
    borders = np.cumsum([state.chunk.X.shape[1] for state in chunks])
    falling = np.sort(time)[::-1]
    assert borders[-1] == len(X)
    assert len(borders) > 5
    assert (falling[borders[:-1] - 1] > falling[borders[:-1]]).all()
    np.testing.assert_allclose(centre, X.mean(axis=0))
    np.testing.assert_array_equal(time[device_rows.order], falling)


def test_features_that_are_not_finite_are_named():
    X, time, event, _ = patients()
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="column 2"):
        device_chunks(
            RowsOnDevice.of(torch.as_tensor(X), time, event, None, "cpu"), Marks(), Scheme([len(X)])
        )


@pytest.mark.parametrize("m", [1, PIECE - 1, PIECE, 3 * PIECE + 5])
def test_running_sums_in_stretches_are_running_sums(m):
    rng = np.random.default_rng(m)
    rows, before = rng.normal(size=(3, m)), rng.normal(size=3)
    expected = np.cumsum(rows, axis=1) + before[:, None]
    for places in (np.arange(m), np.unique(rng.integers(0, m, 50)), np.arange(0)):
        np.testing.assert_allclose(cumulative_sums_at(rows, before, places), expected[:, places])
        given = (torch.as_tensor(values) for values in (rows, before, places))
        np.testing.assert_allclose(cumulative_sums_at(*given).numpy(), expected[:, places], atol=1e-9)
