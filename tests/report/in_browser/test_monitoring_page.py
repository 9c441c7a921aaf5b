"""The page of a model in use, opened in a browser."""

import numpy as np
import pandas as pd
import pytest

import drosurv
from drosurv import CoxPH, Surv

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def monitored():
    rng = np.random.default_rng(0)
    n = 500
    X = pd.DataFrame({"a": rng.normal(size=n)})
    time = np.ceil(500 * rng.exponential(size=n) * np.exp(-0.7 * X["a"].to_numpy()))
    model = CoxPH().fit(X, Surv.from_arrays(np.ones(n), time))
    start = np.sort(rng.integers(0, 1400, n))
    group = np.where(rng.random(n) < 0.5, "<b>f</b>", "m")
    time = np.where(group == "m", time / 3, time)
    end = np.minimum(1460 - start, 700)
    dates = pd.Timestamp("2020-01-01") + pd.to_timedelta(start, unit="D")
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    return drosurv.monitor(model, X, y, start=dates, sensitive_features=pd.DataFrame({"sex": group}))


@pytest.fixture(scope="module")
def path(monitored, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "monitor.html"
    monitored.to_html(path)
    return path


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390], ids=["desktop", "phone"])
def test_it_opens_without_complaint_fits_its_width_and_asks_for_nothing(browser, path, width, dark):
    browser.open(path, width=width, dark=dark)
    assert browser.complaints == []
    assert browser.requests == [path.as_uri()]
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_it_has_a_chart_for_everybody_and_each_group_with_its_alarms(browser, path, monitored):
    browser.open(path)
    titles = browser.run(
        "[...document.querySelectorAll('figure.chart figcaption')].map((e) => e.textContent.trim())"
    )
    assert titles == ["Everybody", "sex <b>f</b>", "sex m"]
    circles = browser.run(
        "[...document.querySelectorAll('figure.chart')].map((e) => e.querySelectorAll('circle').length)"
    )
    dates = pd.concat([monitored.alarms, monitored.changes]).groupby("group")["date"].nunique()
    counts = [int(dates.get(group, 0)) for group in ("all", "<b>f</b>", "m")]
    assert circles == counts
    assert counts[2] > 0


def test_pointing_at_a_chart_reads_the_numbers_of_a_look(browser, path, monitored):
    browser.open(path)
    browser.run("document.querySelector('figure.chart svg').focus()")
    browser.press("End", 35)
    row = monitored.series("overall", "all").iloc[-1]
    text = browser.run("document.querySelector('#tip').textContent")
    assert text.startswith(f"{row['date']:%Y-%m-%d}")
    assert f"{row['events']:,} events, {row['expected']:.1f} expected" in text
    assert browser.complaints == []
