"""A model in use: counts from the definition, looks, shares, the past of a growing table, and clear answers."""

import json

import numpy as np
import pandas as pd
import pytest

import drosurv
from drosurv import CauseSpecificCox, CoxPH, Surv
from drosurv.errors import ArgumentError, ArgumentWarning
from drosurv.monitoring.counts import Calendar, Log
from drosurv.patients.target import with_fields
from drosurv.predictions import Predictions
from drosurv.tables.reading import TableNote

pytestmark = pytest.mark.filterwarnings("error:half of the patients without the event")


def patients(n, rng):
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    time = np.ceil(400 * rng.exponential(size=n) * np.exp(-0.7 * X["a"]))
    return X, time.to_numpy()


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X, time = patients(600, rng)
    end = rng.uniform(100, 2500, 600)
    return CoxPH().fit(X, Surv.from_arrays(time <= end, np.minimum(time, end)))


@pytest.fixture(scope="module")
def used():
    """Patients of three years, followed until 2023-01-15 or lost; the group "late" begins in 2022."""
    rng = np.random.default_rng(1)
    n = 250
    X, time = patients(n, rng)
    start = np.sort(rng.integers(0, 1100, n))
    lost = np.where(rng.random(n) < 0.2, rng.integers(1, 900, n), 10**6)
    end = np.minimum(lost, 1110 - start)
    group = np.where(rng.random(n) < 0.5, "f", "m")
    group = np.where((start > 740) & (rng.random(n) < 0.3), "late", group)
    dates = pd.Timestamp("2020-01-01") + pd.to_timedelta(start, unit="D")
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    return X, y, dates, pd.DataFrame({"sex": group})


def hazard_until(model, factor, time):
    """Sum of the model's hazard increments until a time, of a patient with this factor of the baseline."""
    baseline = model.cum_baseline_hazard_
    jumps = zip(baseline.x, np.diff(baseline.y, prepend=0.0), strict=True)
    return factor * sum(jump for at, jump in jumps if at <= time)


@pytest.mark.parametrize("lag", [0, 45])
def test_counts_and_expected_events_are_those_of_the_definition(model, used, lag):
    X, y, dates, groups = used
    found = drosurv.monitor(model, X, y, start=dates, sensitive_features=groups, lag=lag)
    factor = np.exp(model.predict(X))
    for date in (pd.Timestamp("2020-08-31"), pd.Timestamp("2022-02-28")):
        for attribute, group in (("overall", "all"), ("sex", "m")):
            events, expected, entered = 0, 0.0, 0
            for i in range(len(X)):
                own = attribute == "overall" or groups["sex"].iloc[i] == group
                known = (date - dates[i]).days - lag
                if not own or known < 0:
                    continue
                entered += 1
                events += bool(y["event"][i]) and y["time"][i] <= known
                expected += hazard_until(model, factor[i], min(y["time"][i], known))
            row = found.series(attribute, group).set_index("date").loc[date]
            assert (row["patients"], row["events"]) == (entered, events)
            assert row["expected"] == pytest.approx(expected)
            assert row["ratio"] == pytest.approx(events / expected)


def test_entry_rows_of_one_patient_and_whole_rows_count_the_same(model, used):
    X, y, dates, _ = used
    whole = drosurv.monitor(model, X, y, start=dates)
    cut = y["time"] / 2
    split = drosurv.monitor(
        model,
        pd.concat([X, X]),
        with_fields(
            Surv.from_arrays(np.append(np.zeros(len(X), bool), y["event"]), np.append(cut, y["time"])),
            entry=np.append(np.zeros(len(X)), cut),
            id=np.tile(np.arange(len(X)), 2),
        ),
        start=dates.append(dates),
    )
    pd.testing.assert_frame_equal(whole.path, split.path)


def test_the_past_stays_the_same_when_the_table_grows(model, used):
    X, y, dates, groups = used
    now = pd.Timestamp("2021-10-31")
    known = np.asarray((now - dates).days)
    seen = known > 0
    cut = Surv.from_arrays(y["event"] & (y["time"] <= known), np.minimum(y["time"], np.maximum(known, 0)))
    before = drosurv.monitor(
        model, X[seen], cut[seen], start=dates[seen], sensitive_features=groups[seen], tolerance=1.0
    )
    after = drosurv.monitor(model, X, y, start=dates, sensitive_features=groups, tolerance=1.0)
    # The group "late" begins later, and does not change the share of the others.
    assert "late" in set(after.path["group"]) - set(before.path["group"])
    past = after.path[after.path["date"] <= now].reset_index(drop=True)
    pd.testing.assert_frame_equal(past, before.path, check_exact=False, rtol=1e-10)
    for table, earlier in ((after.alarms, before.alarms), (after.changes, before.changes)):
        past = table[table["date"] <= now].reset_index(drop=True)
        pd.testing.assert_frame_equal(past, earlier, check_exact=False, rtol=1e-10)
    assert len(before.path["date"].unique()) == 22


