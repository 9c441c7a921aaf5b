import json

import numpy as np
import pandas as pd

from drosurv.cli.outputs import print_frame, print_json


def test_hostile_names_and_values_are_printed_literally(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    print_frame(pd.DataFrame({"[bold]name": ["[red]x[/red]", "<script>"], "b": ["\x1b[2J", None]}), "[title]")
    output = capsys.readouterr().out
    assert "[bold]name" in output
    assert "[red]x[/red]" in output
    assert "<script>" in output
    assert "[title]" in output
    assert "\x1b[2J" not in output


def test_numbers_have_few_digits_and_thousands(capsys):
    print_frame(pd.DataFrame({"n": [12345], "x": [0.123456], "nan": [np.nan], "list": [["a", "b"]]}))
    output = capsys.readouterr().out
    assert "12,345" in output
    assert "0.1235" in output
    assert "nan" not in output.splitlines()[-2]
    assert "a, b" in output


def test_no_word_is_cut_at_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    value = "0.971 (−0.826 to 1.137)"
    columns = ("group", "patients", "observed", "c-index", "predicted", "gain over no model", "slope")
    print_frame(pd.DataFrame([["age 40 or below", 712, 441, *[value] * 4]], columns=columns))
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    words = " ".join(lines).split()
    wanted = " ".join([*columns, "age 40 or below 712 441", *[value] * 4]).split()
    assert sorted(word for word in words if not word.startswith("─")) == sorted(wanted)


def test_json_is_strict(capsys):
    frame = pd.DataFrame({"a": [1, 2], "b": [np.nan, np.inf], "c": ["x", None], "d": [True, False]})
    print_json(
        {
            "rows": frame.to_dict("records"),
            "n": np.int64(3),
            "t": (1, np.float64(0.5)),
            "o": pd.Timestamp("2020"),
        }
    )
    assert json.loads(capsys.readouterr().out) == {
        "rows": [{"a": 1, "b": None, "c": "x", "d": True}, {"a": 2, "b": None, "c": None, "d": False}],
        "n": 3,
        "t": [1, 0.5],
        "o": "2020-01-01 00:00:00",
    }
