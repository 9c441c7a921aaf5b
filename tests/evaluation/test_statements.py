from dataclasses import replace

import pandas as pd
import pytest

from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.group_table import Row, frame_of
from drosurv.evaluation.result import Settings
from drosurv.judging.verdict import data_problem, subgroup_problem
from drosurv.paper.shrinkage import ShrinkageControl
from drosurv.presentation import literal

NAN = float("nan")
INFANTS = {"group": "age <= 1", "patients": 90, "observed": 42, "expected": 15, "ratio": 2.8, "p": 0.001}
INFANTS |= {"events": 42, "since": None, "until": None}


def row(attribute, group, metric, kind, value, low=NAN, high=NAN, p=NAN, status="ok"):
    return Row(attribute, group, metric, kind, "", value, low, high, 0.0, p, 100, 40, 0.6, status)


def gap_of(attribute, values, p, *, small=()):
    """Rows of the groups' c-indices and of the gap between all of them."""
    rows = [
        row(
            attribute,
            name,
            "concordance_index",
            "group",
            value,
            status="small group" if name in small else "ok",
        )
        for name, value in values.items()
    ]
    spread = max(values.values()) - min(values.values())
    return [
        *rows,
        row(attribute, "x vs y", "concordance_index", "gap", spread, spread - 0.01, spread + 0.01, p),
    ]


def adjusted(rows):
    """Rows whose gaps allow for each other, as an evaluation makes them."""
    gaps = [row for row in rows if row.kind == "gap"]

    def among(row):
        p = min(len(gaps) * row.p, 1.0)
        return row._replace(p=p, low=0.0 if p >= 0.05 else row.low)

    return [row if row.kind != "gap" else among(row) for row in rows]


def group(attribute, name, why=""):
    """A row of the group table."""
    numbers = dict.fromkeys(("observed", "expected", "ratio", "ratio_low", "ratio_high"), NAN)
    who = {"attribute": attribute, "group": name, "patients": 40}
    return {**who, **numbers, "judged": not why, "why": why, "status": ""}


def result_of(*rows, control=None, groups=(), decisions=None, findings=()):
    empty = pd.DataFrame()
    settings = Settings("m", "plain Cox", 0.95, (100.0, 200.0, 300.0), 200.0, 0.2)
    everyone = row("overall", "all", "concordance_index", "overall", 0.8)
    told = (everyone, *adjusted(rows))
    return EvaluationResult(
        frame_of(told),
        tuple(findings),
        pd.DataFrame(groups, columns=list(group("overall", "all"))),
        empty,
        empty,
        empty,
        control,
        (),
        settings,
        between_large=frame_of([row for row in told if row.kind == "gap"]),
        curves=lambda: {"decisions": decisions},
    )


def told(result, code):
    return [statement for statement in result.statements() if statement.code == code]


def test_lowest_c_index_is_named_and_decides_nothing():
    result = result_of(
        *gap_of("sex", {"f": 0.7, "m": 0.68}, 0.4), *gap_of("age", {"old": 0.6, "young": 0.72}, 0.001)
    )
    (first,) = told(result, "worst_group")
    assert first.text.startswith("Lowest c-index: age old, 0.600, against 0.720 in age young.")
    assert first.text.endswith("so the verdict does not use them.")
    assert not first.concern


def test_small_groups_are_not_named_as_lowest():
    result = result_of(*gap_of("race", {"a": 0.7, "b": 0.69, "c": 0.2}, 0.01, small=("c",)))
    assert "race b, 0.690" in told(result, "worst_group")[0].text


def test_groups_that_are_not_judged_are_named_with_the_reason():
    why = "fewer than 50 patients"
    result = result_of(groups=[group("race", "c", why=why), group("race", "d", why=why)])
    (found,) = told(result, "small_groups")
    assert found.text == "Not judged (fewer than 50 patients): race c and race d."


