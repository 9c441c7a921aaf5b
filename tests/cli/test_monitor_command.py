"""The command monitor: a page, the numbers of the function, and clear answers to wrong tables."""

import numpy as np
import pandas as pd
import pytest

import drosurv as library
from drosurv import CoxPH, Surv

DATES = ("--start", "admitted", "--end", "last_seen", "--event", "died")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two models of the same patients, in days and in months, and the log of others."""
    folder = tmp_path_factory.mktemp("monitor")
    rng = np.random.default_rng(0)
    n = 300
    age, sex = rng.normal(60, 9, n).round(), rng.choice(["f", "m"], n)
    time = np.ceil(500 * rng.exponential(size=n) * np.exp(-0.05 * (age - 60)))
    X = pd.DataFrame({"age": age})
    CoxPH().fit(X, Surv.from_arrays(np.ones(n), time)).save(folder / "model")
    start = np.sort(rng.integers(0, 700, n))
    end = np.minimum(730 - start, 600)
    dates = pd.Timestamp("2021-01-01") + pd.to_timedelta(start, unit="D")
    known = np.minimum(time, end)
    log = X.assign(
        sex=sex,
        admitted=dates.strftime("%Y-%m-%d"),
        last_seen=(dates + pd.to_timedelta(known, unit="D")).strftime("%Y-%m-%d"),
        died=(time <= end).astype(int),
        days=known,
    )
    log.to_csv(folder / "log.csv", index=False)
    months = log.assign(months=time / 30.4375, died=1)[["age", "months", "died"]]
    months.to_csv(folder / "months.csv", index=False)
    return folder


def test_it_writes_a_page_and_the_numbers_of_the_function(drosurv, files, tmp_path):
    page, path = tmp_path / "monitor.html", tmp_path / "path.csv"
    shown = drosurv.ok(
        "monitor", files / "model", files / "log.csv", *DATES, "--groups", "sex", "-o", page, "--path", path
    ).stdout
    log = pd.read_csv(files / "log.csv")
    y = Surv.from_arrays(log["died"] == 1, log["days"])
    expected = library.monitor(
        library.load(files / "model"), log[["age"]], y, start=log["admitted"], sensitive_features=log[["sex"]]
    )
    written = pd.read_csv(path)
    assert written["date"].tolist() == expected.path["date"].dt.strftime("%Y-%m-%d").tolist()
    np.testing.assert_allclose(written["expected"], expected.path["expected"])
    assert expected.summary() in shown
    text = page.read_text()
    assert "What an alarm means" in text
    assert "sex f" in text
    # When the table has grown, both files are written again.
    drosurv.ok("monitor", files / "model", files / "log.csv", *DATES, "-o", page, "--path", path)


def test_a_model_in_months_reads_dates_in_its_unit(drosurv, files, tmp_path):
    given = ("--time", "months", "--event", "died", "--model", "cox", "-o", tmp_path / "model")
    drosurv.ok("fit", files / "months.csv", *given)
    page = ("-o", tmp_path / "m.html")
    both = [
        drosurv.json("monitor", model, files / "log.csv", *DATES, *page, "--json")["path"][-1]["expected"]
        for model in (tmp_path / "model", files / "model")
    ]
    assert both[0] == pytest.approx(both[1], rel=0.01)
    timed = ("--time", "days", "--start", "admitted", "--event", "died", "--time-unit", "days")
    found = drosurv.json("monitor", files / "model", files / "log.csv", *timed, *page, "--json")
    assert found["path"][-1]["expected"] == pytest.approx(both[1])


def test_a_model_trained_on_dates_knows_their_columns(drosurv, files, tmp_path):
    log, page = files / "log.csv", ("-o", tmp_path / "m.html")
    drosurv.ok("fit", log, *DATES, "--drop", "days", "--model", "cox", "-o", tmp_path / "model")
    given = ("monitor", tmp_path / "model", log)
    known = drosurv.json(*given, *DATES, *page)["path"]
    for named in ((), ("--time", "days", "--time-unit", "days")):
        assert drosurv.json(*given, *named, *page)["path"] == known
    frame = pd.read_csv(log).drop(columns="admitted")
    frame.to_csv(tmp_path / "undated.csv", index=False)
    undated = ("monitor", tmp_path / "model", tmp_path / "undated.csv", *page)
    assert "--start column 'admitted' is not in the table" in drosurv.fails(*undated, "--time", "days")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--end", "last_seen", "--event", "died"), "--start is needed"),
        (("--start", "last_seen", "--end", "admitted", "--event", "died"), "lies before start column"),
        ((*DATES, "--every", "week"), "--every must be one of"),
        ((*DATES, "--tolerance", "0.5"), "--tolerance must be a factor of at least 1"),
        ((*DATES, "--groups", "site"), "'site'"),
    ],
)
def test_bad_input_is_answered_in_one_line(drosurv, files, tmp_path, words, message):
    line = drosurv.fails("monitor", files / "model", files / "log.csv", *words, "-o", tmp_path / "m.html")
    assert message in line


def test_dates_written_as_numbers_are_dates(drosurv, files, tmp_path):
    log = pd.read_csv(files / "log.csv", parse_dates=["admitted", "last_seen"])
    page = ("-o", tmp_path / "m.html", "--json")
    whole = drosurv.json("monitor", files / "model", files / "log.csv", *DATES, *page)["path"]
    found = {}
    for form in ("%Y%m%d", "%Y%m"):
        written = {name: log[name].dt.strftime(form) for name in ("admitted", "last_seen")}
        log.assign(**written).to_csv(tmp_path / "log.csv", index=False)
        found[form] = drosurv.json("monitor", files / "model", tmp_path / "log.csv", *DATES, *page)["path"]
    assert found["%Y%m%d"] == whole
    months = found["%Y%m"][-1]
    assert months["events"] == pytest.approx(whole[-1]["events"], abs=3)
    assert months["expected"] == pytest.approx(whole[-1]["expected"], rel=0.05)


def test_a_table_may_begin_without_events_and_with_one_patient(drosurv, files, tmp_path):
    log = pd.read_csv(files / "log.csv").query("died == 0")
    for patients in (1, 5):
        log.head(patients).to_csv(tmp_path / "log.csv", index=False)
        found = drosurv.ok(
            "monitor", files / "model", tmp_path / "log.csv", *DATES, "-o", tmp_path / "m.html"
        )
        assert "No alarm" in found.stdout
        assert "0 events" in found.stdout


def test_late_survivors_are_warned_of(drosurv, files, tmp_path):
    log = pd.read_csv(files / "log.csv")
    visits = pd.to_datetime(log["admitted"]) + pd.to_timedelta(np.floor(log["days"] / 200) * 200, unit="D")
    log["last_seen"] = log["last_seen"].where(log["died"] == 1, visits.dt.strftime("%Y-%m-%d"))
    log.to_csv(tmp_path / "log.csv", index=False)
    result = drosurv("monitor", files / "model", tmp_path / "log.csv", *DATES, "-o", tmp_path / "m.html")
    assert result.exit_code == 0
    assert "Pass --lag N with N longer than the time between two visits" in result.stderr
