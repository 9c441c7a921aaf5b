"""Competing causes in every command: codes or texts, one cause or any, models and tables of predictions."""

import re

import numpy as np
import pandas as pd
import pytest

import drosurv as library
from drosurv import Surv

pytestmark = pytest.mark.sections("verdict", "causes", "method")

TIMES = ("3", "12", "24")
# What a table calls its two causes, and the first of them in a sentence.
CALLED = {"texts": ("cancer", "other death", "'cancer'"), "codes": ("1", "2", "cause 1")}
TARGET = ("--time", "months", "--event", "cause")
COX = ("--model", "cause-specific-cox")
SIMPLE, FAST = ("--max-conditions", "1"), ("--no-rules",)


@pytest.fixture(scope="module")
def files(tmp_path_factory, drosurv):
    """A model of two causes, other patients with causes as texts and as codes, and incidences predicted for them."""
    folder = tmp_path_factory.mktemp("causes")
    rng = np.random.default_rng(0)
    n = 760
    frame = pd.DataFrame(
        {
            "age": rng.normal(60, 9, n).round(),
            "sex": rng.choice(["f", "m"], n),
            "dose": rng.normal(size=n).round(2),
        }
    )
    first = 0.02 * np.exp(0.04 * (frame["age"] - 60))
    # Four times as frequent in half of the patients of the second half, who are not trained on.
    hidden = (np.arange(n) >= n // 2) & (frame["sex"] == "m")
    first = np.where(hidden, 4 * first, first)
    second = 0.015 * np.exp(0.3 * frame["dose"])
    T, C = rng.exponential(1 / (first + second)), rng.uniform(6, np.where(np.arange(n) < n // 2, 40, 30))
    code = np.where(T > C, 0, np.where(rng.random(n) < first / (first + second), 1, 2))
    frame = frame.assign(months=(np.minimum(T, C) + 0.01).round(2), cause=code)
    texts = frame.assign(cause=np.array(["alive", "cancer", "other death"])[code])
    texts[: n // 2].to_csv(folder / "train.csv", index=False)
    texts[n // 2 :].to_csv(folder / "texts.csv", index=False)
    frame[n // 2 :].to_csv(folder / "codes.csv", index=False)
    fitted = drosurv.ok("fit", folder / "train.csv", *TARGET, *COX, "-o", folder / "model")
    (folder / "fit.txt").write_text(fitted.stdout)
    times = ("--times", ",".join(TIMES))
    drosurv.ok("predict", folder / "model", folder / "texts.csv", *times, "-o", folder / "made.csv")
    made = pd.read_csv(folder / "made.csv")
    for name in ("texts", "codes"):
        outcome, (first, second, _) = pd.read_csv(folder / f"{name}.csv"), CALLED[name]
        columns = made.columns.str.replace("cancer", first).str.replace("other death", second)
        pd.concat([outcome, made.set_axis(columns, axis=1)], axis=1).to_csv(
            folder / f"made_{name}.csv", index=False
        )
    return folder


@pytest.fixture(scope="module")
def patients(files):
    table = pd.read_csv(files / "codes.csv")
    return table[["age", "sex", "dose"]], Surv.competing(table["cause"], table["months"])


def test_causes_have_the_names_of_the_table_in_fit_summary_predict_and_evaluate(drosurv, files):
    shown = (files / "fit.txt").read_text()
    shown += drosurv.ok("summary", files / "model").stdout
    shown += drosurv.ok("summary", files / "model", "--cause", "other death").stdout
    shown += drosurv.ok("evaluate", files / "model", files / "texts.csv", "--cause", "2").stdout
    shown = " ".join(shown.split())
    for said in (
        "other death: dose",
        "events of 'cancer' and",
        "cancer dose ",
        "Other death, CauseSpecificCox: 380 patients",
        "cancer everybody",
        "Events are those of 'other death';",
    ):
        assert said in shown
    assert not re.search("cause [12]", shown, re.IGNORECASE)
    of_one = drosurv.json("summary", files / "model", "--cause", "cancer")
    assert {row["cause"] for row in of_one} == {"cancer"}
    assert "--cause must be one of 'cancer', 'other death', or its number" in drosurv.fails(
        "summary", files / "model", "--cause", "3"
    )
    made = pd.read_csv(files / "made.csv").columns
    assert made[:3].tolist() == ["log_risk_cancer", "log_risk_other death", "incidence_cancer_3"]


def test_fit_proposes_a_command_that_judges_one_cause(drosurv, files, tmp_path):
    model, held, page = (tmp_path / name for name in ("model", "test.csv", "page.html"))
    given = ("fit", files / "train.csv", *TARGET, "--model", "cause-specific-cox", "--groups", "sex")
    alone = drosurv.ok(*given, "-o", model).stdout
    assert f"drosurv audit {model} {files / 'train.csv'} --folds 5 --cause cancer --groups sex" in alone
    late = pd.read_csv(files / "train.csv").assign(since=0.001)
    late.to_csv(tmp_path / "late.csv", index=False)
    entered = drosurv.ok(given[0], tmp_path / "late.csv", *given[2:], "--entry", "since", "-o", model)
    assert "Next, fit it again with --hold-out test.csv" in entered.stdout
    following = drosurv.json(*given, "-o", model, "--hold-out", held)["next"]
    assert following == ["audit", str(model), str(held), "--cause", "cancer", "--groups", "sex"]
    assert "the event 'cancer'" in drosurv.ok(*following, "--no-rules", "-o", page).stdout


@pytest.mark.filterwarnings("ignore:half of the patients")
def test_monitor_counts_one_cause_by_name_or_number(drosurv, files, patients, tmp_path):
    X, y = patients
    log = pd.read_csv(files / "texts.csv").assign(admitted="2020-01-01")
    log.to_csv(tmp_path / "log.csv", index=False)
    given = ("monitor", files / "model", tmp_path / "log.csv", "--start", "admitted", *TARGET)
    found = [
        drosurv.json(*given, "--cause", cause, "-o", tmp_path / "m.html")["path"][-1]
        for cause in ("Cancer", "1")
    ]
    assert found[0] == found[1]
    assert found[0]["events"] == (y["cause"] == 1).sum()
    model = library.load(files / "model")
    expected = library.monitor(
        model, X, y, start=pd.Series(pd.Timestamp("2020-01-01"), X.index), cause=1, time_unit="months"
    )
    assert found[0]["expected"] == pytest.approx(expected.path["expected"].iloc[-1])
    page = (tmp_path / "m.html").read_text()
    assert "log.csv, cancer" in page
    assert f"with {found[0]['events']} events of &#39;cancer&#39;," in page
    said = drosurv.fails(*given, "--cause", "fall", "-o", tmp_path / "m.html")
    assert "--cause must be one of 'cancer', 'other death', or its number, got 'fall'" in said


def test_one_cause_of_a_saved_model_is_repaired(drosurv, files, patients, tmp_path):
    X, _ = patients
    given = ("repair", files / "texts.csv", *TARGET, "--model", files / "model", "--cause", "cancer", *SIMPLE)
    assert "events of 'cancer'." in drosurv.ok(*given, "-o", tmp_path / "repaired").stdout
    repaired = library.load(tmp_path / "repaired")
    assert repaired.repairs_
    assert repaired.cause == 1
    drosurv.ok(
        "predict", tmp_path / "repaired", files / "texts.csv", "--times", "12", "-o", tmp_path / "new.csv"
    )
    found = pd.read_csv(tmp_path / "new.csv")
    np.testing.assert_allclose(
        found["incidence_cancer_12"], repaired.predict_cumulative_incidence(X, [12.0])[:, 0]
    )
    np.testing.assert_allclose(found.filter(regex="incidence|survival").sum(axis=1), 1.0)
    before = pd.read_csv(files / "made.csv")["incidence_cancer_12"]
    male = X["sex"] == "m"
    ratio = found["incidence_cancer_12"] / before
    assert ratio[male].mean() > 1.4 * ratio[~male].mean()


def test_incidences_of_a_table_are_repaired_and_those_of_others_too(drosurv, files, patients, tmp_path):
    X, _ = patients
    made, (first, second, in_words) = files / "made_texts.csv", CALLED["texts"]
    given = (
        "repair",
        "--predictions",
        made,
        *TARGET,
        "--cause",
        "1",
        "--corrected",
        tmp_path / "corrected.csv",
        *SIMPLE,
    )
    said = drosurv.ok(*given, "-o", tmp_path / "repairs")
    assert f"read as incidences: of {in_words}, incidence_{first}_3 at 3 months" in said.stderr
    found, before = pd.read_csv(tmp_path / "corrected.csv"), pd.read_csv(made)
    male = X["sex"] == "m"
    ratio = found[f"incidence_{first}_12"] / before[f"incidence_{first}_12"]
    assert ratio[male].mean() > 1.4 * ratio[~male].mean()
    for time in TIMES:
        names = [f"incidence_{first}_{time}", f"incidence_{second}_{time}", f"survival_{time}"]
        np.testing.assert_allclose(found[names].sum(axis=1), 1.0)
    drosurv.ok("predict", tmp_path / "repairs", made, "-o", tmp_path / "again.csv")
    again = pd.read_csv(tmp_path / "again.csv")
    np.testing.assert_allclose(again[f"incidence_{second}_24"], found[f"incidence_{second}_24"])
    # Scores of a cause are predictions too, and define no subgroups.
    assert library.load(tmp_path / "repairs").feature_names_in_.tolist() == ["age", "sex", "dose"]


def test_a_repair_of_one_incidence_alone_is_refused(drosurv, files, tmp_path):
    made = pd.read_csv(files / "made_codes.csv")
    made[[name for name in made if "incidence_2" not in name]].to_csv(tmp_path / "alone.csv", index=False)
    given = ("repair", "--predictions", tmp_path / "alone.csv", *TARGET, "--cause", "1")
    assert "a repair of cause 1 needs predicted incidences of all 2 causes" in drosurv(*given).stderr


def test_subgroups_of_one_cause_are_bounded(drosurv, files, patients):
    X, y = patients
    given = ("certify", files / "model", files / "texts.csv", "--replicates", "99")
    found = drosurv.json(*given, "--cause", "cancer")
    model = library.load(files / "model")
    wanted = library.certify(model, X, y, cause=1, n_bootstrap=99)
    pd.testing.assert_frame_equal(pd.DataFrame(found["bounds"]), pd.DataFrame(wanted.to_dict()["bounds"]))
    assert "sex = m" in [row["group"] for row in found["significant"]]
    assert drosurv.json(*given, "--cause", "2")["significant"] == []
    assert "Events are those of 'cancer'." in drosurv.ok(*given, "--cause", "cancer").stdout
    assert "Events are those of any cause ('cancer' and 'other death')." in drosurv.ok(*given).stdout


def wards(path):
    """Return a table in which nobody of the nine patients of one ward died of cancer."""
    table = pd.read_csv(path)
    spared = pd.concat(
        [table[table["cause"] == cause][:size] for cause, size in (("alive", 5), ("other death", 4))]
    )
    return table.assign(ward=np.where(table.index.isin(spared.index), "south", "north"))


def test_levels_and_columns_that_separate_the_events_of_one_cause_are_named(drosurv, files, tmp_path):
    table = wards(files / "texts.csv")
    table["early"] = np.where(table["cause"] == "other death", 1.0, 0.0)
    table.to_csv(tmp_path / "wards.csv", index=False)
    given = (
        "fit",
        tmp_path / "wards.csv",
        *TARGET,
        "--model",
        "cause-specific-cox",
        "--keep-columns",
        "early",
    )
    said = " ".join(drosurv.ok(*given, "-o", tmp_path / "m").stderr.split())
    assert said.count("nobody with") == 1
    assert "nobody with ward=south (9 patients) had an event of 'cancer', so the model predicts" in said
    assert "early for 'other death': the coefficient is infinite" in said
    said = drosurv.ok(*given, "--l2", "0.1", "-o", tmp_path / "n").stderr
    assert "nobody with" not in said
    assert "infinite" not in said


def test_a_table_with_causes_is_checked_for_one_of_them(drosurv, files, patients, tmp_path):
    _, y = patients
    wards(files / "texts.csv").to_csv(tmp_path / "wards.csv", index=False)
    page, given = tmp_path / "page.html", ("check", tmp_path / "wards.csv", *TARGET, "--groups", "sex")
    asked = drosurv.fails(*given)
    assert "If 'cancer' and 'other death' are competing causes" in asked.replace(
        "'other death' and 'cancer'", "'cancer' and 'other death'"
    )
    assert "`drosurv check --cause " in asked
    said = drosurv.ok(*given, "--cause", "other death", "-o", page).stdout
    n = (y["cause"] == 2).sum()
    assert f"Table: 380 patients with {n} events of 'other death'" in said
    assert "The event is 'other death' of column 'cause'; 'cancer' competes with it." in said
    assert "Repair was not tried: with causes it needs a model of other patients" in " ".join(said.split())
    assert "Nobody with ward=south (9 patients) had an event of 'cancer': hazard" in " ".join(said.split())
    assert "--model cause-specific-cox" in said.splitlines()[-1]
    text = page.read_text()
    for heading in ("Cause by cause", "What was read", "What repair does"):
        assert heading in text
    found = drosurv.json(*given, "--cause", "other death", "-o", page, "--save", tmp_path / "model")
    assert (found["events"], found["cause"]) == (n, "other death")
    assert {row["cause"] for row in found["cox"]} == {"cancer", "other death"}
    assert library.load(tmp_path / "model")[-1].cause_names_ == ("cancer", "other death")
    late = pd.read_csv(files / "texts.csv").assign(since=0.001)
    late.to_csv(tmp_path / "late.csv", index=False)
    entered = ("check", tmp_path / "late.csv", *TARGET, "--entry", "since", "--cause", "cancer")
    assert "--cause cannot be used with --entry here" in drosurv.fails(*entered)


@pytest.mark.sections
def test_evaluate_and_audit_take_one_cause_of_a_model(drosurv, files, patients, tmp_path):
    X, y = patients
    given = (files / "model", files / "texts.csv", "--groups", "sex", "--cause", "cancer")
    found = drosurv.json("evaluate", *given)
    model = library.load(files / "model")
    wanted = library.evaluate(model, X, y, sensitive_features=X["sex"], cause=1)
    assert [row["ratio"] for row in found["groups"]] == pytest.approx(wanted.groups["ratio"].tolist())
    page = tmp_path / "r.md"
    shown = drosurv.ok("audit", *given, *FAST, "-o", page).stdout
    assert "sex m" in shown
    text = page.read_text()
    assert text.splitlines()[0].endswith(", cancer")
    assert "patients with " in text.splitlines()[2]
    assert "events of 'cancer'" in text.splitlines()[2]
    assert "had the event 'cancer'; the model expected" in text
    assert "The event is 'cancer'." in text
    assert "Cause 1" not in text
    assert "Cause by cause" in text
    assert "events of any cause" not in text


def test_tables_of_incidences_are_audited(drosurv, files, tmp_path):
    given = (*TARGET, "--groups", "sex", *FAST)
    for name, cause, said in (
        ("texts", "1", "Cause by cause"),
        ("codes", "any", "The event is an event of any cause."),
    ):
        made, page = tmp_path / f"made_{name}.csv", tmp_path / f"{name}_{cause}.md"
        pd.read_csv(files / made.name).head(200).to_csv(made, index=False)
        given_cause = ("audit", "--predictions", made, *given, "--cause", cause, "-o", page)
        assert "sex m" in drosurv.ok(*given_cause).stdout
        assert said in page.read_text()
    # One column alone, whose name says no cause, is the incidence of the cause that is named.
    table = pd.read_csv(files / "made_codes.csv").rename(columns={"incidence_1_12": "risk_12"})
    table.drop(columns=table.filter(regex="incidence|survival|log_risk").columns).to_csv(
        tmp_path / "one.csv", index=False
    )
    alone = ("audit", "--predictions", tmp_path / "one.csv", *given, "--cause", "1", "--threshold", "0.2")
    said = drosurv.ok(*alone, "-o", tmp_path / "one.md")
    assert "read as incidences: of cause 1, risk_12 at 12 months" in said.stderr
    assert "sex m" in said.stdout
