from dataclasses import replace

import pandas as pd
import pytest

from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.by_cause import judged_by_cause
from drosurv.evaluation.evaluator import Row, frame_of
from drosurv.evaluation.reference import ShrinkageControl
from drosurv.evaluation.result import Settings
from drosurv.evaluation.result_views import judged_gaps
from drosurv.metrics.inference import holm, widening
from drosurv.presentation import literal

NAN = float("nan")


def row(attribute, group, metric, kind, value, low=NAN, high=NAN, p=NAN, status="ok"):
    return Row(attribute, group, metric, kind, "", value, low, high, 0.0, p, "", 100, 40, 0.6, status)


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
    wider = widening(0.95, len(gaps))
    raised = dict(zip(map(id, gaps), holm([row.p for row in gaps]), strict=True))
    return [
        row
        if row.kind != "gap"
        else row._replace(
            p_adjusted=raised[id(row)],
            low_adjusted=0.0 if raised[id(row)] >= 0.05 else row.value - wider * (row.value - row.low),
            high_adjusted=row.value + wider * (row.high - row.value),
        )
        for row in rows
    ]


def group(attribute, name, *, ratio=None, gain=None, over_cox=None, concern="", why=""):
    """A row of the group table: a ratio or gains, each with the ends of its interval."""
    values = {"ratio": ratio, "gain": gain, "gain_over_reference": over_cox}
    numbers = {
        f"{key}{end}": value
        for key, ends in values.items()
        for end, value in zip(("", "_low", "_high"), ends or (NAN,) * 3, strict=True)
    }
    counts = {"patients": 100, "observed": 40, "expected": 40 / ratio[0] if ratio else NAN}
    who = {"attribute": attribute, "group": name, "judged": not why, "why": why, "concern": concern}
    return who | counts | numbers


def result_of(*rows, control=None, groups=(), decisions=None):
    empty = pd.DataFrame()
    settings = Settings("m", "plain Cox", 100, 0.95, (100.0, 200.0, 300.0), 200.0, 0.2)
    everyone = row("overall", "all", "concordance_index", "overall", 0.8)
    told = (everyone, *adjusted(rows))
    return EvaluationResult(
        frame_of(told),
        pd.DataFrame(groups),
        empty,
        empty,
        empty,
        empty,
        empty,
        control,
        (),
        settings,
        between_large=frame_of([row for row in told if row.kind == "gap"]),
        decisions=decisions,
    )


def told(result, code):
    return [statement for statement in result.statements() if statement.code == code]


def gaps_of(result):
    return judged_gaps(result, "concordance_index")


def test_lowest_c_index_is_named_and_decides_nothing():
    result = result_of(
        *gap_of("sex", {"f": 0.7, "m": 0.68}, 0.4), *gap_of("age", {"old": 0.6, "young": 0.72}, 0.001)
    )
    assert (gaps_of(result)[0].attribute, gaps_of(result)[0].worst[0]) == ("age", "old")
    (first,) = told(result, "worst_group")
    assert first.text.startswith("Lowest c-index: age old, 0.600, against 0.720 in age young.")
    assert first.text.endswith("so this has no part in the verdict.")
    assert not first.concern


def imparity_of(attribute, values, p):
    """Rows of groups' concordance fractions and of the imparity between them."""
    names = {"concordance_index": "concordance_fraction"}
    return [
        one._replace(metric="concordance_imparity" if one.kind == "gap" else names[one.metric])
        for one in gap_of(attribute, values, p)
    ]


def test_only_adjusted_p_values_are_shown():
    result = result_of(
        *imparity_of("sex", {"f": 0.7, "m": 0.68}, 0.01),
        *imparity_of("age", {"old": 0.6, "young": 0.72}, 0.03),
    )
    age, sex = told(result, "imparity")
    # Holm: the smaller p-value is doubled.
    assert "(p = 0.020, adjusted for 2 attributes)" in sex.text
    assert "(p = 0.030, adjusted for 2 attributes)" in age.text
    assert age.concern
    assert sex.concern
    alone = result_of(*imparity_of("age", {"old": 0.6, "young": 0.72}, 0.03))
    assert "(p = 0.030)" in told(alone, "imparity")[0].text


