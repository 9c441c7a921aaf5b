"""Every message leads on: it names the columns, and what to do next is an option that the command has."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.sections("verdict", "method")

TARGET = ("--time", "months", "--event", "died")


@pytest.fixture
def table(tmp_path):
    """Columns of which no model can use one."""
    rng, n = np.random.default_rng(0), 120
    frame = pd.DataFrame(
        {
            "patient_id": range(n),
            "months": rng.exponential(20, n).round(1) + 0.1,
            "died": rng.integers(0, 2, n),
            "visit": pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d"),
            "comment": [f"text {i} of a patient" for i in range(n)],
            "country": "x",
        }
    )

    def written(**columns):
        frame.assign(**columns).to_csv(tmp_path / "table.csv", index=False)
        return tmp_path / "table.csv"

    return written


def test_without_features_each_column_is_named_with_the_reason(drosurv, table, tmp_path):
    line = drosurv.fails("check", table())
    assert "the table has no features" in line
    assert "column 'visit' holds dates" in line
    assert "column 'comment' holds 120 different texts" in line
    assert "column 'country' was left out: its only value is 'x'" in line
    path = table()
    told = drosurv("fit", path, *TARGET, "--drop", "visit,comment", "-o", tmp_path / "m")
    assert "so there are no features: 'country': its only value is 'x'." in told.stderr
    told = drosurv("fit", path, *TARGET, "--drop", "visit,comment,country", "-o", tmp_path / "m")
    for name in ("visit", "comment", "country", "patient_id"):
        assert f"column '{name}' is dropped" in told.stderr


@pytest.mark.parametrize("events", [1, 4])
def test_with_few_events_each_command_that_is_proposed_can_be_run(drosurv, table, tmp_path, events):
    rng = np.random.default_rng(1)
    path = table(died=np.arange(120) < events, age=rng.integers(40, 80, 120))
    assert "at least 20 are needed to check a model" in drosurv.fails("check", path)
    options = (*TARGET, "--drop", "visit,comment", "-o", tmp_path / "m")
    told = drosurv("fit", path, *options)
    if events == 1:
        (proposed,) = re.findall(r"drosurv fit (--model cox --l2 0\.1)`", told.stderr)
        assert drosurv.json("fit", path, *options, *proposed.split())["next"] is None
        return
    following = drosurv.json("fit", path, *options)["next"]
    assert following[following.index("--folds") + 1] == "4"
    assert "cv must" not in told.stderr


def test_the_commands_that_check_and_fit_propose_run_one_after_the_other(
    drosurv, patients, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    # 1 is the event among three codes: the command that follows has to say so.
    codes = np.where(patients["status"] == "dead", 1, np.where(patients.index % 5, 2, 3))
    patients.assign(status=codes).rename(columns={"days": "futime"}).head(200).to_csv("p.csv", index=False)
    options = ("--event-value", "1", "--time-unit", "days", "--save", "checked", "-o", "page.html")
    following = drosurv.json("check", "p.csv", *options)["next"]
    # The column does not say its unit: the page says what the user did, and so do commands that read the model.
    page = Path("page.html").read_text(encoding="utf-8")
    assert re.search(r"By [\d.,]+ days \([\d.]+ years\): of 100 patients", page)
    assert re.search(r"at [\d,]+ days", drosurv.ok("evaluate", "checked", "p.csv").stdout)
    assert following[following.index("--event-value") + 1] == "1"
    assert "--groups" in following
    trained = drosurv.json(*following)
    assert "--groups" in trained["next"]
    told = drosurv.ok(*trained["next"], "--no-rules")
    assert "sex" in told.stdout
