"""The guide on the life of a model says what its commands printed, and its tables are what they are said to be."""

import re
from pathlib import Path

import pandas as pd
import pytest

from experiments.studies import life_of_a_model as life

ROOT = Path(__file__).parents[3]
# What a command printed, and the words of the guide on it.
SAID = [
    ("plan", "factor of 1.154", "within a factor of 1.15"),
    ("plan", "power of 1 %", "with a power of 1 %"),
    ("plan", "factor of 1.817", "an error of 1.8 could not be excluded"),
    ("certify", "over no model (all patients: 0.113)", "0.113 against"),
    ("repair", "corrected for marker > 0.5", "a marker above 0.5"),
    (
        "repair",
        "'sex = m' is 0.34 there and 0.94",
        "men have 0.34 times the hazard of women (the truth is a third); elsewhere 0.94",
    ),
    ("certify", "No subgroup differs significantly", "No subgroup differs significantly, and"),
    ("certify", "none has more than 2.76 times", "none has more than 2.76 times the predicted events"),
    (
        "monitor",
        "Alarm on 2024-11-30, sex f: 309 events where",
        "In November 2024 there is an alarm for women",
    ),
    ("monitor", "1.41 times as many (1.11 to 1.75)", "they had 1.41 times the expected events"),
    (
        "monitor",
        "since 2022-04-30, 110 events where 63.4 were expected, 1.74",
        "women had 1.74 times the expected",
    ),
    ("monitor", "found on 2023-07-31, sex f", "it was found in July 2023"),
]


def words(path):
    return " ".join(path.read_text().split())


@pytest.mark.parametrize(("command", "printed", "said"), SAID)
def test_the_guide_says_what_was_printed(command, printed, said):
    assert printed in words(ROOT / life.STATIC / f"{command}.txt")
    assert said in words(ROOT / life.GUIDE)


def test_the_guide_goes_through_the_life_of_a_model_with_small_pictures(monkeypatch):
    monkeypatch.chdir(ROOT)
    names = [command[0] for command in life.commands()]
    assert names == ["plan", "check", "fit", "audit", "repair", "certify", "monitor"]
    shown = re.findall(r"_static/life_of_a_model/([\w.]+)", life.GUIDE.read_text())
    assert {Path(name).stem for name in shown} == set(names)
    assert {path.name for path in life.STATIC.iterdir()} >= set(shown)
    assert sum(path.stat().st_size for path in life.STATIC.iterdir()) < 400_000


def test_the_tables_hold_patients_and_dates_in_order(tmp_path):
    life.write_tables(tmp_path)
    patients, log = (pd.read_csv(tmp_path / name) for name in ("patients.csv", "log.csv"))
    assert len(patients) == life.TRAINED
    assert 0.45 < patients["died"].mean() < 0.55
    assert (log["last_seen"] >= log["admitted"]).all()
    assert log["last_seen"].max() <= "2024-12-31"


def test_what_was_promised_and_what_was_allowed_was_attained():
    plan, monitor = (pd.read_csv(ROOT / "docs" / f"{name}.csv") for name in ("plan", "monitor"))
    assert plan["quotient"].between(0.93, 1.07).all()
    right = monitor[monitor["patients"] == "right model"]
    assert (right.groupby("tolerance")["alarm"].max() == [1.8, 0.2]).all()
    changes = right.groupby("tolerance")["change"].agg(["min", "max"]).to_numpy().tolist()
    assert changes == [[5.2, 12.2], [0.2, 1.2]]
    found = monitor[monitor["tolerance"] == 1.1].set_index("setting")[["found", "years"]]
    shown = {"2 times": (100, 2.7), "1.5 times": (98.8, 5.0), "2 times in one of four groups": (80.6, 7.5)}
    later = {"2 times from year 5 on": (100, 1.2), "1.5 times from year 5 on": (87.0, 3.0)}
    for setting, numbers in (shown | later).items():
        assert tuple(found.loc[setting]) == numbers
