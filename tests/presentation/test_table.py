import json

import numpy as np
import pandas as pd
import pytest

from drosurv.presentation import NOTHING, Column, Table, Text, aligned, plain, text
from experiments.cells import bold, marked, table_of_cells
from experiments.paper.known_reasons import KNOWN_REASONS


def test_json_knows_no_number_that_is_not_finite():
    row = {"group": "a", "c": np.float64(0.7), "low": float("nan"), "high": float("inf")}
    columns = (Column("group", "group"), Column("c", "c-index", "value", ("low", "high")))
    table = Table("by_group", "Groups", columns, (row,))
    assert json.loads(json.dumps(table.to_dict(), allow_nan=False))["rows"] == [["a", 0.7, None, None]]


def test_an_interval_follows_its_value_and_is_left_out_when_unknown():
    column = Column("gap", "gap", "share", ("low", "high"))
    assert column.cell({"gap": 0.1, "low": 0.05, "high": 0.15}) == "10.0 % (5.0 to 15.0 %)"
    assert column.cell({"gap": 0.1, "low": None, "high": 0.15}) == "10.0 %"
    assert column.cell({}) == NOTHING


def test_a_value_above_its_interval_has_the_same_decimals():
    row = {"gain": 0.00244, "gain_low": -0.006, "gain_high": 0.011}
    column = Column.measured("gain", "Gain")
    assert (column.value(row), column.interval_of(row)) == ("0.002", "−0.006 to 0.011")
    assert column.cell(row) == "0.002 (−0.006 to 0.011)"


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


def test_markdown_is_below_its_caption_with_numbers_to_the_right(table):
    assert table.to_markdown() == (
        "Groups.\n\n| Group | c |\n| --- | ---: |\n| a | 0.700 (0.600 to 0.800) |\n| b | – |\n"
    )


def test_hostile_cells_mean_nothing_in_any_view():
    hostile = "<b>|*x*\n&"
    table = Table("t", hostile, (Column("a", hostile),), ({"a": hostile},), (hostile,))
    assert "<b>" not in table.to_html()
    assert table.to_markdown().count("\n| ") == 3
    assert r"\textless{}b\textgreater{}" in table.to_latex()
    assert table.to_text().splitlines()[-1] == "&"


def test_plain_text_is_set_in_columns_of_equal_width():
    columns = (Column("who", "Who"), Column("n", "Patients", "count"))
    table = Table("t", "", columns, ({"who": "all", "n": 1234}, {"who": "old men", "n": 7}))
    assert table.to_text().splitlines() == ["Who      Patients", "all         1,234", "old men         7"]


@pytest.fixture
def of_cells():
    rows = ((text("R&P"), text("0.5 (50%)")), (Text("F_∩", r"F$_{\cap}$"), marked(bold(text("–")), "a")))
    return table_of_cells("Title, 100% of it", (text("method"), text("c_index")), rows, ("a: costs $5",))


def test_markdown_has_a_heading_a_rule_and_a_line_per_row(of_cells):
    assert of_cells.to_markdown(heading=True) == (
        "### Title, 100% of it\n\n"
        "| method | c_index |\n| --- | --- |\n| R&P | 0.5 (50%) |\n| F_∩ | **–** a |\n\n"
        "- a: costs $5\n"
    )


def test_latex_escapes_what_it_treats_specially(of_cells):
    lines = of_cells.to_latex().splitlines()
    assert r"\caption{Title, 100\% of it}" in lines
    assert r"method & c\_index \\ \midrule" in lines
    assert r"R\&P & 0.5 (50\%) \\" in lines
    assert r"F$_{\cap}$ & \textbf{--}\textsuperscript{a} \\" in lines
    assert r"\par\smallskip a: costs \$5" in lines


def test_signs_that_latex_prints_otherwise_or_not_at_all_survive():
    assert text("c < 1 > 0").latex == r"c \textless{} 1 \textgreater{} 0"
    assert text("F_∩").latex == r"F\_$\cap$"


def test_every_known_reason_can_be_set_in_latex():
    for reason in KNOWN_REASONS:
        assert text(reason.text).latex.isascii(), reason.code


def test_a_backslash_is_escaped_once():
    assert text("a\\{b").latex == r"a\textbackslash{}\{b"


def test_a_bar_in_a_cell_does_not_end_it():
    assert r"| a\|b |" in table_of_cells("t", (text("x"),), ((text("a|b"),),)).to_markdown()


def test_a_row_of_another_length_is_an_error():
    with pytest.raises(ValueError, match="has 1 cells for 2 columns"):
        table_of_cells("t", (text("x"), text("y")), ((text("a"),),))


def test_aligned_columns_have_one_number_of_decimals_also_in_their_intervals():
    rows = (
        {"gain": 0.00099, "gain_low": -0.00725, "gain_high": 0.00923},
        {"gain": -0.001, "gain_low": -0.2, "gain_high": 0.1},
        {"gain": 1500.0, "gain_low": None, "gain_high": None},
    )
    (column,) = aligned([Column.measured("gain", "Gain")], rows)
    shown = [column.cell(row) for row in rows]
    assert shown == ["0.001 (−0.007 to 0.009)", "−0.001 (−0.200 to 0.100)", "1,500"]


def test_a_column_of_ratios_shows_on_which_side_of_1_an_end_is():
    column = Column.measured("ratio", "Observed / expected", right=1.0)
    row = {"ratio": 1.14, "ratio_low": 0.9997, "ratio_high": 1.3}
    assert column.cell(row) == "1.140 (0.9997 to 1.300)"
