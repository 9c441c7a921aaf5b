import json

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.linear_model import CoxPHSurvivalAnalysis

from drosurv import Surv
from drosurv.datasets import make_hidden_minority
from drosurv.estimators import CoxPH, DROCox
from drosurv.evaluation import Predictions, evaluate
from drosurv.metrics import concordance_index
from drosurv.report import Page, audit
from drosurv.tables import TableEncoder


class RiskOnly:
    """A model that ranks patients and gives no survival curves."""

    def __init__(self, model):
        self.model = model

    def predict(self, X):
        return self.model.predict(X)


@pytest.fixture(scope="module")
def train():
    return make_hidden_minority(400, 6, random_state=0)


@pytest.fixture(scope="module")
def held_out():
    return make_hidden_minority(500, 6, random_state=1)


@pytest.fixture(scope="module")
def model(train):
    return make_pipeline(TableEncoder(), DROCox(alpha=0.5)).fit(train.X, train.y)


def audit_of(model, patients, **options):
    return audit(model, patients.X, patients.y, sensitive_features=patients.sensitive_features, **options)


@pytest.fixture(scope="module")
def report(model, train, held_out):
    return audit_of(
        model,
        held_out,
        X_train=train.X,
        y_train=train.y,
        features=held_out.X.rename(columns={"x5": "blood pressure"})[["blood pressure", "x1"]],
        page=Page(time_unit="years", data_name="simulated patients"),
    )


def test_numbers_are_those_of_the_metrics(report, model, held_out):
    risk = model.predict(held_out.X)
    (c_index,) = [row for row in report.tables["accuracy"].rows if row["metric"] == "c-index"]
    assert c_index["value"] == pytest.approx(concordance_index(held_out.y, risk), abs=1e-6)
    groups = held_out.sensitive_features["membership"]
    for row in report.tables["by_group"].rows[1:]:
        members = (groups == row["group"]).to_numpy()
        assert row["patients"] == members.sum()
        assert row["observed"] == held_out.y["event"][members].sum()
        assert row["c_index"] == pytest.approx(
            concordance_index(held_out.y[members], risk[members]), abs=1e-6
        )


def test_curves_are_those_of_evaluate_where_five_patients_are_at_risk(report, model, train, held_out):
    given = {"y_train": train.y, "sensitive_features": held_out.sensitive_features}
    wanted = evaluate(model, held_out.X, held_out.y, **given).survival
    shown = pd.DataFrame(list(report.tables["survival"].rows)).astype({"observed": float})
    observed = ["observed", "low", "high"]
    wanted.loc[wanted["at_risk"] < 5, observed] = np.nan
    assert 0 < wanted["observed"].isna().sum() < len(wanted)
    columns = ["time", "predicted", *observed]
    np.testing.assert_allclose(shown[columns].astype(float), wanted[columns], rtol=1e-5, atol=1e-5)


def test_the_method_card_tells_data_settings_and_versions(report):
    told = {row["name"]: row["value"] for table in report.parts["method"].tables for row in table.rows}
    assert told["Patients"] == "500"
    assert told["Patients trained on"] == "400"
    assert told["Estimator"] == "DROCox"
    assert told["alpha"] == "0.5"
    assert told["drosurv version"]
    assert report.parts["method"].facts["limits"]


def test_no_patient_is_in_the_report_and_steps_are_told(model, train, held_out, capsys):
    X, X_train = held_out.X.copy(), train.X.copy()
    X.iloc[7, 5], X_train.iloc[9, 5] = 1.23456789, 2.34567891
    report = audit(
        model,
        X,
        held_out.y,
        sensitive_features=held_out.sensitive_features,
        X_train=X_train,
        y_train=train.y,
        search_rules=False,
        verbose=True,
    )
    assert "DROCox" in capsys.readouterr().err
    assert max(len(table) for table in report.tables.values()) < len(X)
    for text in (report.to_html(), report.to_json(), report.to_markdown()):
        assert "1.23457" not in text
        assert "2.34568" not in text


def test_subgroups_are_named_by_the_columns_given_for_readers(report):
    bounds = report.parts["missed"].facts["bounds"]["bounds"]
    assert all(bound["group"].startswith(("blood pressure", "x1")) for bound in bounds.values())


def test_every_view_can_be_made(report):
    assert json.loads(report.to_json())["title"] == "DROCox, on simulated patients"
    assert "## What could have been missed" in report.to_markdown()
    assert "years" in report.to_html()


@pytest.mark.filterwarnings("ignore")
def test_any_model_any_number_of_groups_and_models_without_curves(train, held_out):
    cox = CoxPHSurvivalAnalysis().fit(train.X, train.y)
    options = {"y_train": train.y, "search_rules": False}
    of_cox = audit(cox, held_out.X, held_out.y, sensitive_features=None, **options)
    assert of_cox.parts["verdict"].facts["status"] == "no_groups"
    assert of_cox.model == "CoxPHSurvivalAnalysis"

    silent = audit_of(RiskOnly(cox), held_out, **options)
    assert len(silent.tables["survival"]) == len(silent.tables["calibration_curves"]) == 0
    for report in (of_cox, silent):
        assert "<html" in report.to_html()
        assert report.to_markdown()
        assert json.loads(report.to_json())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sections("groups")