def test_alarms_and_changes_of_the_past_stay_when_the_table_of_whole_days_grows(model, used):
    X, y, dates, groups = used
    men = (groups["sex"] == "m").to_numpy()
    y = Surv.from_arrays(y["event"] | men, np.where(men, np.ceil(y["time"] / 2), y["time"]))
    options = {"every": "day", "lag": 30}
    after = drosurv.monitor(model, X, y, start=dates, sensitive_features=groups, **options)
    for now in (after.alarms["date"].min(), after.changes["date"].iloc[-1] + pd.Timedelta(days=1)):
        known = np.asarray((now - dates).days)
        seen = known >= 0
        cut = Surv.from_arrays(y["event"] & (y["time"] <= known), np.clip(y["time"], 0, known.clip(0)))
        before = drosurv.monitor(
            model, X[seen], cut[seen], start=dates[seen], sensitive_features=groups[seen], **options
        )
        assert len(before.alarms) > 0
        for name in ("path", "alarms", "changes"):
            later = getattr(after, name)
            past = later[later["date"] <= now].reset_index(drop=True)
            pd.testing.assert_frame_equal(past, getattr(before, name), check_exact=False, rtol=1e-10)


def test_everybody_gets_half_of_alpha_and_groups_less_and_less():
    log = Log(Calendar(False), np.zeros(3), None, np.array([5.0, 1.0, 3.0]), None, None, np.ones(3), 0.0)
    series = log.series(pd.DataFrame({"g": ["x", "y", "z"]}), 0.06)
    assert [one.group for one in series] == ["all", "y", "z", "x"]
    assert [one.share for one in series] == pytest.approx([0.03, 0.015, 0.005, 0.0025])


def test_looks_are_every_month_of_dates_and_at_each_event_of_numbers_by_default(model, used):
    X, y, dates, _ = used
    numbers = (dates - dates[0]).days.to_numpy(dtype=float)
    for start, every in ((dates, "month"), (numbers, None)):
        by_default = drosurv.monitor(model, X, y, start=start)
        asked = drosurv.monitor(model, X, y, start=start, every=every)
        pd.testing.assert_frame_equal(by_default.path, asked.path)
        assert by_default.every == every
    assert set(np.unique(numbers[y["event"]] + y["time"][y["event"]])) == set(by_default.path["date"])


def test_rows_that_repeat_another_row_of_their_patient_are_counted_and_said(model, used):
    X, y, dates, _ = used
    named = with_fields(y, id=np.arange(250))
    twice = np.r_[0:250, 3, 3, 7]
    with pytest.warns(
        ArgumentWarning, match="3 rows repeat the follow-up of another row of the same patient"
    ):
        found = drosurv.monitor(model, X.iloc[twice], named[twice], start=dates[twice])
    once = drosurv.monitor(model, X, named, start=dates).path.iloc[-1]
    last = found.path.iloc[-1]
    assert last["events"] - once["events"] == 2 * y["event"][3] + y["event"][7]
    assert last["expected"] > once["expected"]
    # Patients are counted once.
    assert last["patients"] == once["patients"]
    assert any("3 rows repeat" in note for note in found.notes)
    # Another end of the same follow-up is no copy.
    other = named[twice]
    other["time"][-1] += 1
    with pytest.raises(ArgumentError, match="1 overlapping rows"):
        drosurv.monitor(model, X.iloc[twice], other, start=dates[twice])


@pytest.mark.parametrize(
    ("every", "first", "last", "looks"),
    [
        ("month", "2020-01-31", "2022-12-31", 36),
        ("year", "2020-12-31", "2022-12-31", 3),
        ("day", 1, "2023-01-15", None),
        (100, 100, 1100, 11),
    ],
)
def test_looks_are_at_the_ends_of_complete_periods(model, used, every, first, last, looks):
    """Numbers are days after the first start; without a number of looks there is one every day."""
    X, y, dates, _ = used
    found = drosurv.monitor(model, X, y, start=dates, every=every).path["date"]
    ends = [
        pd.Timestamp(end) if isinstance(end, str) else dates[0] + pd.Timedelta(days=end)
        for end in (first, last)
    ]
    assert [found.iloc[0], found.iloc[-1]] == ends
    assert len(found) == ((ends[1] - ends[0]).days + 1 if looks is None else looks)


def test_without_a_period_one_looks_at_each_event(model, used):
    X, y, dates, _ = used
    found = drosurv.monitor(model, X, y, start=dates, every=None).path
    happened = np.unique(dates[y["event"]] + pd.to_timedelta(y["time"][y["event"]], unit="D"))
    assert found["date"].tolist() == pd.DatetimeIndex(happened).tolist()
    assert found["events"].is_monotonic_increasing


