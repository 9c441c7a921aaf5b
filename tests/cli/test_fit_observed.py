"""Models fitted from the command line with entry times, strata, clusters and a bootstrap."""

import json

import numpy as np
import pandas as pd
import pytest

import drosurv as library
from drosurv import CoxPH, Surv
from drosurv.patients.target import with_fields
from drosurv.tables import TableEncoder

pytestmark = pytest.mark.sections("verdict", "method", "patients")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(0)
    n = 120
    age, sex = rng.normal(60, 10, n).round(1), rng.choice(["f", "m"], n)
    time = (rng.exponential(np.exp(-0.05 * (age - 60))) * 10).round(2) + 1
    table = pd.DataFrame({"age": age, "sex": sex, "months": time, "died": (rng.random(n) < 0.7).astype(int)})
    table = table.assign(
        since=(time / 2).round(2), hospital=rng.choice(["x", "y"], n), team=rng.integers(0, 20, n)
    )
    path = tmp_path_factory.mktemp("data") / "patients.csv"
    table.to_csv(path, index=False)
    return path, table


def fitted(drosurv, data, tmp_path, model, *options):
    target = ("--time", "months", "--event", "died", "--model", model, "-o", tmp_path / "model")
    drosurv.ok("fit", data[0], *target, *options)
    return data[1]


def test_columns_say_how_rows_were_observed(drosurv, data, tmp_path):
    options = ("--entry", "since", "--strata", "hospital", "--clusters", "team", "--drop", "sex")
    table = fitted(drosurv, data, tmp_path, "cox", *options)
    wanted = CoxPH().fit(
        table[["age"]],
        with_fields(
            Surv.from_dataframe("died", "months", table), entry=table["since"], clusters=table["team"]
        ),
        strata=table["hospital"],
    )
    found, shown = library.summary(library.load(tmp_path / "model")), ["coef", "se(coef)"]
    np.testing.assert_allclose(found.loc["age", shown], wanted.summary().loc["age", shown], rtol=1e-4)
    assert "sandwich" in drosurv.ok("summary", tmp_path / "model").stdout
    assert "toprule" in drosurv.ok("summary", tmp_path / "model", "--format", "latex").stdout
    assert "--format must be text" in drosurv.fails("summary", tmp_path / "model", "--format", "docx")


def test_copies_of_rows_are_clusters_only_if_an_id_names_their_patient(drosurv, data, tmp_path):
    table = data[1][["months", "died", "age", "sex"]]
    table = pd.concat([table, table.head(40)], ignore_index=True)
    path = tmp_path / "copied.csv"
    table.assign(who=[*range(120), *range(40)]).to_csv(path, index=False)
    y, encoder = Surv.from_dataframe("died", "months", table), TableEncoder()
    X = encoder.fit_transform(table[["age", "sex"]])
    named = ("--time", "months", "--event", "died")
    told = drosurv.ok("fit", path, *named, "--drop", "who", "--model", "cox", "-o", tmp_path / "m")
    checked = drosurv.json("check", path, *named, "--drop", "who", "-o", tmp_path / "page.html")
    fitted = drosurv.json("fit", path, *named, "--drop", "who", "-o", tmp_path / "m", "--force")
    wanted = CoxPH().fit(X, y).summary()["se(coef)"] / encoder.scale_
    for found in (checked["cox"], fitted["plain_cox"]):
        np.testing.assert_allclose([row["se(coef)"] for row in found], wanted, rtol=1e-6)
    sentence = "are copies of another row (first: row 121 of row 1). Each is counted as a patient."
    assert f"40 rows of the training table {sentence}" in " ".join(told.stderr.split())
    assert "pass --id COLUMN" in told.stderr
    assert any(f"40 rows of copied.csv {sentence}" in problem for problem in checked["problems"])
    assert "Standard errors from the observed information" in told.stdout
    wanted = (
        CoxPH().fit(X, with_fields(y, clusters=[*range(120), *range(40)])).summary()["se(coef)"]
        / encoder.scale_
    )
    told = drosurv.ok("fit", path, *named, "--id", "who", "--model", "cox", "-o", tmp_path / "m", "--force")
    assert "160 rows of 120 patients" in told.stdout
    assert "Robust standard errors (sandwich), because rows share an id or a cluster." in told.stdout
    found = library.summary(library.load(tmp_path / "m"))["se(coef)"]
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_a_bootstrap_goes_into_the_file(drosurv, data, tmp_path):
    how = ("--bootstrap", "5", "--drop", "since,hospital,team", "--no-recalibrate")
    fitted(drosurv, data, tmp_path, "dro-cox", *how, "--hold-out", tmp_path / "judges.csv")
    assert "5 refits" in drosurv.ok("summary", tmp_path / "model").stdout


