"""Each rule against a plain loop over the rows that follows its definition."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.paper.rules import AccuracyBudget, BestScore, FixedSetting

# Few distinct values, so that ties happen all the time.
levels = st.sampled_from([0.0, 0.01, 0.02, 0.5, 0.7, 0.75, 0.76, 0.8])
tables = st.lists(st.tuples(levels, levels), min_size=1, max_size=12).map(
    lambda rows: pd.DataFrame(rows, columns=["concordance_index", "concordance_imparity"])
)


def budget_by_loop(table, tolerance, reference):
    """The first row with the lowest disparity, then the highest accuracy, of those inside the budget."""
    best, fallback = None, False
    for row, (accuracy, disparity) in enumerate(table.itertuples(index=False)):
        if accuracy < (1 - tolerance) * reference:
            continue
        if best is None or (disparity, -accuracy) < best[0]:
            best = ((disparity, -accuracy), row)
    if best is None:
        fallback = True
        accuracies = list(table["concordance_index"])
        best = (None, accuracies.index(max(accuracies)))
    return best[1], fallback


@settings(deadline=None, max_examples=40)
@given(table=tables, tolerance=st.sampled_from([0.0, 0.05, 0.3]), reference=st.sampled_from([0.5, 0.8, 1.0]))
def test_the_accuracy_budget_is_the_loop_over_its_definition(table, tolerance, reference):
    choice = AccuracyBudget(tolerance=tolerance, reference=reference).choose(table)
    assert (choice.index, choice.fallback) == budget_by_loop(table, tolerance, reference)


def test_the_budget_includes_a_setting_exactly_on_the_bar():
    table = pd.DataFrame({"concordance_index": [0.8, 0.95 * 0.8], "concordance_imparity": [0.02, 0.01]})
    assert AccuracyBudget(reference=0.8).choose(table).index == 1


def test_the_budget_can_minimise_another_column():
    table = pd.DataFrame(
        {
            "concordance_index": [0.8, 0.8],
            "concordance_imparity": [0.01, 0.02],
            "average_disparity": [0.9, 0.1],
        }
    )
    rule = AccuracyBudget(minimise="average_disparity", reference=0.8)
    assert rule.choose(table).index == 1
    assert "average disparity (0.1)" in rule.choose(table).reason


def test_nothing_inside_the_budget_is_flagged_and_explained():
    table = pd.DataFrame({"concordance_index": [0.6, 0.7], "concordance_imparity": [0.0, 0.3]})
    choice = AccuracyBudget(reference=0.9).choose(table)
    assert (choice.index, choice.fallback) == (1, True)
    assert "no setting with c-index >= 0.95 x 0.9000 = 0.8550" in choice.reason


def test_a_setting_whose_disparity_is_not_known_cannot_win():
    table = pd.DataFrame({"concordance_index": [0.8, 0.8], "concordance_imparity": [np.nan, 0.3]})
    assert AccuracyBudget(reference=0.8).choose(table).index == 1


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (FixedSetting({"concordance_index": 0.1}), "match 0 of 2 settings"),
        (FixedSetting({"concordance_imparity": 0.2}), "match 2 of 2 settings"),
        (AccuracyBudget(0.8, "average_disparity"), "none of the 2 settings has a finite c-index and average"),
    ],
)
def test_a_rule_that_cannot_be_applied_says_why(rule, message):
    table = pd.DataFrame(
        {"concordance_index": [0.7, 0.8], "concordance_imparity": [0.2, 0.2], "average_disparity": np.nan}
    )
    with pytest.raises(ValueError, match=message):
        rule.choose(table)


def test_ties_of_the_best_score_go_to_the_first_row():
    table = pd.DataFrame({"concordance_index": [0.3, 0.7, 0.7]}, index=["a", "b", "c"])
    assert BestScore().choose(table).index == "b"


def test_a_fixed_setting_ignores_the_scores():
    table = pd.DataFrame(
        {"alpha": [0.1, 0.1, 0.2], "lr": [0.01, 0.1, 0.01], "concordance_index": [0.1, np.nan, 0.9]}
    )
    assert FixedSetting({"alpha": 0.1, "lr": 0.1}).choose(table).index == 1
