"""Pipelines of scikit-learn predict the curves of their last step, with and without scikit-survival."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import drosurv
from drosurv import CoxPH, RepairedCox
from drosurv.datasets import make_hidden_minority
from drosurv.estimators.all_models import CURVES, add_curves_to_pipelines
from drosurv.tables import TableEncoder


@pytest.fixture(params=["ours", "scikit-survival's"])
def methods(request, monkeypatch):
    """The methods of Pipelines are ours, or those that scikit-survival added before."""
    import sksurv

    for name in CURVES:
        monkeypatch.delattr(Pipeline, name)
    if request.param == "ours":
        add_curves_to_pipelines()
        assert "drosurv" in Pipeline.predict_survival_function.__module__
    else:
        sksurv.patch_pipeline()
        add_curves_to_pipelines()
        assert "sksurv" in Pipeline.predict_survival_function.__module__


@pytest.mark.parametrize("last", [CoxPH(), RepairedCox(CoxPH(), folds=3, max_conditions=1, random_state=0)])
def test_a_pipeline_predicts_the_curves_of_its_last_step_and_so_does_a_loaded_one(last, methods, tmp_path):
    data = make_hidden_minority(n_samples=250, n_features=5, random_state=0)
    table = data.X.assign(sex=np.where(data.X["x1"] > 0, "f", "m"))
    for first, X in ((TableEncoder(), table), (StandardScaler(), data.X)):
        model = make_pipeline(first, last).fit(X, data.y)
        drosurv.save(model, tmp_path / "model")
        for name in CURVES:
            wanted = getattr(model[-1], name)(model[0].transform(X), times=[0.3, 1.0])
            for pipeline in (model, drosurv.load(tmp_path / "model")):
                np.testing.assert_array_equal(getattr(pipeline, name)(X, times=[0.3, 1.0]), wanted)
        assert model.predict_survival_function(X)[0](0.0) == 1.0


def test_a_pipeline_without_a_survival_model_predicts_no_curves(methods):
    assert not hasattr(make_pipeline(StandardScaler(), LinearRegression()), "predict_survival_function")
