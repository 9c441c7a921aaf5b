import json
import shlex

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from drosurv.cli.models import make_estimator, model_classes
from drosurv.datasets import load_flc
from drosurv.estimators import CoxPH, DROCox
from drosurv.persistence import load, read_saved_model
from drosurv.tables import TableEncoder, TargetColumns
from drosurv.workflows import OpenedModel


def test_the_saved_model_is_the_one_python_fits(drosurv, data, target, tmp_path, patients):
    summary = drosurv.json("fit", data, *target, "--alpha", "0.4", "-o", tmp_path / "model")
    y = TargetColumns("days", "status", "dead").parse(patients)
    X = patients.drop(columns=["id", "days", "status"])
    expected = make_pipeline(TableEncoder(), DROCox(alpha=0.4, recalibrate=True, random_state=0)).fit(X, y)
    loaded = load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict(patients), expected.predict(X), rtol=1e-10)
    assert summary["estimator"] == "DROCox"
    assert summary["parameters"]["alpha"] == 0.4
    assert summary["recalibration"] == expected[-1].recalibration_
    assert summary["patients"] == 400
    assert summary["events"] == y["status"].sum()
    assert summary["training_c_index"] == pytest.approx(expected.score(X, y))
    assert summary["coefficients"] == pytest.approx(
        dict(zip(expected[-1].feature_names_in_, expected[-1].coef_, strict=True)), rel=1e-8
    )
    assert [row["column"] for row in summary["columns"]] == ["age", "kappa", "sex", "stage"]


def test_robust_models_are_recalibrated_unless_told_otherwise(drosurv, data, target, tmp_path, patients):
    told = drosurv.ok("fit", data, *target, "--alpha", "0.4", "-o", tmp_path / "a").stdout
    stretched = load(tmp_path / "a")
    assert f"multiplied by {stretched[-1].recalibration_:.3g}" in told.replace("\n", " ")
    for options in (["--no-recalibrate"], ["--set", "recalibrate=false"]):
        as_it_is = drosurv.json("fit", data, *target, "--alpha", "0.4", *options, "-o", tmp_path / "b")
        assert as_it_is["recalibration"] is None
        np.testing.assert_allclose(
            stretched.predict(patients), stretched[-1].recalibration_ * load(tmp_path / "b").predict(patients)
        )
    for options, expected in (
        (["--model", "cox"], False),
        (["--model", "cox", "--recalibrate"], True),
        (["--alpha", "1"], False),
    ):
        found = drosurv.json("fit", data, *target, *options, "-o", tmp_path / "c")
        assert found["parameters"]["recalibrate"] is expected


def test_a_fold_too_small_names_the_option(drosurv, data, target, tmp_path):
    options = ["--model", "subgroup-robust-cox", "--set", "min_group=38"]
    line = drosurv.fails("fit", data, *target, *options, "-o", tmp_path / "m")
    assert "or use --no-recalibrate" in line


def test_the_user_is_told_what_was_done_to_which_column(drosurv, data, target, tmp_path, patients):
    output = drosurv.ok("fit", data, *target, "-o", tmp_path / "model").stdout
    columns = output.split("Coefficients")[0]
    lines = {line.split()[0]: line for line in columns.splitlines() if line.strip()}
    assert "40" in lines["kappa"]
    assert f"the median {patients['kappa'].median():.6g}" in lines["kappa"]
    assert "indicators of 'II', 'III' against 'I'" in lines["stage"]
    assert "the most frequent level 'I'" in lines["stage"]
    assert "on these same patients" in output
    assert f"Saved to {tmp_path / 'model'}." in output.replace("\n", " ").replace("  ", " ")


def test_parquet_and_csv_give_the_same_model(drosurv, data, target, tmp_path, patients):
    patients.to_parquet(tmp_path / "patients.parquet")
    for source, name in ((data, "a"), (tmp_path / "patients.parquet", "b")):
        drosurv.ok("fit", source, *target, "--model", "cox", "-o", tmp_path / name)
    a, b = load(tmp_path / "a"), load(tmp_path / "b")
    np.testing.assert_allclose(a.predict(patients), b.predict(patients), rtol=1e-12)


def test_a_network_and_any_parameter_can_be_asked_for(drosurv, data, target, tmp_path):
    options = [
        "--network",
        "mlp",
        "--hidden",
        "5,3",
        "--set",
        "max_iter=7",
        "--set",
        "ties=efron",
        "--seed",
        "4",
    ]
    parameters = drosurv.json("fit", data, *target, "--model", "cox", *options, "-o", tmp_path / "m")[
        "parameters"
    ]
    assert parameters["hidden"] == [5, 3]
    assert parameters["max_iter"] == 7
    assert parameters["ties"] == "efron"
    assert parameters["random_state"] == 4
    assert type(load(tmp_path / "m")[-1]) is CoxPH


def test_a_model_trained_with_groups_gets_them(drosurv, data, target, tmp_path):
    options = ["--model", "regularized-cox", "--set", "penalty=keya_group", "--set", "max_iter=5"]
    line = drosurv.fails("fit", data, *target, *options, "-o", tmp_path / "m")
    assert "--groups" in line
    drosurv.ok("fit", data, *target, *options, "--groups", "sex,age>60", "-o", tmp_path / "m")
    assert load(tmp_path / "m")[-1].penalty == "keya_group"


