import re

from drosurv.presentation import Table
from drosurv.report.charts import Axis, Frame
from drosurv.report.sections.calibration_sections import charts_over_time

FRAME = Frame(Axis.over("", [0, 10], margin=0), Axis.over("", [0, 1], margin=0), 110, 120, 5, 5, 10, 10)


def places(path):
    return [(pen, float(x), float(y)) for pen, x, y in re.findall(r"([ML])([\d.]+) ([\d.]+)", path)]


def test_a_frame_puts_values_between_its_margins():
    assert (FRAME.across(0), FRAME.across(10)) == (5, 105)
    assert (FRAME.down(0), FRAME.down(1)) == (110, 10)


def test_a_line_breaks_where_a_value_is_not_known():
    assert places(FRAME.line([(0, 0), (1, None), (2, 1), (10, 0)])) == [
        ("M", 5, 110),
        ("M", 25, 10),
        ("L", 105, 110),
    ]


def test_a_band_goes_out_along_the_top_and_back_along_the_bottom():
    band = FRAME.band([(0, 0, 1), (10, 0.5, 0.5), (10, None, 1)])
    assert places(band) == [("M", 5, 10), ("L", 105, 60), ("L", 105, 60), ("L", 5, 110)]
    assert band.endswith("Z")
    assert FRAME.band([(0, 0, 1)]) == ""


def test_a_chart_is_called_as_sentences_call_its_group():
    row = {"time": 1.0, "predicted": 0.9, "observed": 0.8, "low": 0.7, "high": 0.9}
    groups = [("", "all patients"), ("stage", "2"), ("age", "over 65")]
    rows = tuple({**row, "attribute": attribute, "group": group} for attribute, group in groups)
    charts = charts_over_time(Table("survival", "", (), rows), "days")
    assert [chart.title for chart in charts] == ["all patients", "stage = 2", "age over 65"]


def test_predictions_at_few_times_are_dots_beside_what_was_observed():
    row = {"attribute": "", "group": "all patients", "low": 0.7, "high": 0.9}
    rows = [row | {"time": time, "predicted": 0.9, "observed": 0.8} for time in (0.0, 1.0, 2.0)]
    rows[2] |= {"observed": None, "low": None, "high": None}
    (chart,) = charts_over_time(Table("survival", "", (), tuple(rows)), "years", dots=True)
    assert (chart.lines, chart.bands) == ((), ())
    assert [(mark.x, mark.y, mark.role, list(mark.reach)) for mark in chart.marks] == [
        (1.0, 0.8, "part observed", [[(1.0, 0.7), (1.0, 0.9)]]),
        (1.0, 0.9, "model", []),
        (2.0, 0.9, "model", []),
    ]
    assert [mark.text for mark in chart.marks][:2] == [
        "1 year: observed 80.0 % (70.0 to 90.0 %)",
        "1 year: predicted 90.0 %",
    ]


def test_predictions_at_one_time_are_not_drawn_over_time():
    rows = tuple(
        {
            "attribute": "",
            "group": "all",
            "time": t,
            "predicted": 0.9,
            "observed": 0.8,
            "low": 0.7,
            "high": 0.9,
        }
        for t in (0.0, 1.0)
    )
    assert charts_over_time(Table("survival", "", (), rows), "years", dots=True) == ()
    assert len(charts_over_time(Table("survival", "", (), rows), "years")) == 1
