import numpy as np
import pandas as pd
import pytest

from drosurv.tables.groups import group_labels, guess_groups

FRAME = pd.DataFrame(
    {
        "age": np.r_[40.0:70.0:30j],
        "sex": ["f", "m", None] * 10,
        "stage": [1, 2, 3] * 10,
        "count": pd.array([1, None, 3] * 10, dtype="Int64"),
        "a>1": ["x", "y", "x"] * 10,
    }
)


def test_labels_of_a_column_are_its_values_and_stay_missing():
    labels = group_labels(FRAME, ["sex", "stage"])
    assert labels["sex"].iloc[:2].tolist() == ["f", "m"]
    assert labels["sex"].isna().sum() == 10
    assert labels["stage"].iloc[:3].tolist() == ["1", "2", "3"]


def test_a_cut_divides_numbers_at_its_value():
    labels = group_labels(FRAME, ["age>65", "age > 50.5", "stage>2", "stage>.5"])
    assert (labels["age>65"] == np.where(FRAME["age"] > 65, ">65", "<=65")).all()
    assert (labels["age > 50.5"] == np.where(FRAME["age"] > 50.5, ">50.5", "<=50.5")).all()
    assert labels["stage>2"].iloc[:3].tolist() == ["<=2", "<=2", ">2"]
    assert (labels["stage>.5"] == ">.5").all()


def test_a_missing_number_has_no_group():
    labels = group_labels(FRAME, ["count>2"])["count>2"]
    assert labels.isna().sum() == 10
    assert labels.iloc[[0, 2]].tolist() == ["<=2", ">2"]


def test_a_column_named_like_a_cut_is_that_column():
    assert group_labels(FRAME, ["a>1"])["a>1"].iloc[0] == "x"


def test_no_groups_give_a_frame_of_all_patients_without_columns():
    assert group_labels(FRAME, []).shape == (30, 0)


def test_names_are_no_groups():
    names = pd.DataFrame({"town": [f"n{i}" for i in range(51)], "Nachname": "Kim"})
    with pytest.raises(ValueError, match="51 different values, too many groups to compare"):
        group_labels(names, ["town"])
    assert len(group_labels(names.head(50), ["town"])) == 50
    with pytest.raises(ValueError, match="'Nachname' holds names, which no page may show"):
        group_labels(names, ["Nachname"])


def test_many_codes_are_groups_where_they_are_told_to_be_codes():
    hospitals = pd.DataFrame({"hospital": np.resize(np.arange(15), 45)})
    with pytest.raises(ValueError, match="or name it in categorical if they are codes"):
        group_labels(hospitals, ["hospital"])
    found = group_labels(hospitals, ["hospital"], categorical=["hospital"])["hospital"]
    assert found.tolist() == [str(code) for code in hospitals["hospital"]]


def test_a_cut_may_include_its_limit():
    frame = pd.DataFrame({"age": [24.0, 25.0, 26.0, np.nan]})
    assert group_labels(frame, ["age>=25"])["age>=25"].tolist()[:3] == ["<25", ">=25", ">=25"]
    assert group_labels(frame, ["age>=25"])["age>=25"].isna().tolist() == [False, False, False, True]
    assert group_labels(frame, ["age>25"])["age>25"].tolist()[:3] == ["<=25", "<=25", ">25"]
    assert group_labels(frame, ["age<25"])["age<25"].tolist()[:3] == ["<25", ">=25", ">=25"]
    assert group_labels(frame, ["age<=25"])["age<=25"].tolist()[:3] == ["<=25", "<=25", ">25"]


@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0, 1e9])
def test_guessed_cuts_and_those_of_questions_can_be_given_whatever_the_size_of_the_numbers(size):
    frame = pd.DataFrame({"income": size * np.arange(1.0, 101.0)})
    (cut,) = guess_groups(frame, [])
    assert 40 <= group_labels(frame, [cut])[cut].str.startswith(">").sum() <= 60
    with pytest.raises(ValueError, match="cut it in two, for example") as asked:
        group_labels(frame, ["income"])
    example = str(asked.value).partition("groups=['")[2].partition("'")[0]
    assert group_labels(frame, [example])[example].str.startswith(">").sum() == 50
