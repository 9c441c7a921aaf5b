import numpy as np
import pandas as pd
import polars
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.ensemble import RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis, IPCRidge
from sksurv.svm import FastSurvivalSVM

from drosurv.estimators import CoxPH
from drosurv.metrics import concordance_index
from drosurv.patients import observation
from drosurv.predictions import Predictions, as_predictions
from drosurv.predictions.any_model import training_follow_up

TIMES = np.array([0.0, 1.0, 7.0, 7.5, 30.0, 500.0])


def heights(functions, times):
    """Step functions read one by one; the last value is held."""
    return np.array([[float(f(min(t, f.x[-1]))) for t in times] for f in functions])


def test_curves_of_our_models_are_their_step_functions_without_keeping_them(model, held_out):
    curves = as_predictions(model, held_out.X, len(held_out.y)).curves
    functions = model.predict_survival_function(held_out.X)
    np.testing.assert_allclose(curves.survival(TIMES), heights(functions, TIMES), rtol=1e-12)
    own = held_out.y["time"]
    expected = [float(f(t)) for f, t in zip(functions, own, strict=True)]
    np.testing.assert_allclose(curves.survival(own[:, None])[:, 0], expected, rtol=1e-12)


@pytest.mark.parametrize("X", ["array", "frame"])
def test_curves_of_a_pipeline_are_read_through_its_last_step(train, held_out, X):
    wrap = pd.DataFrame if X == "frame" else np.asarray
    columns = [wrap(part.X) for part in (train, held_out)]
    if X == "frame":
        columns = [part.set_axis(["x", "y", "z"], axis=1) for part in columns]
    pipeline = make_pipeline(StandardScaler(), CoxPH()).fit(columns[0], train.y)
    curves = as_predictions(pipeline, columns[1], len(held_out.y)).curves
    functions = pipeline.predict_survival_function(columns[1])
    np.testing.assert_allclose(curves.survival(TIMES), heights(functions, TIMES), rtol=1e-12)
    np.testing.assert_array_equal(
        as_predictions(pipeline, columns[1], len(held_out.y)).risk, pipeline.predict(columns[1])
    )
    assert training_follow_up(pipeline) is pipeline[-1].follow_up_


def test_curves_of_scikit_survival_are_its_step_functions(train, held_out):
    for other in (CoxPHSurvivalAnalysis(), RandomSurvivalForest(n_estimators=5, random_state=0)):
        other.fit(train.X, train.y)
        curves = as_predictions(other, held_out.X, len(held_out.y)).curves
        functions = other.predict_survival_function(held_out.X)
        np.testing.assert_allclose(curves.survival(TIMES[1:]), heights(functions, TIMES[1:]), rtol=1e-12)
        assert training_follow_up(other) is None


def test_models_that_predict_times_are_turned_round(train, held_out):
    ridge = IPCRidge().fit(train.X, train.y)
    np.testing.assert_array_equal(
        as_predictions(ridge, held_out.X, len(held_out.y)).risk, -ridge.predict(held_out.X)
    )
    assert concordance_index(held_out.y, as_predictions(ridge, held_out.X, len(held_out.y)).risk) > 0.55


def test_a_model_without_curves_has_none(train, held_out):
    svm = FastSurvivalSVM(random_state=0).fit(train.X, train.y)
    assert as_predictions(svm, held_out.X, len(held_out.y)).curves is None
    assert as_predictions(np.zeros(3), None, 3).curves is None
    assert as_predictions(Predictions([1.0]), None, 1).curves is None


def test_a_finished_search_is_its_best_model(train, held_out):
    search = GridSearchCV(CoxPH(), {"l2": [0.0, 0.1]}, cv=2).fit(train.X, train.y)
    curves = as_predictions(search, held_out.X, len(held_out.y)).curves
    best = as_predictions(search.best_estimator_, held_out.X, len(held_out.y)).curves
    np.testing.assert_array_equal(curves.survival(TIMES), best.survival(TIMES))
    assert training_follow_up(search) is search.best_estimator_.follow_up_


def test_values_computed_in_advance_are_those_of_the_curves(model, held_out):
    curves = as_predictions(model, held_out.X, len(held_out.y)).curves
    own = held_out.y["time"]
    computed = curves.computed(np.array([30.0, 1.0, 7.0, 1.0]), own)
    for times in ([7.0, 30.0], [2.0, 31.0]):
        np.testing.assert_array_equal(computed.survival(np.array(times)), curves.survival(np.array(times)))
    rows = np.array([5, 0, 5])
    for times in (own[rows], own[rows] / 2):
        some = computed.take(rows)
        own, chosen = times[:, None], curves.take(rows)
        np.testing.assert_array_equal(some.survival(own), chosen.survival(own))
        np.testing.assert_array_equal(some.summed_hazard(own), chosen.summed_hazard(own))


def test_a_table_of_another_library_is_converted_once_for_all_parts_of_the_patients(
    train, held_out, monkeypatch
):
    names, converted = list("abc"), []
    table = polars.DataFrame(held_out.X, schema=names)
    model = CoxPH().fit(pd.DataFrame(train.X, columns=names), train.y)
    convert = observation._column_in_pandas
    monkeypatch.setattr(
        observation, "_column_in_pandas", lambda column: (converted.append(column.name), convert(column))[1]
    )
    curves, wanted = (
        as_predictions(model, X, 240).curves for X in (table, pd.DataFrame(held_out.X, columns=names))
    )
    np.testing.assert_allclose(curves.survival(TIMES), wanted.survival(TIMES))
    np.testing.assert_allclose(
        curves.survival(held_out.y["time"][:, None]), wanted.survival(held_out.y["time"][:, None])
    )
    assert converted == names
