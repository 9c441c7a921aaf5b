"""Columns are guessed from names and values, or the candidates are named."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sksurv import datasets

from drosurv.datasets.bundled import read_bundled
from drosurv.tables.guess import UnknownColumns, guess_columns
from drosurv.tables.reading import TableNote
from drosurv.tables.target_columns import TargetColumns

RNG = np.random.default_rng(0)


def table(**columns):
    frame = {"marker": RNG.normal(size=60), "stage": RNG.integers(1, 4, 60)}
    return pd.DataFrame(frame | columns)


def times():
    return RNG.exponential(100, 60).round(1) + 1


def events():
    return RNG.integers(0, 2, 60)


@pytest.mark.parametrize(
    ("load", "time", "event"),
    [
        (datasets.load_gbsg2, "time", "cens"),
        (datasets.load_whas500, "lenfol", "fstat"),
        (datasets.load_veterans_lung_cancer, "Survival_in_days", "Status"),
        (datasets.load_aids, "time", "censor"),
    ],
)
def test_known_tables_are_guessed(load, time, event):
    X, y = load()
    frame = X.assign(**{y.dtype.names[1]: y[y.dtype.names[1]], y.dtype.names[0]: y[y.dtype.names[0]]})
    found = guess_columns(frame)
    assert (found.time, found.event) == (time, event)


def test_the_wilms_tumour_table_is_guessed_with_its_id():
    found = guess_columns(read_bundled("nwtco"))
    assert (found.time, found.event, found.id) == ("edrel", "rel", "seqno")


@pytest.mark.parametrize(
    "pairs",
    [
        (("rtime", "recur"), ("dtime", "death")),
        (("rectime", "censrec"), ("survtime", "censdead")),
        (("os_months", "os_status"), ("pfs_months", "pfs_status")),
    ],
)
def test_pairs_of_columns_that_could_both_be_meant_are_named_as_commands(pairs):
    frame = table(
        **{name: values for time, event in pairs for name, values in ((time, times()), (event, events()))}
    )
    with pytest.raises(UnknownColumns, match=r"which columns hold time and event\?") as error:
        guess_columns(frame)
    assert set(error.value.pairs) == set(pairs)
    assert all(f"time='{time}' event='{event}'" in str(error.value) for time, event in pairs)
    assert all(guess_columns(frame, time=time, event=event).time == time for time, event in pairs)


def test_an_event_that_is_named_has_the_time_of_its_pair():
    frame = table(os_months=times(), os_status=events(), pfs_months=times(), pfs_status=events())
    assert guess_columns(frame, event="pfs_status").time == "pfs_months"


def words(no, yes):
    return np.where(RNG.permutation(60) < 30, no, yes)


@pytest.mark.parametrize(
    ("time", "event", "values"),
    [
        ("futime", "fustat", (0, 1)),
        ("OS_MONTHS", "OS_STATUS", ("0:LIVING", "1:DECEASED")),
        ("OS.time", "OS", (0, 1)),
        ("survtime", "dead", ("no", "yes")),
        ("follow_up_days", "vitalstatus", ("Alive", "Dead")),
        ("days_to_death", "vital_status", ("Living", "Deceased")),
        ("Survival from diagnosis (months)", "Outcome", ("Discharged", "Expired")),
        ("T", "E", (0, 1)),
        ("duration", "observed", ("FALSE", "TRUE")),
    ],
)
def test_names_and_values_of_registries_are_understood(time, event, values):
    frame = table(**{time: times(), event: words(*values), "year": RNG.integers(1990, 2020, 60)})
    found = guess_columns(frame)
    assert (found.time, found.event) == (time, event)
    with warnings.catch_warnings(action="ignore", category=TableNote):
        y = TargetColumns(time, event).parse(frame)
    assert (y["event"] == (frame[event] == values[1])).all()


def test_dates_as_numbers_are_not_taken_as_times():
    diagnosed = RNG.integers(8_000, 11_000, 60)
    frame = table(diag=diagnosed, death=diagnosed + times().round(), status=events())
    advice = "'death' looks like an end date .* 'diag', which looks like a start date.* pass start='diag' end='death'"
    with pytest.raises(UnknownColumns, match=advice):
        guess_columns(frame)
    assert guess_columns(frame, time="death").time == "death"
    # Neither is a column of times that is not named as one.
    with pytest.raises(UnknownColumns, match="which columns hold time and event"):
        guess_columns(frame.assign(death=frame["death"] - frame["diag"]))


def test_an_age_below_all_times_is_no_start_date():
    frame = table(days=700 + times(), died=events(), age=RNG.integers(40, 90, 60))
    assert guess_columns(frame).time == "days"


@pytest.mark.parametrize(
    "name", ["PATIENT_ID", "patient.id", "Patient ID", "record_id", "USUBJID", "MRN", "studyid"]
)
def test_ids_are_recognised_and_define_no_groups(name):
    frame = table(days=times(), died=events(), hospital=["a", "b"] * 30, **{name: RNG.permutation(60) + 1000})
    found = guess_columns(frame.assign(hospital_mrn=RNG.permutation(60)))
    assert (found.id, found.groups) == (name, ("hospital",))


@pytest.mark.parametrize(
    ("name", "values", "groups"),
    [
        ("male", [0, 1] * 30, ("male",)),
        ("Female", ["no", "yes"] * 30, ("Female",)),
        ("age", np.linspace(20, 90, 60), ("age>65",)),
        ("age", np.linspace(20, 50, 60), ("age>35",)),
        # In months, or centred.
        ("age", np.linspace(1, 190, 60), ("age>95.5",)),
        ("sex", ["f", "m"] * 30, ("sex",)),
        # Too few in the second group to compare.
        ("race", ["a"] * 59 + ["b"], ()),
        ("region", [f"r{k}" for k in range(60)], ()),
        # Numbers of hospitals are not cut.
        ("hospital", list(range(15)) * 4, ()),
    ],
)
def test_groups_have_names_of_attributes_and_levels_that_are_large_enough(name, values, groups):
    frame = table(days=times(), died=events(), **{name: values})
    assert guess_columns(frame).groups == groups


def test_what_is_given_is_taken_and_not_told():
    frame = table(days=times(), died=events(), patient_id=range(60), sex=["f", "m"] * 30)
    found = guess_columns(frame, time="days", event="died", id="patient_id", groups=["stage"])
    assert (found.id, found.groups, found.notes) == ("patient_id", ("stage",), ())
    guessed = guess_columns(frame)
    assert guessed.id == "patient_id"
    assert "time is column 'days', by its name and values." in guessed.notes
    with pytest.raises(ValueError, match=r"time column 'dayss' is not in the table. Did you mean 'days'"):
        guess_columns(frame, time="dayss")


def test_a_guessed_column_that_may_be_named_after_censoring_is_asked_about():
    frame = table(time=times(), cens=events())
    assert guess_columns(frame).event == "cens"
    with pytest.raises(ValueError, match="which value of event column 'cens' means the event"):
        TargetColumns("time", "cens").parse(frame)
    assert (TargetColumns("time", "cens", "1").parse(frame)["event"] == (frame["cens"] == 1)).all()


@pytest.mark.parametrize(
    ("given", "asked", "columns"),
    [
        ("time", "event", {"tstop": times(), "infect": events()}),
        ("event", "time", {"x": times(), "died": events()}),
    ],
)
def test_only_the_column_that_is_not_given_is_asked_for(given, asked, columns):
    name = {"time": "tstop", "event": "died"}[given]
    with pytest.raises(UnknownColumns) as error:
        guess_columns(table(**columns, seen=["2020-01-01"] * 60, back=["2021-01-01"] * 60), **{given: name})
    assert str(error.value).startswith(f"which column holds the {asked}? It cannot be guessed")
    assert f"Pass {asked}=COLUMN." in str(error.value)
    assert error.value.argument == asked
    # Two dates give a time.
    assert ("pass start=COLUMN" in str(error.value)) == (asked == "time")


def test_of_two_events_beside_a_given_time_one_is_asked_for():
    with pytest.raises(UnknownColumns, match=r"Pass event='\w+' or event='\w+'\."):
        guess_columns(table(months=times(), death=events(), relapse=events()), time="months")


def test_a_column_named_like_an_entry_time_that_is_not_used_is_asked_about():
    age = RNG.uniform(40, 80, 60).round(1)
    frame = table(age_at_entry=age, age_at_exit=age + 5, died=events())
    found = guess_columns(frame, time="age_at_exit", event="died", groups=())
    assert found.entry is None
    said = found.in_one_line()
    assert "Column 'age_at_entry' is named like the time from which a row is observed" in said
    assert said.endswith("Then pass entry='age_at_entry'.")
    given = guess_columns(frame, time="age_at_exit", event="died", entry="age_at_entry", groups=())
    assert given.question == ""


def test_an_age_at_entry_before_times_since_entry_is_not_asked_about():
    frame = table(age_at_entry=RNG.uniform(40, 80, 60), days=times() + 300, died=events())
    assert guess_columns(frame).question == ""


def test_groups_that_divide_the_patients_alike_are_named_once():
    sex = [1, 2] * 30
    frame = table(
        days=times(), died=events(), sex=sex, **{"sex.factor": np.where(np.array(sex) == 1, "m", "f")}
    )
    assert guess_columns(frame.assign(region=["n", "n", "s"] * 20)).groups == ("sex.factor", "region")


def test_candidates_for_both_roles_are_named():
    frame = table(dob=["1950-01-01"] * 60, dx=["2020-01-01"] * 60, vital_status=["dead", "alive"] * 30)
    with pytest.raises(
        UnknownColumns, match=r"Pass time=COLUMN and event=COLUMN. The event may be 'vital_status'."
    ):
        guess_columns(frame)
