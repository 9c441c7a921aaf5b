import json
import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.nonparametric import kaplan_meier_estimator

from drosurv.audit import audit, audit_flc
from drosurv.datasets import make_hidden_minority
from drosurv.estimators import DROCox
from drosurv.metrics import concordance_imparity, concordance_index
from drosurv.tables import TableEncoder


@pytest.fixture(scope="module")
def train():
    return make_hidden_minority(400, random_state=0)


@pytest.fixture(scope="module")
def test():
    return make_hidden_minority(500, random_state=1)


@pytest.fixture(scope="module")
def model(train):
    return make_pipeline(TableEncoder(), DROCox(alpha=0.5)).fit(train.X, train.y)


@pytest.fixture(scope="module")
def report(model, train, test):
    return audit(
        model,
        test.X,
        test.y,
        sensitive_features=test.sensitive_features,
        X_train=train.X,
        y_train=train.y,
        alpha_path=(1.0, 0.5, 0.2),
        n_bootstrap=10,
        time_title="years",
        data_name="simulated patients",
    )


def test_numbers_are_those_of_the_metrics(report, model, test):
    risk = model.predict(test.X)
    (c_index,) = [row for row in report.audited.accuracy.rows if row["metric"] == "c-index"]
    assert c_index["value"] == pytest.approx(concordance_index(test.y, risk), abs=1e-6)
    groups = test.sensitive_features["membership"]
    for row in report.audited.groups.rows[1:]:
        members = (groups == row["group"]).to_numpy()
        assert row["patients"] == members.sum()
        assert row["events"] == test.y["event"][members].sum()
        assert row["concordance_index"] == pytest.approx(
            concordance_index(test.y[members], risk[members]), abs=1e-6
        )
    (imparity,) = [
        row for row in report.audited.fairness.rows if row["metric"].startswith("Concordance imparity")
    ]
    assert imparity["value"] == pytest.approx(concordance_imparity(test.y, risk, groups), abs=1e-6)


def test_the_minority_that_plain_cox_gets_wrong_is_named(report):
    first = report.audited.statements[0]
    assert first.code == "worst_group"
    assert first.text.startswith("Served worst: membership minority.")
    assert [row["group"] for row in report.audited.groups.rows if row["worst"]] == ["minority"]


def test_curves_are_the_mean_prediction_and_kaplan_meier(report, model, test):
    rows = [row for row in report.audited.survival.rows if row["group"] == "minority"]
    members = (test.sensitive_features["membership"] == "minority").to_numpy()
    times = np.array([row["time"] for row in rows])
    predicted = model.predict_survival_function(test.X[members], times=times).mean(axis=0)
    # Times are written with six digits, so events at the very end may fall on either side of the last one.
    np.testing.assert_allclose([row["predicted"] for row in rows][:-1], predicted[:-1], atol=1e-5)
    at, survival = kaplan_meier_estimator(test.y["event"][members], test.y["time"][members])
    inside = times < at[-1] - 1e-3
    observed = np.array([row["observed"] for row in rows], dtype=float)[inside]
    place = np.searchsorted(at, times[inside], side="right")
    np.testing.assert_allclose(observed, np.concatenate([[1.0], survival])[place], atol=1e-5)
    bounds = np.array([[row["low"], row["high"]] for row in rows], dtype=float)[inside]
    assert (bounds[:, 0] <= observed + 1e-6).all()
    assert (observed <= bounds[:, 1] + 1e-6).all()


def test_the_slider_has_every_alpha_and_starts_at_the_audited_model(report):
    assert [model.alpha for model in report.models] == [1.0, 0.5, 0.2]
    assert report.audited.alpha == 0.5
    assert [row["model"] for row in report.trade_off.rows] == [model.name for model in report.models]
    values = [row["concordance_index"] for row in report.trade_off.rows]
    assert len(set(values)) == 3


def test_the_method_card_tells_data_settings_and_versions(report):
    told = {row["name"]: row["value"] for table in report.method for row in table.rows}
    assert told["Patients"] == "500"
    assert told["Patients trained on"] == "400"
    assert told["Estimator"] == "DROCox"
    assert told["alpha"] == "0.5"
    assert told["Bootstrap replicates, audited model"] == "10"
    assert told["drosurv version"]
    assert report.limits


def test_no_patient_is_in_the_report(model, train, test):
    X, X_train = test.X.copy(), train.X.copy()
    X.iloc[7, 5], X_train.iloc[9, 5] = 1.23456789, 2.34567891
    report = audit(
        model,
        X,
        test.y,
        sensitive_features=test.sensitive_features,
        X_train=X_train,
        y_train=train.y,
        alpha_path=(1.0,),
        n_bootstrap=2,
        search_rules=False,
    )
    assert max(len(table) for model in report.models for table in model.tables) < 200
    for text in (report.to_html(), report.to_json(), report.to_markdown()):
        assert "1.23457" not in text
        assert "2.34568" not in text


def test_every_view_can_be_made(report):
    assert json.loads(report.to_json())["title"] == "DROCox, alpha 0.5, on simulated patients"
    assert "Served worst" in report.to_markdown()
    assert "years" in report.to_html()


@pytest.mark.filterwarnings("ignore")
def test_any_model_any_number_of_groups_and_models_without_curves(train, test):
    cox = CoxPHSurvivalAnalysis().fit(train.X, train.y)
    options = {"y_train": train.y, "n_bootstrap": 0, "search_rules": False}
    of_cox = audit(cox, test.X, test.y, sensitive_features=None, **options)
    assert of_cox.audited.statements[0].text == "No groups were named."
    assert of_cox.models[0].stop_label == "audited"

    class RiskOnly:
        def predict(self, X):
            return cox.predict(X)

    silent = audit(RiskOnly(), test.X, test.y, sensitive_features=test.sensitive_features, **options)
    assert len(silent.audited.survival) == len(silent.audited.calibration) == 0
    for report in (of_cox, silent):
        assert "<html" in report.to_html()
        assert report.to_markdown()
        assert json.loads(report.to_json())


def test_a_model_that_keeps_no_follow_up_needs_the_training_target(train, test):
    cox = CoxPHSurvivalAnalysis().fit(train.X, train.y)
    with pytest.raises(ValueError, match="y_train is needed"):
        audit(cox, test.X, test.y, sensitive_features=test.sensitive_features)


def test_steps_are_told(model, train, test):
    told = []
    audit(
        model,
        test.X,
        test.y,
        sensitive_features=test.sensitive_features,
        X_train=train.X,
        y_train=train.y,
        alpha_path=(1.0,),
        n_bootstrap=0,
        search_rules=False,
        on_step=lambda name, steps: told.append((name, steps)),
    )
    assert told == [("DROCox, alpha 1 (plain Cox)", 2), ("DROCox, alpha 0.5", 2)]


def test_the_demonstration_audits_flc_by_age_and_gender():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = audit_flc(alpha=0.3, alpha_path=(1.0,), n_bootstrap=0, search_rules=False)
    assert report.attributes == ("age", "gender")
    assert [model.alpha for model in report.models] == [1.0, 0.3]
    assert report.audited.alpha == 0.3
