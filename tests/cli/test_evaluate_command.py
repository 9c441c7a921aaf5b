import re

import pandas as pd
import pytest

from drosurv.datasets import make_hidden_minority
from drosurv.estimators import CoxPH
from drosurv.metrics import concordance_index, share_of_gain


@pytest.fixture
def held_out(fit_once, tmp_path):
    """A model, the patients kept away from it, and plain Cox on the same patients."""
    split = ("--hold-out", "{made}/test.csv", "--hold-out-share", "0.5")
    model = fit_once(tmp_path, "m", "--model", "dro-cox", "--alpha", "0.5", *split)
    return model, tmp_path / "test.csv", fit_once(tmp_path, "cox", "--model", "cox", *split)


@pytest.fixture
def scored(drosurv, held_out):
    """Target, groups and risks of the patients kept away."""
    model, test, plain = held_out
    frame = pd.read_csv(test)
    y = frame[["status", "days"]].assign(status=frame["status"] == "dead").to_records(index=False)
    risk, reference = (
        pd.DataFrame(drosurv.json("predict", path, test))["log_risk"].to_numpy() for path in (model, plain)
    )
    return y, frame, risk, reference


def number(found, metric, attribute="overall", group="all"):
    (row,) = (
        row
        for row in found["metrics"]
        if (row["metric"], row["attribute"]) == (metric, attribute) and group in (row["group"], row["kind"])
    )
    return row["value"]


def test_numbers_are_those_of_the_metrics_on_the_models_predictions(drosurv, held_out, scored, tmp_path):
    y, frame, risk, reference = scored
    groups, out = ("--groups", "sex,age>60"), tmp_path / "out.csv"
    found = drosurv.json("evaluate", *held_out[:2], *groups, "-o", out)
    assert number(found, "concordance_index") == pytest.approx(concordance_index(y, risk))
    assert number(found, "share_of_gain") == pytest.approx(share_of_gain(y, risk, reference), rel=1e-6)
    older, women = (frame["age"] > 60).to_numpy(), (frame["sex"] == "f").to_numpy()
    of_old, of_young = (concordance_index(y[part], risk[part]) for part in (older, ~older))
    gap = number(found, "concordance_index", "age>60", "gap")
    assert gap == pytest.approx(abs(of_old - of_young), abs=1e-9)
    assert number(found, "concordance_index", "sex", "f") == pytest.approx(
        concordance_index(y[women], risk[women])
    )
    # Every number goes into the file.
    table = pd.read_csv(out)
    assert {"attribute", "group", "metric", "value", "low", "high", "p"} <= set(table.columns)
    assert set(table["attribute"]) == {"overall", "sex", "age>60"}


def test_copied_rows_count_as_patients_unless_an_id_tells_that_they_are_one(drosurv, held_out, tmp_path):
    frame = pd.read_csv(held_out[1]).drop(columns="id")
    pd.concat([frame, frame.head(1)]).to_csv(tmp_path / "copied.csv", index=False)
    told = drosurv.ok("evaluate", held_out[0], tmp_path / "copied.csv")
    assert f"on {len(frame) + 1} patients of " in " ".join(told.stdout.split())
    assert "1 row of copied.csv is a copy of another row" in told.stderr
    named = pd.concat([frame, frame.head(1)]).assign(patient=[*range(len(frame)), 0])
    named.to_csv(tmp_path / "copied.csv", index=False)
    options = ("--id", "patient")
    told = drosurv.ok("evaluate", held_out[0], tmp_path / "copied.csv", *options)
    assert f"on {len(frame) + 1} rows of {len(frame)} patients of " in " ".join(told.stdout.split())
    assert re.search(rf"everybody\s+{len(frame)} ", told.stdout)
    assert "They have the same id too: remove them if they were entered twice" in told.stderr


def test_a_saved_reference_takes_the_place_of_plain_cox(drosurv, held_out):
    found = drosurv.json("evaluate", *held_out[:2], "--reference", held_out[0])
    assert number(found, "share_of_gain") == 1


def test_people_see_groups_gaps_and_a_summary(drosurv, held_out):
    output = drosurv.ok("evaluate", *held_out[:2], "--groups", "sex,age>60").stdout
    for words in (
        "DROCox on 200 patients",
        "everybody",
        "sex f",
        "sex m",
        "Between groups",
        "adjusted p",
        "share of the reference's likelihood gain",
    ):
        assert words in output
    # Written as everywhere else.
    assert re.search(r"0\.\d{3} \(0\.\d{3} to 0\.\d{3}\)", output)
    # A cut of a column is called what people call it.
    words = " ".join(output.split())
    assert "age over 60" in words
    assert "age 60 or below" in words
    assert "age>60" not in words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.head(1), "a single patient"),
        (lambda frame: frame[frame["status"] == "alive"], "event column 'status' holds no event"),
    ],
)
def test_a_table_that_cannot_judge_a_model_is_refused(drosurv, held_out, change, words):
    model, test, _ = held_out
    change(pd.read_csv(test)).to_csv(test, index=False)
    assert words in drosurv.fails("evaluate", model, test)


def test_a_table_without_events_cannot_judge_a_model(drosurv, held_out):
    model, test, _ = held_out
    pd.read_csv(test).assign(relapse=0).to_csv(test, index=False)
    assert "holds no event" in drosurv.fails("evaluate", model, test, "--event", "relapse")


def test_scoring_on_the_training_table_is_warned_about(drosurv, model, data, held_out):
    warning = "so these numbers are too good"
    assert warning in drosurv.ok("evaluate", model, data).stderr
    clean = drosurv.ok("evaluate", *held_out[:2])
    assert warning not in clean.stderr
    assert "the model was trained on 0 of 200 rows" in clean.stderr
    # Without groups the option is named, once.
    assert clean.stdout.count("no groups were given") == 1
    assert "sensitive_features" not in clean.stdout


def test_a_model_saved_in_python_needs_to_be_told_the_target(drosurv, tmp_path):
    data = make_hidden_minority(n_samples=200, random_state=0)
    CoxPH().fit(data.X, data.y).save(tmp_path / "m")
    data.X.assign(t=data.y["time"], e=data.y["event"]).to_csv(tmp_path / "d.csv", index=False)
    arguments = ["evaluate", tmp_path / "m", tmp_path / "d.csv"]
    assert "--time COLUMN and --event COLUMN" in drosurv.fails(*arguments)
    assert number(drosurv.json(*arguments, "--time", "t", "--event", "e"), "concordance_index") > 0.5
