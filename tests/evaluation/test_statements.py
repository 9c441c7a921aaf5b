from dataclasses import replace
from itertools import groupby

import numpy as np
import pandas as pd
import pytest
from drosurv.audit.sections.accuracy import fairness_table

from drosurv.audit.sections.groups import group_table
from drosurv.evaluation import EvaluationResult
from drosurv.evaluation.by_cause import judged_by_cause
from drosurv.evaluation.engine import Row, frame_of
from drosurv.evaluation.reference import ShrinkageControl
from drosurv.evaluation.result import Settings
from drosurv.evaluation.statements import judged_gaps
from drosurv.metrics.inference import holm, widening
from drosurv.presentation import literal

NAN = float("nan")


def row(attribute, group, metric, kind, value, low=NAN, high=NAN, p_value=NAN, status="ok"):
    return Row(attribute, group, metric, kind, "", value, low, high, 0.0, p_value, "", 100, 40, 0.6, status)


def gap_of(attribute, values, p_value, *, small=()):
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
        row(attribute, "x vs y", "concordance_index", "gap", spread, spread - 0.01, spread + 0.01, p_value),
    ]


def adjusted(rows):
    """Rows whose gaps allow for each other, as an evaluation makes them."""
    gaps = [row for row in rows if row.kind == "gap"]
    wider = widening(0.95, len(gaps))
    raised = dict(zip(map(id, gaps), holm([row.p_value for row in gaps]), strict=True))
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


def result_of(*rows, control=None):
    empty = pd.DataFrame()
    settings = Settings("m", "plain Cox", 100, 100, 0.95, "paper", "group", (100.0, 200.0, 300.0), 200.0)
    everyone = row("overall", "all", "concordance_index", "overall", 0.8)
    told = (everyone, *adjusted(rows))
    gaps = frame_of([row for row in told if row.kind == "gap"])
    return EvaluationResult(
        frame_of(told), empty, empty, empty, empty, empty, control, (), settings, between_large=gaps
    )


def told(result, code):
    return [statement for statement in result.statements() if statement.code == code]


def gaps_of(result):
    return judged_gaps(result, "concordance_index")


def test_the_largest_gap_names_the_group_served_worst():
    result = result_of(
        *gap_of("sex", {"f": 0.7, "m": 0.68}, 0.4), *gap_of("age", {"old": 0.6, "young": 0.72}, 0.001)
    )
    assert (gaps_of(result)[0].attribute, gaps_of(result)[0].worst[0]) == ("age", "old")
    (first,) = told(result, "worst_group")
    assert "age old" in first.text
    assert "12.0 percentage points (10.9 to 13.1)" in first.text
    assert first.concern
    (second,) = told(result, "gap")
    assert "sex" in second.text
    assert not second.concern


def test_p_values_are_raised_for_the_number_of_attributes():
    result = result_of(
        *gap_of("sex", {"f": 0.7, "m": 0.68}, 0.04), *gap_of("age", {"old": 0.6, "young": 0.72}, 0.03)
    )
    (first,) = told(result, "worst_group")
    (second,) = told(result, "gap")
    # Holm: the smaller is doubled, and the larger may not fall below it.
    assert "may be chance (p = 0.060 allowing for 2 attributes; p = 0.030 on its own)" in first.text
    assert "p = 0.060 allowing for 2 attributes; p = 0.040 on its own" in second.text
    # The interval beside "may be chance" holds no gap at all.
    assert "(0.0 to 13.1)" in first.text
    assert not first.concern
    alone = result_of(*gap_of("age", {"old": 0.6, "young": 0.72}, 0.03))
    assert "(p = 0.030)" in told(alone, "worst_group")[0].text