def test_strata_and_entry_are_remembered_where_the_model_is_used(drosurv, data, tmp_path):
    options = ("--entry", "since", "--strata", "hospital", "--drop", "team", "--groups", "sex")
    table = fitted(drosurv, data, tmp_path, "cox", *options)
    model = library.load(tmp_path / "model")
    predicted = drosurv.ok("predict", tmp_path / "model", data[0], "--times", "5", "--json")
    found = json.loads(predicted.stdout)
    assert "hospital" not in predicted.stderr
    features = model[0].transform(table[["age", "sex"]])
    wanted = model[-1].predict_survival_function(features, times=[5.0], strata=table["hospital"].to_numpy())
    np.testing.assert_allclose([row["survival_5"] for row in found], wanted[:, 0])
    shown = drosurv.ok("evaluate", tmp_path / "model", data[0]).stdout
    assert "evaluated from their entry on" in shown
    bounds = drosurv.ok("certify", tmp_path / "model", data[0], "--replicates", "59", "--alpha", "0.3").stdout
    assert "judged from their entry on" in bounds
    report = tmp_path / "report.md"
    asked = ("--groups", "sex", "--no-rules", "-o", report)
    drosurv.ok("audit", tmp_path / "model", data[0], *asked)
    assert "evaluated from their entry on" in report.read_text()
    table.head(90).to_csv(tmp_path / "some.csv", index=False)
    refused = drosurv("audit", tmp_path / "model", tmp_path / "some.csv", "--train", data[0], "-o", report)
    assert "would be trained without entry: leave out --train" in refused.stderr
    drosurv.ok("audit", tmp_path / "model", data[0], "--folds", "3", *asked)
    assert "cross-fitted" in report.read_text()
    other = table.rename(columns={"hospital": "clinic"})
    other.to_csv(tmp_path / "other.csv", index=False)
    assert "'hospital'" in drosurv.fails(
        "predict", tmp_path / "model", tmp_path / "other.csv", "--times", "5"
    )
    named = ("--times", "5", "--strata", "clinic")
    told = drosurv.ok("predict", tmp_path / "model", tmp_path / "other.csv", *named).stderr
    assert "clinic" not in told


@pytest.mark.sections
def test_codes_of_causes_are_an_event(drosurv, data, tmp_path):
    path, table = data
    rng = np.random.default_rng(1)
    causes = table.assign(cause=np.where(table["died"] == 1, rng.integers(1, 3, len(table)), 0))
    causes.drop(columns=["died", "since", "hospital", "team"]).to_csv(tmp_path / "causes.csv", index=False)
    target = ("--time", "months", "--event", "cause", "--model", "cause-specific-cox")
    model, file = tmp_path / "model", tmp_path / "causes.csv"
    drosurv.ok("fit", file, *target, "-o", model)
    encoded = library.load(model)
    features = encoded[0].transform(causes[["age", "sex"]])
    wanted = library.CauseSpecificCox().fit(features, Surv.competing(causes["cause"], causes["months"]))
    np.testing.assert_allclose(encoded[1].coef_, wanted.coef_, rtol=1e-5)
    assert "Cause 2" in drosurv.ok("summary", model, "--cause", "2").stdout
    # Unless one is named, no cause is kept from the reader.
    every = drosurv.ok("summary", model).stdout
    assert every.index("Cause 1") < every.index("Cause 2")
    rows = drosurv.json("summary", model)
    assert [row["cause"] for row in rows] == [1, 1, 2, 2]
    np.testing.assert_allclose(
        [row["coef"] for row in rows[:2]], wanted.summary(1)["coef"] / encoded[0].scale_
    )
    assert "By cause, at " in drosurv.ok("evaluate", model, file).stdout
    bounds = drosurv.ok("certify", model, file, "--replicates", "59", "--alpha", "0.3").stdout
    assert "Events are those of any cause." in bounds
    row = json.loads(drosurv.ok("predict", model, file, "--times", "5", "--json").stdout)[0]
    assert row["incidence_1_5"] + row["incidence_2_5"] + row["survival_5"] == pytest.approx(1.0)
    causes.assign(cause=causes["cause"] * 2).to_csv(tmp_path / "gap.csv", index=False)
    assert "cause 1 of event column 'cause' never happens" in drosurv.fails(
        "fit", tmp_path / "gap.csv", *target, "-o", model
    )
    assert "none of which is known to mean censored" in drosurv.fails(
        "fit", path, "--time", "months", "--event", "sex", "--model", "cause-specific-cox", "-o", model
    )


