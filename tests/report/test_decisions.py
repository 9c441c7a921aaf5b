"""Decisions at a threshold: a section, and a part in the verdict, where a threshold is given."""

import numpy as np
import pytest

from drosurv import Surv
from drosurv.metrics import decisions
from drosurv.report import audit

pytestmark = pytest.mark.sections("verdict", "decisions")

TIMES = np.array([0.5, 1.0])


def cohort(seed, hidden):
    """Two groups of equal risk, of whom everybody is seen until time 1; of group b, the risk is `hidden` or not.

    Hidden means that everybody in it has the same prediction, right on average.
    """
    rng = np.random.default_rng(seed)
    n = 800
    group = np.where(rng.random(n) < 0.4, "b", "a")
    rate = np.where(rng.random(n) < 0.3, 1.5, 0.1)
    time = rng.exponential(size=n) / rate
    y = Surv.from_arrays(time <= 1.5, np.minimum(time, 1.5))
    mean = -np.log(np.exp(-np.array([1.5, 0.1])) @ [0.3, 0.7])
    known = np.where((group == "b") & hidden, mean, rate) * np.exp(0.01 * rng.normal(size=n))
    return np.exp(-np.outer(known, TIMES)), y, group


def report_of(seed, hidden, **options):
    survival, y, group = cohort(seed, hidden)
    given = {"threshold": 0.4, "horizon": 1.0, **options}
    return audit((TIMES, survival), None, y, sensitive_features={"site": group}, search_rules=False, **given)


@pytest.fixture(scope="module")
def unfair():
    return report_of(0, hidden=True)


def test_wrong_risks_above_the_threshold_enter_the_verdict():
    survival, y, group = cohort(0, hidden=False)
    survival = np.where((group == "b")[:, None], survival**3, survival)
    given = {"threshold": 0.4, "horizon": 1.0, "search_rules": False}
    report = audit((TIMES, survival), None, y, sensitive_features={"site": group}, **given)
    problems = [p for p in report.parts["verdict"].facts["problems"] if p["status"] == "wrong_decisions"]
    assert any(p["question"] == "above threshold" and p["who"] == "site b" for p in problems)
    said = [s.text for s in report.parts["decisions"].statements if s.concern]
    assert said == [p["text"] for p in problems]


def test_a_group_whose_risks_are_not_told_apart_is_not_called_wrongly_decided(unfair):
    """Sensitivity differs, because risks that are predicted right on average are all below the threshold."""
    problems = {p["status"] for p in unfair.parts["verdict"].facts["problems"]}
    assert "wrong_decisions" not in problems
    gaps = {row["metric"]: row for row in unfair.tables["decision_gaps"].rows}
    assert gaps["Sensitivity"]["value"] > 0.3
    assert "p" not in gaps["Sensitivity"]


def test_values_are_those_of_the_metric_and_of_counting(unfair):
    survival, y, group = cohort(0, hidden=True)
    found = {row["who"]: row for row in unfair.tables["decisions"].rows}
    wanted = decisions(y, 1 - survival[:, 1], threshold=0.4, horizon=1.0, groups=group).table
    for row in wanted[wanted["metric"] != "net_benefit"].itertuples():
        assert found[f"site {row.group}"][row.metric] == pytest.approx(row.value, rel=1e-5) or row.reason
    # Nobody is censored before the horizon.
    had, treated, inside = y["event"] & (y["time"] <= 1.0), survival[:, 1] <= 0.6, group == "a"
    assert found["site a"]["sensitivity"] == pytest.approx(
        (had & treated & inside).sum() / (had & inside).sum()
    )


def test_what_cannot_be_estimated_is_said_and_does_not_look_fair(unfair):
    (row,) = [row for row in unfair.tables["decisions"].rows if row["who"] == "site b"]
    assert row["ppv"] is None
    assert "no patient is predicted positive" in row["reason"]
    gap = next(r for r in unfair.tables["decision_gaps"].rows if r["metric"] == "Positive predictive value")
    assert gap["value"] is None
    assert "cannot be estimated" in gap["reason"]
    assert "cannot be estimated" in unfair.to_html()


def test_equal_decisions_raise_no_concern():
    report = report_of(1, hidden=False)
    statuses = {p["status"] for p in report.parts["verdict"].facts["problems"]}
    assert "wrong_decisions" not in statuses
    said = [statement.text for statement in report.parts["decisions"].statements]
    assert any("events agree with the predictions" in text for text in said)
    assert "decisions" in report.to_dict()["tables"]


def test_decisions_need_a_threshold():
    report = report_of(0, hidden=True, threshold=None)
    assert "decisions" not in report.parts
    assert all(p["status"] != "wrong_decisions" for p in report.parts["verdict"].facts["problems"])


def test_the_sensitivity_that_right_predictions_would_have_stands_beside_the_observed_one():
    survival, _, group = cohort(1, hidden=False)
    report = report_of(1, hidden=False)
    rows = {row["who"]: row for row in report.tables["decisions"].rows}
    for name in "ab":
        risk = 1 - survival[group == name, 1]
        implied = risk[risk >= 0.4].sum() / risk.sum()
        row = rows[f"site {name}"]
        assert row["sensitivity_predicted"] == pytest.approx(implied, abs=1e-4)
        assert row["sensitivity"] == pytest.approx(implied, abs=0.12)
