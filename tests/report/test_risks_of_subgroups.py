"""Subgroups that the search found stand beside other groups with their risks by the same time."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from drosurv import Surv, audit
from drosurv.metrics.risk_strata import ObservedRisk
from drosurv.patients.target import parse_target
from drosurv.report.sections.first_section import _found

pytestmark = pytest.mark.sections("verdict")

AT = [1.0, 2.0, 3.0]


@pytest.fixture(scope="module")
def found():
    """Predictions that miss a marker which makes events three times as frequent; its patients, and the report."""
    rng = np.random.default_rng(0)
    n = 800
    x, marker = rng.normal(size=n), rng.random(n) < 0.2
    predicted = 0.1 * np.exp(0.5 * x)
    time, left = rng.exponential(1 / (predicted * np.where(marker, 3, 1))), rng.uniform(1, 5, n)
    y = Surv.from_arrays(time <= left, np.minimum(time, left))
    survival = np.exp(-predicted[:, None] * np.array(AT))
    features = pd.DataFrame({"marker": np.where(marker, "yes", "no"), "x": x})
    report = audit((AT, survival), None, y, features=features, horizon=2.0, verbose=False)
    return y, 1 - survival[:, 1], features, report


def test_a_found_subgroup_has_the_risks_of_its_patients(found):
    y, risk, features, report = found
    rows = [row for row in report.picture.rows if row.who == "marker = yes"]
    assert [row.state for row in rows] == ["found"]
    own = (features["marker"] == "yes").to_numpy()
    expected = ObservedRisk.of(parse_target(y[own]), risk[own], 2.0)
    (row,) = rows
    assert row.by == report.picture.rows[0].by == "time 2"
    assert (row.risk, row.predicted) == pytest.approx((expected.observed.value, expected.predicted), rel=1e-5)
    assert row.ratio == pytest.approx(row.risk / row.predicted, rel=1e-4)


def test_two_rules_of_the_same_patients_are_shown_once():
    row = {
        "question": "level",
        "patients": 519,
        "observed": 69.0,
        "p": 0.01,
        "since": np.nan,
        "until": np.nan,
    }
    same = [
        {**row, "group": "a > 1", "expected": 111.0},
        {**row, "group": "b is missing", "expected": 111.0 + 1e-12},
        {**row, "group": "c > 2", "expected": 90.0},
    ]
    evidence = SimpleNamespace(
        subgroups=same,
        bounds="",
        audited=SimpleNamespace(groups=pd.DataFrame(columns=["group"])),
        risks_of_subgroups={},
        time_unit="days",
    )
    assert [found["group"] for found in _found(evidence)] == ["a > 1", "c > 2"]
