"""Hospitals: shrunken ratios, the funnel plot and its section."""

import numpy as np
import pandas as pd
import pytest

import drosurv
from drosurv import Surv
from drosurv.evaluation.curves_by_group import funnel
from drosurv.metrics import random_intercept


@pytest.fixture(scope="module")
def hospitals():
    """Predictions that are too small in one of twelve hospitals; the last one has few patients."""
    rng = np.random.default_rng(0)
    hospital = np.repeat([f"h{k:02}" for k in range(12)], [80] * 11 + [20])
    hazard = 0.3 * np.exp(rng.normal(0, 0.4, len(hospital)))
    time = rng.exponential(1 / (hazard * np.where(hospital == "h03", 3.0, 1.0)))
    y = Surv.from_arrays(time <= 2.0, np.minimum(time, 2.0))
    times = np.linspace(0.04, 2.0, 50)
    return (times, np.exp(-hazard[:, None] * times)), y, {"hospital": hospital}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sections("many_groups", "calibration", "patients")
def test_hospitals_are_shrunken_and_the_page_draws_a_funnel(hospitals):
    predictions, y, groups = hospitals
    report = drosurv.audit(predictions, None, y, sensitive_features=groups, search_rules=False)
    *rows, new = report.tables["many_groups"].rows
    found = random_intercept([row["observed"] for row in rows], [row["expected"] for row in rows])
    np.testing.assert_allclose([row["shrunken"] for row in rows], found.shrunken, rtol=1e-3)
    assert new["group"] == "a new one"
    assert new["low"] == pytest.approx(found.new_low, rel=1e-3)
    (said,) = report.parts["many_groups"].statements
    assert "12 groups" in said.text
    assert said.text.endswith("Outside the outer lines: h03.")
    shown = [row["attribute"] for row in report.tables["calibration_curves"].rows]
    assert {*shown} == {""}, "no curves of each hospital"
    page = report.to_html()
    assert "Many groups, such as hospitals" in page
    assert '<g class="mark part named"' in page, "the dot outside the lines has its name"
    sizes = report.tables["patients hospital"]
    assert sizes.header == ["Group", "Patients", "Events", "Median follow-up"], "no column for each hospital"
    assert [row["name"] for row in sizes.rows] == ["All audited", *np.unique(groups["hospital"])]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sections("many_groups")
def test_hospitals_that_are_too_small_are_counted(hospitals):
    predictions, y, groups = hospitals
    # Of the last hospital only four patients are left: nothing is shown of them.
    rows = np.r_[: len(y) - 16]
    few = (predictions[0], predictions[1][rows]), None, y[rows]
    hospital = groups["hospital"][rows]
    report = drosurv.audit(*few, sensitive_features={"hospital": hospital}, search_rules=False)
    assert report.parts["many_groups"].statements[0].text.startswith("hospital: 11 of 12 groups; the others")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sections("verdict", "missed")
def test_subgroups_inside_a_group_that_is_wrong_are_not_named_again(hospitals):
    predictions, y, groups = hospitals
    columns = pd.DataFrame(groups)
    given = {"sensitive_features": groups, "features": columns}
    report = drosurv.audit(predictions, None, y, **given)
    found = report.parts["missed"].facts["bounds"]
    assert "hospital = h03" in [row["group"] for row in found["rescaled"] or found["significant"]]
    said = [one.text for one in report.parts["verdict"].statements if one.code == "verdict"]
    assert any("is wrong for hospital h03" in text for text in said)
    assert not any("hospital = h03" in text for text in said)


@pytest.mark.filterwarnings("ignore")
def test_the_funnel_plot_has_a_dot_for_each_hospital(hospitals):
    from matplotlib.figure import Figure

    predictions, y, groups = hospitals
    result = drosurv.evaluate(predictions, None, y, sensitive_features=groups)
    axes = result.plot_funnel(ax=Figure().subplots())
    (dots,) = [line for line in axes.get_lines() if line.get_marker() == "o"]
    assert len(dots.get_xdata()) == 12
    with pytest.raises(ValueError, match="attribute must be one with many groups"):
        result.plot_funnel("sex")


def test_limits_of_the_funnel_hold_their_share_of_poisson_counts():
    rng = np.random.default_rng(0)
    for expected in (5.0, 50.0):
        low, high = funnel(np.array([expected]), 0.95)
        ratio = rng.poisson(expected, 20_000) / expected
        assert 0.93 < ((ratio >= low) & (ratio <= high)).mean() < 0.98


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sections("verdict", "missed")
def test_a_named_group_that_is_right_is_not_called_wrong_once_everybody_is_corrected():
    """Predictions are wrong for men, and so for everybody; corrected for everybody, they are wrong for women."""
    rng = np.random.default_rng(0)
    n, times = 1_500, np.linspace(0.04, 2.0, 50)
    sex = rng.choice(["f", "m"], n)
    hazard = 0.4 * np.exp(rng.normal(0, 0.5, n))
    time = rng.exponential(1 / (hazard * np.where(sex == "m", 1.5, 1.0)))
    y = Surv.from_arrays(time <= 2.0, np.minimum(time, 2.0))
    columns = pd.DataFrame({"sex": sex})
    predictions = times, np.exp(-hazard[:, None] * times)
    report = drosurv.audit(predictions, columns, y, sensitive_features=columns)
    found = report.parts["missed"].facts["bounds"]["rescaled"]
    assert "sex = f" in [row["group"] for row in found]
    problems = {problem["who"] for problem in report.parts["verdict"].facts["problems"]}
    assert problems == {"all patients", "sex m"}
