"""The picture of the groups: its order, its words, its text, and what is drawn."""

import json
import math

import pytest

from drosurv import evaluate
from drosurv.evaluation.group_picture import GroupPicture, PictureRow, picture_of
from drosurv.findings.verdict import FindingRow
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


def test_counts_per_100_patients_come_in_words(picture):
    words = {one.who: one.words for one in picture.rows}
    assert words["age infant"] == "per 100, 20 expected, 40 observed"
    assert words["age tiny"] == "fewer than 50 patients"
    assert picture.counts() == "Of 100 patients of age old the model expects 20 to have the event; 5 had it."
    right = picture_of([row("all", attribute="overall"), row("adult")])
    assert right.counts() == "Of 100 patients the model expects 20 to have the event; 20 had it."
    several = picture_of([row("all", attribute="overall", patients=10)])
    assert several.counts() == "Per 100 patients the model expects 200 events; 200 were observed."
    assert right.counts(by="time 3").endswith("expects 20 to have the event by time 3; 20 had it.")
    assert right.counts(several=True, by="1 year").endswith("expects 20 events by 1 year; 20 were observed.")


def test_problems_that_the_ratio_does_not_show_are_named_beside_it():
    rows = [row("all", attribute="overall"), row("old", status="miscalibrated"), row("young")]
    found = [FindingRow("miscalibrated", question, "age", "old") for question in ("level", "timing")]
    words = {one.who: one.words for one in picture_of(rows, found).rows}
    assert words["age old"] == "per 100, 20 expected, 20 observed, wrong timing of events"
    assert words["age young"] == "per 100, 20 expected, 20 observed"


def test_the_text_has_dots_on_a_log_axis_around_1(picture):
    head, everybody, old, infant, adult, tiny, found, axis = picture.to_text().split("\n")
    one = everybody.index("o", len("  all patients"))
    assert head.rstrip().endswith("per 100: expected, observed")
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
    assert "per 100, 20 expected, 40 observed" in [text.get_text() for text in axes.texts]


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

    result = evaluated(n_bootstrap=0)
    axes = result.plot(Figure().subplots())
    assert len(axes.get_yticklabels()) == len(result.groups)
    assert axes.get_xscale() == "log"


def test_risk_scores_alone_have_no_picture(model, held_out):
    result = evaluate(model.predict(held_out.X), held_out.X, held_out.y, n_bootstrap=0)
    with pytest.raises(ValueError, match="no expected events to draw"):
        result.plot()


def test_the_note_of_a_judged_row_stands_behind_its_counts_and_long_numbers_do_not_touch_them():
    row = PictureRow(
        "age <= 56", "found", 100, 40.0, 20.0, 2.0, 11.11, 22.22, note="after correction for everybody"
    )
    assert row.words == "per 100, 20 expected, 40 observed, after correction for everybody"
    assert "2.00 (11.11 to 22.22) 20, 40, after correction for everybody" in GroupPicture.of([row]).to_text()


@pytest.mark.parametrize("high", [math.nan, math.inf])
def test_an_interval_without_an_upper_end_reaches_the_end_of_the_axis(high):
    from matplotlib.figure import Figure

    picture = GroupPicture.of([PictureRow("all patients", "all", 69, 45.0, 9.0, 5.0, 3.0, high)])
    line = picture.to_text().split("\n")[1]
    assert "---o-  5.00 (3.00 or more) 13, 65" in line
    (interval,) = [one for one in picture.plot(Figure().subplots()).lines if len(set(one.get_xdata())) == 2]
    assert list(interval.get_xdata()) == [3.0, picture.reach]


def test_a_name_too_long_for_the_text_keeps_its_time():
    rule = "differ <= 2 and etype = 2 and site is Bern, Switzerland"
    numbers = ("found", 90, 40.0, 20.0, 2.0)
    rows = [PictureRow(f"{rule}, by 3 years", *numbers, when="by 3 years"), PictureRow(rule, *numbers)]
    shown = GroupPicture.of(rows).to_text()
    first, second = (line[2:34] for line in shown.splitlines()[1:3])
    assert first == "differ <= 2 and e..., by 3 years"
    # What follows a comma in the name of a group is no time.
    assert second == "differ <= 2 and etype = 2 and..."
