"""Free text about patients stands in no message, on no page and in no file."""

import numpy as np
import pandas as pd
import pytest

SECRET = "Zwickau"


@pytest.fixture
def notes():
    """150 patients with comments: in a column of their own, among numbers, among times, and as a rare category."""
    rng = np.random.default_rng(0)
    n = 150
    age = rng.integers(40, 80, n)
    frame = pd.DataFrame(
        {
            "days": np.ceil(rng.exponential(900 * 2 ** ((60 - age) / 10))).astype(int),
            "died": rng.integers(0, 2, n),
            "age": age,
            "sex": rng.choice(["f", "m"], n),
            "creatinine": rng.normal(80, 20, n).round(1).astype(object),
            "comment": [f"moved to {SECRET} in {k}, see letter" for k in range(n)],
            "remark": [f"{SECRET} {k}" if k < 30 else None for k in range(n)],
            "ward": rng.choice(["north", "south"], n),
        }
    )
    frame.loc[4, "creatinine"] = f"lab of {SECRET}"
    frame.loc[[7, 8], "ward"] = f"north of {SECRET}"
    return frame


def told(result):
    return result.stdout + result.stderr


def test_check_quotes_no_free_text(drosurv, notes, tmp_path):
    days = notes["days"].astype(object).where(notes.index != 40, f"{SECRET} call")
    notes.assign(days=days).to_csv(tmp_path / "notes.csv", index=False)
    page = tmp_path / "page.html"
    given = ("check", tmp_path / "notes.csv", "--drop", "ward", "-o", page)
    assert SECRET not in drosurv.fails(*given)
    given = (*given, "--missing", "days=*")
    asked = drosurv.fails(*given)
    assert SECRET not in asked
    assert "pass --missing 'creatinine=*'" in asked
    given = (*given, "--missing", "creatinine=*")
    shown = told(drosurv.ok(*given))
    assert SECRET not in shown
    assert SECRET not in page.read_text(encoding="utf-8")
    assert SECRET not in told(drosurv.ok(*given, "--json"))
    assert "olumn 'remark' holds 30 different texts, most in fewer than 5 rows" in page.read_text(
        encoding="utf-8"
    ).replace("&#39;", "'")


@pytest.mark.parametrize(
    ("commands", "change"),
    [
        (
            ["fit"],
            {"days": lambda table: table["days"].astype(str).where(table.index != 5, f"{SECRET} call")},
        ),
        (["check", "fit"], {"died": lambda table: table["comment"]}),
        (
            ["check", "fit"],
            {"died": lambda table: table["died"].astype(str).where(table.index > 2, f"{SECRET} unclear")},
        ),
    ],
    ids=["a text among times", "texts as events", "a rare third event"],
)
def test_errors_quote_no_free_text(drosurv, notes, tmp_path, commands, change):
    notes.assign(**change).to_csv(tmp_path / "notes.csv", index=False)
    target = ("--time", "days", "--event", "died", "--drop", "comment,remark")
    for command in commands:
        result = drosurv(command, tmp_path / "notes.csv", *target, "-o", tmp_path / "out.html")
        assert result.exit_code == 2
        assert SECRET not in told(result)


def test_new_levels_are_counted_and_not_quoted(drosurv, notes, tmp_path):
    known = notes[~notes["ward"].str.contains(SECRET)].drop(columns=["comment", "remark"])
    known.drop(index=4).to_csv(tmp_path / "train.csv", index=False)
    target = ("--time", "days", "--event", "died", "--model", "cox")
    drosurv.ok("fit", tmp_path / "train.csv", *target, "-o", tmp_path / "m")
    notes.drop(index=4).drop(columns="comment").to_csv(tmp_path / "new.csv", index=False)
    result = drosurv.ok("predict", tmp_path / "m", tmp_path / "new.csv")
    assert "1 text, not seen in training" in result.stderr
    assert SECRET not in told(result)
