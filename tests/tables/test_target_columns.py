import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest

from drosurv.tables.reading import TableNote
from drosurv.tables.survival_table import SurvivalTable
from drosurv.tables.target_columns import TargetColumns
from drosurv.workflows.table_to_check import WantedColumns, prepare_table


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
    assert parse(events)["event"].tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("events", "value", "expected"),
    [
        (["yes", "no", "yes"], "yes", [True, False, True]),
        ([1, 2, 2], "2", [False, True, True]),
        ([1.0, 2.0, 2.0], "2", [False, True, True]),
        ([0, 1, 1], "0", [True, False, False]),
        ([True, False, True], "False", [False, True, False]),
        (pd.Categorical(["dead", "alive", "dead"]), "dead", [True, False, True]),
    ],
)
def test_a_named_value_means_the_event_and_all_others_censored(events, value, expected):
    assert parse(events, event_value=value)["event"].tolist() == expected


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (["yes", "no", "no"], "'yes' of event column 'e' (1 of 3 rows) was taken as the event"),
        (["N", "Y", "N"], "'Y' of event column 'e' (1 of 3 rows)"),
        (["Dead", "alive", "dead"], "'dead' of event column 'e'|'Dead' of event column 'e'"),
        (["died", "survived", "survived"], "'died' of event column 'e'"),
        (
            [2, 1, 1],
            "'2' of event column 'e' (1 of 3 rows) was taken as the event, as in R's survival package",
        ),
    ],
)
def test_plain_words_are_understood_and_said_aloud(events, said):
    with pytest.warns(TableNote) as found:
        y = parse(events)
    assert y["event"].tolist() == [
        str(value).lower() not in ("no", "n", "alive", "survived", "1") for value in events
    ]
    (note,) = found
    assert any(text in str(note.message) for text in said.split("|"))
    assert str(note.message).endswith("; pass event_value if another value means it.")


def test_a_third_value_is_named_as_a_possible_competing_cause():
    said = "If '1' and '2' are competing causes, .* `check.table, cause='1'.`, or model all with `Cause"
    # The most frequent one is suggested.
    with pytest.raises(ValueError, match=said):
        parse([0, 1, 1, 2])
    with pytest.raises(ValueError, match=r"`check\(table, cause='cancer'\)`"):
        parse(["alive"] * 9 + ["cancer"] * 6 + ["other death"] * 8)
    with pytest.raises(ValueError, match=r"It holds .*: pass the value that means it as event_value"):
        parse(["good", "bad", "ugly"])
    with pytest.warns(
        UserWarning, match="also holds '2' in 1 row, taken as censored.*competes with the event"
    ):
        y = parse([0, 1, 2], event_value="1")
    assert y["event"].tolist() == [False, True, False]


def test_words_for_no_event_are_no_competing_cause():
    assert parse(["alive", "dead", "lost"], event_value="dead")["event"].tolist() == [False, True, False]


@pytest.mark.parametrize(
    "events", [[0, 1, 2], ["cancer", "stroke", "stroke"], ["yes", "maybe"], [2, 2], [0, 0.5, 1]]
)
def test_any_other_coding_is_a_question_that_lists_the_values(events):
    with pytest.raises(
        ValueError, match=r"which value of event column 'e' means the event\?.*event_value"
    ) as caught:
        parse(events)
    assert all(repr(str(value).removesuffix(".0")) in str(caught.value) for value in set(events))


def test_times_may_be_integers_or_numbers_in_text():
    np.testing.assert_array_equal(parse([1, 0], [3, 4])["time"], [3.0, 4.0])
    np.testing.assert_array_equal(parse([1, 0], ["3.5", "4"])["time"], [3.5, 4.0])


@pytest.mark.parametrize(
    "dates", [["2020-01-01", None], [None, "31.12.2020"], pd.to_datetime(["2020-01-01", None])]
)
def test_dates_of_death_are_no_events(dates):
    # Leaving out the rows without one would leave out whoever lives.
    with pytest.raises(
        ValueError, match=r"event column 'e' holds dates.*1 where there is a date and 0 where"
    ):
        parse(dates)


