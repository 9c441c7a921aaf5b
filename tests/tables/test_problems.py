import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sksurv.datasets import load_gbsg2, load_whas500

from drosurv import CoxPH, Surv, check
from drosurv.tables import read_survival_table
from drosurv.tables.guess import guess_columns
from drosurv.tables.leaks import find_leaks
from drosurv.tables.problems import (
    _numbers_visits,
    interval_start,
    refuse_intervals,
    repeated_outcomes,
    table_problems,
)
from drosurv.tables.reading import FileFormat
from drosurv.tables.spellings import alike
from drosurv.tables.survival_table import SurvivalTable, judged_table
from drosurv.tables.target_columns import TargetColumns


def said(frame, *, features=None, id=None, clusters=None, entry=None, **declared):
    X = frame.drop(columns=["days", "died"]) if features is None else frame[features]
    columns, y = (
        TargetColumns("days", "died", entry=entry),
        Surv.from_arrays(frame["died"] == 1, frame["days"]),
    )
    table = SurvivalTable(frame, columns, y, X, pd.DataFrame(), np.array([]), id, clusters=clusters)
    given = {"categorical": (), "numeric": (), "keep_columns": (), **declared}
    return [str(problem) for problem in table_problems(table, "the table", **given)]


@pytest.fixture(scope="module")
def clean():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "days": rng.exponential(100, 200).round(1) + 1,
            "died": rng.integers(0, 2, 200),
            "age": rng.normal(60, 9, 200).round(),
            "sex": rng.choice(["female", "male"], 200),
            "marker": rng.lognormal(3, 1, 200),
        }
    )


def test_a_clean_table_raises_no_doubt(clean):
    assert said(clean) == []


def test_times_that_look_like_end_dates_are_warned_of(clean):
    born, diagnosed = 7_000 + clean.index * 3, 8_000 + clean.index * 5
    frame = clean.assign(born=born, diagnosed=diagnosed, days=diagnosed + clean["days"])
    (told,) = said(frame)
    assert "never below 'diagnosed' (or 'born'), which looks like a start date" in told
    assert told.endswith("pass start='diagnosed' end='days'.")
    assert said(clean.assign(born=born)) == []


@pytest.mark.parametrize("load", [load_gbsg2, load_whas500])
def test_real_tables_are_only_asked_about_their_codes(load):
    X, y = load()
    frame = X.assign(days=y[y.dtype.names[1]], died=y[y.dtype.names[0]])
    assert all(text.startswith("codes or amounts?") for text in said(frame))


def test_columns_mostly_missing_are_named_and_empty_ones_are_not(clean):
    gaps = clean.assign(marker=clean["marker"].where(clean.index < 90), sex=None)
    (told,) = said(gaps)
    assert told.startswith("more than half of the values of 'marker' are missing")
    assert said(clean.assign(marker=clean["marker"].where(clean.index < 110))) == []
    y = Surv.from_arrays(clean["died"] == 1, clean["days"])
    with pytest.warns(UserWarning, match="more than half of the values of 'marker'"):
        CoxPH().fit(gaps[["age", "marker"]], y)


def test_copies_of_rows_are_counted_and_the_first_is_named(clean):
    (text,) = said(pd.concat([clean, clean.iloc[[3, 7]]]))
    assert text.startswith("2 rows of the table are copies of another row (first: row 201 of row 4).")


def test_copies_are_found_although_the_rows_are_numbered(clean):
    frame = pd.concat([clean, clean.iloc[[3]]])
    (text,) = said(frame.assign(row=range(len(frame))), features=list(clean.columns[2:]))
    assert "1 row of the table is a copy" in text
    # But not where they are named as the patients.
    assert said(frame.assign(row=range(len(frame))), features=list(clean.columns[2:]), id="row") == []


