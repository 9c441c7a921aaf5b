import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.ensemble import RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis, IPCRidge
from sksurv.svm import FastSurvivalSVM

from drosurv.estimators import CoxPH
from drosurv.evaluation.predictions import (
    Predictions,
    predict_curves,
    predict_risk,
    read_curves,
    training_follow_up,
)
from drosurv.metrics import concordance_index

TIMES = np.array([0.0, 1.0, 7.0, 7.5, 30.0, 500.0])


def heights(functions, times):
    """Step functions read one by one; the last value is held."""
    return np.array([[float(f(min(t, f.x[-1]))) for t in times] for f in functions])


def test_curves_of_our_models_are_their_step_functions_without_keeping_them(model, held_out):
    curves = predict_curves(model, held_out.X, len(held_out.y))
    functions = model.predict_survival_function(held_out.X)
    np.testing.assert_allclose(curves.at(TIMES), heights(functions, TIMES), rtol=1e-12)
    own = held_out.y["time"]
    expected = [float(f(t)) for f, t in zip(functions, own, strict=True)]
    np.testing.assert_allclose(curves.at_patient_times(own), expected, rtol=1e-12)


@pytest.mark.parametrize("X", ["array", "frame"])
def test_curves_of_a_pipeline_are_read_through_its_last_step(train, held_out, X):
    wrap = pd.DataFrame if X == "frame" else np.asarray
    columns = [wrap(part.X) for part in (train, held_out)]
    if X == "frame":
        columns = [part.set_axis(["x", "y", "z"], axis=1) for part in columns]
    pipeline = make_pipeline(StandardScaler(), CoxPH()).fit(columns[0], train.y)
    curves = predict_curves(pipeline, columns[1], len(held_out.y))
    functions = pipeline.predict_survival_function(columns[1])
    np.testing.assert_allclose(curves.at(TIMES), heights(functions, TIMES), rtol=1e-12)
    np.testing.assert_array_equal(
        predict_risk(pipeline, columns[1], len(held_out.y)), pipeline.predict(columns[1])
    )
    assert training_follow_up(pipeline) is pipeline[-1].follow_up_


def test_curves_of_scikit_survival_are_its_step_functions(train, held_out):
    for other in (CoxPHSurvivalAnalysis(), RandomSurvivalForest(n_estimators=5, random_state=0)):
        other.fit(train.X, train.y)
        curves = predict_curves(other, held_out.X, len(held_out.y))
        functions = other.predict_survival_function(held_out.X)
        np.testing.assert_allclose(curves.at(TIMES[1:]), heights(functions, TIMES[1:]), rtol=1e-12)
        assert training_follow_up(other) is None


def test_models_that_predict_times_are_turned_round(train, held_out):
    ridge = IPCRidge().fit(train.X, train.y)
    np.testing.assert_array_equal(
        predict_risk(ridge, held_out.X, len(held_out.y)), -ridge.predict(held_out.X)
    )
    assert concordance_index(held_out.y, predict_risk(ridge, held_out.X, len(held_out.y))) > 0.55


def test_a_model_without_curves_has_none(train, held_out):
    svm = FastSurvivalSVM(random_state=0).fit(train.X, train.y)
    assert predict_curves(svm, held_out.X, len(held_out.y)) is None
    assert predict_curves(np.zeros(3), None, 3) is None
    assert predict_curves(Predictions([1.0]), None, 1) is None


def test_a_finished_search_is_its_best_model(train, held_out):
    search = GridSearchCV(CoxPH(), {"l2": [0.0, 0.1]}, cv=2).fit(train.X, train.y)
    curves = predict_curves(search, held_out.X, len(held_out.y))
    best = predict_curves(search.best_estimator_, held_out.X, len(held_out.y))
    np.testing.assert_array_equal(curves.at(TIMES), best.at(TIMES))
    assert training_follow_up(search) is search.best_estimator_.follow_up_


def test_computed_curves_are_known_at_their_times_only(model, held_out):
    curves = predict_curves(model, held_out.X, len(held_out.y))
    read = read_curves(curves, np.array([30.0, 1.0, 7.0, 1.0]), held_out.y["time"])
    np.testing.assert_array_equal(read.at(np.array([7.0, 30.0])), curves.at(np.array([7.0, 30.0])))
    rows = np.array([5, 0, 5])
    np.testing.assert_array_equal(
        read.take(rows).at_patient_times(held_out.y["time"][rows]),
        curves.at_patient_times(held_out.y["time"])[rows],
    )
    for unread in (2.0, 31.0):
        with pytest.raises(ValueError, match="computed at other times"):
            read.at(np.array([unread]))


@pytest.mark.parametrize(
    ("model_given", "X", "message"),
    [
        (Predictions([1.0, np.nan, 2.0]), None, "the risk of model contains 1 NaN"),
        (Predictions([1.0, 2.0]), None, "the risk of model has 2 scores for the 3 patients"),
        ([1.0, 2.0], None, "model has 2 scores for the 3 patients"),
        (object(), None, "model must be a fitted model with a predict method.*got object"),
    ],
)
def test_bad_predictions_are_named(model_given, X, message):
    with pytest.raises(ValueError, match=message):
        predict_risk(model_given, X, 3)


def test_a_model_needs_one_row_per_patient(model, held_out):
    with pytest.raises(ValueError, match=r"X has 5 rows for the 240 patients"):
        predict_risk(model, held_out.X[:5], len(held_out.y))
    with pytest.raises(ValueError, match="X is needed"):
        predict_risk(model, None, len(held_out.y))


def test_a_table_of_another_library_is_read_once_for_all_parts_of_the_patients(train, held_out):
    class OtherFrame:
        columns, shape, read = ["a", "b", "c"], held_out.X.shape, 0

        def __getitem__(self, name):
            self.read += 1
            return pd.Series(held_out.X[:, "abc".index(name)])

    names, table = list("abc"), OtherFrame()
    model = CoxPH().fit(pd.DataFrame(train.X, columns=names), train.y)
    curves, wanted = (predict_curves(model, X, 240) for X in (table, pd.DataFrame(held_out.X, columns=names)))
    np.testing.assert_allclose(curves.at(TIMES), wanted.at(TIMES))
    np.testing.assert_allclose(
        curves.at_patient_times(held_out.y["time"]), wanted.at_patient_times(held_out.y["time"])
    )
    assert table.read == 3