def test_gaps_that_may_be_chance_are_told_together():
    rows = [
        *gap_of("sex", {"f": 0.7, "m": 0.68}, 0.4),
        *gap_of("age", {"old": 0.6, "young": 0.72}, 0.001),
        *gap_of("site", {"a": 0.7, "b": 0.69}, 0.9),
        *gap_of("race", {"x": 0.7, "y": 0.62}, 0.002),
    ]
    result = result_of(*rows)
    race, together = told(result, "gap")
    assert race.text.startswith("Between groups of race, the gap is 8.0 percentage points (")
    assert race.concern
    assert together.text == (
        "The gaps between groups of sex (2.0 percentage points, p = 0.800) and site (1.0 percentage points, p = 0.900) "
        "may be chance, allowing for 4 attributes."
    )
    assert not together.concern


def test_small_groups_are_named_but_not_judged():
    result = result_of(*gap_of("race", {"a": 0.7, "b": 0.69, "c": 0.2}, 0.01, small=("c",)))
    assert gaps_of(result)[0].worst[0] == "b"
    (first,) = told(result, "worst_group")
    assert "a gap of 1.0 percentage points" in first.text
    assert told(result, "small_groups")[0].text == "Too small to be judged: race c."


def test_nothing_to_compare_is_said():
    assert told(result_of(), "worst_group")[0].text == "There are no two groups to compare."
    lonely = result_of(*gap_of("race", {"a": 0.7, "b": 0.2}, 0.01, small=("b",)))
    assert gaps_of(lonely) == []
    assert "No two groups" in told(lonely, "worst_group")[0].text


@pytest.mark.parametrize(
    ("low", "high", "text", "concern"),
    [
        (-0.3, -0.1, "Worse served than by no model at all: sex f (squared error 20.0 % larger).", True),
        (-0.3, 0.1, "cannot be ruled out for sex f.", False),
        (0.1, 0.3, "Every group is better served", False),
    ],
)
def test_harm_is_told_from_the_interval(low, high, text, concern):
    rows = [
        row("sex", "f", "brier_skill", "group", (low + high) / 2, low, high),
        row("sex", "m", "likelihood_gain", "group", 1, 1, 1),
    ]
    (found,) = told(result_of(*rows), "harm")
    assert text in found.text
    assert found.concern is concern


def calibration(attribute, group, value, reach=0.02, status="ok"):
    """Predicted less observed survival at the horizon, with its interval."""
    kind = "overall" if attribute == "overall" else "group"
    ends = value - reach, value + reach
    return row(attribute, group, "calibration_difference", kind, value, *ends, status=status)


def test_calibration_names_who_is_off_and_which_way():
    rows = [
        calibration("overall", "all", 0.4),
        calibration("sex", "f", 0.03),
        calibration("sex", "m", 0.0),
        calibration("age", "old", -0.04),
        calibration("age", "tiny", -0.6, status="small group"),
    ]
    (found,) = told(result_of(*rows), "calibration")
    assert found.text == (
        "At time 200, predicted survival is 4.0 percentage points too low for age old, "
        "3.0 percentage points too high for sex f."
    )
    assert found.concern
    (calm,) = told(result_of(rows[2]), "calibration")
    assert "agrees" in calm.text
    assert not calm.concern


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ([0.1, 0.1], "are lower"),
        ([0.5, 0.5], "are no lower"),
        ([0.1, 0.5], "1 of its 2 disparities of risk is lower"),
    ],
)
def test_shrinkage_compares_with_the_shrunken_reference(model, words):
    compared = pd.DataFrame(
        {"attribute": "sex", "metric": "group_disparity", "model": model, "reference": 0.9, "shrunken": 0.5}
    )
    rows = [
        row("overall", "all", "share_of_gain", "overall", 0.4),
        row("overall", "all", "calibration_slope", "overall", 2.5),
    ]
    control = ShrinkageControl(pd.DataFrame(), 0.6, compared)
    (found,) = told(result_of(*rows, control=control), "shrinkage")
    assert words in found.text
    assert "40.0 % of plain Cox's information" in found.text
    assert found.concern
    stretched = result_of(*rows, control=replace(control, factor=1.1))
    assert "lower than shrinking" not in told(stretched, "shrinkage")[0].text