def test_gaps_that_may_be_chance_share_a_sentence():
    rows = [
        *imparity_of("sex", {"f": 0.7, "m": 0.68}, 0.4),
        *imparity_of("age", {"old": 0.6, "young": 0.72}, 0.001),
        *imparity_of("site", {"a": 0.7, "b": 0.69}, 0.9),
        *imparity_of("race", {"x": 0.7, "y": 0.62}, 0.002),
    ]
    *each, together = told(result_of(*rows), "imparity")
    assert [statement.concern for statement in each] == [True, True]
    assert together.text.endswith(
        "sex (2.0 percentage points, p = 0.800) and site (1.0 percentage points, p = 0.900) may be chance, "
        "adjusted for 4 attributes."
    )
    assert not together.concern


def test_small_groups_are_not_named_as_lowest():
    result = result_of(*gap_of("race", {"a": 0.7, "b": 0.69, "c": 0.2}, 0.01, small=("c",)))
    assert gaps_of(result)[0].worst[0] == "b"
    assert "race b, 0.690" in told(result, "worst_group")[0].text


def test_groups_that_are_not_judged_are_named_with_the_reason():
    why = "fewer than 50 patients"
    result = result_of(
        groups=[group("race", "c", ratio=(0.2, NAN, NAN), why=why), group("race", "d", why=why)]
    )
    (found,) = told(result, "small_groups")
    assert found.text == "Not judged (fewer than 50 patients): race c and race d."
    assert told(result, "calibration") == []


def test_a_statement_says_that_there_is_nothing_to_compare():
    assert told(result_of(), "worst_group")[0].text == "There are no two groups to compare."
    lonely = result_of(*gap_of("race", {"a": 0.7, "b": 0.2}, 0.01, small=("b",)))
    assert gaps_of(lonely) == []
    assert "No two groups" in told(lonely, "worst_group")[0].text


@pytest.mark.parametrize(
    ("gain", "text", "concern"),
    [
        (
            (-0.2, -0.3, -0.1),
            "worse than by no model: sex f (log likelihood per patient \u22120.200, \u22120.300 to \u22120.100).",
            True,
        ),
        ((-0.1, -0.3, 0.1), "it cannot be ruled out for sex f.", False),
        ((0.2, 0.1, 0.3), "Every judged group is predicted better than by no model.", False),
        # What no reader sees in three decimals is not called harm.
        ((-3e-4, -4e-4, -2e-4), "it cannot be ruled out for sex f.", False),
    ],
)
def test_harm_follows_the_interval_of_the_group_table(gain, text, concern):
    (found,) = told(
        result_of(groups=[group("sex", "f", gain=gain), group("sex", "m", gain=(1, 1, 1))]), "harm"
    )
    assert found.text.endswith(text)
    assert found.concern is concern


def test_groups_that_the_reference_predicts_better_are_named():
    rows = [
        group("sex", "f", over_cox=(-0.02, -0.03, -0.01)),
        group("sex", "m", over_cox=(-0.02, -0.05, 0.01)),
    ]
    (found,) = told(result_of(groups=rows), "against_plain")
    assert found.text.startswith("Predicted worse than by plain Cox: sex f (")
    assert "sex m" not in found.text
    assert found.concern


def test_calibration_names_whose_events_differ_with_the_interval_that_decides():
    rows = [
        group("overall", "all", ratio=(1.25, 1.1, 1.4), concern="calibration"),
        group("age", "old", ratio=(2.0, 1.5, 2.6), concern="calibration"),
        group("sex", "f", ratio=(1.0, 0.9, 1.1)),
    ]
    (found,) = told(result_of(groups=rows), "calibration")
    assert found.text == (
        "Observed and expected events differ for age old (40 observed, 20 expected, ratio 2.000, 1.500 to 2.600)."
    )
    assert found.concern
    (together,) = told(result_of(groups=[rows[0], rows[2]]), "calibration")
    assert together.text.endswith("1.100 to 1.400), and in no group alone beyond chance.")
    assert together.text.startswith("Observed and expected events differ for all patients together (")
    (calm,) = told(result_of(groups=[rows[2]]), "calibration")
    assert calm.text == "Observed events agree with expected events in every judged group, within chance."
    assert not calm.concern


