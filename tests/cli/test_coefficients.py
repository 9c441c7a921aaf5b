"""The option --coefficients: a published score in audit, evaluate, certify and repair."""

import numpy as np
import pandas as pd
import pytest

from drosurv.tables.reading import Confirmation
from drosurv.workflows.saved_model import OpenedModel

pytestmark = pytest.mark.sections("verdict", "method")

TARGET = ("--time", "years", "--event", "event")
# Women's general cardiovascular risk in ten years: D'Agostino et al. (2008), Circulation 117.
FRAMINGHAM = """term,coefficient,center
log(age),2.32888
log(cholesterol),1.20904
log(hdl),-0.70833
log(sbp)*treated=0,2.76157
log(sbp)*treated=1,2.82263
smoker,0.52873
diabetes,0.69154
mean,,26.1931
baseline,10,0.95012
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The score, and simulated women who follow it, at twice its hazards in the south."""
    folder = tmp_path_factory.mktemp("score")
    (folder / "score.csv").write_text(FRAMINGHAM)
    rng = np.random.default_rng(0)
    n = 1000
    women = pd.DataFrame(
        {
            "age": rng.uniform(35, 74, n).round(),
            "cholesterol": rng.normal(215, 40, n).clip(110).round(),
            "hdl": rng.normal(57, 15, n).clip(20).round(),
            "sbp": rng.normal(126, 18, n).clip(85).round(),
            "treated": rng.integers(0, 2, n),
            "smoker": (rng.random(n) < 0.3).astype(int),
            "diabetes": (rng.random(n) < 0.04).astype(int),
            "site": rng.choice(["north", "south"], n),
        }
    )
    log_risk = (
        np.log(women[["age", "cholesterol", "hdl"]]) @ [2.32888, 1.20904, -0.70833]
        + np.log(women["sbp"]) * np.where(women["treated"] == 1, 2.82263, 2.76157)
        + women[["smoker", "diabetes"]] @ [0.52873, 0.69154]
    )
    hazard = -np.log(0.95012) / 10 * np.exp(log_risk - 26.1931) * np.where(women["site"] == "south", 2, 1)
    time, end = rng.exponential(size=n) / hazard, rng.uniform(8, 16, n)
    outcome = {"years": np.minimum(time, end), "event": (time <= end).astype(int)}
    women.assign(**outcome).to_csv(folder / "patients.csv", index=False)
    return folder


def test_every_command_takes_a_score(drosurv, files, tmp_path):
    given = ("--coefficients", files / "score.csv", files / "patients.csv", *TARGET)
    page = tmp_path / "report.html"
    shown = drosurv.ok("audit", *given, "--groups", "site", "--no-rules", "-o", page).stdout
    assert "The score gives survival at 10; nothing is known at other times" in shown
    assert "nothing is known at other times" in page.read_text()
    shown = drosurv.ok("evaluate", *given, "--groups", "site").stdout
    assert "PublishedCox on 1,000 patients" in shown
    assert "nothing is known at other times" in shown
    assert "events is wrong for site south" in shown
    shown = drosurv.ok("certify", *given, "--alpha", 0.3, "--replicates", 59).stdout
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
    assert "term 'log(age)' needs column 'age'" in line


def test_a_column_that_names_patients_defines_no_subgroup(files):
    frame = pd.read_csv(files / "patients.csv")
    # As in registers, numbers were given in an order that has to do with the outcome.
    frame["pid"] = 3 * frame["years"].rank(method="first").astype(int)
    opened = OpenedModel.of_score(files / "score.csv")
    table = opened.table(frame, time="years", event="event")
    with pytest.warns(Confirmation, match="not used, because it names patients or rows: pid"):
        found = opened.describing(table)
    assert sorted(found.columns) == sorted(set(frame.columns) - {"pid", "years", "event"})


@pytest.mark.parametrize("command", ["audit", "evaluate", "certify", "repair"])
def test_a_baseline_in_years_beside_times_in_days_is_asked_about(drosurv, files, tmp_path, command):
    frame = pd.read_csv(files / "patients.csv")
    frame.assign(days=(365.25 * frame["years"]).round(1)).drop(columns="years").to_csv(
        tmp_path / "d.csv", index=False
    )
    score = ("--coefficients", files / "score.csv")
    line = drosurv.fails(command, tmp_path / "d.csv", *score, "--time", "days", "--event", "event")
    assert "in which unit are the times of the baseline, 10?" in line
    assert "near it if they are years" in line
