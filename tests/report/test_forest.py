import re
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest
from jinja2 import Environment, PackageLoader

from drosurv.presentation import Column, Table, first_upper
from drosurv.report.charts import Axis, Strip, forest
from drosurv.report.report import with_code

AXIS = Axis.over("", [0.0, 1.0], margin=0)


@cache
def macros():
    environment = Environment(loader=PackageLoader("drosurv.report"), autoescape=True)
    environment.filters["with_code"] = with_code
    environment.filters["first_upper"] = first_upper
    return environment.get_template("macros.html.jinja").module


def drawn(value=None, low=None, high=None, guide=0.1):
    """Class and style of what the page draws of a row."""
    row = {"c": value, "c_low": low, "c_high": high}
    html = str(macros().strip(Strip(Column.measured("c", ""), AXIS, guide), row))
    return re.findall(r'<i class="(\w+)" style="([^"]*)"', html)


def test_a_strip_is_in_percent_of_its_axis():
    assert drawn(0.5, 0.25, 1.0) == [
        ("guide", "left:10.0%"),
        ("reach", "left:25.0%;width:75.0%"),
        ("dot", "left:50.0%"),
    ]


def test_a_strip_without_values_draws_nothing_and_one_beyond_the_axis_an_arrow():
    assert drawn() == [("guide", "left:10.0%")]
    assert drawn(2.0, 0.5, 3.0, guide=None) == [
        ("reach", "left:50.0%;width:50.0%"),
        ("beyond", "left:100.0%"),
    ]
    assert drawn(-2.0, guide=None) == [("beyond", "left:0.0%")]


def test_groups_are_under_their_attribute_with_their_findings(report):
    blocks = forest(report.tables["by_group"], {}).blocks
    assert [(name, [row["group"] for row in rows]) for name, rows in blocks] == [
        ("", ["all patients"]),
        ("age", [">65", "others"]),
    ]
    assert [row["finding"] for _, rows in blocks for row in rows] == ["", "predictions are wrong", ""]


def test_small_groups_do_not_stretch_an_axis(report):
    table = report.tables["by_group"]
    wild = {**table.rows[2], "ratio_low": -9.0, "ratio_high": 9.0}
    stretched = replace(table, rows=(*table.rows[:2], wild))
    assert forest(stretched, {}).strips[0].axis == forest(table, {}).strips[0].axis
    # If no group is judged, the axis covers all of them.
    unjudged = replace(stretched, rows=tuple(row | {"note": "few events"} for row in stretched.rows))
    axis = forest(unjudged, {}).strips[0].axis
    assert axis.low < -9.0 < 9.0 < axis.high


def test_marks_with_many_digits_are_few_enough_to_be_read():
    rows = [{"attribute": "", "c": 0.6525, "c_low": 0.6518, "c_high": 0.6545}]
    table = Table("t", "", (Column.measured("c", "c-index"),), tuple(rows))
    (strip,) = forest(table, {}).strips
    assert [tick.label for tick in strip.axis.ticks] == ["0.652", "0.654"]


@pytest.mark.parametrize(("low", "high"), [(-0.14, 0.13), (0.75, 1.3), (-0.07, 0.02), (0.3, 11.0)])
def test_labels_of_marks_do_not_overlap_in_a_narrow_column(low, high):
    rows = [{"attribute": "", "c": (low + high) / 2, "c_low": low, "c_high": high}]
    (strip,) = forest(Table("t", "", (Column.measured("c", "c-index"),), tuple(rows)), {}).strips
    # The column is at least 64 pixels wide; a letter has about 7.
    places = [(0.64 * strip.axis.percent(tick.value), 3.5 * len(tick.label)) for tick in strip.axis.ticks]
    assert places
    assert all(a + half < b - other for (a, half), (b, other) in pairwise(places))


def test_the_thin_line_is_at_what_a_right_model_gives_or_at_all_patients(report):
    table = report.tables["by_group"]
    strips = forest(table, {"gain": 0.0}).strips
    assert [strip.guide for strip in strips] == [table.rows[0]["ratio"], 0.0]