def test_without_replicates_nothing_is_claimed():
    rows = [row("sex", "f", "brier_skill", "group", -0.2)]
    result = result_of(*rows, *gap_of("sex", {"f": 0.7, "m": 0.6}, np.nan))
    assert [statement.code for statement in result.statements()] == ["overall", "worst_group"]
    assert "was not tested" in told(result, "worst_group")[0].text


def test_harm_of_one_group_among_many_may_be_chance():
    narrow = [row("ward", str(k), "brier_skill", "group", 0.3, 0.2, 0.4) for k in range(29)]
    # Alone, its interval of -0.09 to -0.01 shows harm; of thirty such intervals one is there by chance.
    odd = row("ward", "odd", "brier_skill", "group", -0.05, -0.09, -0.01)
    assert told(result_of(odd), "harm")[0].concern
    (found,) = told(result_of(*narrow, odd), "harm")
    assert found.text.endswith("cannot be ruled out for ward odd.")
    assert not found.concern


def test_small_groups_are_neither_harmed_nor_among_all_that_are_served():
    small = row("race", "c", "likelihood_gain", "group", -0.5, -0.9, -0.1, status="small group")
    large = row("race", "a", "likelihood_gain", "group", 0.3, 0.2, 0.4)
    (found,) = told(result_of(large, small), "harm")
    assert found.text.startswith("Every group large enough to be judged is better served")


def test_a_group_before_its_first_event_is_not_called_miscalibrated():
    off = result_of(calibration("sex", "f", -0.02, 0.01))
    assert told(off, "calibration")
    came = {"attribute": ["sex"], "group": "f", "horizon": 200.0, "observed": 1.0, "difference_low": np.nan}
    assert told(replace(off, calibration=pd.DataFrame(came)), "calibration") == []


def test_a_difference_that_no_reader_sees_is_none_however_many_the_patients():
    rows = [calibration("sex", "f", 3e-4, 1e-4), calibration("sex", "m", 6e-4, 1e-4)]
    (found,) = told(result_of(*rows), "calibration")
    assert found.text == "At time 200, predicted survival is 0.1 percentage points too high for sex m."
    (calm,) = told(result_of(rows[0]), "calibration")
    assert "agrees" in calm.text


def test_a_gain_that_no_reader_sees_is_none():
    def gain(value):
        return row("sex", "f", "likelihood_gain", "group", value, value - 1e-4, value + 1e-4)

    for value, said in (
        (-3e-4, "cannot be ruled out for sex f"),
        (3e-4, "cannot be ruled out for sex f"),
        (-6e-4, "Worse served than by no model at all: sex f (log likelihood 0.0006 lower per patient)"),
        (6e-4, "Every group is better served"),
    ):
        (found,) = told(result_of(gain(value)), "harm")
        assert said in found.text
    causes = {"cause": 1, "attribute": "overall", "group": "all", "horizon": 1.0, "patients": 9, "events": 99}
    causes["training_events"] = 1e6
    seen = pd.DataFrame([causes | {"observed": 0.2, "low": 0.1999, "high": 0.2001}] * 2)
    judged = judged_by_cause(seen.assign(predicted=[0.2003, 0.2007]), 0.95)
    assert judged["off"].tolist() == [False, True]


def test_where_no_group_differs_none_is_called_lowest():
    rows = gap_of("sex", {"f": 0.7, "m": 0.68}, 0.4), gap_of("site", {"a": 0.7, "b": 0.7}, 1.0)
    assert told(result_of(*rows[0], *rows[1]), "gap") == []


