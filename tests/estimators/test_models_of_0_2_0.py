"""Files of drosurv 0.2.0 load, with the parameters and predictions they had; tests/fixtures/models_0_2_0/make.py."""

import json
from importlib import import_module
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
import sklearn

from drosurv.estimators import persistence
from drosurv.estimators.persistence import load, read_saved_model

FOLDER = Path(__file__).parents[1] / "fixtures" / "models_0_2_0"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
MODELS = EXPECTED["models"]
SCIKIT_LEARN = tuple(map(int, sklearn.__version__.split(".")[:2]))


@pytest.fixture(params=MODELS)
def name(request):
    return request.param


@pytest.fixture
def path(name, tmp_path):
    if name == "trees":
        pytest.importorskip("lightgbm")
    if name in ("perceptron", "deep_hit"):
        pytest.importorskip("torch")
    if name == "pipeline" and SCIKIT_LEARN < (1, 9):
        pytest.skip("its scaler was saved by scikit-learn 1.9, and an older version warns")
    with ZipFile(FOLDER / "models.zip") as saved:
        return Path(saved.extract(f"{name}.drosurv", tmp_path))


def test_predictions_equal_those_of_0_2_0(name, path):
    model, expected = load(path), MODELS[name]
    rows = pd.DataFrame(EXPECTED["table"]) if name == "pipeline" else np.array(EXPECTED["new"])
    given = {"strata": EXPECTED["strata"]} if name in ("cox", "robust_causes") else {}
    np.testing.assert_allclose(model.predict(rows), expected["risk"], rtol=1e-9, atol=1e-12)
    if name == "pipeline":
        model, rows = model[-1], model[:-1].transform(rows)
    shape = {} if "causes" in name else {"return_array": True}
    survival = model.predict_survival_function(rows, times=EXPECTED["times"], **given, **shape)
    np.testing.assert_allclose(survival, expected["survival"], rtol=1e-9, atol=1e-12)
    if "incidence" in expected:
        found = model.predict_cumulative_incidence(rows, times=EXPECTED["times"], cause=2, **given)
        np.testing.assert_allclose(found, expected["incidence"], rtol=1e-9, atol=1e-12)


def test_parameters_are_those_that_were_saved(name, path):
    model = load(path)
    model = model[-1] if name == "pipeline" else model
    assert type(model).__name__ == MODELS[name]["class"]
    parameters = model.get_params(deep=False)
    assert {key: parameters[key] for key in MODELS[name]["parameters"]} == MODELS[name]["parameters"]


def test_a_model_saved_without_recalibration_is_not_recalibrated(tmp_path):
    assert MODELS["dro_cox"]["parameters"]["recalibrate"] is False
    with ZipFile(FOLDER / "models.zip") as saved:
        assert load(saved.extract("dro_cox.drosurv", tmp_path)).recalibrate is False


def test_saving_again_gives_the_same_predictions(name, path, tmp_path):
    model = read_saved_model(path).model
    again = tmp_path / "again"
    (model[-1] if name == "pipeline" else model).save(again)
    rows = np.zeros((2, load(again).n_features_in_))
    last = model[-1] if name == "pipeline" else model
    np.testing.assert_array_equal(load(again).predict(rows), last.predict(rows))


@pytest.mark.parametrize("name", ["cox", "dro_cox", "causes"], indirect=True)
def test_summary_of_a_loaded_model_has_its_standard_errors(name, path):
    summary, expected = load(path).summary(), MODELS[name]
    np.testing.assert_allclose(summary["coef"], expected["coef"], rtol=1e-9)
    errors = [np.nan if error is None else error for error in expected["error"]]
    np.testing.assert_allclose(summary["se(coef)"], errors, rtol=1e-9)


@pytest.mark.parametrize("stored", sorted(persistence._HOMES))
def test_stored_classes_are_where_the_table_says(stored):
    assert isinstance(getattr(import_module(persistence._HOMES[stored]), stored), type)
