import json
import shlex
import sys
from functools import wraps

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from drosurv import Trees
from drosurv.cli.options import make_estimator, model_classes
from drosurv.datasets import load_flc
from drosurv.estimators import CoxPH, CoxPHCV, DROCox
from drosurv.estimators.persistence import load, read_saved_model
from drosurv.tables import TableEncoder
from drosurv.tables.target_columns import TargetColumns
from drosurv.workflows.saved_model import OpenedModel


def test_the_saved_model_is_the_one_python_fits(drosurv, data, target, tmp_path, patients):
    summary = drosurv.json(
        "fit", data, *target, "--model", "dro-cox", "--alpha", "0.4", "-o", tmp_path / "model"
    )
    y = TargetColumns("days", "status", "dead").parse(patients)
    X = patients.drop(columns=["id", "days", "status"])
    expected = make_pipeline(TableEncoder(), DROCox(alpha=0.4, recalibrate=True, random_state=0)).fit(X, y)
    loaded = load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict(patients), expected.predict(X), rtol=1e-10)
    assert summary["estimator"] == "DROCox"
    assert summary["parameters"]["alpha"] == 0.4
    assert summary["recalibration"] == pytest.approx(expected[-1].recalibration_, rel=1e-12)
    assert summary["patients"] == 400
    assert summary["events"] == y["event"].sum()
    assert summary["coefficients"] == pytest.approx(
        dict(zip(expected[-1].feature_names_in_, expected[-1].coef_, strict=True)), rel=1e-8
    )
    assert [row["column"] for row in summary["columns"]] == ["age", "kappa", "sex", "stage"]


def test_robust_models_are_recalibrated_by_default(drosurv, data, target, tmp_path, patients):
    robust = ("--model", "dro-cox", "--alpha", "0.4")
    told = drosurv.ok("fit", data, *target, *robust, "-o", tmp_path / "a").stdout
    stretched = load(tmp_path / "a")
    assert f"multiplied by {stretched[-1].recalibration_:.3g}" in told.replace("\n", " ")
    as_it_is = drosurv.json("fit", data, *target, *robust, "--no-recalibrate", "-o", tmp_path / "b")
    assert as_it_is["recalibration"] is None
    np.testing.assert_allclose(
        stretched.predict(patients), stretched[-1].recalibration_ * load(tmp_path / "b").predict(patients)
    )
    X, y = stretched[0].transform(patients), TargetColumns("days", "status", "dead").parse(patients)
    for name, common, others, expected in (
        ("cox", {}, {}, False),
        ("cox", {"recalibrate": True}, {}, True),
        ("dro-cox", {"alpha": 0.4}, {"recalibrate": False}, False),
        ("dro-cox", {"alpha": 1.0}, {}, False),
        ("dro-cox", {}, {"ball": "paper"}, False),
    ):
        found = make_estimator(name, common, others).fit(X, y)
        assert hasattr(found, "recalibration_") is expected


def test_a_fold_too_small_names_the_option(drosurv, data, target, tmp_path):
    options = ["--model", "subgroup-robust-cox", "--set", "min_group=38", "--recalibrate"]
    line = drosurv.fails("fit", data, *target, *options, "-o", tmp_path / "m")
    assert "or use --no-recalibrate" in line


