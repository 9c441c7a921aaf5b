"""The slope of log hazard ratios alone, without survival probabilities, against the partial likelihood."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar

from drosurv import Surv, audit, evaluate
from drosurv.evaluation import Predictions
from drosurv.judging.questions import slopes_of_scores
from drosurv.patients.target import parse_target, with_fields

SEXES = np.array(["f", "m"])


def patients(n=500, seed=0, slope=0.6):
    """Exponential times whose log hazard ratios are `slope` times the score, and two groups."""
    rng = np.random.default_rng(seed)
    score = rng.normal(size=n)
    time, end = rng.exponential(np.exp(-slope * score)), rng.exponential(2.0, n)
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    return score, y, pd.DataFrame({"sex": SEXES[rng.integers(0, 2, n)]})


def slope_by_definition(y, score):
    at_risk, event = y["time"][:, None] <= y["time"][None, :], y["event"]

    def loss(b):
        return -(b * score - np.log(at_risk @ np.exp(b * score)))[event].sum()

    return minimize_scalar(loss, bounds=(-3, 3), method="bounded", options={"xatol": 1e-9}).x


def test_slopes_of_everybody_and_groups_maximise_the_partial_likelihood_and_errors_are_those_of_the_jackknife():
    score, y, groups = patients(150)
    women = groups["sex"].to_numpy() == "f"
    members = {("overall", "all"): np.ones(150, bool), ("sex", "f"): women}
    for test, rows in zip(slopes_of_scores(parse_target(y), score, members), members.values(), strict=True):
        assert test.estimate.value == pytest.approx(slope_by_definition(y[rows], score[rows]), abs=1e-4)
        n = rows.sum()
        without = [slope_by_definition(np.delete(y[rows], i), np.delete(score[rows], i)) for i in range(n)]
        error = np.sqrt(((np.array(without) - test.estimate.value) ** 2).sum())
        assert 1 / (test.estimate.root(0.0) - test.estimate.root(1.0)) == pytest.approx(error, rel=0.05)


def test_scores_that_are_too_extreme_are_a_problem_and_right_ones_are_none():
    score, y, groups = patients()
    given = {"sensitive_features": groups}
    wrong = evaluate(Predictions(score), None, y, **given)
    row = wrong.findings.query("question == 'slope' and attribute == 'overall'").iloc[0]
    assert row["status"] == wrong.verdict.status == "miscalibrated"
    assert row["high"] < 1
    assert wrong.verdict.text.startswith(
        "Predicted risks of all patients differ too much (calibration slope 0."
    )
    factor = f"such as by multiplying log hazard ratios by {row['value']:.2f}."
    assert wrong.verdict.steps[0] == f"Recalibrate the scores for all patients, sex m and sex f, {factor}"
    assert "drosurv repair" not in " ".join(wrong.verdict.steps)
    right = evaluate(Predictions(0.6 * score), None, y, **given).verdict
    assert right.status == "unclear"
    assert "Only ranking and the differences between patients can be judged" in right.text
    assert "calibration slope" in right.text


def test_scores_with_the_wrong_sign_are_told():
    score, y, _ = patients()
    verdict = evaluate(Predictions(-score), None, y).verdict
    assert verdict.text.startswith(
        "Predicted risks of all patients are in the reverse order (calibration slope −0."
    )
    assert "Check the sign of the scores: a higher score must mean a higher risk." in verdict.steps
    assert "-" not in verdict.text.split("calibration slope")[1]


@pytest.mark.sections("verdict")
def test_the_group_table_shows_that_the_slope_of_scores_is_judged():
    score, y, groups = patients()
    rows = audit(score, None, y, sensitive_features=groups, search_rules=False).tables["groups"].rows
    unknown = "number of events not judged: no survival curves"
    assert rows[0]["finding"] == f"wrong differences between patients; {unknown}"
    (row,) = audit(Predictions(score, score_type="other"), None, y, search_rules=False).tables["groups"].rows
    assert row["finding"] == "not judged: no survival curves"


def test_scores_that_need_not_be_log_hazards_have_no_slope():
    score, y, _ = patients()
    found = evaluate(Predictions(score, score_type="other"), None, y)
    assert found.findings["question"].tolist() == ["ranking"]
    assert found.verdict.text.startswith("Only ranking can be judged")


def test_the_ranking_has_one_interval_which_is_no_narrower_where_it_is_adjusted():
    score, y, _ = patients()
    ends = ["low", "high"]
    for given in (y, with_fields(y, clusters=np.arange(len(y)) % 40)):
        for model, n_tests in ((Predictions(score, score_type="other"), 1), (score, 2)):
            found = evaluate(model, None, given)
            (number,) = found.to_frame().query("metric == 'concordance_index'")[ends].to_numpy()
            (judged,) = found.findings.query("question == 'ranking'")[ends].to_numpy()
            assert len(found.findings) == n_tests
            if n_tests == 1:
                np.testing.assert_allclose(judged, number, rtol=1e-6)
            else:
                assert judged[0] < number[0] < number[1] < judged[1]


def test_hazard_ratios_are_judged_as_their_logarithms():
    score, y, _ = patients()
    of_ratios = audit(np.exp(score), None, y, search_rules=False)
    assert of_ratios.status == "unclear"
    logs = audit(score, None, y, search_rules=False)
    assert logs.status == "miscalibrated"


@pytest.mark.parametrize(("n", "share"), [(49, 1.0), (200, 0.04)])
def test_few_patients_or_events_are_not_judged(n, share):
    score, y, _ = patients(n)
    y["event"] &= np.random.default_rng(1).random(n) < share
    assert slopes_of_scores(parse_target(y), score, {("overall", "all"): np.ones(n, bool)}) == []


def test_rows_of_one_cluster_are_not_independent():
    score, y, _ = patients(200)
    twice = np.repeat(np.arange(200), 2)
    everybody = {("overall", "all"): np.ones(400, bool)}
    target = parse_target(y[twice])
    (alone,) = slopes_of_scores(target, score[twice], everybody)
    (together,) = slopes_of_scores(target, score[twice], everybody, twice)
    assert alone.estimate.root(0.0) == pytest.approx(np.sqrt(2) * together.estimate.root(0.0), rel=0.01)
    # Of patients in clusters, the verdict takes the larger error.
    given = [with_fields(y[twice], clusters=clusters) for clusters in (None, twice)]
    low = [
        evaluate(Predictions(score[twice]), None, each).findings.set_index("question").loc["slope", "low"]
        for each in given
    ]
    assert low[1] < low[0]
