"""Features that are tensors already are used where they lie.

That they give the same model: tests/estimators/test_same_model_everywhere.py.
"""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from drosurv import MLP, CoxPH, DROCox, DROCoxSplit, Surv
from experiments.grid import fit_grid

MODELS = [
    CoxPH(ties="efron"),
    DROCox(0.4, tol=1e-11, recalibrate=False),
    DROCoxSplit(0.4, random_state=2, tol=1e-11, recalibrate=False),
]


@pytest.fixture(scope="module")
def patients():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)) + 1.0
    time = np.ceil(10 * rng.exponential(np.exp(-X @ [0.5, -0.3, 0.0])))
    return X, Surv.from_arrays(rng.random(120) < 0.7, time), rng.integers(0, 3, 120).astype(float)


@pytest.mark.parametrize(("model", "weighted"), [*zip(MODELS, [True, False, True], strict=True)])
def test_a_constant_feature_of_a_tensor_has_no_coefficient(model, weighted, patients):
    X, y, weight = patients
    given = weight if weighted else None
    same = -1234.56789
    beside = torch.as_tensor(np.column_stack([X, np.full(len(X), same)]))
    found = clone(model).fit(beside, y, given)
    assert abs(found.coef_[3] * same) < 1e-8
    assert found.status_ == "converged"
    alone = clone(model).fit(torch.as_tensor(X), y, given)
    np.testing.assert_allclose(found.coef_[:3], alone.coef_, atol=1e-5)


def test_a_tensor_is_neither_copied_to_numpy_nor_changed(patients):
    X, y, _ = patients
    given = torch.as_tensor(X, dtype=torch.float32)
    before = given.clone()

    def never(*_):
        raise AssertionError("the features were taken to the host")

    class Watched(torch.Tensor):
        __array__ = never

        def numpy(self, *_, **__):
            if self.ndim == 2 and len(self) == len(X):
                never()
            return super().numpy()

    found = CoxPH().fit(given.as_subclass(Watched), y)
    assert torch.equal(given, before)
    np.testing.assert_allclose(found.coef_, CoxPH().fit(X, y).coef_, atol=1e-5)


def test_other_models_take_a_tensor_of_the_processor_as_an_array(patients):
    X, y, _ = patients
    for model in (CoxPH(MLP(max_iter=3), random_state=0), CoxPH(recalibrate=True, random_state=0)):
        expected = clone(model).fit(X, y).predict(X)
        found = clone(model).fit(torch.as_tensor(X), y)
        np.testing.assert_allclose(found.predict(torch.as_tensor(X)), expected, rtol=1e-6)
    grid = [CoxPH(), CoxPH()]
    fit_grid(grid, torch.as_tensor(X), y)
    np.testing.assert_allclose(grid[1].coef_, CoxPH().fit(X, y).coef_, atol=1e-7)


def test_a_fit_to_a_tensor_forgets_names_of_an_earlier_one(patients):
    X, y, _ = patients
    with pytest.raises(ValueError, match="X has 2 features"):
        CoxPH().fit(torch.as_tensor(X), y).predict(torch.zeros(4, 2))
    named = CoxPH().fit(pd.DataFrame(X, columns=list("abc")), y)
    assert not hasattr(named.fit(torch.as_tensor(X), y), "feature_names_in_")
