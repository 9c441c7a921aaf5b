"""The picture of the groups: its order, its words, its text, and what is drawn."""

import json
import math

import pytest

from drosurv.judging.group_picture import GroupPicture, PictureRow, picture_of
from drosurv.judging.verdict import FindingRow
from drosurv.presentation import plain


def row(group, ratio=1.0, *, attribute="age", status="clear", judged=True, patients=100):
    expected = 20.0
    return {
        "attribute": attribute,
        "group": group,
        "patients": patients,
        "observed": ratio * expected,
        "expected": expected,
        "ratio": ratio,
        "ratio_low": 0.8 * ratio if judged else None,
        "ratio_high": 1.25 * ratio if judged else None,
        "status": status,
        "judged": judged,
        "why": "" if judged else "fewer than 50 patients",
    }


@pytest.fixture
def picture():
    return picture_of(
        [
            row("all", attribute="overall"),
            row("adult"),
            row("tiny", 4.0, judged=False, status="too_few", patients=8),
            row("infant", 2.0, status="miscalibrated"),
            row("x > 3", 1.8, attribute="subgroup", status="miscalibrated"),
            row("old", 0.25, status="miscalibrated"),
        ]
    )


def test_groups_with_a_problem_come_first_then_right_small_and_found_ones(picture):
    assert [(one.who, one.state) for one in picture.rows] == [
        ("all patients", "all"),
        ("age old", "wrong"),
        ("age infant", "wrong"),
        ("age adult", "right"),
        ("age tiny", "small"),
        ("x > 3", "found"),
    ]


def risk(predicted, observed, reach=0.04):
    """A row of a table of times."""
    ends = {"low": observed - reach, "high": observed + reach}
    return {
        **{"predicted": predicted, "observed": observed, "ratio": observed / predicted},
        **ends,
        **{f"ratio_{end}": value / predicted for end, value in ends.items()},
    }


def test_risks_by_a_time_come_as_counts_of_100_patients():
    rows = [
        row("all", attribute="overall"),
        row("old", 0.3, status="miscalibrated"),
        row("tiny", judged=False),
    ]
    risks = {("overall", "all"): risk(0.4, 0.38), ("age", "old"): risk(0.5, 0.25)}
    found = picture_of(rows, (), risks, "5 years")
    everybody, old, tiny = found.rows
    # The ratio is that of the risks, not that of events during follow-up.
    assert old.ratio == 0.5
    assert (old.low, old.high) == pytest.approx((0.42, 0.58))
    assert old.words == "25 (21 to 29) of 100, 50 expected"
    assert everybody.words == "38 (34 to 42) of 100, 40 expected"
    assert tiny.words == "fewer than 50 patients"
    assert found.axis_label == "observed / predicted risk by 5 years, intervals not adjusted"
    assert found.counts("a relapse") == (
        "By 5 years: of 100 patients of age old, 25 (21 to 29) had a relapse; the model expected 50."
    )


def test_without_risks_events_are_compared(picture):
    words = {one.who: one.words for one in picture.rows}
    assert words["age infant"] == "40 events, 20 expected"
    assert words["age tiny"] == "fewer than 50 patients"
    # These intervals are those of the findings.
    assert picture.axis_label == "observed / expected events, intervals adjusted"
    assert picture.counts() == "Of age old, 5 events were counted; 20 were expected during follow-up."
    right = picture_of([row("all", attribute="overall"), row("adult")])
    assert right.counts() == "20 events were counted; 20 were expected during follow-up."
    assert right.counts(until="time 3") == (
        "An estimated 20 events happened by time 3, with those censored before counted like others of their risk; 20 "
        "were expected."
    )


def test_problems_that_the_ratio_does_not_show_are_named_beside_it():
    rows = [row("all", attribute="overall"), row("old", status="miscalibrated"), row("young")]
    found = [FindingRow("miscalibrated", question, "age", "old") for question in ("level", "timing")]
    words = {one.who: one.words for one in picture_of(rows, found).rows}
    assert words["age old"] == "20 events, 20 expected, wrong timing of events"
    assert words["age young"] == "20 events, 20 expected"


def test_a_wrong_number_of_events_that_the_risk_does_not_show_is_named():
    rows = [row("all", attribute="overall"), row("old", status="miscalibrated")]
    risks = {key: risk(0.4, 0.38) for key in (("overall", "all"), ("age", "old"))}
    for time, until in ((math.nan, "during follow-up"), (9.0, "by the last predicted time")):
        found = [FindingRow("miscalibrated", "level", "age", "old", time)]
        everybody, old = picture_of(rows, found, risks, "5 years").rows
        assert old.low < 1 < old.high
        assert old.words == f"38 (34 to 42) of 100, 40 expected, wrong number of events {until}"
        assert "wrong" not in everybody.words
    # Where the risk shows it, the ratio says enough.
    shown = picture_of(rows, found, risks | {("age", "old"): risk(0.4, 0.2)}, "5 years").rows[1]
    assert "wrong" not in shown.words


