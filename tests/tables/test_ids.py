"""Columns that identify patients or rows are recognised by their names, or by what is constant in a patient."""

import numpy as np
import pandas as pd
import pytest

from drosurv.errors import ArgumentWarning
from drosurv.tables import read_survival_table
from drosurv.tables.guess import guess_columns
from drosurv.tables.ids import counts_rows, names_patients, names_people, row_numbers, unnamed_ids

RNG = np.random.default_rng(0)


@pytest.fixture
def visits():
    """Two eyes of 100 patients, whose number has a name that says nothing."""
    patient = np.repeat(RNG.permutation(100) + 1000, 2)
    age = RNG.integers(20, 80, 2000)
    return pd.DataFrame(
        {
            "k": patient,
            "age": age[patient],
            "centre": RNG.choice(["a", "b", "c"], 2000)[patient],
            "eye": ["left", "right"] * 100,
            "time": RNG.exponential(30, 200).round(1),
            "status": RNG.integers(0, 2, 200),
        }
    )


def numbered(frame, columns):
    """The columns that number patients, each with the columns that are constant for them."""
    return list(unnamed_ids(frame, columns, columns))


def test_a_number_of_patients_is_known_by_what_is_constant(visits):
    assert numbered(visits, ["k", "age", "centre", "eye"]) == [("k", ["age", "centre"])]
    shuffled = visits.assign(k=RNG.permutation(visits["k"]))
    assert numbered(shuffled, ["k", "age", "centre", "eye"]) == []


def test_a_number_of_rows_that_is_repeated_is_one_of_patients(visits):
    """As the numbers of the kidney patients of R's survival, of whom only the disease is the same in both rows."""
    renamed = visits.rename(columns={"k": "Nr"})
    assert numbered(renamed, ["Nr", "centre", "eye"]) == [("Nr", ["centre"])]
    assert numbered(visits, ["k", "centre", "eye"]) == []
    # Few numbers are repeated: that a column is the same in their rows may be chance.
    few = pd.concat([visits.iloc[::2], visits.iloc[1:21:2]]).rename(columns={"k": "Nr"})
    assert numbered(few, ["Nr", "centre", "eye"]) == []
    with pytest.raises(
        ValueError, match="'centre' is the same in all rows of a value: it seems to number patients"
    ):
        read_survival_table(renamed.drop(columns="age"), time="time", event="status")


def test_check_takes_it_as_the_id_and_fit_asks(visits):
    assert guess_columns(visits).id == "k"
    with pytest.raises(ValueError, match=r"it seems to number patients\. Pass id='k'"):
        read_survival_table(visits, time="time", event="status")
    # Both eyes of a patient count from time 0.
    with pytest.warns(ArgumentWarning, match="100 patients have rows .* that all count from time 0"):
        table = read_survival_table(visits, time="time", event="status", id="k")
    assert table.size == "200 rows of 100 patients"
    assert "k" not in table.X


def test_equal_rows_of_different_patients_are_no_copies():
    frame = pd.DataFrame({"patient_id": range(40), "age": [50, 60] * 20})
    assert len(np.unique(row_numbers(frame))) == 40
    assert len(np.unique(row_numbers(frame.rename(columns={"patient_id": "rownames"})))) == 2


def test_names_tell_patients_from_amounts():
    sorted_numbers = pd.Series(np.cumsum(RNG.integers(1, 9, 200)), name="income")
    assert not counts_rows(sorted_numbers)
    # As a table has that was sorted after its rows were numbered.
    shuffled = pd.Series(RNG.permutation(200) + 1)
    assert counts_rows(shuffled.rename("rownames"))
    assert not counts_rows(shuffled.rename("platelets"))
    assert not counts_rows((shuffled // 2).rename("rownames"))
    assert counts_rows(sorted_numbers.rename("seqno"))
    assert counts_rows(pd.Series(range(1, 201), name="anything"))
    assert names_patients("MRN", sorted_numbers)
    assert not names_patients("income", sorted_numbers)


def test_what_is_constant_by_chance_tells_no_patients():
    """Seven pairs of rows have the same value, and both rows the same sex and stage."""
    values = np.r_[np.arange(123), np.arange(7), np.arange(7) + 200]
    sex = np.where(np.arange(137) % 2, "f", "m")
    sex[123:130] = sex[:7]
    frame = pd.DataFrame(
        {"t2": values, "sex": sex, "stage": np.r_[np.arange(123) % 3, np.arange(14) % 7 % 3]}
    )
    assert numbered(frame, ["t2", "sex", "stage"]) == []


def test_rows_of_different_people_are_not_of_one_patient(visits):
    assert guess_columns(visits.assign(name=[f"person {k}" for k in visits["k"]])).id == "k"
    assert guess_columns(visits.assign(name=[f"person {k}" for k in range(200)])).id is None


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("Patientenname", [f"person {k}" for k in range(40)], True),
        ("name_of_patient", [f"person {k}" for k in range(40)], False),
        ("Nachname", ["Meier", "Huber"] * 20, True),
        ("nom de famille", ["Martin", "Bernard"] * 20, True),
        # Of a few drugs, and a code.
        ("drug_name", ["a", "b"] * 20, False),
        ("name", range(40), False),
    ],
)
def test_names_of_people_are_told_by_the_name_of_the_column_or_because_most_differ(name, values, expected):
    assert names_people(name, pd.Series(values)) == expected


def test_infinite_numbers_give_no_warning_of_arithmetic():
    frame = pd.DataFrame({"k": [np.inf, *range(99)], "a": 1.0})
    assert list(unnamed_ids(frame, ["k"], ["a"])) == []


@pytest.mark.parametrize("given", [{}, {"id": "patient_id"}])
def test_ids_that_are_lists_are_an_error_that_names_the_column(visits, given):
    table = visits.assign(patient_id=[[1]] * len(visits))
    with pytest.raises(ValueError, match="column 'patient_id' holds lists or other collections"):
        read_survival_table(table, time="time", event="status", **given)
