import numpy as np
import pandas as pd
import polars
import pytest

from drosurv.evaluation.evaluator import named_columns
from drosurv.judging.rules import Condition
from drosurv.patients.groups import parse_groups
from drosurv.tables.groups import group_labels


@pytest.mark.parametrize(
    "labels",
    [
        ["f", "m", "f"],
        ("f", "m", "f"),
        np.array(["f", "m", "f"]),
        np.array(["f", "m", "f"], dtype=object),
        pd.Series(["f", "m", "f"], index=[7, 3, 9]),
        pd.Series(["f", "m", "f"], dtype="category"),
        pd.Index(["f", "m", "f"]),
        pd.DataFrame({"sex": ["f", "m", "f"]}),
        np.array([["f"], ["m"], ["f"]]),
        [["f"], ["m"], ["f"]],
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_every_container_of_labels_gives_the_same_codes(labels):
    groups = parse_groups(labels, 3)
    assert groups.codes.tolist() == [0, 1, 0]
    assert groups.labels == ("f", "m")
    assert np.bincount(groups.codes, minlength=len(groups)).tolist() == [2, 1]


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (np.array([2, 1, 2]), (1, 2)),
        (np.array([True, False, True]), (False, True)),
        (np.array([2.5, 1.0, 2.5]), (1.0, 2.5)),
        (pd.Series([2, 1, 2], dtype="Int64"), (1, 2)),
        (["b", 1, "b"], (1, "b")),
    ],
)
def test_labels_come_back_as_plain_python_values_in_order(values, labels):
    groups = parse_groups(values)
    assert groups.labels == labels
    assert [type(label) for label in groups.labels] == [type(label) for label in labels]
    assert [groups.labels[code] for code in groups.codes] == list(values)


def test_categories_keep_their_own_order_and_empty_ones_are_no_group():
    stage = pd.Series(pd.Categorical(["late", "early", "late"], categories=["early", "middle", "late"]))
    assert parse_groups(stage).labels == ("early", "late")


@pytest.mark.parametrize(
    "values",
    [
        ["a", None, "b"],
        ["a", np.nan, "b"],
        ["a", pd.NA, "b"],
        np.array(["a", None, "b"], dtype=object),
        pd.Series(["a", None, "b"]),
        pd.Series(["a", None, "b"], dtype="category"),
        pd.Series(["a", None, "b"], dtype="string"),
    ],
)
def test_missing_labels_are_a_group_or_left_out(values):
    kept = parse_groups(values)
    assert kept.labels == ("a", "b", "missing")
    assert kept.codes.tolist() == [0, 2, 1]
    left_out = parse_groups(values, missing="drop")
    assert left_out.labels == ("a", "b")
    assert left_out.codes.tolist() == [0, -1, 1]
    assert left_out.kept.tolist() == [True, False, True]
    assert np.bincount(left_out.codes[left_out.kept]).tolist() == [1, 1]


def test_intersections_are_the_cells_that_hold_a_patient():
    table = pd.DataFrame({"sex": ["m", "f", "m", "f"], "age": [">65", ">65", "<=65", None]})
    groups = parse_groups(table)
    assert groups.labels == (("f", ">65"), ("f", "missing"), ("m", "<=65"), ("m", ">65"))
    assert groups.codes.tolist() == [3, 0, 2, 1]
    assert parse_groups(table, missing="drop").codes.tolist() == [2, 0, 1, -1]


def test_intersections_of_many_large_attributes_do_not_collide():
    rng = np.random.default_rng(0)
    table = rng.permuted(np.tile(np.arange(500.0), (8, 1)), axis=1).T
    groups = parse_groups(table)
    assert len(groups) == 500
    assert [groups.labels[code] for code in groups.codes] == [tuple(row) for row in table.tolist()]


def test_parsed_groups_parse_to_themselves_and_keep_their_length():
    groups = parse_groups(["a", "b"])
    assert parse_groups(groups, 2) is groups
    with pytest.raises(ValueError, match="2 labels for 3 patients"):
        parse_groups(groups, 3)


def test_known_labels_set_the_order_and_may_be_empty():
    groups = parse_groups(["a", "b", None], labels=["c", "b", "a"])
    assert groups.labels == ("c", "b", "a", "missing")
    assert groups.codes.tolist() == [2, 1, 3]
    assert np.bincount(groups.codes, minlength=len(groups)).tolist() == [0, 1, 1, 1]


def test_labels_of_another_data_frame_library_are_understood():
    assert parse_groups(polars.Series("sex", ["f", "m", "f"])).labels == ("f", "m")
    table = polars.DataFrame({"sex": ["f", "m", "f"], "site": ["a", "a", "b"]})
    assert (
        parse_groups(table).labels
        == parse_groups(pd.DataFrame({"s": ["f", "m", "f"], "t": ["a", "a", "b"]})).labels
    )
    assert [*named_columns(table)] == ["sex", "site"]


def test_groups_by_date_are_named_without_a_time_of_day():
    dates = pd.Series(pd.to_datetime(["2021-06-01", "2020-01-01", None]))
    assert list(map(str, parse_groups(dates).labels)) == ["2020-01-01", "2021-06-01", "missing"]
    table = pd.DataFrame({"opened": dates})
    assert group_labels(table, ["opened"])["opened"][:2].tolist() == ["2021-06-01", "2020-01-01"]
    assert str(Condition("opened", "is", dates[0])) == "opened = 2021-06-01"
    assert str(parse_groups(dates + pd.Timedelta(hours=5)).labels[0]) == "2020-01-01 05:00:00"