def test_causes_may_be_texts(drosurv, data, tmp_path):
    _, table = data
    rng = np.random.default_rng(1)
    code = np.where(table["died"] == 1, rng.integers(1, 3, len(table)), 0)
    frame = table.drop(columns=["died", "since", "hospital", "team"])
    frame.assign(cause=code).to_csv(tmp_path / "codes.csv", index=False)
    named = frame.assign(cause=np.array(["alive", "cancer", "other death"])[code])
    named.to_csv(tmp_path / "texts.csv", index=False)
    target = ("--time", "months", "--event", "cause", "--model", "cause-specific-cox")
    models = [tmp_path / name for name in ("codes", "texts")]
    for model in models:
        told = drosurv.ok("fit", f"{model}.csv", *target, "-o", model).stderr
    assert "causes of event column 'cause': 1 is 'cancer' and 2 is 'other death'" in told
    first, second = (library.load(model)[1].coef_ for model in models)
    np.testing.assert_array_equal(first, second)
    rows = [drosurv.json("evaluate", model, f"{model}.csv")["by_cause"] for model in models]
    numbers = {"cancer": 1, "other death": 2}
    assert rows[0] == [row | {"cause": numbers[row["cause"]]} for row in rows[1]]
    named.head(60).replace("cancer", "fall").to_csv(tmp_path / "new.csv", index=False)
    assert "not one of 'cancer', 'other death'" in drosurv("evaluate", models[1], tmp_path / "new.csv").stderr


def test_several_rows_of_a_patient_train_a_model_and_are_judged_as_one(drosurv, data, tmp_path):
    _, table = data
    half = table.assign(patient=np.arange(len(table)), since=0.0).drop(columns=["hospital", "team"])
    cut = (half["months"] / 2).round(3)
    rows = pd.concat([half.assign(months=cut, died=0), half.assign(since=cut)], ignore_index=True)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    target = ("--time", "months", "--event", "died", "--entry", "since", "--id", "patient")
    drosurv.ok("fit", tmp_path / "rows.csv", *target, "--model", "cox", "-o", tmp_path / "model")
    assert library.load(tmp_path / "model")[-1].n_patients_ == len(table)
    shuffled = rows.assign(heart=1).sample(frac=1, random_state=0)
    shuffled.to_csv(tmp_path / "others.csv", index=False)
    half.assign(heart=1).to_csv(tmp_path / "first.csv", index=False)
    folded = (
        "audit",
        tmp_path / "model",
        tmp_path / "rows.csv",
        "--groups",
        "sex",
        "--folds",
        "3",
        "--no-rules",
    )
    shown = drosurv.ok(*folded, "-o", tmp_path / "folds.html").stdout
    assert f"With these {len(table):,} patients and {table['died'].sum():,} events" in shown
    assert "first row were used" not in shown
    older = rows.assign(age=rows["age"] + rows["since"], visit=np.arange(len(rows)))
    older.to_csv(tmp_path / "older.csv", index=False)
    audit = ("audit", tmp_path / "model", tmp_path / "older.csv", "--no-rules")
    told = "- 'age' changes over time: only the values of each patient's first row were used"
    assert told in drosurv.ok(*audit, "-o", tmp_path / "older.html").stdout
    asked = ("--json",)
    split = drosurv.ok("evaluate", tmp_path / "model", tmp_path / "others.csv", *asked)
    told = " ".join(split.stderr.split())
    assert f"The {len(rows):,} rows are of {len(table):,} patients" in told
    everybody = f"trained on {len(table):,} of {len(table):,} patients"
    assert everybody in told
    assert everybody in drosurv.ok("predict", tmp_path / "model", tmp_path / "others.csv").stderr
    whole = drosurv.ok("evaluate", tmp_path / "model", tmp_path / "first.csv", *asked)
    found, wanted = (
        {
            row["metric"]: row["value"]
            for row in json.loads(said.stdout)["metrics"]
            if row["kind"] == "overall"
        }
        for said in (split, whole)
    )
    assert found["concordance_index"] == pytest.approx(wanted["concordance_index"])
    assert found["brier_skill"] == pytest.approx(wanted["brier_skill"])


