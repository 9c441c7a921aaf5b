"""A table reads the same in Markdown and in LaTeX."""

import pytest

from drosurv.presentation import Table, Text, text
from experiments.paper.known_reasons import KNOWN_REASONS


@pytest.fixture
def table():
    rows = ((text("R&P"), text("0.5 (50%)")), (Text("F_∩", r"F$_{\cap}$"), text("–").bold().marked("a")))
    return Table.of_cells("Title, 100% of it", (text("method"), text("c_index")), rows, ("a: costs $5",))


def test_markdown_has_a_heading_a_rule_and_a_line_per_row(table):
    assert table.to_markdown(heading=True) == (
        "### Title, 100% of it\n\n"
        "| method | c_index |\n| --- | --- |\n| R&P | 0.5 (50%) |\n| F_∩ | **–** a |\n\n"
        "- a: costs $5\n"
    )


def test_latex_escapes_what_it_treats_specially(table):
    lines = table.to_latex().splitlines()
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
    assert r"| a\|b |" in Table.of_cells("t", (text("x"),), ((text("a|b"),),)).to_markdown()


def test_a_row_of_another_length_is_an_error():
    with pytest.raises(ValueError, match="has 1 cells for 2 columns"):
        Table.of_cells("t", (text("x"), text("y")), ((text("a"),),))
