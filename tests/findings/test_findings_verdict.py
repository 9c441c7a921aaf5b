"""Findings and the verdict: one adjustment, statuses, and sentences that agree with them."""

import numpy as np
import pytest

from drosurv.findings.adjustment import Question
from drosurv.findings.residual_tests import JudgedValue
from drosurv.findings.verdict import COLUMNS, PROBLEMS, STATUSES, data_problem, findings, judge, to_frame


def estimate(value, error, right=1.0):
    return JudgedValue(value, lambda at: (value - at) / error, right, on_log_scale=False)


def level_of(group, value, error=0.1, attribute="sex"):
    return Question("level", attribute, group, estimate(value, error), "miscalibrated", 0.005)


def gain_of(group, value, error=0.01, attribute="sex"):
    return Question("gain", attribute, group, estimate(value, error, 0.0), "harm", 5e-4, -1)


EVERYBODY = [level_of("all", 1.0, attribute="overall"), gain_of("all", 0.2, attribute="overall")]


def status_of(tests, **how):
    return judge(findings([*EVERYBODY, *tests], 0.95), **how).status


def test_a_row_is_a_problem_exactly_if_its_interval_excludes_the_right_value():
    rows = findings([*EVERYBODY, *(level_of(str(v), v) for v in np.linspace(0.5, 1.5, 21))], 0.95)
    for row in rows:
        if row.question == "level":
            assert (row.status == "miscalibrated") == (not row.low <= 1 <= row.high) == (row.p < 0.05)


def test_p_values_are_multiplied_by_the_number_of_tests_made():
    alone = findings([level_of("f", 1.25)], 0.95)[0]
    small = Question("level", "sex", "m", None, "miscalibrated", why="fewer than 50 patients")
    few = Question("level", "sex", "m", None, "miscalibrated", why="fewer than 10 events")
    assert findings([level_of("f", 1.25), small], 0.95)[0].p == alone.p
    assert findings([level_of("f", 1.25), few], 0.95)[0].p == pytest.approx(2 * alone.p)
    assert findings([level_of("f", 1.25)], 0.95, further_tests=9)[0].p == pytest.approx(10 * alone.p)


def test_a_difference_that_is_not_visible_is_no_problem():
    assert findings([level_of("f", 1.004, 1e-4)], 0.95)[0].status == "clear"
    assert findings([gain_of("f", -0.0003, 5e-5)], 0.95)[0].status == "unclear"
    assert findings([gain_of("f", -0.003, 5e-5)], 0.95)[0].status == "harm"


def over(group, value):
    details = {"reference": "plain Cox"}
    return Question(
        "gain over reference",
        "sex",
        group,
        estimate(value, 0.01, 0.0),
        "dominated",
        5e-4,
        -1,
        details=details,
    )


@pytest.mark.parametrize(
    ("tests", "status"),
    [
        ([level_of("f", 2.0), gain_of("f", -0.2)], "miscalibrated"),
        ([level_of("f", 1.0), gain_of("f", -0.2)], "harm"),
        ([level_of("f", 1.0), gain_of("f", 0.2), over("f", -0.2)], "dominated"),
        ([level_of("f", 1.0), gain_of("f", 0.2), over("f", -0.2), over("m", 0.2)], "worse_for_some"),
        ([level_of("f", 1.0), gain_of("f", 0.2)], "clear"),
        ([level_of("f", 1.0), gain_of("f", 0.001)], "unclear"),
        ([], "no_groups"),
        ([Question("level", "sex", "f", None, "miscalibrated", why="fewer than 50 patients")], "too_few"),
    ],
)
def test_the_most_serious_row_gives_the_status(tests, status):
    assert status_of(tests) == status


def test_ten_groups_that_are_too_small_are_not_clear_although_subgroups_were_searched():
    small = [
        Question("level", "site", str(k), None, "miscalibrated", why="fewer than 50 patients")
        for k in range(10)
    ]
    assert status_of(small, searched=True) == "too_few"
    assert status_of([], searched=True) == "clear"


def test_a_data_problem_comes_first():
    rows = [
        *findings([*EVERYBODY, level_of("f", 2.0)], 0.95),
        data_problem("a column gives the outcome away"),
    ]
    found = judge(rows)
    assert found.status == "data_problem"
    assert found.text == "A column gives the outcome away."
    assert [row.status for row in found.problems] == ["data_problem", "miscalibrated"]


def test_every_problem_has_a_step_and_a_sentence_with_its_number():
    found = judge(findings([*EVERYBODY, level_of("f", 2.0), gain_of("m", -0.2)], 0.95))
    assert "sex f had 2.00 (" in found.text.lower()
    assert any("sex m" in step for step in found.steps)
    assert any("sex f" in step for step in found.steps)


def test_the_table_is_sorted_by_seriousness():
    table = to_frame(findings([*EVERYBODY, gain_of("m", -0.2), level_of("f", 2.0)], 0.95))
    assert list(table.columns) == list(COLUMNS)
    assert table["status"].tolist() == ["miscalibrated", "harm", "clear", "clear"]
    assert set(PROBLEMS) < set(STATUSES)


def test_overfitting_has_words_of_its_own():
    trained = {"details": {"trained": "yes"}}
    spread = Question("spread", "overall", "all", estimate(0.7, 0.03), "miscalibrated", 0.005, **trained)
    row = findings([spread], 0.95)[0]
    assert "overfitting" in row.text
    assert "recalibrate" in row.text
    wide = Question("spread", "overall", "all", estimate(1.4, 0.03), "miscalibrated", 0.005, **trained)
    assert "overfitting" not in findings([wide], 0.95)[0].text