def test_a_statement_says_that_there_is_nothing_to_compare():
    assert told(result_of(), "worst_group")[0].text == "There are no two groups to compare."
    lonely = result_of(*gap_of("race", {"a": 0.7, "b": 0.2}, 0.01, small=("b",)))
    assert "No two groups" in told(lonely, "worst_group")[0].text


def test_every_problem_is_a_statement_with_its_status():
    wrong = data_problem("a column leaks"), subgroup_problem(INFANTS, 10)
    problems = [statement for statement in result_of(findings=wrong).statements() if statement.concern]
    assert [(one.code, one.text) for one in problems] == [(row.status, row.text) for row in wrong]
    (none,) = (one for one in result_of().statements() if one.code == "unclear")
    assert not none.concern


def decision(name, value, p=NAN, reason=""):
    who = {"attribute": "sex", "group": name, "metric": "sensitivity"}
    return who | {"value": value, "low": NAN, "high": NAN, "p": p, "reason": reason}


def test_decisions_that_cannot_be_estimated_are_named():
    rows = [decision("f", 0.4), decision("m", NAN, reason="no patient is positive"), decision("gap", NAN)]
    (unknown,) = told(result_of(decisions=pd.DataFrame(rows)), "decisions")
    assert unknown.text == "Sensitivity of sex m cannot be estimated: no patient is positive."


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ([0.1, 0.1], "2 of 2 disparities of risk are lower"),
        ([0.5, 0.5], "none of 2 disparities of risk is lower"),
        ([0.1, 0.5], "1 of 2 disparities of risk is lower"),
        ([0.1], "same gain, the disparity of risk is lower"),
        ([0.5], "same gain, the disparity of risk is not lower"),
    ],
)
def test_shrinkage_compares_with_the_shrunken_reference(model, words):
    compared = pd.DataFrame(
        {"attribute": "sex", "metric": "group_disparity", "model": model, "reference": 0.9, "shrunken": 0.5}
    )
    rows = [row("overall", "all", "share_of_gain", "overall", 0.4)]
    control = ShrinkageControl(pd.DataFrame(), 0.6, compared)
    (found,) = told(result_of(*rows, control=control), "shrinkage")
    assert words in found.text
    assert "40.0 % of plain Cox's." in found.text
    assert found.concern
    stretched = result_of(*rows, control=replace(control, factor=1.1))
    assert "lower" not in told(stretched, "shrinkage")[0].text


def test_names_of_two_cuts_of_a_column_are_distinct():
    cuts = (gap_of(f"age>{cut}", {f">{cut}": 0.7, f"<={cut}": 0.6}, 0.5) for cut in (50, 65))
    asked = gap_of("CD4>200", {"yes": 0.8, "no": 0.6, "missing": 0.65}, 0.5)
    result = result_of(*(row for rows in (*cuts, asked) for row in rows))
    markdown = result.to_markdown()
    assert [line for line in markdown.split("\n") if line.startswith("## By")] == [
        f"## By {literal(name)}" for name in ("age>50", "age>65", "CD4>200")
    ]


def test_a_model_that_keeps_all_information_is_not_said_to_have_shrunk():
    compared = pd.DataFrame(
        {"attribute": "sex", "metric": "group_disparity", "model": [1.0], "reference": 1.0, "shrunken": 0.9}
    )
    rows = [
        row("overall", "all", "share_of_gain", "overall", 1.0),
        row("overall", "all", "calibration_slope", "overall", 0.97),
    ]
    # Scores too extreme gain as much when shrunk a little: the factor of equal information is then below one.
    control = ShrinkageControl(pd.DataFrame(), 0.94, compared)
    assert "multiplied" not in told(result_of(*rows, control=control), "shrinkage")[0].text


def test_a_cut_is_named_in_words():
    (first,) = told(result_of(*gap_of("age>65", {">65": 0.6, "<=65": 0.7}, 0.001)), "worst_group")
    assert first.text.startswith("Lowest c-index: age over 65, 0.600, against 0.700 in age 65 or below.")
