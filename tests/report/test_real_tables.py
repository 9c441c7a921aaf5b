"""Verdicts on real tables on which an earlier version was wrong, or contradicted itself."""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sksurv.datasets import load_aids
from sksurv.preprocessing import OneHotEncoder
from typer.testing import CliRunner

from drosurv import AcceleratedFailureTime, CoxPH, RepairedCox, Surv, evaluate
from drosurv.cli import app
from drosurv.datasets import load_nwtco
from drosurv.evaluation import Predictions
from drosurv.judging.verdict import PROBLEMS
from drosurv.report import audit
from drosurv.report.evidence import Evidence

FIXTURES = Path(__file__).parents[1] / "fixtures"


def audited(model, X, y, **options):
    with warnings.catch_warnings(action="ignore"):
        return audit(model, X, y, **{"search_rules": False, **options})


def coded(table):
    return pd.get_dummies(table, drop_first=True).astype(float).reset_index(drop=True)


def steps(report):
    return [s.text for s in report.parts["verdict"].statements if s.code == "next_step"]


@pytest.fixture(scope="module")
def wilms():
    """Wilms tumour study: features, outcomes, infants of at most 8 months, and a random half to train on."""
    data = load_nwtco()
    X = pd.DataFrame(data.X).fillna(0.0)
    infants = np.where(X["age"] <= 8, "yes", "no")
    return X, data.y, infants, np.random.default_rng(0).random(len(X)) < 0.5


@pytest.fixture(scope="module")
def wilms_folds(wilms, only_sections):
    X, y, infants, _ = wilms
    with only_sections("verdict", "groups", "method"):
        return audited(CoxPH(), X, y, sensitive_features={"infant": infants}, folds=2)


@pytest.fixture(scope="module")
def repaired(wilms):
    X, y, _, train = wilms
    with warnings.catch_warnings(action="ignore"):
        return RepairedCox(base=CoxPH(), max_conditions=1, random_state=0).fit(X[train], y[train])


@pytest.fixture(scope="module")
def rotterdam():
    """Breast cancer in Rotterdam: features, outcomes and the table."""
    table = pd.read_csv(FIXTURES / "rotterdam.csv.gz")
    X = coded(table.drop(columns=["year", "rtime", "recur", "dtime", "death"]))
    return X, Surv.from_arrays(table["death"] == 1, table["dtime"]), table


@pytest.fixture(scope="module")
def colon(only_sections):
    table = pd.read_csv(FIXTURES / "colon.csv.gz").dropna()
    held_out = np.random.default_rng(0).random(len(table)) < 0.4
    X, y = (
        coded(table.drop(columns=["status", "time"])),
        Surv.from_arrays(table["status"] == 1, table["time"]),
    )
    model = CoxPH().fit(X[~held_out], y[~held_out])
    sex = {"sex": table["sex"].to_numpy()[held_out]}
    with only_sections("verdict", "groups"):
        return audited(model, X[held_out].reset_index(drop=True), y[held_out], sensitive_features=sex)


@pytest.mark.sections("verdict", "missed")
def test_few_patients_without_an_event_give_no_red_verdict():
    """AIDS trial: of those with cd4 <= 62 and priorzdv > 46, nobody in the held-out quarter had an event."""
    X, y = load_aids()
    X = OneHotEncoder().fit_transform(X).astype(float)
    y = Surv.from_arrays(*(y[name] for name in y.dtype.names))
    held_out = np.random.default_rng(0).random(len(y)) < 0.25
    model = CoxPH(l2=0.01).fit(X[~held_out], y[~held_out])
    few = np.where((X["cd4"] <= 62) & (X["priorzdv"] > 46), "few cells", "others")[held_out]
    report = audited(
        model,
        X[held_out].reset_index(drop=True),
        y[held_out],
        sensitive_features={"cells": few},
        search_rules=True,
    )
    row = next(row for row in report.tables["groups"].rows if "few cells" in row["who"])
    assert row["finding"].startswith("not judged: fewer than")
    # All subgroups were searched.
    assert report.parts["missed"].facts["bounds"]["n_subgroups"] > 100
    assert report.parts["verdict"].facts["status"] not in PROBLEMS


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.sections("verdict")
def test_rows_that_a_repaired_model_was_trained_on_forbid_a_clear_verdict(tmp_path):
    """Colon cancer: the model was repaired on all patients, also the 133 that are audited."""
    patients = pd.read_csv(FIXTURES / "colon.csv.gz")[:400]
    patients.to_csv(tmp_path / "patients.csv", index=False)
    patients[1::3].to_csv(tmp_path / "test.csv", index=False)
    target = ["--time", "time", "--event", "status", "--model", "cox", "--max-conditions", "1"]
    run("repair", tmp_path / "patients.csv", *target, "-o", tmp_path / "repaired")
    options = ["--groups", "sex", "--no-rules", "-o", tmp_path / "page.html"]
    run("audit", tmp_path / "repaired", tmp_path / "test.csv", *options)
    summary = json.loads((tmp_path / "page.summary.json").read_text())
    assert summary["verdict"]["status"] == "data_problem"
    assert any("133" in w["text"] for w in summary["warnings"] if w["severity"] == "blocking")