def test_the_text_has_dots_on_a_log_axis_around_1(picture):
    head, everybody, old, infant, adult, tiny, found, axis = picture.to_text().split("\n")
    one = everybody.index("o", len("  all patients"))
    assert head.endswith("observed / expected events, intervals adjusted")
    # On a log axis, 1/4 is twice as far from 1 as 2.
    assert one - old.index("o", 15) == pytest.approx(2 * (infant.index("o", 15) - one), abs=1)
    assert [line.startswith("! ") for line in (old, infant, adult, tiny, found)] == [
        True, True, False, False, True,
    ]  # fmt: skip
    assert axis.index("1") == one
    assert "o" not in tiny[len("  age tiny") : 40]
    assert max(map(len, picture.to_text().split("\n"))) < 100


def test_it_survives_json(picture):
    records = json.loads(json.dumps([plain(one._asdict()) for one in picture.rows]))
    again = GroupPicture.from_records(records)
    assert again.to_text() == picture.to_text()
    assert math.isnan(again.rows[4].low)


def test_the_plot_has_a_dot_in_the_colour_of_each_group(picture):
    from matplotlib.figure import Figure

    axes = picture.plot(Figure().subplots())
    dots = {line.get_ydata()[0]: line for line in axes.get_lines() if line.get_marker() == "o"}
    assert [dots[k].get_color() for k in range(6)] == ["black", "C3", "C3", "C0", "0.6", "C3"]
    assert dots[1].get_xdata()[0] == 0.25
    assert [label.get_text() for label in axes.get_yticklabels()][:2] == [
        "all patients  (100)",
        "age old  (100)",
    ]
    assert "40 events, 20 expected" in [text.get_text() for text in axes.texts]


def test_of_many_hospitals_only_those_with_a_problem_are_shown():
    hospitals = [row(f"h{k}", attribute="hospital") for k in range(20)]
    hospitals[7] = row("h7", 3.0, attribute="hospital", status="miscalibrated")
    found = picture_of([row("all", attribute="overall"), *hospitals])
    assert [one.who for one in found.rows] == ["all patients", "hospital h7"]


def test_ratios_beyond_the_axis_are_arrows():
    rows = [
        PictureRow("a", "right", 10, 30.0, 1.0, 30.0, 20.0, 45.0),
        PictureRow("b", "right", 10, 0, 5, 0, 0, 1),
    ]
    first, second = GroupPicture.of(rows).to_text().split("\n")[1:3]
    assert ">" in first
    assert "<" in second


def test_a_subgroup_without_events_is_an_arrow_and_does_not_stretch_the_axis():
    from matplotlib.figure import Figure

    everybody = PictureRow("all patients", "all", 100, 20.0, 20.0, 1.0, 0.9, 1.1, everybody=True)
    none, few = (PictureRow("x > 3", "found", 100, ratio * 20.0, 20.0, ratio) for ratio in (0.0, 0.001))
    assert GroupPicture.of([everybody, none]).reach == 2.0
    picture = GroupPicture.of([everybody, few])
    assert picture.reach == 5.0
    axes = GroupPicture.of([everybody, none]).plot(Figure().subplots())
    (arrow,) = (line for line in axes.get_lines() if line.get_marker() == "<")
    assert arrow.get_xdata()[0] == 0.5


def test_the_result_draws_it(evaluated):
    from matplotlib.figure import Figure

    result = evaluated()
    axes = result.plot(Figure().subplots())
    assert len(axes.get_yticklabels()) == len(result.groups)
    assert axes.get_xscale() == "log"


def test_the_note_of_a_judged_row_stands_behind_its_counts_and_long_numbers_do_not_touch_them():
    row = PictureRow(
        "age <= 56", "found", 100, 40.0, 20.0, 2.0, 11.11, 22.22, note="after correction for everybody"
    )
    assert row.words == "40 events, 20 expected, after correction for everybody"
    assert (
        "2.00 (11.11 to 22.22) 40 events, 20 expected, after correction for everybody"
        in GroupPicture.of([row]).to_text()
    )


@pytest.mark.parametrize("high", [math.nan, math.inf])
def test_an_interval_without_an_upper_end_reaches_the_end_of_the_axis(high):
    from matplotlib.figure import Figure

    picture = GroupPicture.of([PictureRow("all patients", "all", 69, 45.0, 9.0, 5.0, 3.0, high)])
    line = picture.to_text().split("\n")[1]
    assert "---o-  5.00 (3.00 or more) 45 events, 9 expected" in line
    (interval,) = [one for one in picture.plot(Figure().subplots()).lines if len(set(one.get_xdata())) == 2]
    assert list(interval.get_xdata()) == [3.0, picture.reach]


def test_a_name_too_long_for_the_text_is_shortened():
    rule = "differ <= 2 and etype = 2 and site is Bern, Switzerland"
    shown = GroupPicture.of([PictureRow(rule, "found", 90, 40.0, 20.0, 2.0)]).to_text()
    assert shown.splitlines()[1][2:34] == "differ <= 2 and etype = 2 and..."


def test_a_group_that_was_not_followed_until_the_time_has_no_ratio_on_an_axis_of_risks():
    row = {"attribute": "sex", "group": "f", "patients": 90, "observed": 20.0, "expected": 10.0, "ratio": 2.0}
    row |= {"ratio_low": 1.5, "ratio_high": 2.6, "status": "", "judged": True, "why": ""}
    risk = dict.fromkeys(("predicted", "observed", "low", "high", "ratio", "ratio_low", "ratio_high"))
    (shown,) = picture_of([row], risks={("sex", "f"): risk}, by="5 years").rows
    assert math.isnan(shown.ratio)
    assert shown.words == "not followed until 5 years"
