"""A recipe on folds: every patient is predicted by a model that was trained without them."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from drosurv import AcceleratedFailureTime, CauseSpecificCox, CoxPH, NullModel, Surv, evaluate
from drosurv.datasets import make_hidden_minority
from drosurv.evaluation.data import EvaluationData
from drosurv.metrics.likelihood_gain import likelihood_gains
from drosurv.patients.observation import Rows
from drosurv.patients.target import parse_target, with_fields
from drosurv.predictions import as_predictions
from drosurv.report import audit
from drosurv.report.cross_fit import cross_fitted, cross_fitted_cox, curve_times, fold_parts


@pytest.fixture(scope="module")
def patients():
    return make_hidden_minority(200, random_state=3)


def test_predictions_are_those_of_models_trained_without_the_patient(patients):
    parts = fold_parts(patients.y["event"], 4, 0)
    found = cross_fitted(make_pipeline(StandardScaler(), CoxPH()), patients.X, patients.y, parts)
    for train, test in parts:
        assert not set(train) & set(test)
        scaler = StandardScaler().fit(patients.X.iloc[train])
        model = CoxPH().fit(scaler.transform(patients.X.iloc[train]), patients.y[train])
        expected = model.predict(scaler.transform(patients.X.iloc[test]))
        centre = model.predict(scaler.transform(patients.X.iloc[train])).mean()
        np.testing.assert_allclose(found.risk[test], expected - centre, atol=1e-8)
        times = np.unique(patients.y["time"])
        curves = model.predict_survival_function(scaler.transform(patients.X.iloc[test]), times=times)
        np.testing.assert_allclose(found.survival.survival(times)[test], curves, atol=1e-8)


def test_causes_are_predicted_by_models_trained_without_the_patient_and_one_cause_is_an_event(patients):
    X, time, rng = patients.X.iloc[:, :3], patients.y["time"], np.random.default_rng(0)
    y = Surv.competing(np.where(patients.y["event"], rng.integers(1, 3, len(X)), 0), time)
    parts = fold_parts(patients.y["event"], 4, 0)
    found = as_predictions(cross_fitted(CauseSpecificCox(), X, y, parts), None, len(X))
    times = np.quantile(time, [0.2, 0.5, 0.8])
    for train, test in parts:
        model = CauseSpecificCox().fit(X.iloc[train], y[train])
        wanted = model.predict_cumulative_incidence(X.iloc[test], times, cause=2)
        np.testing.assert_allclose(found.competing.incidence(2, times)[test], wanted, rtol=1e-8)
        hazard = model.models_[1].predict_cumulative_hazard_function(X.iloc[test], times=times)
        own = found.competing.of_cause(2).cumulative_hazard(times)[test]
        np.testing.assert_allclose(own, hazard, rtol=1e-8)
    one = Surv.competing(patients.y["event"], time)
    how = {"sensitive_features": X.iloc[:, 0] > 0}
    tables = [
        evaluate(cross_fitted(model, X, target, parts), X, target, **how, **cause).groups
        for model, target, cause in ((CoxPH(), patients.y, {}), (CauseSpecificCox(), one, {"cause": 1}))
    ]
    for name in ("observed", "expected", "ratio", "ratio_low", "ratio_p", "slope", "gain", "gain_low"):
        np.testing.assert_allclose(*(table[name].to_numpy(float) for table in tables), rtol=1e-6)
    with pytest.raises(ValueError, match="folds cannot be used with causes and entry"):
        audit(CauseSpecificCox(), X, with_fields(y, entry=time / 2), cause=1, folds=parts, **how)


def gains_of(found, y):
    return EvaluationData(as_predictions(found, None, len(y)), parse_target(y), y).judged.gains


def test_no_model_gains_nothing_over_no_model(patients):
    some = slice(0, 90)
    y = patients.y[some]
    found = cross_fitted(NullModel(), patients.X[some], y, fold_parts(y["event"], 5, 0))
    gains = gains_of(found, y)
    assert abs(gains.mean()) < 2 * gains.std() / np.sqrt(len(y))
    assert gains.min() > -3


def test_gains_are_about_those_over_the_patients_that_a_model_was_trained_on(patients):
    X, y = patients.X, patients.y
    parts = fold_parts(y["event"], 4, 0)
    found = cross_fitted(CoxPH(), X, y, parts)
    expected = np.empty(len(y))
    for train, test in parts:
        curves = CoxPH().fit(X.iloc[train], y[train]).predict_survival_function(X.iloc[test])
        expected[test] = likelihood_gains(y[train], y[test], curves)
    assert gains_of(found, y).mean() == pytest.approx(expected.mean(), abs=0.06)


def test_few_steps_of_a_stratum_do_not_make_a_recipe_look_harmful(patients):
    X, y, strata = patients.X, patients.y, np.arange(200) % 5
    seen = cross_fitted(CoxPH(), X, y, fold_parts(y["event"], 4, 0), rows=Rows.parse(y, strata=strata))
    gains = EvaluationData(as_predictions(seen, None, len(y)), parse_target(y), y).judged.gains
    # An event in an interval where the model sees no hazard at all would cost log(1e-6), 13.8.
    assert gains.min() > -8
    assert gains.mean() > 0


def test_folds_hold_events_evenly_and_every_patient_once(patients):
    parts = fold_parts(patients.y["event"], 5, 0)
    assert sorted(np.concatenate([test for _, test in parts])) == list(range(200))
    events = [patients.y["event"][test].sum() for _, test in parts]
    assert max(events) - min(events) <= 1


def test_folds_may_be_given(patients):
    event = patients.y["event"]
    parts = fold_parts(event, np.int64(2), 7)
    # Also those that can be read once only.
    for (train, test), (wanted_train, wanted_test) in zip(
        fold_parts(event, iter(parts), 0), parts, strict=True
    ):
        np.testing.assert_array_equal(train, wanted_train)
        np.testing.assert_array_equal(test, wanted_test)


def test_plain_cox_beside_a_recipe_treats_ties_as_it_does(patients):
    y = Surv.from_arrays(patients.y["event"], np.ceil(3 * patients.y["time"]))
    recipe = make_pipeline(StandardScaler(), CoxPH(ties="efron"))
    parts = fold_parts(y["event"], 3, 0)
    own, cox = cross_fitted(recipe, patients.X, y, parts), cross_fitted_cox(recipe, patients.X, y, parts)
    np.testing.assert_allclose(own.risk, cox.risk, atol=1e-7)


def test_curves_are_kept_at_few_times():
    assert curve_times(np.array([2.0, 1.0, 2.0])).tolist() == [1.0, 2.0]
    assert len(curve_times(np.arange(5000.0))) == 300


@pytest.mark.filterwarnings("ignore")
def test_a_small_cohort_gets_an_answer(patients):
    report = audit(
        CoxPH(),
        patients.X,
        patients.y,
        sensitive_features=patients.sensitive_features,
        folds=2,
        search_rules=False,
    )
    everybody = report.tables["groups"].rows[0]
    assert report.model == "CoxPH, cross-fitted"
    assert everybody["patients"] == 200
    # The recipe is plain Cox itself: against plain Cox nothing can be gained or lost.
    assert abs(everybody["gain_over_reference"]) < 1e-6
    # A column is called as it is written, also where a sentence is about it.
    assert "Membership" not in report.to_markdown()
    assert any("trained without the patients" in limit for limit in report.parts["method"].facts["limits"])


def test_folds_keep_the_hazards_of_their_models(patients):
    y = Surv.from_arrays(patients.y["event"], np.ceil(2 * patients.y["time"]))
    parts = fold_parts(y["event"], 4, 0)
    curves = cross_fitted(CoxPH(), patients.X, y, parts).survival
    until = np.minimum(y["time"], 3.0)
    found = curves.summed_hazard(until[:, None])
    for train, test in parts:
        model = CoxPH().fit(patients.X.iloc[train], y[train])
        own = as_predictions(model, patients.X.iloc[test], len(test)).curves.summed_hazard(until[test, None])
        np.testing.assert_allclose(np.column_stack(found)[test], np.column_stack(own))
    some = np.array([5, 3, 190])
    np.testing.assert_allclose(curves.take(some).survival([2.0]), curves.survival([2.0])[some])


def test_scores_of_folds_are_of_the_type_of_the_model(patients):
    parts = fold_parts(patients.y["event"], 3, 0)
    model = AcceleratedFailureTime("weibull")
    found = cross_fitted(model, patients.X, patients.y, parts)
    assert found.score_type == "log time"
    assert as_predictions(found, None, 200).curves.curve_type == "smooth"
