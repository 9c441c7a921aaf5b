"""The optimum found over chunks of patients is the optimum; a device that is named finds it."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from drosurv import MLP, CoxPH, DROCox, DROCoxSplit, Surv, datasets

DATA = datasets.make_hidden_minority(n_samples=400, random_state=0)
WEIGHT = np.random.default_rng(0).integers(1, 4, 400)
MODELS = [
    CoxPH(l2=0.05),
    DROCox(alpha=0.3, recalibrate=False),
    DROCoxSplit(alpha=0.4, random_state=0, recalibrate=False),
]


# "cpu:0" names a device of torch, and takes the road that an accelerator takes.
def test_a_cohort_without_censoring_is_solved_over_chunks():
    y = Surv.from_arrays(np.ones(400, dtype=bool), DATA.y["time"])
    here, there = (
        DROCox(0.3, tol=1e-8, device=device, recalibrate=False).fit(DATA.X, y) for device in ("cpu", "cpu:0")
    )
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-8)
    np.testing.assert_allclose(there.worst_case_weights_.sum(), 1.0)


def test_most_patients_censored_leave_cvars_threshold_at_zero():
    event = DATA.y["event"] & (np.arange(400) % 5 == 0)
    y = Surv.from_arrays(event, DATA.y["time"])
    here, there = (
        DROCox(0.5, "cvar", device=device, recalibrate=False).fit(DATA.X, y) for device in ("cpu", "cpu:0")
    )
    assert there.eta_ == here.eta_ == 0.0
    np.testing.assert_allclose(there.worst_case_weights_, here.worst_case_weights_, atol=1e-6)


def test_cvars_kinks_are_solved_where_the_processor_knows_the_curvature_from_a_sample():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 30))
    lives, censoring = rng.exponential(np.exp(-0.2 * X[:, :3].sum(axis=1))), rng.exponential(size=len(X))
    y = Surv.from_arrays(lives <= censoring, np.minimum(lives, censoring))
    # Over chunks it is everybody's; the sample's alone stalls.
    here, there = (
        DROCox(0.3, "cvar", tol=1e-9, device=device, recalibrate=False).fit(X, y)
        for device in ("cpu", "cpu:0")
    )
    assert here.converged_
    assert there.converged_
    np.testing.assert_allclose(here.coef_, there.coef_, atol=1e-8)


def test_a_ball_that_reaches_single_patients_is_said_over_chunks_too():
    few, found = slice(40), []
    for device in ("cpu", "cpu:0"):
        other = DROCox(0.001, recalibrate=False, device=device, l2=2.0, tol=1e-4)
        with pytest.warns(UserWarning, match="alpha=0.001 protects groups smaller than one patient"):
            found.append(other.fit(DATA.X[few], DATA.y[few], sample_weight=WEIGHT[few]))
    here, there = found
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-6)
    np.testing.assert_allclose(there.eta_, here.eta_, rtol=1e-4)


def test_float32_features_stay_float32_on_a_device_and_find_the_same_coefficients():
    X = DATA.X.to_numpy(dtype=np.float32)
    here, there = (
        DROCox(alpha=0.3, recalibrate=False).fit(X, DATA.y),
        DROCox(alpha=0.3, device="cpu:0", recalibrate=False).fit(X, DATA.y),
    )
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-5)


def test_what_was_solved_on_a_device_has_its_table():
    models = [CoxPH(device=device).fit(DATA.X, DATA.y) for device in ("cpu", "cpu:0")]
    here, there = (model.summary() for model in models)
    np.testing.assert_allclose(there["se(coef)"], here["se(coef)"], rtol=1e-6)


needs_cuda = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="compares with a CUDA device, which is not there"
)
ALL = [*MODELS, DROCox(0.3, "cvar", tol=1e-10, recalibrate=False), CoxPH(ties="efron")]


@needs_cuda
@pytest.mark.parametrize("given", ["array", "tensor"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["alike", "weighted"])
@pytest.mark.parametrize("model", ALL, ids=lambda model: f"{type(model).__name__} {model.ties}")
def test_cuda_finds_the_same_model(model, weight, given):
    X = np.array(DATA.X, dtype=np.float64)
    here = clone(model).fit(X, DATA.y, sample_weight=weight)
    there = clone(model).set_params(device="cuda" if given == "array" else "auto")
    there.fit(X if given == "array" else torch.as_tensor(X, device="cuda"), DATA.y, sample_weight=weight)
    cvar = getattr(model, "ball", "") == "cvar"
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-4 if cvar else 1e-6)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-7)
    curves = [m.predict_survival_function(X, times=[0.2, 0.8]) for m in (here, there)]
    np.testing.assert_allclose(curves[1], curves[0], atol=1e-4 if cvar else 1e-6)
    if hasattr(here, "worst_case_weights_"):
        np.testing.assert_allclose(there.worst_case_weights_, here.worst_case_weights_, atol=1e-4)
    on_device = there.predict(torch.as_tensor(X, device="cuda"))
    np.testing.assert_allclose(on_device, X @ there.coef_, atol=1e-10)


@needs_cuda
def test_cuda_is_where_auto_solves_large_models():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 50)).astype(np.float32)
    y = Surv.from_arrays(rng.random(len(X)) < 0.5, rng.exponential(size=len(X)) * np.exp(-0.3 * X[:, 0]))
    # For an accelerator in use: to start one takes longer than this fit.
    torch.zeros(1, device="cuda")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.max_memory_allocated()
    found = CoxPH().fit(X, y)
    assert torch.cuda.max_memory_allocated() - before > X.nbytes
    here = CoxPH(device="cpu").fit(X, y)
    np.testing.assert_allclose(found.coef_, here.coef_, atol=1e-6)
    np.testing.assert_allclose(found.summary()["se(coef)"], here.summary()["se(coef)"], rtol=1e-4)


@needs_cuda
def test_cuda_tensors_are_refused_by_models_of_the_processor():
    X = torch.tensor(DATA.X.to_numpy(dtype=np.float64), device="cuda")
    with pytest.raises(ValueError, match="is on cuda:0"):
        CoxPH(MLP(max_iter=2)).fit(X, DATA.y)
