import re
from dataclasses import replace

import pytest
from jinja2 import Environment, PackageLoader

from drosurv.audit.charts.chart import Axis
from drosurv.audit.charts.forest import Strip, StripColumn, calibration_forests, group_forests

AXIS = Axis.over("", [0.0, 1.0], margin=0)


def drawn(strip, guide=0.1):
    """Class and style of what the page draws of a strip."""
    loader = PackageLoader("drosurv.audit")
    macros = Environment(loader=loader, autoescape=True).get_template("macros.html.jinja").module
    html = str(macros.strip(strip, StripColumn("", AXIS, guide)))
    return re.findall(r'<i class="(\w+)" style="([^"]*)"', html)


def test_a_strip_is_in_percent_of_its_axis():
    assert drawn(Strip("", "", 0.5, 0.25, 1.0)) == [
        ("guide", "left:10.0%"),
        ("reach", "left:25.0%;width:75.0%"),
        ("dot", "left:50.0%"),
    ]


def test_a_strip_without_values_draws_nothing_and_one_beyond_the_axis_no_dot():
    assert drawn(Strip("–")) == [("guide", "left:10.0%")]
    assert drawn(Strip("2", "", 2.0, 0.5, 3.0), None) == [("reach", "left:50.0%;width:50.0%")]


def test_groups_stand_under_their_attribute_and_the_worst_is_marked(report):
    forest = group_forests([model.tables["by_group"] for model in report.models])[0]
    assert [(name, [row["group"] for row, _ in rows]) for name, rows in forest.blocks] == [
        ("", ["all patients"]),
        ("age", [">65", "others"]),
    ]
    assert [row["worst"] for _, rows in forest.blocks for row, _ in rows] == [False, True, False]


def test_all_models_share_axes_and_small_groups_do_not_stretch_them(report):
    tables = [model.tables["by_group"] for model in report.models]
    first, *others = group_forests(tables)
    assert all(forest.measures[0].axis == first.measures[0].axis for forest in others)
    wild = {**tables[0].rows[2], "c_low": -9.0, "c_high": 9.0}
    stretched = replace(tables[0], rows=(*tables[0].rows[:2], wild))
    assert group_forests([stretched, *tables[1:]])[0].measures[0].axis == first.measures[0].axis


def test_the_guide_is_everyone_or_for_skill_zero(report):
    forest = group_forests([report.audited.tables["by_group"]])[0]
    assert [measure.guide for measure in forest.measures] == [
        report.audited.tables["by_group"].rows[0]["c_index"],
        0.0,
    ]


def test_calibration_is_predicted_less_observed_with_its_interval_turned_round(report):
    forest = calibration_forests([report.audited.tables["calibration"]], "days")[0]
    _, strips = forest.blocks[0][1][0]
    # At time 300: predicted .85, observed .82 (.79 to .85), so the difference is .03 (0 to .06).
    assert strips[0].text == "+3.0"
    assert strips[0][2:] == pytest.approx((3.0, 0.0, 6.0))


def test_nobody_is_called_served_worst_where_calibration_is_shown(report):
    forest = calibration_forests([report.audited.tables["calibration"]], "days")[0]
    assert not any(row.get("worst") for _, rows in forest.blocks for row, _ in rows)


@pytest.mark.parametrize(
    ("predicted", "text"), [(0.8204, "0.0"), (0.8196, "0.0"), (0.81, "−1.0"), (0.83, "+1.0")]
)
def test_a_difference_that_rounds_to_nothing_has_no_sign(report, predicted, text):
    (first, *others) = report.audited.tables["calibration"].rows
    table = replace(report.audited.tables["calibration"], rows=({**first, "predicted": predicted}, *others))
    _, strips = calibration_forests([table], "days")[0].blocks[0][1][0]
    assert strips[0].text == text
