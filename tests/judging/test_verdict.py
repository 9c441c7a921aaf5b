"""Findings and the verdict: one adjustment, each status of the guide, and sentences that agree with them."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from drosurv.judging.adjustment import Question
from drosurv.judging.questions import KINDS
from drosurv.judging.residual_tests import JudgedValue
from drosurv.judging.verdict import (
    PROBLEMS,
    STATUSES,
    briefly,
    data_problem,
    findings,
    judge,
    refit_advice,
    subgroup_problem,
    to_frame,
)

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "verdict.md"


def estimate(value, error, right=1.0):
    return JudgedValue(value, lambda at: (value - at) / error, right, on_log_scale=False)


def level_of(group, value=1.0, error=0.05, attribute="sex"):
    return Question(KINDS["level"], attribute, group, estimate(value, error))


def gain_of(group, value=0.2, error=0.01, attribute="sex"):
    return Question(KINDS["gain"], attribute, group, estimate(value, error, 0.0))


def over(group, value, attribute="sex"):
    details = {"reference": "plain Cox"}
    number = estimate(value, 0.01, 0.0)
    return Question(KINDS["gain over reference"], attribute, group, number, details=details)


def about(question, value, group="f", attribute="sex", error=0.03, **more):
    return Question(KINDS[question], attribute, group, estimate(value, error), **more)


def small(group, attribute="sex", why="fewer than 50 patients", **how):
    return Question(KINDS["level"], attribute, group, None, why, **how)


def everybody(value=1.0, error=0.05, gain=0.2):
    return [level_of("all", value, error, "overall"), gain_of("all", gain, attribute="overall")]


def ranked(c_index):
    number = JudgedValue(c_index, lambda at: (c_index - at) / 0.02, 0.5, on_log_scale=False)
    return Question(KINDS["ranking"], "overall", "all", number)


RIGHT = [level_of("f"), gain_of("f"), level_of("m"), gain_of("m")]
INFANTS = {"group": "age <= 1", "patients": 90, "observed": 42, "expected": 15, "ratio": 2.8, "p": 0.001}
INFANTS |= {"events": 42, "since": None, "until": None}
# By status: the tests, further rows, whether subgroups were searched, and words of the verdict.
RULES = {
    "data_problem": [
        ([*everybody(), *RIGHT], [data_problem("3 columns leak")], False, "3 columns leak."),
        ([*everybody(2.0), *RIGHT], [data_problem("3 columns leak")], False, "3 columns leak."),
    ],
    "miscalibrated": [
        ([*everybody(2.8), *RIGHT], [], False, "is wrong for all patients: 2.80 ("),
        ([*everybody(), level_of("f", 2.8), gain_of("f", -0.2)], [], False, "is wrong for sex f: 2.80 ("),
        ([*everybody(), *RIGHT, about("timing", 1.5)], [], False, "The timing of events is wrong for sex f"),
        ([*everybody(), *RIGHT, about("slope", 0.7)], [], False, "Predicted risks of sex f differ too much"),
        (
            [*everybody(), *RIGHT, about("slope", 1.3)],
            [],
            False,
            "Predicted risks of sex f differ too little",
        ),
        ([*everybody(), *RIGHT], [subgroup_problem(INFANTS, 1987)], True, "the 90 patients with age <= 1"),
    ],
    "harm": [
        (
            [*everybody(), level_of("f"), gain_of("f", -0.2)],
            [],
            False,
            "For sex f, predictions are worse than one",
        ),
        (everybody(gain=-0.2), [], False, "For all patients, predictions are worse than one curve"),
        ([ranked(0.4)], [], False, "ranked worse than by chance"),
    ],
    "dominated": [
        ([*everybody(), *RIGHT, over("f", -0.2)], [], False, "Plain Cox predicts sex f better"),
        ([*everybody(), over("all", -0.2, "overall")], [], False, "Plain Cox predicts all patients better"),
    ],
    "worse_for_some": [
        (
            [*everybody(), *RIGHT, over("f", -0.2), over("m", 0.2)],
            [],
            False,
            "Plain Cox predicts sex f better",
        )
    ],
    "wrong_decisions": [
        (
            [*everybody(), *RIGHT, about(f"{side} threshold", 1.5)],
            [],
            False,
            f"Patients of sex f with a predicted risk of {words} the threshold had 1.50 (",
        )
        for side, words in (("above", "at least"), ("below", "below"))
    ],
    "too_few": [
        ([small("all", "overall")], [], False, "Cannot tell with so few patients. Not judged: all patients"),
        ([*everybody(), small("f"), small("m")], [], False, "no group is large enough to be judged"),
        ([*everybody(), *(small(str(k)) for k in range(10))], [], True, "no group is large enough"),
        ([*everybody(error=0.3), *RIGHT], [], False, "all patients together may have"),
    ],
    "unclear": [
        (
            [*everybody(), *RIGHT[:3], gain_of("m", 0.001)],
            [],
            False,
            "not yet shown to predict sex m better than one",
        ),
        (
            everybody(gain=0.001),
            [],
            False,
            "The model is not yet shown to predict all patients better than one curve",
        ),
        (
            [*everybody(), level_of("f", error=0.3), gain_of("f"), *RIGHT[2:]],
            [],
            False,
            "No problem is shown. Cannot tell for sex f: 0.",
        ),
        (
            [*everybody(error=0.3), about("level by a time", 1.02, attribute="overall"), *RIGHT],
            [],
            False,
            "No problem is shown. Cannot tell for all patients: 0.",
        ),
        ([ranked(0.7)], [], False, "Only ranking can be judged"),
        ([], [], False, "Only ranking can be judged"),
    ],
    "no_groups": [(everybody(), [], False, "no groups were named")],
    "clear": [
        ([*everybody(), *RIGHT], [], False, "No problem is shown: events agree"),
        ([*everybody(), *RIGHT, small("x")], [], False, "in every group that can be judged"),
        (everybody(), [], True, "No problem is shown: events agree"),
        (
            [*everybody(1.02, 0.001), *RIGHT],
            [],
            True,
            "No problem is shown. 2 % more events than expected for all patients",
        ),
    ],
}
CASES = [
    pytest.param(status, *case, id=f"{status}-{number}")
    for status, cases in RULES.items()
    for number, case in enumerate(cases, start=1)
]


@pytest.mark.parametrize(("status", "tests", "more", "searched", "words"), CASES)
def test_every_rule_of_the_guide_holds_and_steps_do_not_contradict_each_other(
    status, tests, more, searched, words
):
    rows = [*findings(tests, 0.95, relevance=1.05), *more]
    found = judge(rows, searched=searched)
    assert found.status == status
    assert words in found.text
    steps = " ".join(judge(rows, searched=searched, corrected=["all patients"]).steps)
    assert not ("Use plain Cox" in steps and "Correct the predictions" in steps)
    assert "of sex f and sex m." not in steps


def test_the_guide_lists_the_statuses_in_the_order_in_which_they_are_tried():
    listed = re.findall(r"^\| `(\w+)` \|[^|]*\|$", GUIDE.read_text(), re.MULTILINE)
    assert listed == list(RULES) == list(STATUSES)
    assert listed[: len(PROBLEMS)] == list(PROBLEMS)


def test_the_guide_has_a_row_for_every_question():
    """A new kind of finding is one function in judging/questions.py, and one row of the second table of the guide."""
    rows = re.findall(r"^\| (`[a-z ]+`(?:, `[a-z ]+`)*) \|[^|]*\|[^|]*\|$", GUIDE.read_text(), re.MULTILINE)
    listed = re.findall(r"`([a-z ]+)`", " ".join(rows))
    asked = {*KINDS} - {"data", "subgroups"}
    missing = asked - {*listed}
    assert not missing, "add a row for it to the second table of docs/guide/verdict.md"
    assert sorted(listed) == sorted(asked)


def test_a_correction_is_recommended_only_if_it_helps():
    rows = findings([*everybody(), level_of("f", 2.8)], 0.95)
    helped, not_helped, not_tried = (
        judge(rows, corrected=groups).steps[0] for groups in (["patients with age > 60"], [], None)
    )
    # Those whom the repair corrects, which the section on it names too.
    assert helped.startswith("Correct the predictions for patients with age > 60 (drosurv repair)")
    assert not_helped.startswith("No correction improved the predictions of held-out patients")
    assert not_tried.startswith("Try drosurv repair")
    assert not_tried.endswith("helps sex f.")


@pytest.mark.parametrize(
    ("columns", "advice"),
    [
        (
            {"age": True},
            "refit the model with strata of age, or with an effect of age that changes over time",
        ),
        (
            {"age": True, "sex": True},
            "refit the model with strata of age and sex, or with effects of age and sex that change over time",
        ),
        ({"age": False, "sex": False}, "add age and sex to the model"),
        (
            {"age": True, "site": False},
            "add site to the model, or refit the model with strata of age, or with an effect of age that changes",
        ),
        ({"age": None}, "fit the model again with age"),
        ({}, "refit the model"),
    ],
)
def test_advice_depends_on_whether_columns_are_in_the_model(columns, advice):
    rows = findings([*everybody(), level_of("f", 2.8)], 0.95)
    refit = refit_advice(columns)
    assert f"held-out patients: {advice}" in judge(rows, corrected=[], refit=refit).steps[0]
    step = judge(rows, corrected=["sex f"], refit=refit).steps[0]
    assert step.startswith("Correct the predictions for sex f (drosurv repair)")
    assert (f", or {advice}" in step) == bool(columns)


def test_a_row_is_a_problem_exactly_if_its_interval_excludes_the_right_value():
    rows = findings([*everybody(), *(level_of(str(v), v, 0.1) for v in np.linspace(0.5, 1.5, 21))], 0.95)
    for row in rows:
        if row.question == "level":
            assert (row.status == "miscalibrated") == (not row.low <= 1 <= row.high) == (row.p < 0.05)


def test_a_test_alone_is_not_adjusted_and_one_without_enough_events_counts():
    one = level_of("f", 1.25, 0.1)
    assert findings([one], 0.95)[0].p == pytest.approx(one.estimate.p)
    assert findings([one, small("m")], 0.95)[0].p == pytest.approx(one.estimate.p)
    few = small("m", few_events=True)
    # Two independent tests.
    assert findings([one, few], 0.95)[0].p == pytest.approx(1 - (1 - one.estimate.p) ** 2, rel=0.05)


@pytest.mark.parametrize(("searched", "shares"), [(False, (0.75, 0.25)), (True, (0.5, 0.25))])
def test_half_of_the_error_rate_is_of_everybody_and_a_quarter_each_of_groups_and_search(searched, shares):
    both = [level_of("all", 1.2, 0.1, attribute="overall"), level_of("f", 1.2, 0.1)]
    for row, test, share in zip(findings(both, 0.95, searched=searched), both, shares, strict=True):
        assert row.p == pytest.approx(min(test.estimate.p / share, 1))
        assert (row.low, row.high) == pytest.approx(test.estimate.interval(0.05 * share))
    alone = findings(both[:1], 0.95, searched=searched)[0]
    assert alone.p == pytest.approx(both[0].estimate.p / (0.75 if searched else 1))


def test_tests_of_the_same_contributions_count_as_one_and_clusters_are_summed():
    rng = np.random.default_rng(0)
    each = rng.normal(size=200)
    tests = [
        Question(KINDS[name], "overall", "all", estimate(1.25, 0.1), contributions=values)
        for name, values in (("level", each), ("slope", 2 * each))
    ]
    assert findings(tests, 0.95)[0].p == pytest.approx(tests[0].estimate.p, rel=0.05)
    # In clusters of an even and an odd row both tests have independent sums.
    signs = np.tile([1.0, -1.0], 100)
    apart = [tests[0], tests[1]._replace(contributions=signs * each)]
    p = tests[0].estimate.p
    clustered = findings(apart, 0.95, clusters=np.repeat(np.arange(100), 2))[0].p
    assert clustered == pytest.approx(1 - (1 - p) ** 2, rel=0.15)


def test_the_error_rate_is_divided_by_the_weights_of_tests(all_draws):
    level, gain = level_of("f", 1.3, 0.1), gain_of("f", 0.1)
    timing = level_of("m", 1.3, 0.1)._replace(kind=KINDS["timing"])
    rows = findings([level, gain, timing], 0.95)
    # A gain names a problem on one side only, and uses half of its weight. Bonferroni's method is nearly exact here.
    total = 1 + 0.5 + 0.25
    for row, test in zip(rows, (level, gain, timing), strict=True):
        assert row.p == pytest.approx(min(test.estimate.p * total / test.weight, 1), rel=0.1)
        low, high = test.estimate.interval(0.05 * test.weight / total)
        assert (row.low, row.high) == pytest.approx((low, high), rel=0.01)


@pytest.mark.parametrize(
    ("question", "value", "words"),
    [
        ("level", 1.02, "2 % more events than expected for sex f (observed/expected 1.020 ("),
        ("level", 0.965, "3.5 % fewer events than expected for sex f (observed/expected 0.965 ("),
        ("level by a time", 1.03, "3 % more events than expected for sex f (observed/expected 1.030 ("),
        (
            "timing",
            1.03,
            "In a part of the follow-up, sex f had 3 % more events than the predictions and the rest of",
        ),
        ("slope", 0.96, "Predicted risks of sex f differ slightly too much (calibration slope 0.96"),
        ("slope", 1.04, "Predicted risks of sex f differ slightly too little (calibration slope 1.04"),
        (
            "above threshold",
            1.03,
            "3 % more events than expected above the threshold for sex f (observed/exp",
        ),
        (
            "below threshold",
            0.97,
            "3 % fewer events than expected below the threshold for sex f (observed/exp",
        ),
    ],
)
def test_a_significant_difference_below_the_relevance_is_said_but_is_no_problem(question, value, words):
    test = about(question, value, error=0.001)
    row = findings([test], 0.95, relevance=1.05)[0]
    assert (row.status, row.p < 0.05, row.is_small) == ("clear", True, True)
    assert row.text.startswith(words)
    assert row.text.endswith("): significant, but small.")
    without = findings([test], 0.95, relevance=1)[0]
    assert without.status == KINDS[question].status
    assert not without.is_small


@pytest.mark.parametrize(
    ("question", "inside", "outside"),
    [
        ("level", (1 / 1.0499, 1.0499), (1 / 1.0501, 1.0501)),
        ("timing", (1 / 1.0499, 1.0499), (1 / 1.0501, 1.0501)),
        # A ratio of 0.951 is beyond a factor of 1.05, a slope of 0.951 within 0.05.
        ("slope", (0.9501, 1.0499), (0.9499, 1.0501)),
    ],
)
def test_ratios_are_relevant_beyond_a_factor_and_slopes_beyond_a_difference(question, inside, outside):
    for values, status in ((inside, "clear"), (outside, "miscalibrated")):
        for value in values:
            estimated = JudgedValue(
                value, lambda at, value=value: (value - at) / 1e-4, on_log_scale=question != "slope"
            )
            test = Question(KINDS[question], "sex", "f", estimated)
            assert findings([test], 0.95, relevance=1.05)[0].status == status, value


def test_the_verdict_names_other_groups_before_earlier_times_of_the_same():
    asked = [*everybody(1.5), level_of("f", 1.4), level_of("m")]
    for value, time in ((1.6, 1.0), (1.7, 2.0), (1.8, 3.0)):
        number = replace(estimate(value, 0.05), time=time)
        asked.append(Question(KINDS["level by a time"], "overall", "all", number))
    rows = findings(asked, 0.95)
    found = judge(rows)
    assert [text.split(":")[0] for text in found.texts[:2]] == [
        "The number of events is wrong for all patients",
        "The number of events is wrong for sex f",
    ]
    assert found.texts[-1] == "2 more of this kind: see below."
    assert briefly(rows)["overall", "all"] == "wrong number of events"
    alone = [row for row in rows if row.question == "level by a time"]
    assert briefly(alone)["overall", "all"] == "wrong number of events by an earlier time"


def test_the_odds_of_a_c_index_are_relevant_beyond_a_factor():
    # Of two patients, 0.487 over 0.513 is 1/1.053.
    for c_index, status in ((0.4881, "clear"), (0.487, "harm")):
        number = JudgedValue(c_index, lambda at, c=c_index: (c - at) / 1e-3, 0.5, on_log_scale=False)
        row = findings([Question(KINDS["ranking"], "overall", "all", number)], 0.95, relevance=1.05)[0]
        assert (row.status, row.is_small) == (status, status == "clear")
    assert row.text.startswith("Patients are ranked worse than by chance")


def test_losses_are_problems_however_small_the_relevance_of_ratios():
    assert findings([gain_of("f", -0.01, 1e-3)], 0.95, relevance=2.0)[0].status == "harm"


@pytest.mark.parametrize(
    ("low", "high", "status"),
    [
        (0.9, 1.2, "clear"),
        (0.9, 1.6, "unclear"),
        (0.6, 1.1, "unclear"),
        # The limit is excluded, or 1 is.
        (0.67, 1.49, "clear"),
        (1.02, 1.6, "clear"),
    ],
)
def test_cannot_tell_is_said_where_an_interval_includes_both_1_and_the_limit(low, high, status):
    # The interval of a two-sided test at 5 %; the estimate is within the relevance, so that it is no problem.
    value = JudgedValue(
        1.03,
        lambda at: (
            1.959964
            * (1 if at < 1.03 else -1)
            * (abs(at - 1.03) / (1.03 - low if at < 1.03 else high - 1.03))
        ),
    )
    row = findings([Question(KINDS["level"], "sex", "f", value)], 0.95, relevance=1.05)[0]
    assert (row.low, row.high) == pytest.approx((low, high), abs=1e-3)
    assert row.status == status
    if status == "unclear":
        assert row.text == (
            f"Cannot tell for sex f: {low:.2f} to {high:.2f} times the predicted events (adjusted) cannot be excluded."
        )


def test_groups_that_cannot_be_told_are_named_together_and_more_of_their_patients_asked_for():
    unsure = [level_of(group, error=0.3) for group in "ab"]
    found = judge(findings([*everybody(), *unsure, level_of("c")], 0.95))
    assert found.status == "unclear"
    assert found.text.startswith("No problem is shown. Cannot tell for sex a and sex b: up to ")
    assert "Audit again with more patients, or a longer follow-up, of sex a and sex b." in found.steps


def test_a_difference_that_is_not_visible_is_no_problem():
    assert findings([level_of("f", 1.004, 1e-4)], 0.95)[0].status == "clear"
    assert findings([gain_of("f", -0.0003, 5e-5)], 0.95)[0].status == "unclear"
    assert findings([gain_of("f", -0.003, 5e-5)], 0.95)[0].status == "harm"


def test_further_problems_are_kept_in_the_order_of_gravity():
    rows = findings([*everybody(), gain_of("f", -0.2), level_of("m", 2.8)], 0.95)
    found = judge([*rows, data_problem("a column gives the outcome away")])
    assert [row.status for row in found.problems] == ["data_problem", "miscalibrated", "harm"]


def test_groups_with_the_same_problem_are_in_the_order_of_their_p_values():
    rows = findings([*everybody(), level_of("f", 1.3), level_of("m", 2.8), level_of("x", 0.5)], 0.95)
    assert [row.group for row in judge(rows).problems] == ["m", "x", "f"]


def test_more_patients_are_asked_for_by_group_only_where_some_groups_have_enough():
    unsure = {sex: [level_of(sex), gain_of(sex, 0.001)] for sex in "fm"}
    one = judge(findings([*everybody(), *unsure["f"], level_of("m"), gain_of("m")], 0.95)).steps
    wanted = "Audit again with more patients, or a longer follow-up, of sex f."
    assert wanted in one
    few = [small("f", why="fewer than 50 patients"), level_of("m"), gain_of("m")]
    assert wanted in judge(findings([*everybody(), *few], 0.95)).steps
    both = judge(findings([*everybody(), *unsure["f"], *unsure["m"]], 0.95)).steps
    assert "Audit again with more patients." in both


def test_risk_scores_alone_need_survival_probabilities_and_not_more_patients():
    steps = " ".join(judge(findings([ranked(0.7)], 0.95)).steps)
    assert "Audit predicted survival probabilities" in steps
    assert "more patients" not in steps


def test_more_expected_events_than_patients_are_called_cumulative_hazards():
    found = subgroup_problem({**INFANTS, "patients": 11, "observed": 11, "expected": 37, "ratio": 0.3}, 10)
    assert (
        "11 events where cumulative hazards of 37 were predicted (0.30 times, adjusted p = 0.001)"
        in found.text
    )
    assert found.who == "patients with age <= 1"


def test_one_event_is_one_event():
    found = subgroup_problem({**INFANTS, "patients": 24, "observed": 1, "expected": 15.4, "ratio": 0.06}, 10)
    assert "1 event where 15.4 were predicted" in found.text


def test_a_subgroup_whose_events_come_early_is_said_with_numbers_and_times():
    early = {
        **INFANTS,
        "observed": 14,
        "expected": 6.2,
        "ratio": 2.26,
        "events": 20,
        "since": 0.0,
        "until": 3.0,
    }
    said = subgroup_problem(early, 10, unit="years").text
    assert (
        "14 of their 20 events came by 3 years; the predicted timing implies 6.2 (2.26 times, adjusted p = 0.001)"
        in said
    )
    late = subgroup_problem({**early, "since": 3.0, "until": None}, 10, unit="years").text
    assert "14 of their 20 events came after 3 years" in late
    none = subgroup_problem({**early, "observed": 0.0, "ratio": 0.0}, 10, unit="years").text
    assert "none of their 20 events came by 3 years; the predicted timing implies 6.2 (0.00 times" in none


def test_the_timing_of_events_is_said_for_the_part_that_fits_least():
    part = JudgedValue(1.1, lambda at: (1.1 - at) / 0.2, 1.0, on_log_scale=False, time=4.0, since=2.0)
    test = Question(KINDS["timing"], "sex", "f", part, details={"unit": "years"})
    said = findings([test], 0.95)[0].text
    assert said == (
        "The timing of events agrees with the predictions for sex f: from 2 to 4 years, where it fits least, "
        "there were 1.10 (adjusted 0.71 to 1.49) times as many events as the predictions and the rest of the follow-up "
        "imply."
    )
    assert ": from time 2 to 4, where" in findings([test._replace(details={})], 0.95)[0].text


def test_the_table_is_sorted_by_seriousness_and_keeps_the_rows():
    rows = findings([*everybody(), gain_of("m", -0.2), level_of("f", 2.0)], 0.95)
    table = to_frame(rows)
    assert " ".join(table.columns) == "status question attribute group time value low high p text"
    assert table["status"].tolist() == ["miscalibrated", "harm", "clear", "clear"]
    assert set(table["text"]) == {row.text for row in rows}


def test_overfitting_has_words_of_its_own():
    trained = {"details": {"trained": "yes"}, "group": "all", "attribute": "overall"}
    row = findings([about("slope", 0.7, **trained)], 0.95)[0]
    assert "overfitting" in row.text
    assert "recalibrate" in row.text
    assert "overfitting" not in findings([about("slope", 1.4, **trained)], 0.95)[0].text
    # A group in which predictions say nothing is no sign of overfitting.
    group = {"details": {"trained": "yes"}}
    assert "overfitting" not in findings([about("slope", 0.1, **group)], 0.95)[0].text