def test_dates_and_numbers_give_the_same_counts(model, used):
    X, y, dates, _ = used
    numbers = np.asarray((dates - pd.Timestamp("2020-01-01")).days, dtype=float)
    by_number = drosurv.monitor(model, X, y, start=numbers, every=50.0).path
    by_date = drosurv.monitor(model, X, y, start=dates.strftime("%Y-%m-%d"), every=50).path
    columns = ["patients", "events", "expected", "low", "high", "e_value"]
    pd.testing.assert_frame_equal(by_number[columns], by_date[columns])


def test_times_in_months_lie_in_the_calendar_of_days(used):
    X, y, dates, _ = used
    months = Surv.from_arrays(y["event"], y["time"] / 30.4375)
    both = [
        drosurv.monitor(CoxPH().fit(X, target), X, target, start=dates, time_unit=unit).path
        for target, unit in ((y, "days"), (months, "months"))
    ]
    pd.testing.assert_frame_equal(both[0], both[1], check_exact=False, rtol=1e-6)


def test_the_counts_of_causes_add_up_to_those_of_any_cause(used):
    X, y, dates, _ = used
    rng = np.random.default_rng(2)
    cause = np.where(y["event"], rng.integers(1, 3, len(y)), 0)
    target = Surv.competing(cause, y["time"])
    model = CauseSpecificCox().fit(X, target)
    every, first, second = (
        drosurv.monitor(model, X, target, start=dates, cause=cause).path for cause in (None, 1, 2)
    )
    assert (first["events"] + second["events"]).tolist() == every["events"].tolist()
    np.testing.assert_allclose(first["expected"] + second["expected"], every["expected"])
    assert 0 < second["expected"].iloc[-1] < every["expected"].iloc[-1]
    # A table of incidences of both causes says nearly the same.
    times = np.arange(2.0, 1200, 2)
    table = {k: model.predict_cumulative_incidence(X, times, k) for k in (1, 2)}
    given = Predictions(incidence=table, times=times)
    found = drosurv.monitor(given, None, target, start=dates, cause=1).path
    assert found["expected"].iloc[-1] == pytest.approx(first["expected"].iloc[-1], rel=0.02)
    assert found["events"].tolist() == first["events"].tolist()


def test_a_table_of_many_times_gives_nearly_the_events_of_its_model(model, used):
    X, y, dates, _ = used
    times = np.arange(2.0, 1200, 2)
    survival = model.predict_survival_function(X, times=times)
    found = drosurv.monitor((times, survival), None, y, start=dates).path
    exact = drosurv.monitor(model, X, y, start=dates).path
    assert found["expected"].iloc[-1] == pytest.approx(exact["expected"].iloc[-1], rel=0.02)


def test_a_wrong_group_raises_an_alarm_and_a_right_model_none(model, used):
    X, y, dates, groups = used
    quiet = drosurv.monitor(model, X, y, start=dates, sensitive_features=groups)
    assert quiet.alarms.empty
    assert quiet.alarms["date"].dtype == quiet.path["date"].dtype
    assert "No alarm" in quiet.summary()
    men = (groups["sex"] == "m").to_numpy()
    wrong = Surv.from_arrays(y["event"] | men, np.where(men, np.ceil(y["time"] / 3), y["time"]))
    found = drosurv.monitor(model, X, wrong, start=dates, sensitive_features=groups)
    alarm = found.alarms.set_index("group").loc["m"]
    path = found.series("sex", "m").set_index("date")
    assert alarm["low"] > 1.1
    # The date is the first at which the interval leaves out what is tolerated, and the e-value 1 over the share.
    first = groups["sex"].iloc[0]
    own = 0.05 / 4 if first == "m" else 0.05 / 12
    assert alarm["date"] == path.index[(path["low"] > 1.1) | (path["high"] < 1 / 1.1)][0]
    assert alarm["date"] == path.index[path["e_value"] >= 1 / own][0]
    assert f"Alarm on {alarm['date']:%Y-%m-%d}, sex m" in found.summary()
    assert "The numbers of events differ from the predictions for sex m" in found.to_html()
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["alarms"]


def test_a_recent_change_is_found_with_its_date(model):
    rng = np.random.default_rng(5)
    n = 900
    X, _ = patients(n, rng)
    start = np.sort(rng.uniform(0, 2000, n))
    hazard = np.exp(0.7 * X["a"].to_numpy()) / 400
    before, unit = np.maximum(1400 - start, 0.0), rng.exponential(size=n)
    time = np.where(unit <= hazard * before, unit / hazard, before + (unit / hazard - before) / 2.5)
    end = np.minimum(2000 - start, 600)
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    found = drosurv.monitor(model, X, y, start=start, every=30)
    recent = found.changes.iloc[0]
    assert f"Recent change, found on {recent['date']:.6g}" in found.summary()
    tolerant = drosurv.monitor(model, X, y, start=start, every=30, tolerance=1.5, alpha=0.01)
    assert "No alarm, but events may have changed lately for everybody." in tolerant.to_html()
    assert 1400 < recent["date"] < 1750
    assert 1250 < recent["since"] < 1550
    assert recent["ratio"] > 1.5


