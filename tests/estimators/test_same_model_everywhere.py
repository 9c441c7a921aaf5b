"""One estimator, one answer: by fit, on a named device, for tensors, and from files that are read part by part."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from drosurv import CoxPH, DROCox, DROCoxSplit, Surv, distributed
from drosurv.patients.target import with_fields

N = 300
RNG = np.random.default_rng(0)
FEATURES = ["a", "b", "c"]
X = RNG.normal([0.0, 2.0, -1.0], size=(N, 3))
DIED, END = RNG.exponential(np.exp(-X @ [1.0, 0.5, 0.0])), RNG.exponential(size=N)
Y = Surv.from_arrays(DIED <= END, np.ceil(20 * np.minimum(DIED, END)) / 20)
WEIGHT = RNG.integers(0, 4, N).astype(float)
MODELS = {
    "chi2": DROCox(),
    "cvar": DROCox(ball="cvar", tol=1e-6),
    "efron, random folds": DROCox(alpha=0.3, ties="efron", random_state=3),
    "split": DROCoxSplit(random_state=0),
    "one side": DROCoxSplit(sides="one", shuffle=False),
    "plain": CoxPH(),
    "recalibrated": CoxPH(recalibrate=True),
    "published ball": DROCox(ball="paper", alpha=0.5),
}


def on_device(model, weight, folder):
    return model.set_params(device="cpu:0").fit(X, Y, weight)


def from_tensor(model, weight, folder):
    return model.fit(torch.as_tensor(X), Y, weight)


def from_files(model, weight, folder):
    frame = pd.DataFrame(X, columns=FEATURES).assign(time=Y["time"], event=Y["event"])
    if weight is not None:
        frame["weight"] = weight
    for k, rows in enumerate(np.array_split(np.arange(N), 3)):
        frame.iloc[rows].to_parquet(folder / f"part-{k}.parquet")
    columns = {"time": "time", "event": "event", "features": FEATURES}
    weighted = {} if weight is None else {"sample_weight": "weight"}
    return distributed.fit(model, folder, **columns, **weighted, rows_per_chunk=160)


@cache
def fitted_here(name, weighted):
    return clone(MODELS[name]).fit(X, Y, WEIGHT if weighted else None)


# What is read of files is solved as what lies on a device.
@pytest.mark.parametrize(
    ("place", "name", "weight"),
    [
        *((from_files, name, None) for name in MODELS),
        *((on_device, name, None) for name in ("plain", "efron, random folds", "recalibrated")),
        *((from_tensor, name, None) for name in ("chi2", "one side")),
        *((place, "split", WEIGHT) for place in (on_device, from_tensor, from_files)),
    ],
)
def test_coefficients_factor_and_curves_do_not_depend_on_the_place(place, name, weight, tmp_path):
    here = fitted_here(name, weight is not None)
    there = place(clone(MODELS[name]), weight, tmp_path)
    # A kink of CVaR leaves its coefficients some room.
    close = 2e-3 if name == "cvar" else 1e-6
    np.testing.assert_allclose(there.coef_, here.coef_, atol=close)
    assert hasattr(there, "recalibration_") == hasattr(here, "recalibration_")
    if hasattr(here, "recalibration_"):
        assert there.recalibration_ == pytest.approx(here.recalibration_, rel=close)
        assert abs(here.recalibration_ - 1.0) > 1e-3
    new = pd.DataFrame(X[:20], columns=FEATURES) if hasattr(there, "feature_names_in_") else X[:20]
    np.testing.assert_allclose(
        there.predict_survival_function(new, times=[0.2, 0.8]),
        here.predict_survival_function(X[:20], times=[0.2, 0.8]),
        atol=close,
    )
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-5)
    if hasattr(there, "worst_case_weights_") and name != "cvar":
        np.testing.assert_allclose(there.worst_case_weights_, here.worst_case_weights_, atol=1e-6)
        np.testing.assert_allclose(there.eta_, here.eta_, rtol=1e-5)
    np.testing.assert_allclose(there.follow_up_.survival, here.follow_up_.survival)
    assert (there.n_patients_, there.n_events_) == (here.n_patients_, here.n_events_)
    if place is from_tensor:
        np.testing.assert_allclose(there.predict(torch.as_tensor(X)), there.predict(X), atol=1e-12)


def test_clusters_stay_in_one_fold_everywhere():
    clusters = np.arange(N) // 4
    here = DROCox().fit(X, with_fields(Y, clusters=clusters))
    there = DROCox(device="cpu:0").fit(X, with_fields(Y, clusters=clusters))
    assert there.recalibration_ == pytest.approx(here.recalibration_, rel=1e-6)
    assert there.recalibration_ != pytest.approx(DROCox().fit(X, Y).recalibration_, rel=1e-6)


def test_few_events_are_not_recalibrated_anywhere(tmp_path):
    few = Surv.from_arrays(Y["event"] & (np.arange(N) % 8 == 0), Y["time"])
    models = DROCox().fit(X, few), DROCox().fit(torch.as_tensor(X), few)
    assert few["event"].sum() < 50
    assert not any(hasattr(model, "recalibration_") for model in models)
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-6)