def dated(start, end, **columns):
    frame = pd.DataFrame({"from": start, "to": end, "e": [1] * len(start), **columns})
    return TargetColumns(None, "e", start="from", end="to").parse(frame)["time"]


@pytest.mark.filterwarnings("ignore:.* is read as:drosurv.tables.reading.TableNote")
@pytest.mark.parametrize(
    ("start", "end"),
    [
        (["2020-02-27", "2020-12-31"], ["2020-03-01", "2021-01-01"]),
        (["27.02.2020", "31.12.2020"], ["01.03.2020", "01.01.2021"]),
        (["27/02/2020", "31/12/2020"], ["01/03/2020", "13/01/2021"]),
        (["02/27/2020", "12/31/2020"], ["03/31/2020", "01/01/2021"]),
        (pd.to_datetime(["2020-02-27", "2020-12-31"]), ["2020-03-01 00:00:00", "2021-01-01 00:00:00"]),
    ],
)
def test_dates_make_the_time(start, end):
    # 2020 is a leap year: 27 February to 1 March are three days.
    days = dated(start, end)
    assert days[0] == {"03/31/2020": 33.0}.get(end[0], 3.0)
    assert days[1] == {"13/01/2021": 13.0}.get(end[1], 1.0)


def test_how_dates_with_two_meanings_are_read_is_said_once():
    frame = pd.DataFrame(
        {"from": ["05/05/2020", "04/03/2020", "31/12/2020"], "to": ["2021-01-02"] * 3, "e": [1] * 3}
    )
    said = (
        "'04/03/2020' of start column 'from' is read as 4 March 2020, because other dates of the column have the day "
        "first."
    )
    with pytest.warns(TableNote) as given:
        columns = TargetColumns(None, "e", start="from", end="to").resolved(frame)
    # Warnings are errors: what is resolved says it no more.
    assert columns.parse(frame)["time"][1] == 304.0
    assert [str(one.message) for one in given] == [said]
    # With dots, the day comes first everywhere.
    dotted = frame.assign(**{"from": frame["from"].str.replace("/", ".")})
    assert columns.dates_in_words(dotted) == []


@pytest.mark.parametrize(
    ("start", "end", "days", "read_as"),
    [
        ("03/04/2020", "13/05/2020", 40.0, "'03/04/2020' of start column 'from' is read as 3 April 2020"),
        ("02/29/2020", "03/04/2020", 4.0, "'03/04/2020' of end column 'to' is read as 4 March 2020"),
    ],
)
def test_the_other_column_shows_whether_the_day_or_the_month_comes_first(start, end, days, read_as):
    with pytest.warns(TableNote) as given:
        assert dated([start], [end]).tolist() == [days]
    first, other = ("day", "to") if days == 40 else ("month", "from")
    (said,) = {str(one.message) for one in given}
    assert said == f"{read_as}, because dates of column {other!r} have the {first} first."


def test_numbers_make_the_time_in_their_unit():
    frame = pd.DataFrame({"diag": [10905, 11029], "death": [11081, 11096], "status": ["D", "A"]})
    columns = TargetColumns(None, "status", "D", start="diag", end="death").resolved(frame)
    assert columns.parse(frame)["time"].tolist() == [176.0, 67.0]
    assert columns.time_in_words == "death minus diag, in the unit of these columns"


@pytest.mark.parametrize("form", ["%d%m%Y", "%m%d%Y"])
def test_numbers_with_the_day_or_the_month_first_are_dates(form):
    start = pd.date_range("2019-12-25", periods=40, freq="9D")
    written = [column.strftime(form).astype(int) for column in (start, start + pd.to_timedelta(30, "D"))]
    assert dated(*written).tolist() == [30.0] * 40
    short = [
        column.strftime(form.replace("Y", "y")).astype(int) for column in (start, start + pd.Timedelta("30D"))
    ]
    with pytest.raises(ValueError, match="look like dates with two digits for the year"):
        dated(*short)
    with pytest.raises(ValueError, match="whether the day or the month comes first"):
        dated([1022020, 3042020], [5062020, 7082020])


