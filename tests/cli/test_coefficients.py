"""The option --coefficients: a published score in audit, evaluate, certify and repair."""

import numpy as np
import pandas as pd
import pytest

TARGET = ("--time", "years", "--event", "chd")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("score")
    (folder / "score.csv").write_text(
        "term,coefficient,center\nage,0.06,60\nsex=male,0.4,\nbaseline,5,0.75\n"
    )
    rng = np.random.default_rng(0)
    n = 600
    age, sex = rng.normal(60, 8, n).round(), rng.choice(["male", "female"], n)
    hazard = -np.log(0.75) / 5 * np.exp(0.06 * (age - 60) + 0.4 * (sex == "male"))
    time, end = rng.exponential(size=n) / hazard, rng.uniform(3, 9, n)
    frame = pd.DataFrame({"age": age, "sex": sex, "site": rng.choice(["north", "south"], n)})
    frame.assign(years=np.minimum(time, end), chd=(time <= end).astype(int)).to_csv(
        folder / "patients.csv", index=False
    )
    return folder


def test_every_command_takes_a_score(drosurv, files, tmp_path):
    given = ("--coefficients", files / "score.csv", files / "patients.csv", *TARGET)
    page = tmp_path / "report.html"
    shown = drosurv.ok("audit", *given, "--groups", "sex", "--bootstrap", 4, "--no-rules", "-o", page).stdout
    assert "The score gives survival at 5; nothing is known at other times" in shown
    assert "nothing is known at other times" in page.read_text()
    shown = drosurv.ok("evaluate", *given, "--groups", "sex", "--bootstrap", 4).stdout
    assert "PublishedCox on 600 patients" in shown
    assert "nothing is known at other times" in shown
    shown = drosurv.ok("certify", *given, "--alpha", 0.3, "--replicates", 19).stdout
    assert "nothing is known at other times" in shown
    shown = drosurv.ok(
        "repair", *given[2:], *given[:2], "--max-conditions", 1, "-o", tmp_path / "model"
    ).stdout
    assert "PublishedCox" in shown


@pytest.mark.parametrize("command", ["audit", "evaluate", "certify"])
def test_a_score_takes_the_place_of_a_model(drosurv, files, command):
    score, table = files / "score.csv", files / "patients.csv"
    assert "takes the place of a saved model" in drosurv.fails(command, "--coefficients", score, table, table)
    assert "name a model and a table" in drosurv.fails(command, table)
    assert "is not a file" in drosurv.fails(command, "--coefficients", files / "none.csv", table, *TARGET)


def test_a_score_is_not_repaired_beside_a_model(drosurv, files):
    given = (
        "repair",
        files / "patients.csv",
        *TARGET,
        "--coefficients",
        files / "score.csv",
        "--model",
        "cox",
    )
    assert "--coefficients takes the place of --model" in drosurv.fails(*given)


def test_a_column_that_a_term_needs_is_named(drosurv, files, tmp_path):
    frame = pd.read_csv(files / "patients.csv").drop(columns="age")
    frame.to_csv(tmp_path / "less.csv", index=False)
    line = drosurv.fails("audit", "--coefficients", files / "score.csv", tmp_path / "less.csv", *TARGET)
    assert "term 'age' needs column 'age'" in line