@pytest.fixture
def visits(tmp_path):
    """Patients whose score, centre and number of the visit change, and the same with the values of the first visit."""
    rng = np.random.default_rng(2)
    n = 150
    score, centre = rng.normal(size=n).round(2), rng.choice(["x", "y"], n)
    stop = (rng.exponential(np.exp(-0.7 * score)) + 0.2).round(3)
    first = pd.DataFrame({"id": np.arange(n), "start": 0.0, "stop": stop, "died": rng.random(n) < 0.8})
    first = first.assign(score=score, age=rng.integers(40, 80, n), centre=centre, visit=1, treated="no")
    cut = (stop / 2).round(3)
    later = {"score": score + 3, "centre": "z", "visit": 2, "treated": rng.choice(["no", "yes"], n)}
    known = pd.concat([first.assign(stop=cut, died=False), first.assign(start=cut)]).astype({"died": int})
    changing = pd.concat([known.iloc[:n], known.iloc[n:].assign(**later)])
    order, paths = rng.permutation(2 * n), (tmp_path / "changing.csv", tmp_path / "first.csv")
    for table, path in zip((changing, known), paths, strict=True):
        table.iloc[order].to_csv(path, index=False)
    return paths


ROWS = ("--time", "stop", "--event", "died", "--entry", "start", "--id", "id")


def test_models_are_trained_on_the_first_values_of_a_patient(drosurv, visits, tmp_path):
    paths, found = {}, {}
    for path in visits:
        file = paths[path] = tmp_path / f"{path.stem}.model"
        how = (*ROWS, "--model", "cox", "--strata", "centre", "--drop", "treated")
        told = drosurv.ok("fit", path, *how, "-o", file, "--hold-out", tmp_path / f"{path.stem}.held.csv")
        note = "'score', 'visit' and 'centre' change over time: only the values of each patient's first row are used"
        assert (note in " ".join(told.stderr.split())) == (path is visits[0])
        found[path] = told.stdout.replace(path.stem, "")
    assert len(set(found.values())) == 1
    models = [library.load(file)[-1] for file in paths.values()]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    # Files keep the rows as they were.
    held = pd.read_csv(tmp_path / "changing.held.csv")
    assert set(held["visit"]) == {1, 2}
    told = drosurv.ok("evaluate", paths[visits[0]], visits[0]).stderr
    assert "was trained on 112 of 150 patients" in " ".join(told.split())
    # Later values, which no prediction uses, may be far from those of training.
    far = pd.read_csv(visits[0])
    far.loc[far["start"] > 0, "score"] = 500
    far.to_csv(tmp_path / "far.csv", index=False)
    assert "in training its mean" not in drosurv.ok("evaluate", paths[visits[0]], tmp_path / "far.csv").stderr
    assert "was trained on 0 of 38 patients" in " ".join(
        drosurv.ok("evaluate", paths[visits[0]], tmp_path / "changing.held.csv").stderr.split()
    )


def test_repairs_and_repaired_models_are_of_first_values(drosurv, visits, tmp_path):
    drosurv.ok("fit", visits[1], *ROWS, "--model", "cox", "--drop", "centre,treated", "-o", tmp_path / "cox")
    for model in ("cox", tmp_path / "cox"):
        how = (*ROWS, "--drop", "centre,treated", "--model", model)
        found, wanted = (drosurv.json("repair", path, *how) for path in visits)
        assert found == wanted


@pytest.fixture
def checked(drosurv, visits, tmp_path):
    """What a check says of patients whose columns change."""
    return drosurv.json("check", visits[0], *ROWS, "--groups", "centre", "-o", tmp_path / "changing.html")


def test_a_check_is_of_first_values_and_leaves_out_what_is_the_same_in_all_of_them(
    drosurv, visits, checked, tmp_path
):
    found = checked
    wanted = drosurv.json("check", visits[1], *ROWS, "--groups", "centre", "-o", tmp_path / "first.html")
    for part in ("cox", "repair", "proportional_hazards"):
        assert found[part] == wanted[part]
    assert found["report"]["tables"] == wanted["report"]["tables"]
    for name, value in {"visit": "1", "treated": "no"}.items():
        text = f"column {name!r} was left out: its only value is {value!r} in each patient's first row."
        assert text in found["problems"]
    page = (tmp_path / "changing.html").read_text()
    used = "change over time: only the values of each patient&#x27;s first row were used to train, to predict"
    assert used in page or used.replace("&#x27;", "'") in page
    assert "with the value of each patient's first row, with" not in page
    assert "of columns that change over time, with the value of each patient's first row" in page
