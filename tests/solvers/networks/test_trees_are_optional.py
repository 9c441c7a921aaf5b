"""Trees are an extra: without LightGBM the error says what to install."""

import sys

import numpy as np
import pytest

from drosurv import CoxPH, DROCox, Surv

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = Surv.from_arrays(RNG.random(40) < 0.7, RNG.exponential(size=40))


@pytest.mark.parametrize("model", [CoxPH(network="trees"), DROCox(network="trees", recalibrate=True)])
def test_without_lightgbm_the_error_names_the_extra(monkeypatch, model):
    # None in the place of a module makes its import fail, installed or not.
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(
        ImportError, match=r"network='trees' needs lightgbm.*pip install \"drosurv\[trees\]\""
    ):
        model.fit(X, Y)


def test_other_networks_do_without_lightgbm(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    assert CoxPH().fit(X, Y).converged_
