"""The command audit: what it writes, says and refuses."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from drosurv.datasets import make_hidden_minority
from drosurv.estimators import CoxPH

pytestmark = pytest.mark.sections("verdict", "method")


@pytest.fixture(scope="module")
def files(drosurv, tmp_path_factory):
    """A model, the patients kept away from it, and the table with all of them."""
    tmp_path = tmp_path_factory.mktemp("files")
    data = make_hidden_minority(n_samples=500, random_state=0)
    table = pd.DataFrame(
        {
            "days": np.ceil(1000 * data.y["time"]),
            "died": data.y["event"].astype(int),
            "age": np.round(60 + 10 * data.X["x1"], 1),
            "x5": data.X["x5"].round(3),
            "sex": np.where(data.X["x3"] > 0, "f", "m"),
        }
    )
    table.to_csv(tmp_path / "all.csv", index=False)
    options = ["--time", "days", "--event", "died", "--model", "dro-cox", "--alpha", "0.5"]
    held = ["--hold-out", tmp_path / "test.csv", "--hold-out-share", "0.4"]
    drosurv.ok("fit", tmp_path / "all.csv", *options, *held, "-o", tmp_path / "model")
    return tmp_path / "model", tmp_path / "test.csv", tmp_path / "all.csv"


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A vendor's export: predictions beside what happened, as R would write it."""
    tmp_path = tmp_path_factory.mktemp("exported")
    data = make_hidden_minority(n_samples=300, random_state=4)
    survival = CoxPH().fit(data.X, data.y).predict_survival_function(data.X, times=[0.5, 1.0, 2.0])
    table = pd.DataFrame(survival.round(4), columns=["X0.5", "X1", "X2"]).assign(
        years=data.y["time"], died=np.where(data.y["event"], "yes", "no"), age=60 + 10 * data.X["x1"]
    )
    table["surv_6m"], table["patient_id"] = survival[:, 0], np.arange(300)[::-1]
    table.to_csv(tmp_path / "p.csv", index=False)
    return tmp_path / "p.csv"


FAST = ("--no-rules",)


@pytest.mark.sections
def test_it_writes_the_page_and_says_what_it_found(drosurv, files, tmp_path):
    model, test, everyone = files
    out = tmp_path / "report.html"
    groups, beside = ("--groups", "sex,age>60"), ("--train", everyone)
    result = drosurv.ok("audit", model, test, *groups, *beside, *FAST, "-o", out)
    assert "Verdict:" in result.stdout
    assert "Audit again when" in result.stdout
    assert str(out) in result.stdout
    # Patients of the held-out file must not train the models they are compared on.
    assert "200 of the 500 training patients are also audited" in result.stderr
    assert "was trained on 0 of 200 rows" in result.stderr
    assert "copies" not in result.stderr
    status = json.loads((tmp_path / "report.summary.json").read_text())["verdict"]["status"]
    assert status != "data_problem"
    html = out.read_text()
    assert "DROCox, on test.csv" in html
    # The column's name says what times count.
    assert re.search(
        r"By [\d,.]+ days \([\d.]+ years?\): of 100 .* had the event; the model expected", result.stdout
    )


def test_copies_of_patients_are_warned_of(drosurv, files, tmp_path):
    model, test, _ = files
    table = pd.read_csv(test)
    pd.concat([table, table.head(3)]).to_csv(tmp_path / "copies.csv", index=False)
    told = drosurv("audit", model, tmp_path / "copies.csv", *FAST, "-o", tmp_path / "r.html")
    assert "3 rows of copies.csv are copies of another row" in " ".join(told.stderr.split())
    # Said once on the terminal, where the verdict comes first; the page names the table.
    assert "copies" not in told.stdout.partition("The report is in")[0]
    lines = told.stdout.split("\n")
    verdict = json.loads((tmp_path / "r.summary.json").read_text())
    assert lines[:2] == ["Verdict:", f"- {verdict['verdict']['text'].split(' Subgroups were not')[0]}"]
    (warning,) = verdict["warnings"]
    assert warning["text"].startswith("3 rows of copies.csv are copies")


def test_warnings_of_training_are_said_to_be_about_the_training_table(drosurv, files, tmp_path):
    table = pd.read_csv(files[2])
    table.loc[0, "days"] = 0
    table[:300].to_csv(tmp_path / "old.csv", index=False)
    table[300:].to_csv(tmp_path / "new.csv", index=False)
    named = ("--time", "days", "--event", "died", "--groups", "sex", "--model", "cox")
    drosurv.ok("fit", tmp_path / "old.csv", *named, "-o", tmp_path / "m")
    told = drosurv.ok("audit", tmp_path / "m", tmp_path / "new.csv", *FAST, "-o", tmp_path / "r.html")
    assert told.stdout.count("the time 0") == 1
    assert "- In the training table: 1 patient has the time 0" in told.stdout
    # Nothing to act on.
    assert "trained on 0 of" not in told.stdout
    assert "not used to train" not in told.stdout