@pytest.mark.sections("verdict", "patients")
def test_a_kept_column_is_named_below_the_verdict_and_does_not_decide_it(tmp_path):
    """Rotterdam: the time to relapse gives the time to death away, and the user said that it is known."""
    table = pd.read_csv(FIXTURES / "rotterdam.csv.gz")
    table = table.loc[::5, ["dtime", "death", "age", "nodes", "meno", "rtime"]]
    table.to_csv(tmp_path / "patients.csv", index=False)
    target = ["--time", "dtime", "--event", "death", "--model", "cox", "--keep-columns", "rtime"]
    test, page = tmp_path / "test.csv", tmp_path / "page.html"
    told = run("fit", tmp_path / "patients.csv", *target, "--hold-out", test, "-o", tmp_path / "model")
    assert "Warning: column 'rtime' may give the outcome away" in told
    run("audit", tmp_path / "model", test, "--groups", "meno", "--no-rules", "-o", page)
    summary = json.loads((tmp_path / "page.summary.json").read_text())
    (said,) = [warning for warning in summary["warnings"] if "rtime" in warning["text"]]
    assert said["severity"] == "note"
    assert said["text"].endswith("may give the outcome away; it is used as known when a prediction is made.")
    assert summary["verdict"]["status"] != "data_problem"
    top = page.read_text().split('id="patients"')[0]
    assert top.count("it is used as known when a prediction is made") == 1
    assert top.index("rtime") < top.index("What to do next")


def test_infants_lead_the_verdict_and_not_the_nine_tenths_of_lower_c_index(wilms_folds):
    """Wilms tumour: older children have the lowest c-index, infants the predictions that are furthest off."""
    facts = wilms_folds.parts["verdict"].facts
    rows = {row["group"]: row for row in wilms_folds.tables["by_group"].rows}
    assert rows["no"]["patients"] > 0.85 * 4028
    assert rows["no"]["c_index"] < rows["yes"]["c_index"]
    assert rows["yes"]["judged"]
    assert rows["yes"]["ratio"] > 1.8
    assert facts["status"] == "miscalibrated"
    assert facts["problems"][0]["who"] == "infant yes"


def shown_p_values(report):
    """Every p-value on the page, with the table, the row and the number."""
    for table in report.tables.values():
        for column in table.columns:
            if column.kind == "p" or column.key == "p":
                for row in table.rows:
                    if row.get(column.key) is not None:
                        yield table.key, row, row[column.key]


def test_every_p_value_on_the_page_is_adjusted_and_takes_part_in_the_verdict(rotterdam, monkeypatch):
    """Rotterdam: an imparity of p = 0.006 was shown beside a clear verdict. Of one grade ranks are at random."""
    X, y, table = rotterdam
    rng = np.random.default_rng(3)
    held_out = rng.random(len(y)) < 0.33
    model = CoxPH().fit(X[~held_out], y[~held_out])
    X, y, table = X[held_out].reset_index(drop=True), y[held_out], table[held_out].reset_index(drop=True)
    groups = {name: table[name].to_numpy() for name in ("meno", "grade", "chemo")}
    risk, times = model.predict(X), np.quantile(y["time"], np.linspace(0.05, 0.9, 40))
    # Remedies have no p-values.
    monkeypatch.setattr(Evidence, "repaired", None)
    two = np.flatnonzero(groups["grade"] == 2)
    risk[two] = rng.permutation(risk[two])
    baseline = -np.log(model.predict_survival_function(X, times=times)) / np.exp(model.predict(X))[:, None]
    said = Predictions(risk, np.exp(-np.exp(risk)[:, None] * baseline.mean(axis=0)), times)
    how = {"sensitive_features": groups}
    with warnings.catch_warnings(action="ignore"):
        report = audit(said, table[["age"]], y, **how)
        alone = evaluate(said, table[["age"]], y, **{**how})
    verdict = report.parts["verdict"].facts
    shown = list(shown_p_values(report))
    assert {key for key, *_ in shown} <= {"groups", "significant", "rescaled"}
    significant = [row for _, row, p in shown if p < 0.05]
    level = [p for p in verdict["problems"] if p["question"] in ("level", "subgroups")]
    assert bool(significant) == bool(level)
    assert ("slope", "grade = 2") in {(p["question"], p["who"]) for p in verdict["problems"]}
    assert f"all {alone.settings.n_tests} tests" in verdict["note"]
    alone = {(r.question, r.attribute, r.group): r for r in alone.findings.itertuples()}
    for row in verdict["findings"]:
        before = alone.get((row["question"], row["attribute"], row["group"]))
        if before is not None and row["p"] is not None and row["p"] < 1:
            # The search takes its quarter from everybody, who have three quarters without it.
            factor = 0.75 / 0.5 if row["attribute"] == "overall" else 1.0
            assert row["p"] == pytest.approx(factor * before.p, rel=1e-6)