@pytest.fixture(scope="module")
def default(drosurv, patients, target, tmp_path_factory):
    """What the default command shows, and its model."""
    folder = tmp_path_factory.mktemp("default")
    patients.to_csv(folder / "d.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "160")
        return drosurv.ok("fit", folder / "d.csv", *target, "-o", folder / "m"), folder / "m"


def test_the_user_is_told_what_was_done_to_which_column(default, patients):
    shown, model = default
    columns = shown.stdout.split("Plain Cox")[0]
    lines = {line.split()[0]: line for line in columns.splitlines() if line.strip()}
    assert "40" in lines["kappa"]
    assert f"the median {patients['kappa'].median():.6g}" in lines["kappa"]
    assert "indicators of 'II', 'III' against 'I'" in lines["stage"]
    assert "the most frequent level 'I'" in lines["stage"]
    assert "CoxPHCV trained on 400 patients with " in shown.stdout
    assert f"Saved to {model}." in shown.stdout.replace("\n", " ").replace("  ", " ")


def test_cross_validated_cox_is_the_default_and_plain_cox_is_shown_beside_it(default):
    model, told = default[1], default[0].stdout
    assert "CoxPHCV trained on 400 patients" in told
    assert "It is Cox regression with ridge and splines chosen by cross-validation" in told
    assert told.index("Plain Cox: 400 patients") < told.index("azards")
    assert type(load(model)[-1]) is CoxPHCV


def test_of_very_many_columns_the_first_are_told(drosurv, data, target, plain, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["drosurv.cli.fit"], "_MOST_SHOWN", 3)
    told = drosurv.ok("fit", data, *target, *plain, "-o", tmp_path / "m").stdout
    assert "What was done to each column (the first 3 of 4; --json has all)" in told
    columns = told.split("Plain Cox")[0]
    assert "sex " in columns
    assert "stage " not in columns


def test_the_report_marks_columns_that_are_mostly_filled_in(drosurv, target, tmp_path, patients):
    patients.assign(kappa=patients["kappa"].where(patients.index < 150)).to_csv(
        tmp_path / "d.csv", index=False
    )
    told = drosurv.ok("fit", tmp_path / "d.csv", *target, "--model", "cox", "-o", tmp_path / "model")
    assert "more than half of the values of 'kappa' are missing" in told.stderr
    assert "--drop" in told.stderr
    assert told.stdout.count("(most rows)") == 1


def test_a_network_and_any_parameter_can_be_asked_for(drosurv, data, target, tmp_path):
    options = [
        "--network",
        "mlp",
        "--set",
        "network__hidden=5,3",
        "--set",
        "network__max_iter=7",
        "--set",
        "ties=efron",
        "--seed",
        "4",
    ]
    parameters = drosurv.json("fit", data, *target, "--model", "cox", *options, "-o", tmp_path / "m")[
        "parameters"
    ]
    assert parameters["network"] == "MLP"
    assert parameters["network__hidden"] == [5, 3]
    assert parameters["network__max_iter"] == 7
    assert parameters["ties"] == "efron"
    assert parameters["random_state"] == 4
    assert type(load(tmp_path / "m")[-1]) is CoxPH


def test_trees_are_a_network_like_the_others(drosurv, data, patients, target, tmp_path):
    options = ["--model", "cox", "--network", "trees", "--set", "network__max_iter=5"]
    drosurv.ok("fit", data, *target, *options, "-o", tmp_path / "m")
    model = load(tmp_path / "m")
    assert model[-1].network == Trees(max_iter=5)
    assert len(np.unique(model.predict(patients))) > 3


def test_times_that_are_too_coarse_for_the_rule_of_ties_are_told(drosurv, patients, target, plain, tmp_path):
    # A third of all die at each of three visits; by Breslow's rule exp(-1/3 - 1/2 - 1) = 16 % are then alive.
    visits = patients["days"].rank(pct=True).mul(3).apply(np.ceil).astype(int)
    patients.assign(days=visits, status="dead").to_csv(tmp_path / "coarse.csv", index=False)
    told = drosurv.ok("fit", tmp_path / "coarse.csv", *target, *plain, "-o", tmp_path / "a").stderr
    assert "predicted survival is up to 16 percentage points too high. Pass --set ties='efron'." in told
    for options in ([*plain, "--set", "ties=efron"], ["--model", "discrete-time-hazard", "--no-recalibrate"]):
        silent = drosurv.ok("fit", tmp_path / "coarse.csv", *target, *options, "-o", tmp_path / "b").stderr
        assert "share a time" not in silent


def test_a_model_trained_with_groups_gets_them(drosurv, data, target, tmp_path):
    options = ["--model", "regularized-cox", "--set", "penalty=keya_group", "--set", "max_iter=5"]
    line = drosurv.fails("fit", data, *target, *options, "-o", tmp_path / "m")
    assert "--groups" in line
    drosurv.ok("fit", data, *target, *options, "--groups", "sex,age>60", "-o", tmp_path / "m")
    assert load(tmp_path / "m")[-1].penalty == "keya_group"


def test_held_out_patients_are_written_and_not_trained_on(drosurv, data, target, tmp_path, patients):
    test = tmp_path / "test.csv"
    plain = ("--model", "cox", "--hold-out", test, "-o", tmp_path / "m")
    summary = drosurv.json("fit", data, *target, *plain, "--hold-out-share", "0.2")
    assert summary["patients"] == 320
    assert summary["held_out"] == {"file": str(test), "patients": 80, "rows": 80}
    away = pd.read_csv(test)
    assert list(away.columns) == list(patients.columns)
    assert set(away["id"]) < set(patients["id"])
    assert f"  drosurv audit {tmp_path / 'm'} {test}\n" in drosurv.ok("fit", data, *target, *plain).stdout


def test_the_file_notes_the_target_and_no_patient(drosurv, model, patients):
    notes = read_saved_model(model).notes
    assert notes["target"] == {"time": "days", "event": "status", "event_value": "dead"}
    kept = {"target", "trained_on", "row_hashes", "warnings", "plain_cox"}
    assert set(notes) == kept
    y = TargetColumns("days", "status", "dead").parse(patients)
    plain = make_pipeline(TableEncoder(), CoxPH()).fit(patients.drop(columns=["id", "days", "status"]), y)
    opened = OpenedModel.open(model)
    features, times = opened.features(patients), plain[-1].unique_times_
    np.testing.assert_allclose(opened.plain_cox().coef_, plain[-1].coef_, rtol=1e-8)
    np.testing.assert_allclose(
        opened.plain_cox().predict_survival_function(features, times=times),
        plain[-1].predict_survival_function(features, times=times),
        atol=1e-8,
    )
    text = model.read_bytes().decode("latin-1")
    assert not any(identity in text for identity in patients["id"])


@pytest.mark.parametrize(("strata", "n_fits"), [((), 1), (("--strata", "sex"), 2)])
def test_plain_cox_is_not_trained_again_to_be_held_against_itself(
    drosurv, data, target, tmp_path, monkeypatch, strata, n_fits
):
    fits, fit = [], CoxPH.fit

    @wraps(fit)
    def counted(self, *args, **named):
        fits.append(self)
        return fit(self, *args, **named)

    monkeypatch.setattr(CoxPH, "fit", counted)
    drosurv.ok("fit", data, *target, "--model", "cox", *strata, "-o", tmp_path / "m")
    assert len(fits) == n_fits
    opened = OpenedModel.open(tmp_path / "m")
    assert np.array_equal(opened.plain_cox().coef_, opened.estimator.coef_) == (n_fits == 1)


def test_a_table_with_an_index_column_and_flc_as_it_comes(drosurv, tmp_path):
    flc = load_flc()
    frame = flc.X.assign(
        sex=np.where(flc.X["sex"] == 1, "M", "F"), futime=flc.y["time"], death=flc.y["event"]
    )
    frame = frame[::8].reset_index(drop=True)
    frame.to_csv(tmp_path / "flc.csv")
    summary = drosurv.json(
        *("fit", tmp_path / "flc.csv", "--time", "futime", "--event", "death", "--model", "cox"),
        *("-o", tmp_path / "m"),
    )
    told = {row["column"]: row["done"] for row in summary["columns"]}
    assert told["column 1"] == "not used: it numbers the rows"
    assert set(summary["coefficients"]) == {"age", "creatinine", "flc.grp", "kappa", "lambda", "sex=M"}
    assert load(tmp_path / "m").score(frame.assign(**{"column 1": 0}), flc.y[::8]) > 0.78
    assert (tmp_path / "m").stat().st_size < 30_000


def test_names_of_patients_are_not_taken_for_a_category(drosurv, patients, target, plain, tmp_path):
    patients.assign(name=patients["id"]).to_csv(tmp_path / "d.csv", index=False)
    given = ("fit", tmp_path / "d.csv", *target, *plain)
    found = drosurv.ok(*given, "-o", tmp_path / "m")
    assert "column 'name' holds names and is no feature" in found.stderr
    line = drosurv.fails(*given, "--groups", "name", "-o", tmp_path / "n")
    assert "holds names, which no page may show" in line


def test_a_kept_column_that_gives_the_outcome_away_is_warned_about(drosurv, patients, target, tmp_path):
    path = tmp_path / "d.csv"
    patients.assign(dead=np.where(patients["status"] == "dead", "x", "y")).to_csv(path, index=False)
    options = ("--set", "l2=0.1", "--keep-columns", "dead", "--json")
    result = drosurv.ok("fit", path, *target, "-o", tmp_path / "m", *options)
    assert "Warning: column 'dead' may give the outcome away" in result.stderr
    assert json.loads(result.stdout)["patients"] == 400


def test_the_null_model_can_be_saved_and_held_against(drosurv, data, target, tmp_path):
    found = drosurv.json("fit", data, *target, "--model", "null-model", "-o", tmp_path / "null")
    assert set(found["coefficients"].values()) == {0.0}
    drosurv.ok("predict", tmp_path / "null", data, "--times", "100")
    assert "network has no meaning for NullModel" in drosurv.fails(
        "fit", data, *target, "--model", "null-model", "--network", "mlp", "-o", tmp_path / "null"
    )


@pytest.mark.parametrize("mark", ["tab", "\\t"])
def test_a_tab_can_be_typed(drosurv, patients, target, tmp_path, mark):
    patients.to_csv(tmp_path / "d.tsv", index=False, sep="\t")
    test = tmp_path / "test.tsv"
    options = ["--model", "cox", "--separator", mark, "--hold-out", test, "-o", tmp_path / "m"]
    told = drosurv.ok("fit", tmp_path / "d.tsv", *target, *options).stdout
    assert f"drosurv audit {tmp_path / 'm'} {test} --separator tab\n" in told
    assert len(pd.read_csv(test, sep="\t").columns) == len(patients.columns)


@pytest.mark.sections("verdict", "method")
@pytest.mark.parametrize("held", [True, False])
def test_the_next_command_that_is_shown_works_as_it_stands(
    drosurv, patients, target, tmp_path, monkeypatch, held
):
    monkeypatch.chdir(tmp_path)
    # Of points, 999 may mean a missing value.
    frame = patients.head(200).assign(points=np.resize([*range(20), 999], 200))
    frame.loc[5, "days"] = np.nan
    frame.to_csv("d.csv", index=False, sep=";", decimal=",")
    marks = ["--separator", ";", "--decimal", ",", "--missing", "n/a,stage=IV"]
    marks += ["--drop-missing-target", "--numeric", "points"]
    paths = ["--hold-out", "held out.csv"] if held else []
    told = drosurv.ok("fit", "d.csv", *target, "--model", "cox", *marks, *paths, "-o", "m").stdout
    *_, why, command = told.splitlines()
    assert why == "Next, audit it:"
    program, *words = shlex.split(command)
    assert (program, words[0]) == ("drosurv", "audit")
    assert ("--folds" in words) is not held
    drosurv.ok(*words, "--no-rules")
    assert (tmp_path / "report.html").stat().st_size > 0


@pytest.mark.sections("verdict", "method")
def test_patients_held_out_of_a_workbook_are_audited_as_a_csv_file(
    drosurv, patients, target, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pd.ExcelWriter("book.xlsx") as book:
        patients.to_excel(book, sheet_name="First", index=False, startrow=2)
        patients.head(50).to_excel(book, sheet_name="Second", index=False)
    options = ("--sheet", "First", "--header-row", "3", "--model", "cox", "--hold-out", "test.csv", "-o", "m")
    *_, command = drosurv.ok("fit", "book.xlsx", *target, *options).stdout.splitlines()
    drosurv.ok(*shlex.split(command)[1:], "--no-rules")
    assert "were kept out of training" in drosurv.ok("fit", "book.xlsx", *target, *options).stderr
    *_, command = drosurv.ok("fit", "book.xlsx", *target, *options[:6], "-o", "m").stdout.splitlines()
    assert command.endswith("--sheet First --header-row 3")


def test_the_table_of_plain_cox_is_given(drosurv, data, target, tmp_path):
    found = drosurv.json("fit", data, *target, "--model", "cox", "-o", tmp_path / "m")
    assert found["estimator"] == "CoxPH"
    assert "proportional" in found["proportional_hazards"]
    rows = {row["covariate"]: row["coef"] for row in found["plain_cox"]}
    model = load(tmp_path / "m")
    np.testing.assert_allclose(list(rows.values()), model[-1].coef_ / model[0].scale_)


def test_parameters_of_networks_and_penalties_mean_cox(drosurv, data, target, tmp_path):
    assert drosurv.json("fit", data, *target, "--l2", "0.1", "-o", tmp_path / "m")["estimator"] == "CoxPH"
    options = ("--set", "splines=false", "--set", "l2s=0.01,0.1")
    found = drosurv.json("fit", data, *target, *options, "-o", tmp_path / "m")
    assert found["estimator"] == "CoxPHCV"
    assert found["parameters"]["l2s"] == [0.01, 0.1]


def test_an_existing_hold_out_file_is_kept_out_of_training_and_not_written(drosurv, data, target, tmp_path):
    test = tmp_path / "test.csv"
    options = ("--model", "cox", "--hold-out", test, "-o", tmp_path / "m")
    first = drosurv.json("fit", data, *target, *options)
    before = test.read_bytes()
    again = drosurv.ok("fit", data, *target, *options, "--seed", "5", "--json")
    assert f"100 rows of {data} are in {test} and were kept out of training" in again.stderr
    assert json.loads(again.stdout)["coefficients"] == first["coefficients"]
    assert test.read_bytes() == before
    whole = data.read_bytes()
    drosurv.fails("fit", data, *target, "--hold-out", data, "-o", tmp_path / "m")
    assert data.read_bytes() == whole
    (tmp_path / "other.csv").write_text("id,days,status\nx,1,dead\n")
    wrong = ("--hold-out", tmp_path / "other.csv", "-o", tmp_path / "m")
    assert "holds no patient of" in drosurv.fails("fit", data, *target, *wrong)
    (tmp_path / "copy.csv").write_bytes(whole)
    wrong = ("--hold-out", tmp_path / "copy.csv", "-o", tmp_path / "m")
    assert "holds every patient of" in drosurv.fails("fit", data, *target, *wrong)


def test_a_reference_level_can_be_chosen(drosurv, data, target, tmp_path):
    options = ("--model", "cox", "--reference", "sex=f,stage=III", "-o", tmp_path / "m")
    found = drosurv.json("fit", data, *target, *options)
    assert {"sex=m", "stage=I", "stage=II"} <= set(found["coefficients"])
    other = drosurv.json("fit", data, *target, "--model", "cox", "--reference", "sex=m", "-o", tmp_path / "m")
    by_column = [{row["covariate"]: row["coef"] for row in one["plain_cox"]} for one in (found, other)]
    assert by_column[0]["sex=m"] == pytest.approx(-by_column[1]["sex=f"], abs=1e-6)
    wrong = ("--reference", "sex=x", "-o", tmp_path / "m")
    assert "is not a level of column 'sex'" in drosurv.fails("fit", data, *target, *wrong)


def test_a_column_that_is_the_time_of_most_patients_stops_the_fit(drosurv, patients, target, tmp_path):
    seen = patients["days"].where(patients.index % 3 > 0, patients["days"] + 7)
    patients.assign(last_seen=seen).to_csv(tmp_path / "d.csv", index=False)
    line = drosurv.fails("fit", tmp_path / "d.csv", *target, "-o", tmp_path / "m")
    named = "column 'last_seen' may give the outcome away (it is the time in other units)"
    assert named in line
    assert "If a column is not known when a prediction is made, name it in --drop" in line
    told = drosurv.fails("repair", tmp_path / "d.csv", *target)
    assert named in told
    assert "keep_columns column 'lastseen' is not in the table" in drosurv.fails(
        "fit", tmp_path / "d.csv", *target, "--keep-columns", "lastseen", "-o", tmp_path / "m"
    ).replace("--keep-columns column", "keep_columns column")


def test_ids_are_remembered_and_written_with_predictions(drosurv, data, target, tmp_path, patients):
    target = [word for word in target if word not in ("--drop", "id")]
    drosurv.ok("fit", data, *target, "--id", "id", "--model", "cox", "-o", tmp_path / "m")
    drosurv.ok("predict", tmp_path / "m", data, "-o", tmp_path / "out.csv")
    assert pd.read_csv(tmp_path / "out.csv")["id"].tolist() == patients["id"].tolist()


def test_the_tables_are_captioned_plain_cox_and_cox_ph_cv_on_the_units_of_the_columns(
    drosurv, data, target, tmp_path, patients
):
    options = ("--set", "splines=3", "--set", "l2s=0.01,0.1")
    shown = drosurv.ok("fit", data, *target, *options, "-o", tmp_path / "m").stdout
    assert "Plain Cox: 400 patients" in shown
    assert "Saved model, CoxPHCV: effect of each column" in shown
    low, high = patients["age"].quantile([0.25, 0.75])
    assert f"{low:.4g} to {high:.4g}" in shown


def test_groups_that_a_model_does_not_train_with_go_to_the_next_command(
    drosurv, data, target, plain, tmp_path
):
    told = drosurv.ok("fit", data, *target, *plain, "--groups", "sex", "-o", tmp_path / "m")
    assert "not used to train" not in told.stderr
    assert "--folds 5 --groups sex" in told.stdout


def test_nobody_is_held_out_of_a_training_that_fails(drosurv, data, target, tmp_path):
    drosurv.fails(
        "fit", data, *target, "--l2", "-7", "--hold-out", tmp_path / "test.csv", "-o", tmp_path / "m"
    )
    assert not (tmp_path / "test.csv").exists()


@pytest.mark.parametrize("name", ["cox", "CoxPH", "cox-ph"])
def test_an_estimator_goes_by_its_plain_and_its_class_name(name):
    assert type(make_estimator(name, {}, {})) is CoxPH


# A model of causes takes another event column; see test_fit_observed.py.
@pytest.mark.parametrize("name", sorted(set(model_classes()) - {"causespecificcox"}))
def test_every_estimator_there_is_can_be_trained_saved_and_used(
    drosurv, patients, target, tmp_path, quick_base, name
):
    least = {"max_iter": 5, "max_conditions": 1, "n_trees": 2, "n_folds": 2, "network__max_iter": 5}
    least |= {"recalibrate": False, "folds": 3, "cv": 3}
    known = least.keys() & make_estimator(name, {}, {}).get_params().keys()
    known -= {"max_iter"} if "network__max_iter" in known else set()
    short = [word for one in sorted(known) for word in ("--set", f"{one}={least[one]}")]
    data = tmp_path / "d.csv"
    patients.drop(columns="stage").head(260).to_csv(data, index=False)
    held = ["--hold-out", tmp_path / "judges.csv", "--hold-out-share", "0.2", "-o", tmp_path / "m"]
    told = drosurv.ok("fit", data, *target, "--model", name, "--groups", "sex", *short, *held, "--json")
    assert "not used to train" not in told.stderr
    assert len(drosurv.json("predict", tmp_path / "m", data, "--times", "100")) == 260


def test_dependent_columns_are_named_when_the_model_is_fitted(drosurv, patients, tmp_path, target):
    table = patients.assign(months=patients["kappa"].fillna(0) * 2 + 1, kappa=patients["kappa"].fillna(0))
    table.to_csv(tmp_path / "dependent.csv", index=False)
    result = drosurv.ok("fit", tmp_path / "dependent.csv", *target, "--model", "cox", "-o", tmp_path / "m")
    assert "is a linear combination of" in result.stderr
