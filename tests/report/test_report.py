import json
import re
from types import SimpleNamespace

import pandas as pd
import pytest

from drosurv.judging.rules import Condition, Rule
from drosurv.judging.subgroup_bounds import SubgroupBounds
from drosurv.judging.verdict import FindingRow
from drosurv.presentation import literal
from drosurv.report.report import all_sections


def test_json_is_strict_and_holds_every_table(report):
    read = json.loads(report.to_json(), parse_constant=pytest.fail)
    assert read["model"] == report.model
    assert (
        set(read["tables"]) == set(report.tables) >= {"groups", "by_group", "survival", "significant", "data"}
    )
    assert read["sections"]["groups"]["statements"][0]["code"] == "worst_group"


def test_views_are_written_where_asked(report, tmp_path):
    for view in ("to_html", "to_markdown", "to_json", "to_summary"):
        path = tmp_path / view
        assert getattr(report, view)(path) == path.read_text(encoding="utf-8")


def test_markdown_has_every_section_and_its_numbers(report):
    text = report.to_markdown()
    for section in all_sections():
        assert (f"# {section.heading}\n" in text) == (section.key in report.parts)
    assert "# Limits\n" in text
    assert "| c-index | 0.750 (0.600 to 0.900) |" in text


def test_markdown_tables_keep_their_shape_whatever_the_values(report_with):
    text = report_with(name="a|b", label="c\n|d|").to_markdown()
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert any(r"a\|b" in table and r"c \|d\|" in table for table in tables)
    for table in tables:
        header, *rows = (re.split(r"(?<!\\)\|", line) for line in table.splitlines())
        assert len(rows) >= 2
        assert {len(row) for row in rows} == {len(header)}
        assert {row[-1] for row in rows} == {""}


def test_hostile_text_has_no_meaning_in_markdown(hostile):
    shown = literal(hostile)
    assert "<script" not in shown.replace("\\<", "")
    assert literal("a\n# b *c* [d](e)") == r"a \# b \*c\* \[d\](e)"


def test_subgroups_inside_a_wrong_group_are_found_by_their_conditions():
    """Not by the words of their rules: a label may hold " and "."""
    young, in_a = Condition("age", "<=", 60.0), Condition("site", "is", "a")
    odd = Condition("ward", "is", "east and site = a and west")
    rules = tuple(map(Rule, [(young, in_a), (in_a,), (young, odd), (young,)]))
    rows = pd.DataFrame({"group": list(map(str, rules))})
    found = [FindingRow("miscalibrated", "level", "site", "a", text="")]
    bounds = SimpleNamespace(rescaled=None, significant=rows, rules=rules)
    assert [rule for _, rule in SubgroupBounds.to_report(bounds, found)] == [rules[2], rules[3]]
