"""check reads a table, lists its problems, and judges a model on patients left out of its training."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import drosurv
from drosurv.datasets import make_hidden_minority
from drosurv.workflows.table_to_check import WantedColumns, prepare_table

N = 300


@pytest.fixture(scope="module")
def patients():
    data = make_hidden_minority(N, random_state=0)
    rng = np.random.default_rng(0)
    frame = (
        data.X.round(4)
        .iloc[:, :3]
        .assign(
            patient_id=[f"p{k}" for k in range(N)],
            hospital_mrn=rng.permutation(N) + 10_000,
            days=np.ceil(1000 * data.y["time"]),
            died=data.y["event"].astype(int),
            sex=np.where(data.X["x3"] > 0, "f", "m"),
            visit=pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "D"),
            last_seen=np.ceil(1000 * data.y["time"]) / 30,
        )
    )
    frame.loc[3, "days"] = -1
    frame.loc[11, "days"] = 0
    frame.loc[7, "died"] = np.nan
    return frame


@pytest.fixture(scope="module")
def found(patients, quick_check):
    return drosurv.check(patients)


def test_columns_are_guessed_and_told(found):
    columns = found.columns
    assert (columns.time, columns.event, columns.id, columns.groups) == (
        "days",
        "died",
        "patient_id",
        ("sex",),
    )
    assert "Time is column 'days'" in found.summary()


def test_all_problems_are_listed_at_once(found, patients):
    told = " ".join(found.problems)
    assert "1 patient has the time 0" in told
    assert "1 row with a negative time in column 'days' left out (first: row 4)" in told
    assert "1 row with no event in column 'died' left out (first: row 8)" in told
    assert "column 'visit' holds dates and was left out" in told
    assert "column 'hospital_mrn' was left out: it names patients" in told
    assert "column 'last_seen' may give the outcome away and was left out" in told
    assert len(found.table) == len(patients) - 2


def test_the_model_uses_neither_ids_nor_dates_nor_copies_of_the_time(found):
    left_out = {"patient_id", "hospital_mrn", "visit", "last_seen", "days"}
    assert left_out & set(found.trained.encoder.used_) == set()
    assert left_out & set(found.table.X.columns) == set()
    assert np.isfinite(found.model.predict(found.table.X)).all()


def test_columns_left_out_are_named_in_the_summary_even_if_their_problems_do_not_fit(found):
    problems = (*("a problem of many words " * 8,) * 9, "column 'visit' holds dates and was left out.")
    shown = dataclasses.replace(found, problems=problems).summary()
    assert "more: see the page; left out are also columns visit" in shown
    assert "visit" in found.summary()


def test_a_problem_of_the_table_is_not_repeated_below_the_verdict(found):
    told = found.report.parts["verdict"].statements[-1].text
    shown = dataclasses.replace(found, problems=(told,)).summary().replace("\n  ", " ")
    assert shown.count(told) == 1
    assert shown.index(told) < shown.index("Model:")


def test_times_between_columns_of_numbers_are_in_their_unit(patients):
    frame = patients.drop(columns=["days", "last_seen"])
    frame["diag"] = 9000.0 + frame.index % 700
    frame["seen"] = frame["diag"] + patients["days"].mask(patients["days"] < 0)
    prepared = prepare_table(frame, WantedColumns(start="diag", end="seen"), None, "the table")
    kept = patients.drop(index=[3, 7])
    np.testing.assert_allclose(prepared.table.y["time"], kept["days"])
    assert not {"diag", "seen"} & set(prepared.table.X.columns)
    assert "time is seen minus diag, in the unit of these columns." in prepared.found.notes


def test_all_guesses_stand_in_one_line_below_the_verdict(found):
    lines = found.summary(width=300).splitlines()
    (place,) = (k for k, line in enumerate(lines) if line.startswith("Model:"))
    told = "time='days', event='died', id='patient_id', groups=['sex'], event_value='1'."
    # The verdict may have several sentences.
    (guessed,) = (k for k, line in enumerate(lines) if line.startswith("- Guessed from names and values: "))
    assert place < guessed <= place + 4
    assert told in lines[guessed]
    assert found.to_dict()["guessed"] == {
        "time": "days",
        "event": "died",
        "id": "patient_id",
        "groups": ("sex",),
    }
    assert "Guessed from names and values" in found.to_html()


def test_the_plain_cox_table_is_that_of_plain_cox(found):
    X = found.trained.encoder.transform(found.table.X)
    cox = drosurv.CoxPH().fit(X, found.table.y)
    np.testing.assert_allclose(found.cox["coef"], cox.coef_ / found.trained.encoder.scale_, rtol=1e-6)
    assert found.hazards in found.summary().replace("\n  ", " ")


def test_the_summary_has_at_most_40_lines_and_the_page_holds_its_parts(found, tmp_path):
    assert len(found.summary().splitlines()) <= 40
    assert max(map(len, found.summary().splitlines())) <= 100
    page = found.to_html(tmp_path / "check.html")
    assert (tmp_path / "check.html").read_text(encoding="utf-8") == page
    for words in ("What was read", "Plain Cox", "What repair does", "holds dates and was left out"):
        assert words in page
    # A heading without an introduction is not shown, and its section is squeezed into the margin.
    for key in ("table", "cox", "repair"):
        assert f'<h2 id="{key}-heading">' in page
    assert "<li>" in found._repr_html_()
    assert found.to_dict()["columns"]["time"] == "days"


def test_numbers_as_names_of_columns_are_texts_and_a_cut_without_another_side_is_told(patients):
    wanted = WantedColumns(groups=["sex", "7>1000"], drop=["last_seen"])
    prepared = prepare_table(patients.rename(columns={"x1": 7}), wanted, None, "the table")
    assert "7" in prepared.table.X
    (problem,) = (text for text in prepared.problems if "compared" in text)
    assert problem == "the groups of '7>1000' cannot be compared: all patients are in one, <=1000."


def test_rows_after_the_first_event_are_left_out():
    """Training on later events would predict more first events than there are."""
    rows = pd.DataFrame(
        {
            "id": [0, 0, 0, 1, 1, 2],
            "x": [1.0, 1.5, 2.0, 3.0, 3.5, 4.0],
            "number": [1, 1, 2, 1, 1, 1],
            "tstart": [0, 2, 5, 0, 4, 0],
            "tstop": [2, 5, 9, 4, 6, 7],
            "status": [0, 1, 1, 0, 1, 0],
        }
    )
    wanted = WantedColumns(time="tstop", event="status", entry="tstart", id="id")
    found = prepare_table(rows, wanted, None, "the table")
    assert found.table.y["time"].tolist() == [2, 5, 4, 6, 7]
    assert (
        "1 patient of 3 with several events: the first is predicted, and 1 row after it left out."
        in found.problems[0]
    )
    # The number of the event is the same in all first rows.
    assert found.first_event
    assert list(found.table.X) == ["x"]
    assert (
        "column 'number' was left out: its only value is '1' in each patient's first row." in found.problems
    )


def prepared(frame, **wanted):
    """A table as check reads it before it trains a model."""
    return prepare_table(frame, WantedColumns(**wanted), None, "the table")


@pytest.fixture
def departures():
    """Time, event, and a reason that is known for those with the event only."""
    rng = np.random.default_rng(0)
    died = np.arange(200) % 3 > 0
    columns = {"days": rng.integers(1, 900, 200), "died": died.astype(int), "dose": rng.normal(size=200)}
    return pd.DataFrame(columns).assign(
        reason=np.where(died, rng.choice(["disease", "age"], 200), None), arm=rng.choice(["a", "b"], 200)
    )


def test_columns_that_are_left_out_define_no_groups(departures):
    found = prepared(departures)
    assert "column 'reason' may give the outcome away and was left out" in " ".join(found.problems)
    assert found.found.groups == ("arm",) == tuple(found.table.sensitive_features)
    assert "groups are defined by arm." in found.found.notes
    alone = prepared(departures.drop(columns="arm"))
    assert (alone.found.groups, alone.table.groups) == ((), None)
    assert "groups" not in alone.found.guessed
    # Whoever names it wants to see it.
    assert prepared(departures, groups=["reason"]).found.groups == ("reason",)


def test_a_dropped_column_defines_groups_only_if_it_is_named_like_a_sensitive_attribute(departures):
    assert prepared(departures, drop=["reason", "arm"]).found.groups == ()
    assert prepared(departures.rename(columns={"arm": "sex"}), drop=["sex"]).found.groups == ("sex",)


def test_a_guessed_id_that_contradicts_the_rows_is_asked_about_as_a_guess():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.integers(30, 80, 100), "sex": rng.choice(["f", "m"], 100)})
    rows = rows.assign(days=rng.integers(1, 900, 100), died=np.arange(100) % 2)
    visits = rows.loc[rows.index.repeat(3)].assign(
        k=np.repeat(np.arange(100) + 1000, 3), visit=[1, 2, 3] * 100
    )
    with pytest.raises(ValueError, match=r"^column 'k' was taken as id; if it names no patients, pass drop="):
        prepared(visits)
    with pytest.raises(ValueError, match=r"^column 'k' names 100 patients in 300 rows"):
        prepared(visits, id="k")
    assert prepared(visits, drop=["k"]).found.id is None
    # Intervals of one patient that overlap, as those of different transitions do.
    overlapping = visits.assign(tstart=0.0).rename(columns={"days": "tstop"})
    with pytest.raises(ValueError, match=r"^column 'k' was taken as id; .* Rows 1 and 2 of one id overlap"):
        prepared(overlapping)