def decision(name, value, p=NAN, reason=""):
    who = {"attribute": "sex", "group": name, "metric": "sensitivity"}
    return who | {"value": value, "low": NAN, "high": NAN, "p": p, "reason": reason}


def test_statements_on_decisions_name_their_threshold():
    rows = [decision("f", 0.4), decision("m", 0.7), decision("gap", 0.3, 0.01)]
    (found,) = told(result_of(decisions=pd.DataFrame(rows)), "decisions")
    assert found.text == (
        "At a threshold of 20.0 % at time 200, sensitivity is 0.400 for sex f and 0.700 for sex m (p = 0.010, adjusted "
        "for 1 gap)."
    )
    assert found.concern
    rows[1:] = [decision("m", NAN, reason="no patient is positive"), decision("gap", NAN)]
    (unknown,) = told(result_of(decisions=pd.DataFrame(rows)), "decisions")
    assert unknown.text.endswith("sensitivity of sex m cannot be estimated: no patient is positive.")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ([0.1, 0.1], "2 of 2 disparities of risk are lower"),
        ([0.5, 0.5], "none of 2 disparities of risk is lower"),
        ([0.1, 0.5], "1 of 2 disparities of risk is lower"),
    ],
)
def test_shrinkage_compares_with_the_shrunken_reference(model, words):
    compared = pd.DataFrame(
        {"attribute": "sex", "metric": "group_disparity", "model": model, "reference": 0.9, "shrunken": 0.5}
    )
    rows = [
        row("overall", "all", "share_of_gain", "overall", 0.4),
        row("overall", "all", "calibration_slope", "overall", 2.5, low=1.9, high=3.1),
    ]
    control = ShrinkageControl(pd.DataFrame(), 0.6, compared)
    (found,) = told(result_of(*rows, control=control), "shrinkage")
    assert words in found.text
    assert (
        "40.0 % of plain Cox's; its calibration slope is 2.500 (1.900 to 3.100), where 1 is right"
        in found.text
    )
    assert found.concern
    stretched = result_of(*rows, control=replace(control, factor=1.1))
    assert "lower" not in told(stretched, "shrinkage")[0].text


def test_causes_are_judged_where_a_reader_sees_the_difference():
    causes = {"cause": 1, "attribute": "overall", "group": "all", "horizon": 1.0, "patients": 9, "events": 99}
    causes["training_events"] = 1e6
    seen = pd.DataFrame([causes | {"observed": 0.2, "observed_low": 0.1999, "observed_high": 0.2001}] * 2)
    judged = judged_by_cause(seen.assign(predicted=[0.2003, 0.2007]), 0.95)
    assert judged["off"].tolist() == [False, True]


def test_names_of_two_cuts_of_a_column_are_distinct():
    cuts = (gap_of(f"age>{cut}", {f">{cut}": 0.7, f"<={cut}": 0.6}, 0.5) for cut in (50, 65))
    asked = gap_of("CD4>200", {"yes": 0.8, "no": 0.6, "missing": 0.65}, 0.5)
    result = result_of(*(row for rows in (*cuts, asked) for row in rows))
    markdown = result.to_markdown()
    assert [line for line in markdown.split("\n") if line.startswith("## By")] == [
        f"## By {literal(name)}" for name in ("age>50", "age>65", "CD4>200")
    ]


def test_long_lists_of_groups_are_cut():
    rows = [group("ward", str(k), gain=(0.0, -0.1, 0.1)) for k in range(20)]
    assert told(result_of(groups=rows), "harm")[0].text.endswith("and 12 others.")


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


def test_a_cut_is_named_in_words_and_times_have_their_unit():
    result = result_of(
        *gap_of("age>65", {">65": 0.6, "<=65": 0.7}, 0.001),
        decisions=pd.DataFrame([decision("f", 0.4), decision("m", 0.4), decision("gap", 0.0, 0.9)]),
    )
    (first,) = told(result, "worst_group")
    assert first.text.startswith("Lowest c-index: age over 65, 0.600, against 0.700 in age 65 or below.")
    (found,) = (s for s in result.statements(time_unit="days") if s.code == "decisions")
    assert "at 200 days" in found.text
