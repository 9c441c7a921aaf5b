"""The table of times: its times, its numbers, and what is said of 100 patients."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from drosurv import CoxPH, Surv, evaluate
from drosurv.evaluation.result_views import times_tables
from drosurv.metrics.risk_strata import ObservedRisk
from drosurv.patients.target import parse_target

AT = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x, sex = rng.normal(size=500), rng.choice(["f", "m"], 500)
    rate = 0.12 * np.exp(0.7 * x)
    time, left = rng.exponential(1 / rate), rng.uniform(2, 9, 500)
    y = Surv.from_arrays(time <= left, np.minimum(time, left))
    return pd.DataFrame({"x": x}), y, pd.Series(sex, name="sex"), np.exp(-rate[:, None] * np.array(AT))


@pytest.fixture(scope="module")
def result(data):
    X, y, sex, survival = data
    return evaluate((AT, survival), X, y, sensitive_features=sex, horizon=3.0)


def test_the_numbers_are_those_of_the_patients_of_the_group(result, data):
    _, y, sex, survival = data
    times = result.times
    assert [*times.columns[:9]] == [
        *("attribute", "group", "time", "patients", "predicted", "observed", "low", "high", "ratio")
    ]
    for row in times.itertuples():
        own = (sex == row.group).to_numpy() | (row.group == "all")
        risk = 1 - survival[own, AT.index(row.time)]
        expected = ObservedRisk.of(parse_target(y[own]), risk, row.time)
        interval = expected.observed.interval(0.95)
        assert row.predicted == pytest.approx(expected.predicted)
        assert (row.observed, row.low, row.high) == pytest.approx(
            (expected.observed.value, interval.low, interval.high)
        )
        assert row.ratio == pytest.approx(row.observed / row.predicted)
        assert row.ratio_low == pytest.approx(row.low / row.predicted)
        assert row.patients + row.left_out == own.sum()


def test_there_are_at_most_five_times_with_the_horizon(result, data):
    X, y, _, _ = data
    assert 3.0 in result.times["time"].unique().tolist()
    assert len(result.times["time"].unique()) == 5
    model = CoxPH().fit(X, y)
    throughout = evaluate(model, X, y, horizon=3.3).times["time"]
    assert 3.3 in throughout.tolist()
    assert len(throughout) <= 5
    # A tenth of the patients is at risk at the last one.
    assert np.mean(y["time"] >= throughout.max()) >= 0.1


def test_times_until_which_many_were_not_followed_are_not_named():
    """The half with lower risks leaves after 4: later, only the risk of the others would be known."""
    rng = np.random.default_rng(1)
    low = np.arange(400) < 200
    rate = np.where(low, 0.05, 0.3)
    time, left = rng.exponential(1 / rate), np.where(low, rng.uniform(3, 4, 400), 8.0)
    y = Surv.from_arrays(time <= left, np.minimum(time, left))
    model = CoxPH().fit(low[:, None].astype(float), y)
    times = evaluate(model, low[:, None].astype(float), y, horizon=2.0).times
    assert len(times) > 1
    assert times["time"].max() < 4
    assert (np.diff(times["observed"]) > 0).all()


@pytest.mark.parametrize("horizon", [1.0, 4.0])
def test_of_more_than_five_predicted_times_those_are_shown_that_are_judged(data, horizon):
    _, y, _, survival = data
    times, more = [*AT, 7.0, 8.0], np.column_stack([survival, survival[:, 5:] ** 1.2, survival[:, 5:] ** 1.4])
    found = evaluate((times, more), None, y, horizon=horizon)
    judged = found.findings.query("question in ('level', 'level by a time')")["time"]
    assert sorted({*judged, horizon}) == found.times["time"].tolist()


def test_calibration_curves_and_the_page_have_the_same_numbers(result):
    rows = result.times[result.times["time"] == 3.0].set_index(["attribute", "group"])
    numbers = result.calibration_curves.numbers.set_index(["attribute", "group"])
    for key in numbers.index:
        shown = numbers.loc[key, ["ratio", "ratio_low", "ratio_high"]].astype(float)
        np.testing.assert_allclose(shown, rows.loc[key, ["ratio", "ratio_low", "ratio_high"]].astype(float))
        pictured = {one.who: one for one in result.picture.rows}
        name = "all patients" if key[1] == "all" else f"sex {key[1]}"
        assert pictured[name].ratio == pytest.approx(rows.loc[key, "ratio"], rel=1e-5)


def test_what_is_said_of_100_patients_is_the_row_of_the_horizon(result):
    row = result.times.query("attribute == 'overall' and time == 3.0").iloc[0]
    counts = [f"{100 * row[name]:.0f}" for name in ("observed", "low", "high", "predicted")]
    assert result.counts("years") == (
        "By 3 years: of 100 patients {} ({} to {}) had the event; the model expected {}.".format(*counts)
    )
    wide, long = times_tables(result, "years")
    assert wide.rows[0]["3"] == "{} ({} to {}), {} expected".format(*counts)
    assert [column.label for column in wide.columns][:2] == ["Group", "By 1 year"]
    assert len(long) == len(result.times)
    assert result.to_dict()["times"][0]["attribute"] == "overall"


def test_scores_without_curves_have_no_times(data):
    X, y, _, _ = data
    assert evaluate(X["x"].to_numpy(), X, y).times.empty


def test_a_time_until_which_no_group_was_followed_is_not_among_the_counts_of_100_patients(result):
    left = result.times.assign(left_out=np.where(result.times["time"] > 5, result.times["patients"], 0))
    shown = SimpleNamespace(groups=result.groups, times=left, settings=result.settings)
    wide, long = times_tables(shown)
    labels = [column.label for column in wide.columns[1:]]
    assert labels == [f"By time {time:g}" for time in left["time"].unique() if time <= 5]
    assert len(long) == len(left)


def test_with_late_entry_each_tested_time_has_the_risks_from_the_first_predicted_time_on():
    rng = np.random.default_rng(0)
    x, entry = rng.normal(size=1500), rng.uniform(0, 1, 1500)
    time, left = entry + rng.exponential(np.exp(-x)), rng.uniform(1, 3, 1500)
    y = Surv.from_arrays(time <= left, np.minimum(time, left), entry=entry)
    survival = np.exp(-np.exp(x)[:, None] * np.array([0.5, 0.8, 1.5]))
    result = evaluate(([0.5, 0.8, 1.5], survival), None, y)
    judged = (entry <= 0.5) & (y["time"] > 0.5)
    for row in result.times.itertuples():
        risk = 1 - survival[judged, {0.8: 1, 1.5: 2}[row.time]] / survival[judged, 0]
        later = Surv.from_arrays(y["event"][judged], y["time"][judged])
        assert row.patients == judged.sum()
        assert row.predicted == pytest.approx(risk.mean())
        assert row.observed == pytest.approx(
            ObservedRisk.of(parse_target(later), risk, row.time).observed.value
        )
    tested = result.findings.query("question == 'level by a time'")
    assert [*result.times["time"]] == [*tested["time"], 1.5]
