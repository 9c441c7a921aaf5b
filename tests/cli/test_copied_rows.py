"""Every command counts the rows of a table that are copies of another row, and says so."""

import re

import numpy as np
import pandas as pd
import pytest

from drosurv.errors import InputError
from drosurv.tables.problems import copied_rows

TARGET = ("--time", "days", "--event", "died")


@pytest.fixture(scope="module")
def files(drosurv, tmp_path_factory):
    """A saved model; 200 other patients; the same with two copies, and with ids of the patients."""
    folder, rng = tmp_path_factory.mktemp("copies"), np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=400).round(3), "b": rng.normal(size=400).round(3)})
    time = rng.exponential(300 * np.exp(-table["a"])).round(1) + 0.1
    end = rng.uniform(50, 900, 400).round(1)
    table = table.assign(days=np.minimum(time, end), died=(time <= end).astype(int))
    start = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, 400), unit="D")
    table["admitted"] = start.strftime("%Y-%m-%d")
    table.iloc[:200].drop(columns="admitted").to_csv(folder / "train.csv", index=False)
    drosurv.ok("fit", folder / "train.csv", *TARGET, "--model", "cox", "-o", folder / "model")
    copied = table.iloc[[*range(200, 400), 205, 230]]
    copied.drop(columns="admitted").to_csv(folder / "copied.csv", index=False)
    copied.to_csv(folder / "log.csv", index=False)
    copied.drop(columns="admitted").assign(survival_300=0.5).to_csv(folder / "made.csv", index=False)
    copied.assign(patient=[f"p{row}" for row in copied.index]).to_csv(folder / "named.csv", index=False)
    return folder


COMMANDS = {
    "check": ("check", "copied.csv", *TARGET, "-o", "check.html"),
    "fit": ("fit", "copied.csv", *TARGET, "--model", "cox", "-o", "refitted"),
    "repair": ("repair", "copied.csv", *TARGET, "--model", "model", "-o", "repaired"),
    "evaluate": ("evaluate", "model", "copied.csv", *TARGET),
    "audit": ("audit", "model", "copied.csv", *TARGET, "-o", "audit.html"),
    "audit of predictions": ("audit", "--predictions", "made.csv", *TARGET, "-o", "made.html"),
    "certify": ("certify", "model", "copied.csv", *TARGET),
    "predict": ("predict", "model", "copied.csv", "-o", "predicted.csv"),
    "monitor": ("monitor", "model", "log.csv", *TARGET, "--start", "admitted", "-o", "monitor.html"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_copies_of_rows_are_counted_and_said(drosurv, files, command, monkeypatch):
    """Each command is stopped with the warning, which saves the time of what follows it."""

    def stop(*given):
        for warning in copied_rows(*given):
            raise InputError(str(warning))
        return ()

    monkeypatch.setattr("drosurv.tables.problems.copied_rows", stop)
    monkeypatch.chdir(files)
    said = drosurv(*COMMANDS[command]).stderr
    assert re.search(
        r"2 rows of (\w+\.csv|the training table) are copies of another row \(first: row 201 of row 6\)", said
    )


def test_copies_of_rows_of_the_same_patient_are_no_error_of_monitoring(drosurv, files, monkeypatch):
    monkeypatch.chdir(files)
    words = (*TARGET, "--start", "admitted", "--id", "patient", "-o", "named.html")
    found = drosurv.ok("monitor", "model", "named.csv", *words)
    assert "2 rows repeat the follow-up of another row of the same patient" in " ".join(found.output.split())
