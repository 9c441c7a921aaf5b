"""Competing causes in every command: codes or texts, one cause or any, models and tables of predictions."""

import numpy as np
import pandas as pd
import pytest

import drosurv as library
from drosurv import Surv

TIMES = ("3", "6", "9", "12", "18", "24")
TARGET = ("--time", "months", "--event", "cause")


@pytest.fixture(scope="module")
def files(tmp_path_factory, drosurv):
    """A model of two causes, other patients with causes as texts and as codes, and incidences predicted for them."""
    folder = tmp_path_factory.mktemp("causes")
    rng = np.random.default_rng(0)
    n = 1_200
    frame = pd.DataFrame(
        {
            "age": rng.normal(60, 9, n).round(),
            "sex": rng.choice(["f", "m"], n),
            "dose": rng.normal(size=n).round(2),
        }
    )
    first = 0.02 * np.exp(0.04 * (frame["age"] - 60))
    # Twice as frequent in half of the patients of the second half, who are not trained on.
    hidden = (np.arange(n) >= n // 2) & (frame["sex"] == "m")
    first = np.where(hidden, 2.5 * first, first)
    second = 0.015 * np.exp(0.3 * frame["dose"])
    T, C = rng.exponential(1 / (first + second)), rng.uniform(6, np.where(np.arange(n) < n // 2, 40, 30))
    code = np.where(T > C, 0, np.where(rng.random(n) < first / (first + second), 1, 2))
    frame = frame.assign(months=np.minimum(T, C).round(2) + 0.01, cause=code)
    texts = frame.assign(cause=np.array(["alive", "cancer", "other death"])[code])
    texts[: n // 2].to_csv(folder / "train.csv", index=False)
    texts[n // 2 :].to_csv(folder / "texts.csv", index=False)
    frame[n // 2 :].to_csv(folder / "codes.csv", index=False)
    drosurv.ok("fit", folder / "train.csv", *TARGET, "--model", "cause-specific-cox", "-o", folder / "model")
    drosurv.ok(
        "predict",
        folder / "model",
        folder / "texts.csv",
        "--times",
        ",".join(TIMES),
        "-o",
        folder / "made.csv",
    )
    made = pd.read_csv(folder / "made.csv")
    for name in ("texts", "codes"):
        outcome = pd.read_csv(folder / f"{name}.csv")
        pd.concat([outcome, made], axis=1).to_csv(folder / f"made_{name}.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def patients(files):
    table = pd.read_csv(files / "codes.csv")
    return table[["age", "sex", "dose"]], Surv.competing(table["cause"], table["months"])


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
    said = drosurv.fails(*given, "--cause", "fall", "-o", tmp_path / "m.html")
    assert "--cause must be one of 'cancer', 'other death', or its number, got 'fall'" in said
