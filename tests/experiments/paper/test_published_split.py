"""The published training of the split methods, against its formula written out."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from drosurv import DROCoxSplit, Surv
from experiments.fingerprint import data_fingerprint
from experiments.paper import Protocol
from experiments.paper.methods import METHODS
from experiments.paper.published_split import PublishedSplit
from experiments.paper.run import cohort_of, load_dataset
from experiments.paper.unit import Unit

N, N1, ALPHA, STEPS = 40, 24, 0.3, 30


@pytest.fixture(scope="module")
def patients():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    return X, Surv.from_arrays(rng.random(N) < 0.6, np.ceil(rng.exponential(np.exp(-X[:, 0])) * 8))


def side_gradient(f, event, time, own, other):
    """-(C / (n sqrt(mean [l - eta]_+^2))) d_i [l_i - eta]_+ for the scores of one side, eta at its minimum."""
    at_risk = (time[other][None, :] >= time[own][:, None]) * np.exp(f[other])[None, :]
    losses = event[own] * (np.log(np.exp(f[own]) + at_risk.sum(axis=1)) - f[own])
    constant = np.sqrt(2 * (1 / ALPHA - 1) ** 2 + 1)

    def value(eta):
        return constant * np.sqrt((np.maximum(losses - eta, 0) ** 2).mean()) + eta

    eta = minimize_scalar(value, bounds=(-20, losses.max()), method="bounded", options={"xatol": 1e-12}).x
    over = np.maximum(losses - eta, 0)
    gradient = np.zeros(len(f))
    gradient[own] = -constant / (len(own) * np.sqrt((over**2).mean())) * event[own] * over
    return gradient


@pytest.mark.parametrize("sides", ["both", "one"])
def test_training_follows_the_published_gradient(patients, sides, torch_adam):
    X, y = patients
    parameters = {
        **{"alpha": ALPHA, "ball": "paper", "n1": N1 / N, "sides": sides, "shuffle": False, "solver": "adam"},
        **{"lr": 0.05, "max_iter": STEPS, "random_state": 1, "device": "cpu"},
    }
    model = PublishedSplit(**parameters).fit(X, y)
    first, second = np.arange(N1), np.arange(N1, N)
    start = DROCoxSplit(**parameters | {"max_iter": 1, "lr": 1e-12}).fit(X, y).coef_
    beta = torch.tensor(np.asarray(start), dtype=torch.float64, requires_grad=True)
    step = torch_adam([beta], 0.05)
    for _ in range(STEPS):
        f = X @ beta.detach().numpy()
        gradient = side_gradient(f, y["event"], y["time"], first, second)
        if sides == "both":
            gradient += side_gradient(f, y["event"], y["time"], second, first)
        beta.grad = torch.tensor(X.T @ gradient)
        step()
    np.testing.assert_allclose(model.coef_, beta.detach().numpy(), rtol=1e-4)
    assert np.abs(model.coef_ - DROCoxSplit(**parameters).fit(X, y).coef_).max() > 0.1


def test_it_is_no_convex_problem(patients):
    with pytest.raises(ValueError, match="convex"):
        PublishedSplit(solver="convex").fit(*patients)


def test_features_are_standardised_by_the_first_half():
    data = load_dataset("flc")
    print_ = data_fingerprint(data)
    method = METHODS["dro-cox-split-n2-0.2-published"]
    unit = Unit("flc", ("age", "gender"), method, 0, print_, Protocol())
    cohort = cohort_of(unit)
    raw = cohort.unscaled
    first = raw[: round(0.8 * len(raw))]
    np.testing.assert_allclose(cohort.X["train"], (raw - first.mean(axis=0)) / first.std(axis=0))
    right = cohort_of(replace(unit, method=METHODS["dro-cox-split-n2-0.2"]))
    np.testing.assert_allclose(right.X["train"].mean(axis=0), 0, atol=1e-9)
    # Held-out patients are scaled alike: the two scalings differ by one affine map per feature.
    slope, level = (
        first.std(axis=0) / raw.std(axis=0),
        (first.mean(axis=0) - raw.mean(axis=0)) / raw.std(axis=0),
    )
    np.testing.assert_allclose(right.X["test"], cohort.X["test"] * slope + level, atol=1e-9)