def test_two_cuts_of_a_column_and_answers_are_told_apart():
    cuts = (gap_of(f"age>{cut}", {f">{cut}": 0.7, f"<={cut}": 0.6}, 0.5) for cut in (50, 65))
    asked = gap_of("CD4>200", {"yes": 0.8, "no": 0.6, "missing": 0.65}, 0.5)
    result = result_of(*(row for rows in (*cuts, asked) for row in rows))
    (found,) = told(result, "gap")
    assert "age>50 (10.0 percentage points, p = 1.000) and age>65 (10.0" in found.text
    markdown = result.to_markdown()
    assert [line for line in markdown.split("\n") if line.startswith("## By")] == [
        f"## By {literal(name)}" for name in ("age>50", "age>65", "CD4>200")
    ]
    # Who has no answer stands below the question, too.
    blocks = groupby(row["attribute"] for row in group_table(result).rows)
    assert [name for name, _ in blocks] == ["", "age>50", "age>65", "CD4>200"]


def test_predictions_off_for_all_together_are_not_said_to_agree():
    groups = [calibration("sex", "f", 0.03, 0.04), calibration("sex", "m", 0.03, 0.04)]
    (found,) = told(result_of(calibration("overall", "all", 0.03), *groups), "calibration")
    assert found.text == (
        "At time 200, predicted survival is 3.0 percentage points too high for all patients together, and in no group "
        "alone beyond chance."
    )
    assert found.concern
    (calm,) = told(result_of(calibration("overall", "all", 0.01), *groups), "calibration")
    assert "agrees" in calm.text


def test_everybody_is_one_more_look_at_calibration():
    # Else a right model would be called off twice as often as the level says: for a group, or for all together.
    everybody = calibration("overall", "all", 0.021)
    (alone,) = told(result_of(everybody), "calibration")
    assert alone.concern
    (among,) = told(
        result_of(everybody, calibration("sex", "f", 0.0), calibration("sex", "m", 0.0)), "calibration"
    )
    assert "agrees" in among.text


def test_one_group_off_among_many_agrees_within_chance():
    off = calibration("ward", "odd", 0.025)
    well = [calibration("ward", str(k), 0.0) for k in range(29)]
    assert told(result_of(off), "calibration")[0].concern
    assert "agrees" in told(result_of(*well, off), "calibration")[0].text


def test_long_lists_of_groups_are_cut():
    rows = [row("ward", str(k), "brier_skill", "group", 0.0, -0.1, 0.1) for k in range(20)]
    assert told(result_of(*rows), "harm")[0].text.endswith("for ward = 0, 1, 2, 3, 4, 5, 6, 7; and 12 more.")


def test_the_table_of_gaps_says_what_the_summary_says():
    result = result_of(
        *gap_of("sex", {"f": 0.7, "m": 0.68}, 0.04), *gap_of("age", {"old": 0.6, "young": 0.72}, 0.03)
    )
    assert [(row["p_value"], row["reading"]) for row in fairness_table(result).rows] == [
        (0.06, "may be chance")
    ] * 2


def test_those_nearest_to_harm_are_named_first_under_their_attributes():
    rows = [
        row("ward", "a", "brier_skill", "group", 0.09, -0.1, 0.28),
        row("ward", "b", "brier_skill", "group", 0.0, -0.1, 0.1),
        row("sex", "f", "likelihood_gain", "group", -0.05, -0.1, 0.0),
        row("ward", "a", "likelihood_gain", "group", 0.2, -0.1, 0.5),
    ]
    assert told(result_of(*rows), "harm")[0].text.endswith("for sex f; ward b, a.")


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
    assert "shrinking" not in told(result_of(*rows, control=control), "shrinkage")[0].text


def test_a_cut_is_named_in_words_and_times_have_their_unit():
    rows = gap_of("age>65", {">65": 0.6, "<=65": 0.7}, 0.001)
    result = result_of(*rows, calibration("age>65", ">65", 0.0))
    (first,) = told(result, "worst_group")
    assert first.text.startswith("Served worst: age over 65. ")
    assert "in age 65 or below" in first.text
    (found,) = (s for s in result.statements(time_unit="days") if s.code == "calibration")
    assert found.text.startswith("At 200 days, predicted survival agrees")