@pytest.mark.filterwarnings("ignore:.* is read as:drosurv.tables.reading.TableNote")
@pytest.mark.parametrize(
    "form", ["%d%m%Y", "%m%d%Y", "%Y%m%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%Y-%m-%d"]
)
@pytest.mark.parametrize("digits", ["0123456789./-", "０１２３４５６７８９．／－", "٠١٢٣٤٥٦٧٨٩./-"])
def test_dates_are_texts_in_any_digits(form, digits):
    start = pd.date_range("2019-12-25", periods=40, freq="9D")
    kind = str.maketrans("0123456789./-", digits)
    written = [
        [day.strftime(form).translate(kind) for day in dates]
        for dates in (start, start + pd.Timedelta("30D"))
    ]
    assert dated(*written).tolist() == [30.0] * 40


def test_columns_of_dates_that_are_swapped_are_named():
    with pytest.raises(
        ValueError, match=r"lies before start column .* in 3 rows .*: were the two columns swapped\?"
    ):
        dated(["2020-05-02", "2021-05-02", "2022-05-03"], ["2020-01-02", "2021-01-02", "2022-01-03"])


def test_months_begin_on_their_first_day_and_it_is_said():
    with pytest.warns(TableNote) as given:
        assert dated(["1952-06", "1952-06-30"], ["1952-07", "1953-06"]).tolist() == [30.0, 336.0]
    said = "'1952-06' of start column 'from' is read as the first day of that month."
    assert said in {str(one.message) for one in given}


@pytest.mark.parametrize("value", ["Unknown", "unk", "?", "n/a", "missing", "not known"])
def test_an_unknown_outcome_is_not_taken_as_censored(value):
    with pytest.raises(ValueError, match=r"event column 'e' holds .* which is no outcome: pass missing="):
        parse(["D", "A", value, value], event_value="D")


@pytest.mark.parametrize(
    ("values", "options", "asked"),
    [
        (["1", None], {}, True),
        ([1.0, np.nan], {}, True),
        (["dead", None], {}, True),
        (["cancer", "heart", None], {"event_value": "cancer"}, True),
        ([1.0, 2.0, np.nan], {"causes": True}, True),
        (["dead", "alive", None], {}, False),
        ([1.0, 0.0, np.nan], {}, False),
        ([2.0, 1.0, np.nan], {"event_value": "2"}, False),
        (["cancer", "alive", None], {"causes": True}, False),
    ],
)
def test_empty_events_are_asked_about_where_no_value_says_that_there_was_none(values, options, asked):
    """Otherwise only patients with the event would be left."""
    n = 30 * len(values)
    frame = pd.DataFrame({"days": np.arange(n) + 1.0, "died": values * 30, "x": np.arange(n) % 5})
    columns = TargetColumns("days", "died", **options)
    with warnings.catch_warnings(action="ignore"):
        read = partial(SurvivalTable.parse, columns=columns, drop_missing_target=True)
        # A few may be unknown.
        assert len(read(frame[frame["died"].notna() | (frame.index < 3)])) == n - 30
        if not asked:
            assert len(read(frame)) == n - 30
            return
        with pytest.raises(
            ValueError, match=r"^event column 'died' is empty in 30 rows, and none of its values"
        ):
            read(frame)
        wanted = WantedColumns(time="days", event="died", event_value=columns.event_value)
        if not columns.causes:
            with pytest.raises(ValueError, match="is empty in 30 rows"):
                prepare_table(frame, wanted, None, "the table")


def test_a_time_that_is_marked_as_censored_is_a_limit_and_no_missing_value():
    with pytest.raises(
        ValueError, match=r"holds '60\+' in 1 row \(first: row 2\), .*: write numbers, such as the limits"
    ):
        parse([1, 0, 1], ["12.5", "60+", "7"])
