import numpy as np
import pandas as pd
import pytest

from drosurv.evaluation.evaluator import (
    Count,
    SmallGroupWarning,
    intersection_of,
    parse_attributes,
    warn_of_small_groups,
)
from drosurv.patients.target import Target


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (pd.DataFrame({"sex": ["f", "m"], 3: [1, 2]}), ["sex", "3"]),
        (pd.Series(["f", "m"], name="sex"), ["sex"]),
        (pd.Series(["f", "m"]), ["sensitive_feature"]),
        ({"sex": ["f", "m"]}, ["sex"]),
        (np.array([["f", "x"], ["m", "y"]]), ["sensitive_feature_0", "sensitive_feature_1"]),
        ([["f", "x"], ["m", "y"]], ["sensitive_feature_0", "sensitive_feature_1"]),
        (["f", "m"], ["sensitive_feature"]),
        (None, []),
    ],
)
def test_every_column_becomes_a_named_attribute(given, names):
    assert [attribute.name for attribute in parse_attributes(given, 2)] == names


def test_rows_and_counts_are_those_of_each_label():
    (sex,) = parse_attributes({"sex": ["f", "m", "f", None]}, 4)
    assert sex.labels == ("f", "m", "missing")
    assert {label: rows.tolist() for label, rows in sex.rows.items()} == {
        "f": [0, 2],
        "m": [1],
        "missing": [3],
    }
    target = Target(np.array([True, False, False, True]), np.arange(1.0, 5.0))
    counts = [Count(len(rows), target.take(rows).n_events) for rows in sex.rows.values()]
    assert [count[:2] for count in counts] == [(2, 1), (1, 0), (1, 1)]
    assert [count.censoring for count in counts] == [0.5, 1.0, 0.0]


def test_dropped_patients_belong_to_no_group():
    (sex,) = parse_attributes({"sex": ["f", "m", np.nan]}, 3, missing="drop")
    assert sex.labels == ("f", "m")
    assert sex.kept.tolist() == [0, 1]
    assert sex.kept_groups.codes.tolist() == [0, 1]


def test_labels_with_the_same_text_stay_distinct():
    (mixed,) = parse_attributes({"code": pd.Series([1, "1", 1], dtype=object)}, 3)
    assert len(set(mixed.labels)) == 2


def test_intersections_hold_the_patients_of_all_their_labels():
    attributes = parse_attributes({"sex": ["f", "m", "f", "m"], "age": ["old", "old", "young", None]}, 4)
    both = intersection_of(attributes)
    assert both.name == "sex & age"
    assert {label: rows.tolist() for label, rows in both.rows.items()} == {
        "f & old": [0],
        "f & young": [2],
        "m & old": [1],
        "m & missing": [3],
    }
    dropped = intersection_of(
        parse_attributes({"a": ["x", "y", "x"], "b": ["u", None, "v"]}, 3, missing="drop")
    )
    assert dropped.kept.tolist() == [0, 2]
    assert intersection_of(attributes[:1]) is attributes[0]
    apart = {"a": ["x", "y", None, None], "b": [None, None, "u", "v"]}
    with pytest.raises(ValueError, match="no patient has a label of every attribute, a & b: leave one out"):
        intersection_of(parse_attributes(apart, 4, missing="drop"))


def test_many_different_numbers_are_no_groups():
    ages = np.linspace(40, 90, 60)
    with pytest.raises(
        ValueError, match=r"sensitive_features 'age' holds 60 different numbers.*above 65 and not"
    ):
        parse_attributes({"age": ages}, 60)
    (found,) = parse_attributes({"age": np.where(ages > 65, "old", "young")}, 60)
    assert len(found.labels) == 2


def test_small_groups_are_named_in_one_warning():
    counts = {("sex", "f"): Count(10, 5), ("sex", "m"): Count(100, 2), ("sex", "x"): Count(100, 50)}
    with pytest.warns(SmallGroupWarning, match="sex f: 10 patients, 5 events; sex m: 100 patients, 2 events"):
        assert warn_of_small_groups(counts) == {("sex", "f"), ("sex", "m")}
    assert warn_of_small_groups({("sex", "x"): Count(100, 50)}) == set()
    with pytest.warns(SmallGroupWarning, match=r"\(age over 65: 9 patients, 5 events\)"):
        warn_of_small_groups({("age>65", ">65"): Count(9, 5)})