def test_predictions_need_no_features_and_any_attribute_has_a_name_of_its_own(train, held_out):
    risk = held_out.X.to_numpy()[:, 0]
    group = {"everybody": np.where(risk > 0, "a", "b")}
    found = audit(Predictions(risk), None, held_out.y, y_train=train.y, sensitive_features=group)
    groups = [(row["attribute"], row["group"]) for row in found.tables["by_group"].rows]
    assert groups == [("", "all patients"), ("everybody", "a"), ("everybody", "b")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sections("method", "groups")
def test_two_cuts_of_a_column_are_told_apart(train, held_out):
    age = held_out.X["x1"]
    groups = {f"x1>{cut}": np.where(age > cut, f">{cut}", f"<={cut}") for cut in (0, 1)}
    model = CoxPH(l2=0.1).fit(train.X, train.y)
    options = {"X_train": train.X, "y_train": train.y, "search_rules": False}
    found = audit(model, held_out.X, held_out.y, sensitive_features=groups, **options)
    facts = {row["name"]: row["value"] for row in found.tables["data"].rows}
    assert facts["Groups by x1>0"] == "0 or below, over 0"
    assert facts["Groups by x1>1"] == "1 or below, over 1"
    assert "in groups by x1>0 and x1>1." in found.subtitle
    between = " ".join(row["between"] for row in found.tables["fairness"].rows)
    assert "over 0 vs 0 or below" in between
    assert "over 1 vs 1 or below" in between


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sections("verdict")
def test_plain_cox_beside_plain_cox_treats_ties_alike(train, held_out):
    y = Surv.from_arrays(train.y["event"], np.ceil(2 * train.y["time"]))
    model = CoxPH(ties="efron").fit(train.X, y)
    given = {"X_train": train.X, "y_train": y, "search_rules": False}
    rows = audit_of(model, held_out, **given).tables["groups"].rows
    assert all(
        abs(row["gain_over_reference"]) < 1e-6 for row in rows if row["gain_over_reference"] is not None
    )


@pytest.mark.sections("verdict")
def test_a_reference_sees_the_patients_through_its_own_preparation(model, train, held_out):
    # Another scale of the same columns: the audited model's preparation would put every patient elsewhere.
    scaled = train.X * [1000, *[1] * 5]
    other = make_pipeline(StandardScaler(), DROCox(alpha=1.0, recalibrate=False)).fit(scaled, train.y)
    report = audit_of(model, held_out, reference=other, search_rules=False)
    times = np.unique(train.y["time"])
    predictions = Predictions(
        other.predict(held_out.X), other.predict_survival_function(held_out.X, times=times), times
    )
    given = audit_of(model, held_out, reference=predictions, search_rules=False)
    gains = [one.tables["groups"].rows[0]["gain_over_reference"] for one in (report, given)]
    assert gains[0] == pytest.approx(gains[1], abs=0.02)
    assert gains[0] > 0.03


@pytest.mark.sections("calibration", "missed")
def test_a_model_without_curves_is_not_searched(model, train, held_out):
    report = audit_of(RiskOnly(model), held_out, X_train=train.X, y_train=train.y)
    assert len(report.tables["survival"]) == 0
    assert report.parts["missed"].statements[0].text == (
        "Subgroups were not searched: the model gives no survival curves."
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sections("missed")
def test_too_few_patients_for_rules_are_said_to_be_too_few(model, held_out):
    report = audit(
        model, held_out.X[:40], held_out.y[:40], sensitive_features=held_out.sensitive_features[:40]
    )
    assert "40 patients, too few for subgroups" in report.parts["missed"].statements[0].text
    assert "40 patients, too few for subgroups" in report.to_markdown()


@pytest.mark.filterwarnings("ignore")
def test_many_groups_with_long_hostile_names_and_patients_without_a_label(model, held_out, hostile):
    names = [f"{k} {hostile} {'very long name ' * 20}" for k in range(12)]
    group = pd.Series([names[k % 12] if k % 31 else None for k in range(250)])
    report = audit(
        model, held_out.X[:250], held_out.y[:250], sensitive_features={hostile: group}, search_rules=False
    )
    assert len(report.tables["by_group"]) == 14
    assert any(row["group"] == "missing" for row in report.tables["by_group"].rows)
    # The summary stays one to read: the tables hold the rest of the names.
    assert max(len(statement.text) for statement in report.statements) < 10 * len(names[0])
    assert report.to_html().count("<script>document.title") == 0


@pytest.mark.sections("verdict")
def test_an_audit_without_a_search_finds_what_evaluate_finds(model, held_out):
    given = {"sensitive_features": held_out.sensitive_features}
    report = audit(model, held_out.X, held_out.y, search_rules=False, **given)
    found = evaluate(model, held_out.X, held_out.y, **given)
    pd.testing.assert_frame_equal(report.findings, found.findings)
    assert report.status == found.verdict.status == json.loads(report.to_summary())["verdict"]["status"]


def test_the_model_is_compared_with_plain_cox(report, model, train, held_out):
    plain = make_pipeline(TableEncoder(), CoxPH()).fit(train.X, train.y)
    gain = evaluate(model, held_out.X, held_out.y, reference=plain).groups["gain_over_reference"]
    assert report.tables["groups"].rows[0]["gain_over_reference"] == pytest.approx(gain[0], abs=1e-4)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.sections("groups")
def test_tensors_are_audited_as_the_arrays_they_hold(train, held_out, device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device is there")
    array = held_out.X.to_numpy(dtype=np.float64, copy=True)
    model = CoxPH(device=device).fit(torch.tensor(train.X.to_numpy(dtype=np.float64), device=device), train.y)
    groups = held_out.sensitive_features
    options = {"sensitive_features": groups, "search_rules": False}
    reports = [audit(model, X, held_out.y, **options) for X in (array, torch.as_tensor(array, device=device))]
    values = [[row["c_index"] for row in report.tables["by_group"].rows] for report in reports]
    assert len(values[0]) == 3
    assert values[1] == pytest.approx(values[0])
