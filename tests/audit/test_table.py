import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from drosurv.audit import Column, Table
from drosurv.audit.table import NOTHING, plain, written


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (0.12345, "value", "0.123"),
        (-0.12345, "value", "−0.123"),
        (-0.0001, "value", "0.000"),
        (-1.2345e40, "value", "−1.23e+40"),
        (0.12345, "share", "12.3 %"),
        (-0.0001, "share", "0.0 %"),
        (12345, "count", "12,345"),
        (0.00004, "p_value", "below 0.001"),
        (0.0412, "p_value", "0.041"),
        (1234.56, "time", "1,235"),
        (0.5, "time", "0.5"),
        (float("nan"), "value", NOTHING),
        (float("inf"), "share", NOTHING),
        (None, "count", NOTHING),
        ("<=65", "text", "<=65"),
    ],
)
def test_values_are_written_for_readers(value, kind, text):
    assert written(value, kind) == text


def test_an_interval_follows_its_value_and_is_left_out_when_unknown():
    column = Column("gap", "gap", "share", ("low", "high"))
    assert column.cell({"gap": 0.1, "low": 0.05, "high": 0.15}) == "10.0 % (5.0 to 15.0 %)"
    assert column.cell({"gap": 0.1, "low": None, "high": 0.15}) == "10.0 %"
    assert column.cell({}) == NOTHING


@pytest.mark.parametrize("missing", [None, float("nan"), float("-inf"), np.nan, pd.NA, pd.NaT])
def test_what_is_missing_becomes_none(missing):
    assert plain(missing) is None


def test_plain_values_survive_strict_json():
    values = [np.float64(0.1234567891), np.int64(3), np.bool_(True), (1, 2.0), {"a": np.nan}, pd.Timestamp(0)]
    assert json.loads(json.dumps(plain(values), allow_nan=False)) == [
        0.123457,
        3,
        True,
        [1, 2.0],
        {"a": None},
        "1970-01-01 00:00:00",
    ]


@pytest.fixture
def table():
    frame = pd.DataFrame(
        {"group": ["a", "b"], "c": [0.7, np.nan], "low": [0.6, np.nan], "high": [0.8, np.nan], "x": 1}
    )
    return Table.of(
        "groups", "Groups.", [Column("group", "Group"), Column("c", "c", "value", ("low", "high"))], frame
    )


def test_a_frame_becomes_rows_of_the_columns_named_and_comes_back(table):
    assert table.keys == ("group", "c", "low", "high")
    assert table.cells() == [["a", "0.700 (0.600 to 0.800)"], ["b", NOTHING]]
    assert table.to_frame()["group"].tolist() == ["a", "b"]
    assert table.to_dict()["rows"] == [["a", 0.7, 0.6, 0.8], ["b", None, None, None]]


def test_values_that_are_not_shown_are_still_in_files():
    table = Table("t", "T.", (Column("a", "A"),), ({"a": "x"}, {"a": "y", "hidden": 1}))
    assert table.to_dict() == {"caption": "T.", "columns": ["a", "hidden"], "rows": [["x", None], ["y", 1]]}


def test_csv_quotes_what_it_must_and_disarms_formulas():
    rows = (
        {"group": '=HYPERLINK("http://x")', "n": -3},
        {"group": 'a "b", c\nd', "n": 4},
        {"group": "-1", "n": None},
    )
    text = Table("t", "T.", (Column("group", "Group"), Column("n", "n", "count")), rows).to_csv()
    assert list(csv.reader(io.StringIO(text))) == [
        ["group", "n"],
        ['\'=HYPERLINK("http://x")', "-3"],
        ['a "b", c\nd', "4"],
        ["'-1", ""],
    ]