def test_held_out_patients_are_written_and_not_trained_on(drosurv, data, target, tmp_path, patients):
    test = tmp_path / "test.csv"
    summary = drosurv.json(
        "fit", data, *target, "--hold-out", test, "--hold-out-share", "0.2", "-o", tmp_path / "m"
    )
    assert summary["patients"] == 320
    assert summary["held_out"] == {"file": str(test), "patients": 80}
    away = pd.read_csv(test)
    assert list(away.columns) == list(patients.columns)
    assert set(away["id"]) < set(patients["id"])
    assert (
        f"drosurv evaluate {tmp_path / 'm'} {test}"
        in drosurv.ok("fit", data, *target, "--hold-out", test, "-o", tmp_path / "m").stdout
    )


def test_the_file_notes_the_target_and_no_patient(drosurv, model, patients):
    notes = read_saved_model(model).notes
    assert notes["target"] == {"time": "days", "event": "status", "event_value": "dead"}
    assert set(notes) == {"target", "trained_on", "plain_cox", "plain_cox_baseline"}
    y = TargetColumns("days", "status", "dead").parse(patients)
    plain = make_pipeline(TableEncoder(), CoxPH()).fit(patients.drop(columns=["id", "days", "status"]), y)
    assert notes["plain_cox"] == pytest.approx(plain[-1].coef_.tolist(), rel=1e-8)
    opened = OpenedModel.open(model)
    features, times = opened.features(patients), np.array(notes["plain_cox_baseline"]["times"])
    # The kept curve is plain Cox's own at the times kept, for every patient.
    np.testing.assert_allclose(
        opened.plain_cox().predict_survival_function(features, times),
        plain[-1].predict_survival_function(features, times=times),
        atol=1e-8,
    )
    text = model.read_bytes().decode("latin-1")
    assert not any(identity in text for identity in patients["id"])


def test_a_table_with_an_index_column_and_flc_as_it_comes(drosurv, tmp_path):
    flc = load_flc()
    frame = flc.X.assign(
        sex=np.where(flc.X["sex"] == 1, "M", "F"), futime=flc.y["time"], death=flc.y["event"]
    )
    frame.to_csv(tmp_path / "flc.csv")
    summary = drosurv.json(
        "fit", tmp_path / "flc.csv", "--time", "futime", "--event", "death", "-o", tmp_path / "m"
    )
    told = {row["column"]: row["done"] for row in summary["columns"]}
    assert told["column 1"] == "not used: it numbers the rows"
    assert set(summary["coefficients"]) == {"age", "creatinine", "flc.grp", "kappa", "lambda", "sex=M"}
    assert summary["training_c_index"] > 0.78
    assert (tmp_path / "m").stat().st_size < 100_000


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--time", "dyas"], "time column 'dyas' is not in the table. Did you mean 'days'?"),
            (["--event", "sttus"], "Did you mean 'status'?"),
            (["--time", "stage"], "time column 'stage'"),
            (["--event", "sex"], "--event-value 'dead' does not occur"),
            (["--event", "stage"], "event column 'stage' is empty in 16 rows"),
            (["--drop", "idd"], "drop column 'idd' is not in the table"),
            (["--categorical", "sexx"], "Did you mean 'sex'?"),
            (["--alpha", "0"], "Error: --alpha must lie in (0, 1], got 0.0."),
            (["--ball", "square"], "ball must be one of"),
            (["--network", "cnn"], "network must be"),
            (["--hidden", "a"], "hidden must be widths"),
            (
                ["--model", "forest"],
                "model 'forest' is not one of AcceleratedFailureTime, AdversarialReweighting, CoxPH",
            ),
            (["--model", "cox", "--alpha", "0.2"], "alpha has no meaning for CoxPH"),
            (["--set", "max_iter=many"], "--set max_iter must be a whole number"),
            (["--set", "hidden=3", "--network", "mlp"], "hidden must list widths"),
            (["--decimal", ""], "decimal must be one character"),
            (["--separator", "ab"], "separator must be one character"),
            (["--time", "status"], "both column 'status'"),
            (["--hold-out", "m", "-o", "m"], "would be written twice"),
            (["--set", "lr"], "--set needs NAME=VALUE"),
            (["--set", "speed=3"], "speed has no meaning for DROCox"),
            (["--unseen", "guess"], "unseen must be one of"),
            (["--separator", ";"], "pass --separator ','"),
            (["--hold-out", "x.csv", "--hold-out-share", "2"], "share must lie between 0 and 1"),
        ],
    )
    def test_is_one_line_and_writes_no_model(
        self, drosurv, data, target, tmp_path, monkeypatch, options, words
    ):
        monkeypatch.chdir(tmp_path)
        assert words in drosurv.fails("fit", data, *target, "-o", tmp_path / "m", *options)
        assert not (tmp_path / "m").exists()

    @pytest.mark.parametrize(
        ("status", "question"),
        [
            (["cancer", "stroke"], "pass --event-value 'cancer' or --event-value 'stroke'"),
            ([3, 4], "pass --event-value '3' or --event-value '4'"),
            ([0, 1, 2], "as --event-value; every other then means censored"),
        ],
    )
    def test_a_coding_of_events_is_asked_for(self, drosurv, patients, tmp_path, status, question):
        path = tmp_path / "d.csv"
        values = (status * 400)[:400]
        patients.assign(status=values).to_csv(path, index=False)
        line = drosurv.fails(
            "fit", path, "--time", "days", "--event", "status", "--drop", "id", "-o", tmp_path / "m"
        )
        assert "which value of event column 'status' means the event?" in line
        assert question in line

    def test_names_of_patients_are_not_taken_for_a_category(self, drosurv, data, tmp_path):
        line = drosurv.fails(
            "fit", data, "--time", "days", "--event", "status", "--event-value", "dead", "-o", tmp_path / "m"
        )
        assert "column 'id' holds 400 different texts" in line
        assert "name it in --drop, or, if they are categories all the same, in --categorical" in line

    @pytest.mark.parametrize("option", ["-o", "--hold-out"])
    def test_the_data_is_never_overwritten(self, drosurv, data, target, tmp_path, option):
        before = data.read_bytes()
        drosurv.fails("fit", data, *target, "-o", tmp_path / "m", option, data)
        assert data.read_bytes() == before

    def test_a_missing_file_and_a_missing_folder(self, drosurv, data, target, tmp_path):
        assert "is not a file" in drosurv.fails("fit", tmp_path / "none.csv", *target, "-o", tmp_path / "m")
        assert "there is no folder" in drosurv.fails("fit", data, *target, "-o", tmp_path / "none" / "m")


