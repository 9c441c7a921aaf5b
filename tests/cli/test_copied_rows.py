"""Every command counts the rows of a table that are copies of another row, and says so."""

import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from drosurv.cli import app

TARGET = ("--time", "days", "--event", "died")


def run(*words):
    return CliRunner().invoke(app, [*map(str, words)])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A saved model; 200 other patients; the same with two copies, and with ids of the patients."""
    folder, rng = tmp_path_factory.mktemp("copies"), np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=400).round(3), "b": rng.normal(size=400).round(3)})
    time = rng.exponential(300 * np.exp(-table["a"])).round(1) + 0.1
    end = rng.uniform(50, 900, 400).round(1)
    table = table.assign(days=np.minimum(time, end), died=(time <= end).astype(int))
    start = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, 400), unit="D")
    table["admitted"] = start.strftime("%Y-%m-%d")
    table.iloc[:200].drop(columns="admitted").to_csv(folder / "train.csv", index=False)
    assert run("fit", folder / "train.csv", *TARGET, "--model", "cox", "-o", folder / "model").exit_code == 0
    copied = table.iloc[[*range(200, 400), 205, 230]]
    copied.drop(columns="admitted").to_csv(folder / "copied.csv", index=False)
    copied.to_csv(folder / "log.csv", index=False)
    copied.assign(patient=[f"p{row}" for row in copied.index]).to_csv(folder / "named.csv", index=False)
    return folder


COMMANDS = {
    "check": ("check", "copied.csv", *TARGET, "-o", "check.html"),
    "fit": ("fit", "copied.csv", *TARGET, "--model", "cox", "-o", "refitted"),
    "repair": ("repair", "copied.csv", *TARGET, "--model", "model", "-o", "repaired"),
    "evaluate": ("evaluate", "model", "copied.csv", *TARGET),
    "audit": ("audit", "model", "copied.csv", *TARGET, "-o", "audit.html"),
    "certify": ("certify", "model", "copied.csv", *TARGET),
    "monitor": ("monitor", "model", "log.csv", *TARGET, "--start", "admitted", "-o", "monitor.html"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_copies_of_rows_are_counted_and_said(files, command, monkeypatch, quick_check):
    monkeypatch.chdir(files)
    found = run(*COMMANDS[command])
    assert found.exit_code == 0, found.output
    said = " ".join(found.output.split())
    assert re.search(
        r"2 rows of (\w+\.csv|the training table) are copies of another row \(first: row 201 of row 6\)", said
    )


def test_copies_of_rows_of_the_same_patient_are_no_error_of_monitoring(files, monkeypatch):
    monkeypatch.chdir(files)
    words = (*TARGET, "--start", "admitted", "--id", "patient", "-o", "named.html")
    found = run("monitor", "model", "named.csv", *words)
    assert found.exit_code == 0, found.output
    assert "2 rows repeat the follow-up of another row of the same patient" in " ".join(found.output.split())