def test_five_visits_each_are_still_patients_but_cases_and_controls_are_not(clean):
    assert any(
        "names 40 different patients" in text for text in said(clean.assign(patient=np.arange(200) // 5))
    )
    assert not any("different patients" in text for text in said(clean.assign(case=np.arange(200) % 2)))


def test_a_column_that_names_patients_repeatedly_is_proposed_as_id(clean):
    frame = clean.assign(patient_id=[f"p{k // 2 if k < 20 else k}" for k in range(200)])
    (text,) = said(frame, features=["age", "patient_id"])
    assert text == (
        "column 'patient_id' names 190 different patients in 200 rows: to keep the rows of a patient together, pass "
        "id='patient_id'."
    )
    (text,) = said(frame, features=["age"], id="patient_id")
    assert text == (
        "10 patients have rows (column 'patient_id') that all count from time 0 and end at different times: each is "
        "taken as a follow-up of its own. If rows are visits, a patient then counts several times: pass entry=COLUMN "
        "with the time at which each row starts, or keep the last row. If they are different events of one patient, "
        "such as relapse and death, keep the rows of one event. If they are eyes or teeth, pass clusters='patient_id' "
        "in place of id."
    )
    # Two eyes of a patient, for example.
    assert not any("names 190" in text for text in said(frame, features=["age"], clusters="patient_id"))


@pytest.mark.parametrize(
    "name", ["litter", "family", "pair", "Twin", "household", "centre", "hospital_no", "site"]
)
def test_what_many_patients_share_is_asked_about_as_a_cluster(clean, name):
    frame = clean.assign(**{name: np.arange(200) // 3})
    (text,) = said(frame)
    assert f"column {name!r} is used as a feature and has 67 values in 200 rows." in text
    assert f"pass clusters={name!r}; or name it in categorical or in numeric." in text
    assert said(frame, numeric=[name]) == []
    others = frame.rename(columns={name: "first"}).assign(**{name: frame[name]})
    assert not any("alike" in text for text in said(others, clusters="first"))
    # Few values are levels of a feature, and values of one row each are no clusters.
    assert said(clean.assign(**{name: np.where(np.arange(200) % 2, "a", "b")})) == []
    assert not any("alike" in text for text in said(clean.assign(**{name: np.arange(200)})))
    # Rows of several patients cannot be intervals of one patient's time.
    assert not any("alike" in text for text in said(frame, entry="marker"))


def test_few_whole_numbers_and_code_names_are_asked_about_once(clean):
    rng = np.random.default_rng(1)
    frame = clean.assign(
        race=rng.integers(1, 4, 200), zip=rng.integers(10_000, 10_400, 200), flag=rng.integers(0, 2, 200)
    )
    (text,) = said(frame)
    assert "'race': 1, 2, 3; 'zip': 10004, " in text
    assert "flag" not in text
    assert text.endswith("Name codes in categorical, amounts in numeric.")
    assert said(frame, categorical=["race"], numeric=["zip"]) == []


@pytest.mark.parametrize(
    ("value", "column"),
    [
        *[(-9, "age"), (999, "age"), (99, "age"), (-1, "marker"), (99999, "marker"), (9999, "days")],
        *[(999.9, "age"), (-99.9, "age"), (9999999, "marker"), (8888888, "age"), ("1e+99", "marker")],
    ],
)
def test_numbers_that_stand_for_missing_are_flagged(clean, value, column):
    frame = clean.astype({column: float})
    frame.loc[:4, column] = float(value)
    shown = re.escape(str(value))
    question = (
        rf"column {column!r} holds {shown} in 5 rows, outside the rest .*pass missing=\['{column}={shown}'\]"
    )
    for read in (read_survival_table, check):
        with pytest.raises(
            ValueError, match=rf"{question}.* If it is an amount, pass numeric=\['{column}'\]"
        ):
            read(frame, time="days", event="died")
    target = {"time": "days", "event": "died"}
    assert (read_survival_table(frame, numeric=[column], **target).frame[column] == float(value)).sum() == 5


def test_a_code_below_negative_numbers_is_asked_about_and_the_smallest_of_them_is_not(clean):
    excess = np.random.default_rng(3).normal(0, 9, 200).round(1).clip(-9, 30)
    assert said(clean.assign(excess=excess), numeric=["age"]) == []
    excess[:5] = -99
    with pytest.raises(ValueError, match=r"'excess' holds -99 in 5 rows, outside the rest \(-9 to"):
        read_survival_table(clean.assign(excess=excess), time="days", event="died")


def test_a_body_mass_of_0_is_asked_about_and_a_dose_of_0_is_not(clean):
    rng, first = np.random.default_rng(0), np.arange(200) < 5
    masses = {"bmi": rng.normal(27, 4, 200).clip(16, 45), "bp": rng.normal(75, 14, 200).clip(50).round()}
    for name, mass in masses.items():
        frame = clean.assign(**{name: np.where(first, 0, mass)})
        with pytest.raises(
            ValueError, match=rf"{name!r} holds 0 in 5 rows, outside the rest.*\['{name}=0'\]"
        ):
            read_survival_table(frame, time="days", event="died")
        read_survival_table(frame, time="days", event="died", numeric=[name])
    doses = {
        "dose": np.where(first, 0, rng.choice([20, 40, 80], 200)),
        "cigarettes": np.where(rng.random(200) < 0.4, 0, rng.integers(10, 40, 200)),
        "visits": rng.poisson(6, 200),
        "size": np.where(first, 0, rng.lognormal(2, 1, 200)),
        "change": np.where(first, 0, rng.normal(0, 10, 200) + 30 * rng.choice([-1, 1], 200)),
    }
    frame = clean.assign(**doses)
    # Times of 0 are told elsewhere.
    frame.loc[first, "days"] = 0
    frame.loc[~first, "days"] += 400
    with pytest.warns(UserWarning, match="5 patients have the time 0"):
        assert len(read_survival_table(frame, time="days", event="died", numeric=["dose"])) == 200


def test_numbers_that_only_look_like_sentinels_are_not_flagged(clean):
    ages = clean.assign(age=np.where(np.arange(200) < 5, 88, clean["age"]))
    temperatures = clean.assign(marker=np.random.default_rng(2).integers(-20, 20, 200))
    assert said(ages) == said(temperatures, numeric=["marker"]) == []


def test_labels_that_differ_by_case_or_spelling_are_flagged(clean):
    sex = np.resize(["female", "male", "Female", "F", "m"], 200)
    (text,) = said(clean.assign(sex=sex))
    # Each family once, not every pair of it.
    assert "column 'sex' holds labels that may mean the same: 'F', 'Female', 'female'; 'm', 'male'." in text


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("F", "f", True),
        ("Y", "yes", True),
        ("ER-positive", "ER positive", True),
        ("Caucasian", "Caucasion", True),
        ("caucasian", "cuacasian", True),
        ("smoker", "smokers", True),
        ("male", "female", False),
        ("stage 1", "stage 2", False),
        ("grade A", "grade B", False),
        ("I", "II", False),
        ("A", "AB", False),
        ("I", "IIIA", False),
        ("M", "männlich", True),
        ("w", "weiblich", True),
        ("treated", "untreated", False),
        ("typical", "atypical", False),
        ("mother", "other", False),
        ("hypertension", "hypotension", False),
        ("<=60", ">60", False),
        ("ER+", "ER-", False),
        ("ZDV+ddC", "ZDV+ddI", False),
        ("ZDV+Saquinavir", "ZDV+Saqunavir", True),
        ("", "x", False),
        ("white, hispanic", "white hispanic", True),
        ("< 60", "<60", True),
    ],
)
def test_what_counts_as_another_spelling(first, second, same):
    assert alike(first, second) == alike(second, first) == same


def test_reading_a_messy_table_says_everything_at_once(clean, tmp_path):
    frame = clean.copy()
    frame.loc[:50, "sex"] = "Female"
    frame.loc[5, "days"] = 0
    pd.concat([frame, frame.iloc[[9]]]).to_csv(tmp_path / "messy.csv", index=False)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        read_survival_table(tmp_path / "messy.csv", time="days", event="died")
    texts = [str(warning.message) for warning in found]
    starts = ("1 patient has the time 0", "1 row of messy.csv is a copy", "column 'sex' holds labels")
    assert len(texts) == len(starts)
    assert all(text.startswith(start) for text, start in zip(texts, starts, strict=True))


def test_times_of_zero_are_of_rows_where_patients_have_several(clean, tmp_path):
    both = [clean.assign(id=range(len(clean)), site=k, days=clean["days"] + k) for k in (0, 1)]
    frame = pd.concat(both)
    frame.loc[5, "days"] = 0
    frame.to_csv(tmp_path / "twice.csv", index=False)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        read_survival_table(tmp_path / "twice.csv", time="days", event="died", id="id")
    assert str(found[0].message).startswith("2 rows have the time 0, ")


def test_a_number_can_mean_missing_in_one_column_only(clean, tmp_path):
    clean.assign(age=999, marker=999.0).to_csv(tmp_path / "t.csv", index=False)
    table = read_survival_table(
        tmp_path / "t.csv", time="days", event="died", file_format=FileFormat(missing=("age=999",))
    )
    assert table.X["age"].isna().all()
    assert (table.X["marker"] == 999).all()


@pytest.fixture(scope="module")
def pieces():
    """Rows (start, stop] of patients, some of one piece."""
    rng = np.random.default_rng(2)
    rows = []
    for patient in range(60):
        ends = np.cumsum(rng.integers(1, 90, rng.integers(1, 4)))
        starts = [0, *ends[:-1]]
        rows += [(patient, *row, round(rng.normal(), 3)) for row in zip(starts, ends, strict=True)]
    frame = pd.DataFrame(rows, columns=["who", "tstart", "days", "marker"]).astype({"tstart": float})
    return frame.assign(died=rng.integers(0, 2, len(frame)))


@pytest.mark.parametrize("named", ["who", "patient_id"])
def test_the_start_of_rows_is_asked_about(pieces, named):
    frame = pieces.rename(columns={"who": named, "tstart": "von"})
    if named == "patient_id":
        # The name tells which rows belong together, in whatever order they come.
        frame = frame.sample(frac=1, random_state=0)
    frame.loc[frame.index[7], "von"] = np.nan
    with pytest.raises(
        ValueError, match=r"'von' equals .* Pass entry='von', and id with the column that"
    ) as told:
        refuse_intervals(frame, ["marker", "von"], "days", None)
    told.match("or name it in numeric if it is a feature")
    with pytest.raises(ValueError, match=r"Pass entry='von'; or name it"):
        refuse_intervals(frame, ["marker", "von"], "days", named)


def test_a_duration_before_the_time_is_no_start(pieces, clean):
    early = (pieces["days"] * np.random.default_rng(0).random(len(pieces))).round()
    for frame in (pieces.assign(tstart=early), pieces.assign(tstart=0.0), clean):
        assert interval_start(frame, list(frame.drop(columns="days")), "days", None) is None


def test_intervals_are_guessed_by_check_and_asked_about_by_every_other_way(pieces):
    """Otherwise rows would all begin at time 0, and the start would be left out as a leak."""
    frame = pieces.rename(columns={"tstart": "von", "who": "patient_id"})
    target, id = {"time": "days", "event": "died"}, "patient_id"
    found = guess_columns(frame, **target)
    assert (found.entry, "entry" in found.guessed) == ("von", True)
    judged = partial(judged_table, frame, TargetColumns(**target))
    for read in (partial(read_survival_table, frame, **target), judged):
        with pytest.raises(ValueError, match="rows seem to be intervals of a patient's time"):
            read(id=id)
    assert "von" in judged(id=id, numeric=["von"]).X
    given = judged_table(frame, TargetColumns(**target, entry="von"), id=id)
    np.testing.assert_array_equal(given.entry, frame["von"])


def test_nested_categories_are_named_with_the_one_to_drop(clean):
    rng = np.random.default_rng(3)
    region = rng.choice(["north", "south", "east", "west", "isles"], len(clean))
    continent = np.where(np.isin(region, ["north", "south"]), "one", "two")
    (text,) = said(clean.assign(continent=continent, region=region))
    assert "column 'region' determines 'continent'" in text
    assert text.endswith("Pass drop=['continent'].")
    coded = clean.assign(continent=(continent == "one") + 1, region=region)
    # Of two numbers, it is determined whether they are codes or amounts.
    assert len(said(coded)) == len(said(coded, categorical=["continent"])) == 1
    continent[0] = "two" if continent[0] == "one" else "one"
    assert said(clean.assign(continent=continent, region=region)) == []


@pytest.mark.parametrize(
    ("name", "values"), [("recur", 2), ("rtime", 200), ("pstat", 2), ("censrec", 2), ("alive", 2)]
)
def test_features_named_like_other_outcomes_are_named(clean, name, values):
    frame = clean.assign(**{name: np.arange(200.0) % values})
    (text,) = said(frame)
    assert text.startswith(
        f"features named like an event or a time of follow-up: {name!r}. Drop what is known only"
    )
    assert f"drop=[{name!r}]" in text
    assert said(frame, keep_columns=[name]) == []


@pytest.mark.parametrize(
    ("name", "values"),
    [("t5", 200), ("month", 12), ("diagtime", 200), ("prior_relapse", 2), ("heart_failure", 2), ("d", 2)],
)
def test_names_of_other_features_are_not_taken_for_outcomes(clean, name, values):
    assert not any("named like" in text for text in said(clean.assign(**{name: np.arange(200.0) % values})))


def test_patients_with_several_events_are_counted(pieces, tmp_path):
    frame = pieces.assign(died=1)
    repeated = int((frame["who"].value_counts() > 1).sum())
    frame.to_csv(tmp_path / "rows.csv", index=False)
    given = {"time": "days", "event": "died", "entry": "tstart"}
    with pytest.warns(UserWarning, match=f"^{repeated} patients of .* have several events"):
        read_survival_table(tmp_path / "rows.csv", **given, id="who")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*several events")
        first = read_survival_table(tmp_path / "rows.csv", **given, id="who", first_event=True)
    # Every row ends with an event: the first of each patient is left.
    assert first.frame["tstart"].tolist() == frame.groupby("who", sort=False)["tstart"].min().tolist()
    with pytest.raises(ValueError, match="first_event=True needs entry and id"):
        read_survival_table(tmp_path / "rows.csv", **given, first_event=True)


def visits(n=300):
    """Three visits of each patient, each row with the whole follow-up."""
    rng = np.random.default_rng(3)
    death, end = rng.exponential(30, n), rng.uniform(10, 80, n)
    one = {"patient": np.arange(n), "months": np.minimum(death, end), "died": (death <= end).astype(int)}
    rows = pd.DataFrame({**one, "age": rng.normal(60, 9, n), "sex": rng.choice(["f", "m"], n)})
    rows = rows.loc[np.repeat(rows.index, 3)].reset_index(drop=True)
    return rows.assign(marker=rng.normal(size=3 * n)).sample(frac=1, random_state=0).reset_index(drop=True)


@pytest.mark.filterwarnings("ignore:.* was taken as id:drosurv.tables.reading.TableNote")
def test_visits_that_repeat_the_outcome_are_asked_about_and_said_without_an_id():
    frame = visits()
    had = frame.groupby("patient")["died"].max().sum()
    question = f"{had} patients had the event, which would count {frame['died'].sum()} times"
    for given in ({}, {"id": "patient"}):
        for read in (read_survival_table, check):
            with pytest.raises(ValueError, match=question):
                read(frame, time="months", event="died", **given)
    alone = frame.drop(columns="patient")
    with pytest.warns(UserWarning, match="each of 300 pairs of time and event is in 3 rows or more"):
        read_survival_table(alone, time="months", event="died")
    with pytest.warns(UserWarning, match="such rows also have the same 'age' and 'sex' far more often"):
        # Of some patients one row is left.
        read_survival_table(alone[alone.index % 3 > 0], time="months", event="died")


@pytest.mark.parametrize("unit", [1, 6, 12])
def test_rows_that_repeat_patients_are_told_from_rows_of_other_patients_with_the_same_time(unit):
    frame = visits().assign(
        months=lambda table: np.ceil(table["months"] / unit), age=lambda table: table["age"].round()
    )
    # Some patients have two rows.
    frame = frame[frame.index % 7 > 0]
    y = Surv.from_arrays(frame["died"] == 1, frame["months"])
    (warning,) = repeated_outcomes(frame, ["age", "sex", "marker"], y)
    assert "'age'" in str(warning)
    rng = np.random.default_rng(0)
    for _ in range(20):
        age = rng.integers(40, 80, 900)
        others = pd.DataFrame({"age": age, "old": age > 60, "sex": rng.choice(["f", "m"], 900)})
        # Older patients die earlier, and all who live until the end of 24 months are followed until then.
        months = np.ceil(rng.exponential(20 - (age > 60) * 10)).clip(max=24)
        y = Surv.from_arrays(months < 24, months)
        assert [*repeated_outcomes(others, ["age", "old", "sex"], y)] == []


def test_rows_of_few_patients_are_told_by_one_column():
    """A column does not equal the time in some unit because the rows of each patient do."""
    frame = visits(26)
    frame = frame[frame.index % 7 > 0]
    (warning,) = repeated_outcomes(frame, ["age"], Surv.from_arrays(frame["died"] == 1, frame["months"]))
    assert "also have the same 'age'" in str(warning)


def test_rows_of_patients_are_told_by_times_of_which_none_is_in_one_row():
    """No column is the same in all rows of a patient."""
    rng = np.random.default_rng(0)
    # Of 60 patients with whole months, rows of one patient follow each other.
    for rows, last in ((rng.integers(2, 4, 30), 400), (np.full(30, 2), 400), (rng.integers(2, 4, 60), 12)):
        n = len(rows)
        time, died = np.repeat(rng.integers(1, last + 1, n), rows), np.repeat(rng.random(n) < 0.5, rows)
        frame = pd.DataFrame({"pulse": rng.integers(60, 100, len(time))})
        (warning,) = repeated_outcomes(frame, ["pulse"], Surv.from_arrays(died, time))
        assert re.search("pairs of time and event .*is in 2 rows or more", str(warning))
    # Of tests that end at one time, of motors in four groups, most times of failure are of one motor.
    ends, failed = [8064, 5448, 1680, 528], [0, 7, 5, 5]
    failures = (
        [1764, 2772, 3444, 3542, 3780, 4860, 5196],
        [408, 408, 1344, 1344, 1440],
        [408, 408, 504, 504, 504],
    )
    time = np.concatenate(
        [[*early, *[end] * (10 - n)] for early, end, n in zip(([], *failures), ends, failed, strict=True)]
    )
    rows = rng.integers(2, 4, len(time))
    motors = Surv.from_arrays(~np.isin(time, ends), time)
    frame = pd.DataFrame({"pulse": rng.integers(60, 100, rows.sum())})
    assert [*repeated_outcomes(frame, ["pulse"], np.repeat(motors, rows))] != []
    assert [*repeated_outcomes(frame[: len(time)], ["pulse"], motors)] == []
    # Nor is one in a table of many patients and few times, of which none is rarer than the others.
    for n, months in ((300, 12), (1000, 50), (2000, 60), (2000, 60)):
        pulse = pd.DataFrame({"pulse": rng.integers(60, 100, n)})
        y = Surv.from_arrays(rng.random(n) < 0.5, rng.integers(1, months + 1, n))
        assert np.unique(y, return_counts=True)[1].min() > 1
        assert [*repeated_outcomes(pulse, ["pulse"], y)] == []


def test_a_column_that_changes_within_a_few_times_does_not_tell_rows_of_patients():
    """As benefits do, which the unemployed get after a few weeks: their share rises with the time."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        weeks, rate = rng.geometric(0.15, 1000), rng.integers(0, 9, 1000)
        frame = pd.DataFrame({"rate": rate, "paid": rng.random(1000) < np.minimum(weeks / 5, 0.9)})
        y = Surv.from_arrays(np.ones(1000), weeks)
        assert [*repeated_outcomes(frame, ["rate", "paid"], y)] == []


def test_times_of_another_event_that_equal_the_time_are_no_sign_of_repeated_rows():
    """As progression-free survival, which is overall survival where there was no progression."""
    rng = np.random.default_rng(0)
    death, progression = rng.exponential(20, 400), rng.exponential(30, 400)
    time = np.minimum(np.ceil(death), 36)
    frame = pd.DataFrame({"free": np.minimum(time, np.ceil(progression)), "age": rng.integers(40, 80, 400)})
    assert [*repeated_outcomes(frame, ["free", "age"], Surv.from_arrays(time < 36, time))] == []


def test_codes_that_equal_short_times_are_no_sign_of_repeated_rows():
    rng = np.random.default_rng(0)
    months = rng.integers(0, 5, 300)
    frame = pd.DataFrame({"stage": rng.integers(0, 2, 300), "nodes": rng.poisson(3, 300)})
    assert [*repeated_outcomes(frame, list(frame), Surv.from_arrays(rng.random(300) < 0.7, months))] == []


def test_a_number_of_the_visit_tells_rows_of_one_patient():
    """Nothing else does: no id, and no column that is the same in all visits."""
    rng = np.random.default_rng(0)
    visits = rng.integers(1, 4, 60)
    time, died = np.repeat(rng.integers(1, 400, 60), visits), np.repeat(rng.random(60) < 0.5, visits)
    frame = pd.DataFrame({"pulse": rng.integers(60, 100, len(time))})
    frame["visit"] = np.concatenate([np.arange(n) for n in visits])
    y = Surv.from_arrays(died, time)
    (warning,) = repeated_outcomes(frame, ["pulse", "visit"], y)
    assert "have the time and event of the row above, and hardly ever its 'visit'" in str(warning)
    assert [*repeated_outcomes(frame, ["pulse"], y)] == []
    # A column of other rows with such times, in their order, which many share.
    for _ in range(20):
        frame["arm"] = rng.integers(0, 3, len(time))
        assert [*repeated_outcomes(frame, ["arm"], np.sort(y, order="time"))] == []


def test_a_column_that_differs_from_the_row_above_is_rare_by_the_binomial_distribution():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(300):
        codes, same = rng.integers(0, rng.integers(2, 9), 200), rng.random(199) < rng.random()
        # Of most equal neighbours, one is changed.
        equal = np.flatnonzero(codes[1:] == codes[:-1])
        codes[equal[rng.random(len(equal)) < rng.random()] + 1] += 1
        share = np.sum((np.bincount(codes) / 200) ** 2)
        chance = binom.cdf(np.sum((codes[1:] == codes[:-1])[same]), same.sum(), share)
        if told := _numbers_visits(codes, same):
            assert chance < 1e-6
        assert told or chance > 1e-9
        found.append(told)
    assert 0 < sum(found) < 300


def test_a_calendar_year_is_a_feature_to_think_about_and_no_leak():
    """Everybody is followed until the end of 2020, and few die."""
    rng = np.random.default_rng(0)
    entry, death = rng.uniform(2000, 2020, 400), rng.exponential(60, 400)
    year, time = np.floor(entry), np.minimum(death, 2021 - entry)
    frame = pd.DataFrame({"years": time, "died": (death < 2021 - entry).astype(int), "year": year})
    with pytest.warns(UserWarning, match="features that hold calendar years: 'year'") as given:
        table = read_survival_table(frame, time="years", event="died")
    assert not any("categorical" in str(one.message) for one in given)
    assert find_leaks(table.X, table.y) == {}
    # The year of the last visit of those who died is one.
    known = frame.assign(last=np.where(frame["died"] == 1, year + time, np.nan))
    assert "last" in find_leaks(known[["last"]], table.y)
