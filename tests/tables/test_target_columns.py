import numpy as np
import pandas as pd
import pytest

from drosurv.tables import TargetColumns


def parse(events, times=None, **options):
    frame = pd.DataFrame({"t": list(range(1, len(events) + 1)) if times is None else times, "e": events})
    return TargetColumns("t", "e", **options).parse(frame)


@pytest.mark.parametrize(
    "events",
    [
        [0, 1, 1],
        [0.0, 1.0, 1.0],
        [False, True, True],
        ["0", "1", "1"],
        ["False", "True", "True"],
        ["FALSE", "TRUE", "TRUE"],
        pd.array([0, 1, 1], dtype="Int64"),
        pd.array([False, True, True], dtype="boolean"),
        pd.Categorical(["0", "1", "1"]),
    ],
)
def test_zero_one_and_true_false_need_no_question(events):
    assert parse(events)["e"].tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("events", "value", "expected"),
    [
        (["yes", "no", "yes"], "yes", [True, False, True]),
        ([1, 2, 2], "2", [False, True, True]),
        ([1.0, 2.0, 2.0], "2", [False, True, True]),
        ([0, 1, 2], "1", [False, True, False]),
        ([0, 1, 1], "0", [True, False, False]),
        ([True, False, True], "False", [False, True, False]),
        (pd.Categorical(["dead", "alive", "dead"]), "dead", [True, False, True]),
    ],
)
def test_a_named_value_means_the_event_and_all_others_censored(events, value, expected):
    assert parse(events, event_value=value)["e"].tolist() == expected


@pytest.mark.parametrize("events", [["yes", "no", "no"], [1, 2, 2], [0, 1, 2], ["Y", "N", "N"], [0, 0.5, 1]])
def test_any_other_coding_is_a_question_that_lists_the_values(events):
    with pytest.raises(
        ValueError, match=r"which value of event column 'e' means the event\?.*event_value"
    ) as caught:
        parse(events)
    assert all(repr(str(value).removesuffix(".0")) in str(caught.value) for value in set(events))


def test_a_value_that_does_not_occur_is_refused():
    with pytest.raises(ValueError, match=r"event_value 'Yes' does not occur.*'no', 'yes'|'yes', 'no'"):
        parse(["yes", "no"], event_value="Yes")


def test_times_may_be_integers_or_numbers_in_text():
    np.testing.assert_array_equal(parse([1, 0], [3, 4])["t"], [3.0, 4.0])
    np.testing.assert_array_equal(parse([1, 0], ["3.5", "4"])["t"], [3.5, 4.0])


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (["3", "soon"], r"'soon' \(row 2\), which is not a number \(1 such rows\)"),
        (["3", "4,5"], r"'4,5' \(row 2\).*read the table with decimal=','"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), "holds dates"),
        ([True, False], "is it the event column"),
        ([1.0, np.nan], r"time column 't' is empty in 1 rows \(first in row 2\)"),
        ([1.0, -2.0], r"time column 't' holds -2 \(row 2\), which is negative or infinite"),
        ([np.inf, np.inf], r"time column 't' holds inf \(row 1\).*\(2 such rows\): correct or remove them"),
    ],
)
def test_times_that_are_none_are_refused(times, message):
    with pytest.raises(ValueError, match=message):
        parse([1, 0], times)


def test_a_missing_event_is_refused():
    with pytest.raises(ValueError, match=r"event column 'e' is empty in 2 rows \(first in row 1\)"):
        parse([None, 1, None])


def test_an_unknown_column_is_named_with_its_nearest_neighbour():
    frame = pd.DataFrame({"futime": [1], "death": [1]})
    with pytest.raises(ValueError, match=r"time column 'futim' is not in the table. Did you mean 'futime'\?"):
        TargetColumns("futim", "death").parse(frame)
    with pytest.raises(ValueError, match="time and event are both column 'death'"):
        TargetColumns("death", "death").parse(frame)
    with pytest.raises(ValueError, match=r"event column 'xyz' is not in the table. It has: futime, death"):
        TargetColumns("futime", "xyz").parse(frame)
