"""The optimum found over slabs of patients is the optimum; a device that is named finds it."""

import numpy as np
import pytest
from sklearn.base import clone

from drosurv import CoxPH, DROCox, DROCoxSplit, datasets

DATA = datasets.make_hidden_minority(n_samples=400, random_state=0)
WEIGHT = np.random.default_rng(0).integers(1, 4, 400)
MODELS = [CoxPH(l2=0.05), DROCox(alpha=0.3), DROCoxSplit(alpha=0.4, random_state=0)]


# "cpu:0" names a device of torch, and takes the road that an accelerator takes.
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["alike", "weighted"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_named_device_finds_the_same_model(model, weight):
    here = clone(model).fit(DATA.X, DATA.y, sample_weight=weight)
    there = clone(model).set_params(device="cpu:0").fit(DATA.X, DATA.y, sample_weight=weight)
    assert there.converged_
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-7)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-10)
    curves = [m.predict_survival_function(DATA.X, times=[0.2, 0.8]) for m in (here, there)]
    np.testing.assert_allclose(curves[1], curves[0], atol=1e-8)
    if hasattr(here, "worst_case_weights_"):
        np.testing.assert_allclose(there.worst_case_weights_, here.worst_case_weights_, atol=1e-8)
        np.testing.assert_allclose(there.eta_, here.eta_)


def test_float32_features_stay_float32_on_a_device_and_find_the_same_coefficients():
    X = DATA.X.to_numpy(dtype=np.float32)
    here, there = DROCox(alpha=0.3).fit(X, DATA.y), DROCox(alpha=0.3, device="cpu:0").fit(X, DATA.y)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-5)
