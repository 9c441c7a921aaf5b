"""The verdict follows from the group table, the subgroup bounds and the warnings: one test per row of the guide."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from drosurv.repairs.subgroup_bounds import SubgroupBounds
from drosurv.report.verdict import PROBLEMS, adjusted_p_values, judge

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "verdict.md"
NAN = np.nan
RIGHT = {
    **{"patients": 500, "observed": 100, "expected": 101.0, "horizon": 5.0},
    **{"ratio": 0.99, "ratio_low": 0.8, "ratio_high": 1.2, "ratio_p": 1.0},
    **{"survival_observed": 0.7, "survival_predicted": 0.7},
    **{"c_index": 0.7, "c_index_low": 0.65, "c_index_high": 0.75},
    **{"gain": 0.1, "gain_low": 0.05, "gain_high": 0.15, "gain_p": 0.001},
    **{
        "gain_over_reference": NAN,
        "gain_over_reference_low": NAN,
        "gain_over_reference_high": NAN,
        "gain_over_reference_p": NAN,
    },
    **{"judged": True, "why": "", "concern": ""},
}
WRONG = {
    "observed": 280,
    "ratio": 2.8,
    "ratio_low": 2.1,
    "ratio_high": 3.7,
    "ratio_p": 1e-6,
    "concern": "calibration",
}
HARMED = {"gain": -0.1, "gain_low": -0.15, "gain_high": -0.05, "concern": "worse than no model"}
UNSURE = {"gain": 0.01, "gain_low": -0.05, "gain_high": 0.07, "gain_p": 1.0}
SMALL = {
    **{"patients": 27, "expected": 3.7, "observed": 0, "ratio": 0.0, "judged": False},
    **{"why": "fewer than 50 patients", "gain_low": NAN, "gain_high": NAN, "gain_p": NAN},
    **{"ratio_low": NAN, "ratio_high": NAN, "ratio_p": NAN},
}
RANKS = {
    **dict.fromkeys(("expected", "ratio", "ratio_low", "ratio_high", "ratio_p", "gain", "gain_low"), NAN),
    **dict.fromkeys(("gain_high", "gain_p"), NAN),
    **{"judged": False, "why": "no survival curves"},
}


def versus_cox(low, high):
    return {
        "gain_over_reference": (low + high) / 2,
        "gain_over_reference_low": low,
        "gain_over_reference_high": high,
        "gain_over_reference_p": 0.001,
    }


def table(everybody=None, women=None, men=None, named=True):
    rows = [{"attribute": "overall", "group": "all", **RIGHT, **(everybody or {})}]
    if named:
        rows += [{"attribute": "sex", "group": "f", **RIGHT, **(women or {})}]
        rows += [{"attribute": "sex", "group": "m", **RIGHT, **(men or {})}]
    return pd.DataFrame(rows)


def searched(*significant, rescaled=None):
    columns = ["group", "patients", "observed", "expected", "ratio", "p"]
    bounds = pd.DataFrame(
        {"bound": [1.5, 0.65]}, index=["observed/expected, most", "observed/expected, least"]
    )
    found = pd.DataFrame(significant, columns=columns)
    return SubgroupBounds(
        bounds, found, (), {}, rescaled, 1987, n_patients=1500, alpha=0.05, level=0.95, horizon=1.0
    )


def further(status, p, *, who="sex f"):
    return pd.DataFrame([{"status": status, "who": who, "text": f"There is a gap for {who}", "p": p}])


LEAK = {"severity": "blocking", "text": "the model was trained on 233 of 233 rows of test.csv."}
NOTE = {"severity": "note", "text": "3 rows are copies of another row."}
INFANTS = ("age <= 1", 90, 42.0, 15.0, 2.8, 0.001)
RULES = {
    "data_problem": [
        ((table(), {"warnings": [NOTE, LEAK]}), "The model was trained on 233 of 233 rows"),
        ((table(women=WRONG), {"warnings": [LEAK]}), "The model was trained on 233 of 233 rows"),
    ],
    "miscalibrated": [
        ((table(everybody=WRONG), {}), "all patients had 2.80 (2.10 to 3.70) times the predicted events"),
        ((table(women=WRONG), {}), "sex f had 2.80 (2.10 to 3.70) times the predicted events"),
        ((table(women=WRONG, men=HARMED), {}), "sex f had 2.80"),
        ((table(), {"bounds": searched(INFANTS)}), "the 90 patients with age <= 1 differ most"),
        ((table(), {"tests": further("miscalibrated", 0.001, who="all patients")}), "a gap for all patients"),
    ],
    "harm": [
        ((table(women=HARMED), {}), "For sex f, predictions are worse than one curve for everybody"),
        (
            (table(everybody=HARMED, named=False), {}),
            "For all patients, predictions are worse than one curve",
        ),
        (
            (
                table(
                    everybody={**RANKS, "c_index": 0.4, "c_index_low": 0.35, "c_index_high": 0.45},
                    named=False,
                ),
                {},
            ),
            "ranked worse than by chance",
        ),
    ],
    "dominated": [
        ((table(women=versus_cox(-0.2, -0.1)), {}), "Plain Cox predicts sex f better"),
        ((table(everybody=versus_cox(-0.2, -0.1)), {}), "Plain Cox predicts all patients better"),
    ],
    "worse_for_some": [
        (
            (table(women=versus_cox(-0.2, -0.1), men=versus_cox(0.1, 0.2)), {}),
            "Plain Cox predicts sex f better",
        )
    ],
    "wrong_decisions": [
        (
            (table(), {"tests": further("wrong_decisions", 0.001), "n_tests": 7}),
            "There is a gap for sex f (adjusted p = 0.007).",
        )
    ],
    "unequal": [
        (
            (table(), {"tests": further("unequal", 0.001), "n_tests": 7}),
            "There is a gap for sex f (adjusted p = 0.007).",
        )
    ],
    "too_few": [
        ((table(everybody=SMALL, women=SMALL, men=SMALL), {}), "Too few patients to judge a model by"),
        ((table(women=SMALL, men=SMALL), {}), "no group is large enough to be judged"),
    ],
    "unclear": [
        ((table(women=UNSURE), {}), "; for sex f this is not shown."),
        ((table(women=UNSURE, men=UNSURE), {}), "; for any group alone this is not shown."),
        (
            (table(everybody=UNSURE), {}),
            "not shown to be better than one curve for everybody: gain 0.010 (−0.050 to 0.070) per patient",
        ),
        ((table(everybody=RANKS, named=False), {}), "Only ranking can be judged"),
    ],
    "no_groups": [((table(named=False), {}), "no groups were named")],
    "clear": [
        ((table(), {}), "No problem is shown: events agree"),
        ((table(), {"warnings": [NOTE]}), "in every group that can be judged"),
        ((table(named=False), {"bounds": searched()}), "No problem is shown: events agree"),
        ((table(), {"tests": further("unequal", 0.04), "n_tests": 7}), "No problem is shown"),
    ],
}


@pytest.mark.parametrize(
    ("status", "given", "words"),
    [
        pytest.param(status, *case, id=f"{status}-{number}")
        for status, cases in RULES.items()
        for number, case in enumerate(cases, start=1)
    ],
)
def test_every_rule_of_the_guide_holds(status, given, words):
    groups, more = given
    found = judge(groups, **more)
    assert found.status == status
    assert words in found.text


def test_the_guide_lists_the_statuses_in_the_order_in_which_they_are_tried():
    listed = re.findall(r"^\| `(\w+)` \|", GUIDE.read_text(), re.MULTILINE)
    assert listed == list(RULES)
    assert listed[: len(PROBLEMS)] == list(PROBLEMS)


def test_a_small_group_without_events_is_not_called_wrong():
    found = judge(table(women=SMALL))
    assert found.status == "clear"
    assert not found.problems


def test_further_problems_are_kept_in_the_order_of_gravity():
    tests = further("unequal", 1e-6)
    found = judge(table(women=HARMED, men=WRONG), warnings=[LEAK], tests=tests)
    assert [problem.status for problem in found.problems] == [
        "data_problem",
        "miscalibrated",
        "harm",
        "unequal",
    ]


def test_the_last_sentence_says_what_subgroups_can_be_excluded():
    assert judge(table(), bounds=searched()).excluded == (
        "With 95 % confidence, no subgroup of at least 5 % of the 1,500 patients and 10 expected events that one or "
        "two columns define has more than 1.50 times, or fewer than 0.65 times, the predicted events."
    )
    assert judge(table(), bounds="no columns were given").excluded == (
        "Subgroups were not searched: no columns were given."
    )


def test_more_expected_events_than_patients_are_called_cumulative_hazards():
    found = judge(table(), bounds=searched(("karno <= 40", 11, 11.0, 37.0, 0.3, 0.001)))
    assert (
        "11 events where cumulative hazards of 37 were predicted (0.30 times, adjusted p = 0.001)"
        in found.text
    )


def test_subgroups_of_a_model_that_is_wrong_for_everybody_are_judged_after_rescaling():
    columns = ["group", "patients", "observed", "expected", "ratio", "p"]
    none = pd.DataFrame([], columns=columns)
    found = judge(table(everybody=WRONG), bounds=searched(INFANTS, rescaled=none))
    assert [problem.who for problem in found.problems] == ["all patients"]
    some = pd.DataFrame([INFANTS], columns=columns)
    found = judge(table(everybody=WRONG), bounds=searched(INFANTS, rescaled=some))
    assert found.problems[1].who == "patients with age <= 1"
    assert "also after that is corrected for everybody" in found.text


def test_p_values_are_adjusted_for_the_number_of_all_tests():
    tests = pd.concat([further("unequal", 0.001), further("unequal", NAN), further("unequal", 0.5)])
    assert adjusted_p_values(tests, 8) == pytest.approx([0.008, 1.0, 1.0])


@pytest.mark.parametrize("given", [case[0] for cases in RULES.values() for case in cases])
def test_steps_do_not_contradict_each_other(given):
    groups, more = given
    steps = " ".join(judge(groups, **more).steps)
    assert not ("Use plain Cox" in steps and "Correct the model" in steps)
    assert "Collect more patients of sex f, sex m" not in steps
    assert "Collect more patients of sex f and sex m" not in steps


def test_risk_scores_alone_need_survival_probabilities_and_not_more_patients():
    steps = " ".join(judge(table(everybody=RANKS, women=RANKS, men=RANKS)).steps)
    assert "Audit predicted survival probabilities" in steps
    assert "more patients" not in steps


def test_all_groups_of_an_attribute_are_not_named_one_by_one():
    """More patients of every group of an attribute means more patients of any kind."""
    old = {**RIGHT, "attribute": "age>65", "group": ">65"}
    young = {**RIGHT, **UNSURE, "attribute": "age>65", "group": "<=65"}
    sexes, ages = table(women=UNSURE, men=UNSURE).to_dict("records"), [old, young]
    steps = judge(pd.DataFrame([*sexes, *ages])).steps
    assert not any("Collect" in step for step in steps)
    assert "Audit again with more patients." in steps
    assert any("age 65 or below" in step for step in judge(pd.DataFrame([sexes[0], *ages])).steps)


def test_more_patients_are_asked_for_by_group_only_where_some_groups_have_enough():
    assert any(
        step.startswith("Collect more patients of sex f,") for step in judge(table(women=UNSURE)).steps
    )
    both = judge(table(women=UNSURE, men=UNSURE)).steps
    assert "Audit again with more patients." in both
