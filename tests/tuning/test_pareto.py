"""The front against the definition: a row is on it unless another row beats it."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drosurv.tuning import ParetoPoint, pareto_front

levels = st.integers(0, 6).map(float)
tables = st.lists(st.tuples(levels, levels), min_size=1, max_size=15).map(
    lambda rows: pd.DataFrame(rows, columns=["concordance_index", "concordance_imparity"])
)


def beaten(row, other):
    return other[0] >= row[0] and other[1] <= row[1] and (other[0] > row[0] or other[1] < row[1])


@settings(deadline=None, max_examples=150)
@given(table=tables)
def test_the_front_holds_exactly_the_rows_that_no_other_row_beats(table):
    rows = list(table.itertuples(index=False, name=None))
    expected = {i for i, row in enumerate(rows) if not any(beaten(row, other) for other in rows)}
    front = pareto_front(table)
    assert set(front.index) == expected
    assert front["concordance_index"].is_monotonic_decreasing
    assert front["concordance_imparity"].is_monotonic_decreasing


@settings(deadline=None, max_examples=60)
@given(table=tables, weight=st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_the_chosen_point_is_on_the_front(table, weight):
    assert ParetoPoint(weight=weight).choose(table).index in pareto_front(table).index


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