def test_the_suffix_says_what_is_written_and_plain_cox_is_compared_with(drosurv, files, tmp_path):
    model, test, _ = files
    drosurv.ok("audit", model, test, "--groups", "sex", *FAST, "-o", tmp_path / "report.md")
    assert (tmp_path / "report.md").read_text().startswith("# DROCox")
    out = tmp_path / "report.json"
    printed = drosurv("audit", model, test, "--groups", "sex", *FAST, "-o", out, "--json").stdout
    written = json.loads(out.read_text())
    assert json.loads(printed) == written
    # The model is compared with the plain Cox of its training.
    table = written["tables"]["groups"]
    assert table["rows"][0][table["columns"].index("gain_over_reference")] is not None
    result = drosurv("audit", model, test, "-o", tmp_path / "report.pdf")
    assert result.exit_code == 2
    assert "must end in .html, .md or .json" in result.stderr


def test_a_model_that_plain_cox_dominates_is_warned_of(drosurv, tmp_path):
    data = make_hidden_minority(800, 5, random_state=0)
    data.X.assign(t=data.y["time"], died=data.y["event"].astype(int)).to_csv(tmp_path / "all.csv")
    timid, held = tmp_path / "timid", tmp_path / "held.csv"
    options = ["--time", "t", "--event", "died", "--model", "cox", "--set", "l2=3", "--no-recalibrate"]
    kept = ["--hold-out", held, "--hold-out-share", "0.5", "-o", timid]
    drosurv.ok("fit", tmp_path / "all.csv", *options, *kept)
    result = drosurv.ok("audit", timid, held, "--no-rules", "-o", tmp_path / "report.json")
    assert "Plain Cox predicts all patients better" in result.stdout
    assert "Use plain Cox instead" in result.stdout
    assert "Predicted risks of all patients differ too little" in result.stdout


def test_predictions_of_any_program_are_audited_without_a_model(drosurv, exported, tmp_path):
    target = ["--time", "years", "--event", "died", "--groups", "age>60", "--time-unit", "years"]
    out = tmp_path / "foreign.html"
    result = drosurv.ok("audit", "--predictions", exported, *target, *FAST, "-o", out)
    assert "read as survival: X0.5 at 0.5 years, X1 at 1 year and X2 at 2 years." in result.stderr
    assert "not used, because it names patients or rows: patient_id." in result.stderr
    assert "surv_6m may be predictions too, but are not used" in result.stderr
    assert "had the event; the model expected" in result.stdout
    assert "age over 60" in out.read_text()
    assert "patient_id" not in out.read_text()
    read = json.loads((tmp_path / "foreign.summary.json").read_text())
    assert read["schema"] == "drosurv.report.summary"
    assert read["groups"][0]["patients"] == 300


def test_predictions_of_patients_who_entered_late_are_audited_from_the_next_predicted_time(
    drosurv, exported, tmp_path
):
    table = pd.read_csv(exported).assign(since=lambda table: 0.3 * table["years"])
    table.to_csv(tmp_path / "late.csv", index=False)
    target = ["--time", "years", "--event", "died", "--entry", "since"]
    out = tmp_path / "late.html"
    drosurv.ok("audit", "--predictions", tmp_path / "late.csv", *target, *FAST, "-o", out)
    found = json.loads((tmp_path / "late.summary.json").read_text())
    assert found["findings"][0]["question"] == "level"
    assert 0 < found["groups"][0]["expected"] < 300


def test_a_recipe_is_audited_on_folds_of_the_patients_it_was_trained_on(drosurv, files, tmp_path):
    model, _, everyone = files
    out = tmp_path / "folds.json"
    for folds in (1, 9999):
        refused = drosurv("audit", model, everyone, "--folds", str(folds), "-o", out)
        assert refused.exit_code == 2
        assert "Error: --folds must be a whole number from 2 to" in refused.stderr
        assert f"the number of events, 288, got {folds}." in refused.stderr
    result = drosurv.ok("audit", model, everyone, "--folds", "2", "--groups", "sex", *FAST, "-o", out)
    read = json.loads(out.read_text())
    assert read["model"] == "DROCox, cross-fitted"
    table = read["tables"]["groups"]
    assert table["rows"][0][table["columns"].index("patients")] == 500
    assert "too good" not in result.stderr
