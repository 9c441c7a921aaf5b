"""Each rule against a plain loop over the rows that follows its definition."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drosurv.tuning import (
    AccuracyBudget,
    BestScore,
    FixedSetting,
    OneStandardError,
    ParetoPoint,
    pareto_front,
)

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


def test_reference_best_is_the_highest_accuracy_of_the_table():
    table = pd.DataFrame({"concordance_index": [0.9, 0.8], "concordance_imparity": [0.3, 0.1]})
    assert AccuracyBudget(reference="best").choose(table).index == 0
    assert AccuracyBudget(reference="best", tolerance=0.2).choose(table).index == 1


def test_against_fills_in_the_unregularised_score_and_changes_nothing_else():
    rule = AccuracyBudget(tolerance=0.1, minimise="average_disparity")
    assert rule.against(0.7) == AccuracyBudget(tolerance=0.1, minimise="average_disparity", reference=0.7)
    assert rule.reference == "unregularised"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (AccuracyBudget(), r"rule\.against\(score\)"),
        (AccuracyBudget(reference=-6.3), "finite and positive, got -6.3"),
        (AccuracyBudget(reference=float("nan")), "finite and positive"),
        (AccuracyBudget(reference="cox"), "got 'cox'"),
        (AccuracyBudget(tolerance=5, reference=0.8), r"tolerance must be in \[0, 1\), got 5"),
        (OneStandardError(), "concordance_index_se"),
        (FixedSetting({"alpha": 0.1}), "no column 'alpha'"),
        (FixedSetting({"concordance_index": 0.1}), "match 0 of 2 settings"),
        (FixedSetting({"concordance_imparity": 0.2}), "match 2 of 2 settings"),
    ],
)
def test_a_rule_that_cannot_be_applied_says_what_to_change(rule, message):
    table = pd.DataFrame({"concordance_index": [0.7, 0.8], "concordance_imparity": [0.2, 0.2]})
    with pytest.raises(ValueError, match=message):
        rule.choose(table)


def test_the_best_score_can_be_the_lowest_and_ties_go_to_the_first_row():
    table = pd.DataFrame({"integrated_brier_score": [0.3, 0.1, 0.1]}, index=["a", "b", "c"])
    assert BestScore("integrated_brier_score", maximise=False).choose(table).index == "b"
    assert BestScore("integrated_brier_score").choose(table).index == "a"


def test_a_fixed_setting_ignores_the_scores():
    table = pd.DataFrame(
        {"alpha": [0.1, 0.1, 0.2], "lr": [0.01, 0.1, 0.01], "concordance_index": [0.1, np.nan, 0.9]}
    )
    assert FixedSetting({"alpha": 0.1, "lr": 0.1}).choose(table).index == 1


def test_one_standard_error_uses_the_error_of_the_best_setting():
    # Setting 1 is .010 below the best: inside one standard error of the best (.011), outside its own (.001).
    table = pd.DataFrame(
        {
            "concordance_index": [0.800, 0.790, 0.788],
            "concordance_index_se": [0.011, 0.001, 0.100],
            "concordance_imparity": [0.05, 0.02, 0.01],
        }
    )
    assert OneStandardError().choose(table).index == 1


def test_one_standard_error_reads_folds():
    folds = pd.DataFrame(
        {
            "candidate": ["plain", "robust", "null"] * 2,
            "fold": [0, 0, 0, 1, 1, 1],
            "concordance_index": [0.82, 0.80, 0.5, 0.78, 0.78, 0.5],
            "concordance_imparity": [0.05, 0.02, 0.0, 0.05, 0.02, 0.0],
        }
    )
    # Best mean .80 with standard error .02; the robust setting's mean is .79.
    assert OneStandardError().choose(folds).index == "robust"


def test_one_standard_error_of_a_score_to_be_made_small():
    table = pd.DataFrame(
        {
            "integrated_brier_score": [0.10, 0.11, 0.30],
            "integrated_brier_score_se": [0.02, 0.02, 0.02],
            "concordance_imparity": [0.05, 0.02, 0.0],
        }
    )
    assert OneStandardError("integrated_brier_score", maximise=False).choose(table).index == 1


def test_a_single_fold_has_no_standard_error():
    fold = pd.DataFrame(
        {"candidate": [0], "fold": [0], "concordance_index": [0.8], "concordance_imparity": [0.1]}
    )
    with pytest.raises(ValueError, match="at least two folds"):
        OneStandardError().choose(fold)


levels = st.integers(0, 6).map(float)
tables = st.lists(st.tuples(levels, levels), min_size=1, max_size=15).map(
    lambda rows: pd.DataFrame(rows, columns=["concordance_index", "concordance_imparity"])
)


def beaten(row, other):
    return other[0] >= row[0] and other[1] <= row[1] and (other[0] > row[0] or other[1] < row[1])


@settings(deadline=None, max_examples=40)
@given(table=tables, weight=st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_the_front_holds_exactly_the_rows_that_no_other_row_beats_and_the_chosen_point(table, weight):
    rows = list(table.itertuples(index=False, name=None))
    expected = {i for i, row in enumerate(rows) if not any(beaten(row, other) for other in rows)}
    front = pareto_front(table)
    assert set(front.index) == expected
    assert front["concordance_index"].is_monotonic_decreasing
    assert front["concordance_imparity"].is_monotonic_decreasing
    assert ParetoPoint(weight=weight).choose(table).index in expected


def test_the_ends_of_the_front_are_the_weights_one_and_zero():
    table = pd.DataFrame({"concordance_index": [0.8, 0.75, 0.6], "concordance_imparity": [0.05, 0.02, 0.01]})
    assert ParetoPoint(weight=1).choose(table).index == 0
    assert ParetoPoint(weight=0).choose(table).index == 2


def test_the_knee_is_the_point_farthest_from_the_chord():
    accuracy = np.array([0.80, 0.795, 0.78, 0.70, 0.60])
    disparity = np.array([0.100, 0.060, 0.020, 0.010, 0.005])
    a = (accuracy - 0.60) / 0.20
    u = (disparity - 0.005) / 0.095
    distance_to_chord = (a - u) / np.sqrt(2)
    table = pd.DataFrame({"concordance_index": accuracy, "concordance_imparity": disparity})
    assert ParetoPoint().choose(table).index == int(np.argmax(distance_to_chord)) == 2


def test_the_point_does_not_depend_on_the_units_of_either_column():
    table = pd.DataFrame({"concordance_index": [0.8, 0.79, 0.6], "concordance_imparity": [0.05, 0.01, 0.0]})
    percent = table.assign(concordance_imparity=100 * table["concordance_imparity"])
    assert ParetoPoint().choose(table).index == ParetoPoint().choose(percent).index == 1


def test_a_front_of_one_setting_is_that_setting():
    table = pd.DataFrame(
        {"concordance_index": [0.8, 0.7], "concordance_imparity": [0.0, 0.1]}, index=["a", "b"]
    )
    assert ParetoPoint().choose(table).index == "a"


def test_a_weight_outside_the_unit_interval_is_an_error():
    with pytest.raises(ValueError, match=r"weight must be in \[0, 1\], got 2"):
        ParetoPoint(weight=2).choose(
            pd.DataFrame({"concordance_index": [1.0], "concordance_imparity": [0.0]})
        )