@pytest.mark.sections("groups")
def test_hazards_that_are_not_proportional_are_named(wilms):
    X, y, infants, train = wilms
    model, rows = CoxPH().fit(X[train], y[train]), ~train
    report = audited(
        model, X[rows].reset_index(drop=True), y[rows], sensitive_features={"infant": infants[rows]}
    )
    said = [statement.text for statement in report.statements if statement.code == "hazards"]
    assert any("age" in text for text in said)


@pytest.mark.sections("method")
def test_accelerated_failure_times_say_that_proportional_hazards_were_not_tested(wilms):
    X, y, _, train = wilms
    model = AcceleratedFailureTime().fit(X[train][:400], y[train][:400])
    report = audited(model, X[~train][:300].reset_index(drop=True), y[~train][:300], sensitive_features=None)
    (said,) = [text for text in report.parts["method"].facts["missing"] if "roportional hazards" in text]
    assert said == "Proportional hazards were not tested: the model is not a Cox model."


def test_folds_say_that_proportional_hazards_were_not_tested(wilms_folds):
    (said,) = [text for text in wilms_folds.parts["method"].facts["missing"] if "roportional hazards" in text]
    assert "not tested" in said


def test_the_interval_that_decides_is_the_one_shown(colon):
    """Colon cancer: Brier skill was shown, and the likelihood gain judged."""
    unsure = {}
    shown = {row["who"]: row for row in colon.tables["groups"].rows}
    for row in colon.tables["by_group"].rows[1:]:
        same = shown[f"sex = {row['group']}"]
        for name in ("ratio_low", "ratio_high", "gain_low", "gain_high"):
            assert row[name] == same[name]
        limits = row["ratio_low"] <= 1 / 1.5 or row["ratio_high"] >= 1.5
        unsure[row["group"]] = row["gain_low"] <= 0 or (row["ratio_low"] <= 1 <= row["ratio_high"] and limits)
    # Of both groups, more patients are asked for without naming them.
    more = [step for step in steps(colon) if step.startswith("Audit again with more patients")]
    assert bool(more) == any(unsure.values())
    assert all("of sex" in step for step in more) == (sum(unsure.values()) == 1)
    # Both groups are large.
    assert not any("Collect" in step for step in steps(colon))
    assert not any("Brier" in str(column.label) for column in colon.tables["groups"].columns)
    # No other table has another interval of a judged number, or a p-value that is not adjusted.
    metrics = {row["metric"] for row in colon.tables["accuracy"].rows}
    assert not metrics & {"likelihood gain", "D-calibration p"}


@pytest.mark.sections("verdict", "groups")
def test_advice_does_not_contradict_the_repair(wilms, repaired):
    """Wilms tumour: the repair serves infants better, so that plain Cox is not advised afterwards."""
    X, y, infants, train = wilms
    (found,) = repaired.repairs_
    assert found.gain_inside.value > 0
    rows = ~train & ((infants == "yes") | (np.arange(len(y)) % 3 == 0))
    report = audited(
        repaired,
        X[rows].reset_index(drop=True),
        y[rows],
        sensitive_features={"infant": infants[rows]},
        reference=CoxPH().fit(X[train], y[train]),
    )
    shown = {row["group"]: row for row in report.tables["by_group"].rows}
    assert shown["yes"]["gain_over_reference"] > 0
    assert not any("plain Cox instead" in step or "Prefer plain Cox" in step for step in steps(report))
    assert not any("infant yes" in step and "infant no" in step for step in steps(report))