def test_a_column_that_gives_the_outcome_away_is_warned_about(drosurv, patients, target, tmp_path):
    path = tmp_path / "d.csv"
    patients.assign(dead=np.where(patients["status"] == "dead", "x", "y")).to_csv(path, index=False)
    result = drosurv.ok("fit", path, *target, "-o", tmp_path / "m", "--set", "l2=0.1", "--json")
    assert "Warning: column 'dead' may give the outcome away" in result.stderr
    assert json.loads(result.stdout)["patients"] == 400


def test_the_null_model_can_be_saved_and_held_against(drosurv, data, target, tmp_path):
    found = drosurv.json("fit", data, *target, "--model", "null-model", "-o", tmp_path / "null")
    assert found["training_c_index"] == 0.5
    drosurv.ok("predict", tmp_path / "null", data, "--times", "100")
    assert "network has no meaning for NullModel" in drosurv.fails(
        "fit", data, *target, "--model", "null-model", "--network", "mlp", "-o", tmp_path / "null"
    )


@pytest.mark.parametrize("mark", ["tab", "\\t", "\t"])
def test_a_tab_can_be_typed(drosurv, patients, target, tmp_path, mark):
    patients.to_csv(tmp_path / "d.tsv", index=False, sep="\t")
    test = tmp_path / "test.tsv"
    options = ["--separator", mark, "--hold-out", test, "-o", tmp_path / "m"]
    told = drosurv.ok("fit", tmp_path / "d.tsv", *target, *options).stdout
    assert f"drosurv evaluate {tmp_path / 'm'} {test} --separator tab\n" in told
    assert len(pd.read_csv(test, sep="\t").columns) == len(patients.columns)


def test_the_next_command_that_is_shown_works_as_it_stands(drosurv, patients, target, tmp_path):
    patients.to_csv(tmp_path / "d.csv", index=False, sep=";", decimal=",")
    marks = ["--separator", ";", "--decimal", ","]
    paths = ["--hold-out", tmp_path / "held out.csv", "-o", tmp_path / "m"]
    told = drosurv.ok("fit", tmp_path / "d.csv", *target, *marks, *paths).stdout
    command = shlex.split(told.splitlines()[-1])
    assert command[0] == "drosurv"
    drosurv.ok(*command[1:], "--bootstrap", "0")


def test_nobody_is_held_out_of_a_training_that_fails(drosurv, data, target, tmp_path):
    drosurv.fails(
        "fit", data, *target, "--alpha", "7", "--hold-out", tmp_path / "test.csv", "-o", tmp_path / "m"
    )
    assert not (tmp_path / "test.csv").exists()


@pytest.mark.parametrize("name", ["cox", "CoxPH", "cox-ph"])
def test_an_estimator_goes_by_its_plain_and_its_class_name(name):
    assert type(make_estimator(name, {}, {})) is CoxPH


@pytest.mark.parametrize("name", sorted(model_classes()))
def test_every_estimator_there_is_can_be_trained_saved_and_used(drosurv, data, target, tmp_path, name):
    parameters = model_classes()[name]().get_params()
    short = ["--set", "max_iter=5"] if "max_iter" in parameters else []
    drosurv.ok("fit", data, *target, "--model", name, "--groups", "sex", *short, "-o", tmp_path / "m")
    assert len(drosurv.json("predict", tmp_path / "m", data, "--times", "100")) == 400