def test_follow_up_after_the_end_of_the_curves_is_not_counted_and_said(model, used):
    X, y, dates, _ = used
    times = np.arange(2.0, 301, 2)
    survival = model.predict_survival_function(X, times=times)
    late = int((y["time"] > 300).sum())
    with pytest.warns(
        UserWarning, match=rf"{late} patients are followed after time 300, where the predicted curves"
    ):
        found = drosurv.monitor((times, survival), None, y, start=dates, every="day")
    assert found.path["events"].iloc[-1] == (y["event"] & (y["time"] <= 300)).sum()


def test_dates_after_today_are_warned_of_with_an_example(model, used):
    X, y, dates, _ = used
    start = pd.Series(dates, index=np.arange(10, 10 + len(dates)))
    start.iloc[[3, 7]] = pd.Timestamp("2094-05-01"), pd.Timestamp("2095-01-01")
    said = r"2 rows start or end after today: row 14 starts on 2094-05-01\. Correct such dates"
    with pytest.warns(UserWarning, match=said):
        found = drosurv.monitor(model, X, y, start=start, every="year")
    (note,) = found.notes
    assert found.to_dict()["notes"] == [note]
    assert f"<li>{note}</li>" in found.to_html()
    late = Surv.from_arrays(y["event"], np.where(np.arange(len(y)) == 5, 30_000, y["time"]))
    with (
        pytest.warns(UserWarning, match=r"1 row starts or ends after today: row 6 ends on 21\d\d-"),
        pytest.warns(UserWarning, match="where the predicted curves end"),
    ):
        drosurv.monitor(model, X, late, start=dates, every="year")


def test_how_dates_with_two_meanings_are_read_is_said(model, used):
    X, y, dates, _ = used
    with pytest.warns(TableNote) as given:
        found = drosurv.monitor(model, X, y, start=pd.Series(dates.strftime("%m/%d/%Y"), name="admitted"))
    first = next(date for date in dates if date.day <= 12 and date.day != date.month)
    assert [str(one.message) for one in given] == [
        f"'{first:%m/%d/%Y}' of start column 'admitted' is read as {first.day} {first:%B %Y}, because other dates of "
        "the column have the month first."
    ]
    plain = drosurv.monitor(model, X, y, start=dates)
    pd.testing.assert_frame_equal(found.path, plain.path)
    assert plain.notes == ()
    assert "warning notes" not in plain.to_html()


def test_a_lag_shorter_than_the_gaps_between_visits_is_warned_of(model, used):
    X, y, dates, _ = used
    last = pd.Timestamp("2023-01-15")
    known = np.asarray((last - dates).days)
    # Survivors are seen at every 180th day only.
    visits = np.where(y["event"], y["time"], np.floor(np.minimum(y["time"], known) / 180) * 180)
    y = Surv.from_arrays(y["event"], np.maximum(visits, 1.0))
    with pytest.warns(
        UserWarning,
        match=r"were last seen more than .* days before the last date .* Pass lag=N with N longer",
    ):
        drosurv.monitor(model, X, y, start=dates)


@pytest.mark.parametrize("lag", [0, 40])
@pytest.mark.parametrize("follow_up", ["until today", "until yesterday", "30 days", "lost"])
def test_complete_outcomes_are_not_warned_of(model, lag, follow_up):
    # The warning is an error in this file.
    rng = np.random.default_rng(3)
    X, time = patients(800, rng)
    start = rng.integers(0, 1000, 800)
    until = np.full(800, 1010) - start
    if follow_up == "30 days":
        until = np.minimum(until, 30)
    if follow_up == "lost":
        until = np.minimum(until, np.ceil(rng.exponential(500, 800)))
    event, time = time <= until, np.minimum(time, until)
    if follow_up == "until yesterday":
        time = np.where(event, time, time - 1)
    dates = pd.Timestamp("2020-01-01") + pd.to_timedelta(start, unit="D")
    found = drosurv.monitor(model, X, Surv.from_arrays(event, time), start=dates, lag=lag)
    assert found.lag == lag


def test_a_picture_shows_one_group_or_all(model, used):
    X, y, dates, groups = used
    found = drosurv.monitor(model, X, y, start=dates, sensitive_features=groups)
    assert len(found.plot().get_legend().get_texts()) == 1
    assert len(found.plot("sex").get_legend().get_texts()) == 3
