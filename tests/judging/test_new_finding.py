"""A new kind of finding, one function: everything that reads findings shows it."""

import json

import numpy as np
import pytest

from drosurv import Surv, audit, evaluate
from drosurv.judging import questions, residual_tests

TIMES = [1.0, 2.0, 3.0]


@pytest.fixture
def early_events():
    """Events before the first predicted time, asked about everybody and every group."""

    @questions.question(
        "early events",
        briefly="wrong number of early events",
        wrong="Early events are wrong for {name}: {times} the predicted ones{until} ({p}).",
        clear="Early events agree with the predictions for {name}: observed/expected {number}.",
    )
    def _early_events(group):
        sums = group.sums.first(1)
        end = float(group.judged.residuals.ends[0])
        found = residual_tests.level(sums)
        return residual_tests.JudgedValue(found.value, found.root, freedom=found.freedom, time=end)

    yield "early events"
    del questions.KINDS["early events"]


@pytest.mark.sections("verdict")
def test_a_finding_is_one_function(early_events):
    rng = np.random.default_rng(0)
    n = 400
    x, sex = rng.normal(size=n), rng.choice(["f", "m"], n)
    survival = np.exp(-np.exp(0.7 * x)[:, None] * np.array(TIMES) / 4)
    # Twice as many events as predicted by the first time, and the right number afterwards.
    time = rng.exponential(4 * np.exp(-0.7 * x))
    time = np.where(time < 2.0, time / 2, np.where(time < 4.0, time - 1.0, time))
    y = Surv.from_arrays(time <= 5, np.minimum(time, 5))
    given = {"sensitive_features": {"sex": sex}}
    found = evaluate((TIMES, survival), None, y, **given)
    rows = found.findings[found.findings["question"] == early_events]
    assert rows["group"].iloc[0] == "all"
    assert set(rows["group"]) == {"all", "f", "m"}
    assert set(rows["status"]) == {"miscalibrated"}
    assert rows["text"].iloc[0].startswith("Early events are wrong for all patients: ")
    assert "the predicted ones by time 1 (adjusted p" in rows["text"].iloc[0]
    assert rows["text"].iloc[0] in found.summary()
    assert rows["text"].iloc[0] in [row.text for row in found.verdict.problems]
    report = audit((TIMES, survival), None, y, **given, search_rules=False)
    summary = json.loads(report.to_summary())
    assert {row["group"] for row in summary["findings"] if row["question"] == early_events} == {
        "all",
        "f",
        "m",
    }
    assert early_events in {problem["question"] for problem in summary["verdict"]["problems"]}
    page = report.to_html()
    assert "Early events are wrong for sex f" in page
    assert "wrong number of early events" in page
