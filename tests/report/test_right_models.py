"""Right models of R, lifelines and scikit-survival are not called wrong, in whichever format they are predicted."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sksurv.linear_model import CoxPHSurvivalAnalysis

from drosurv import Surv
from drosurv.judging.verdict import PROBLEMS
from drosurv.predictions.columns import prediction_columns
from drosurv.predictions.given import read_predictions
from drosurv.report import audit

pytestmark = pytest.mark.sections("verdict", "method")

FIXTURES = Path(__file__).parents[1] / "fixtures"
TIMES = [1000, 2000, 3000]


@pytest.fixture(scope="module")
def rotterdam():
    """Breast cancer in Rotterdam: numbers, outcomes, and every third patient, who is tested."""
    table = pd.read_csv(FIXTURES / "rotterdam.csv.gz")
    X = pd.get_dummies(table[["age", "meno", "size", "grade", "nodes", "hormon"]], drop_first=True).astype(
        float
    )
    y = Surv.from_arrays(table["death"] == 1, table["dtime"])
    return X, y, np.arange(1, len(table) + 1) % 3 == 0


def of_r(X, y, tested):
    """R's coxph, as tests/fixtures/survival_tables.R wrote it."""
    return pd.read_csv(FIXTURES / "rotterdam_coxph.csv.gz")


def of_scikit_survival(X, y, tested):
    model = CoxPHSurvivalAnalysis(ties="efron").fit(X[~tested], y[~tested])
    survival = [curve(TIMES) for curve in model.predict_survival_function(X[tested])]
    return pd.DataFrame(survival, columns=[f"S{t}" for t in TIMES]).assign(lp=model.predict(X[tested]))


def of_lifelines(X, y, tested):
    import lifelines

    table = X.assign(time=y["time"], event=y["event"])
    model = lifelines.CoxPHFitter().fit(table[~tested], "time", "event")
    survival = model.predict_survival_function(X[tested], times=TIMES).T.to_numpy()
    lp = model.predict_log_partial_hazard(X[tested]).to_numpy()
    return pd.DataFrame(survival, columns=[f"S{t}" for t in TIMES]).assign(lp=lp)


PROGRAMS = [
    pytest.param(of_r, id="R"),
    pytest.param(of_scikit_survival, id="scikit-survival"),
    pytest.param(of_lifelines, id="lifelines", marks=pytest.mark.peer),
]
FORMATS = {
    "survival": (lambda s: s, None),
    "survival in percent, hazard ratio": (lambda s: 100 * s, np.exp),
    "event probability, log risk": (lambda s: 1 - s, np.asarray),
    "mortality in percent, hazard ratio": (lambda s: 100 * (1 - s), np.exp),
}


def audited(predicted, rotterdam, probabilities, score):
    """The report on a table of predictions as a program would write it."""
    X, y, tested = rotterdam
    tested = np.flatnonzero(tested)[::3]
    shown = predicted[::3][[f"S{t}" for t in TIMES]].map(probabilities)
    frame = shown if score is None else shown.assign(risk=score(predicted["lp"].to_numpy()[::3]))
    found = prediction_columns(frame)
    with warnings.catch_warnings(action="ignore"):
        read = read_predictions(found.survival, y[tested], times=found.times, risk=found.risk)
        return audit(
            read.predictions,
            None,
            y[tested],
            sensitive_features={"meno": X["meno"].to_numpy()[tested]},
            search_rules=False,
        )


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_right_model_is_not_called_wrong_in_any_format(rotterdam, program):
    predicted = program(*rotterdam)
    # One program is read in every format, the others in that of survival.
    formats = list(FORMATS.values())[: None if program is of_r else 1]
    reports = [audited(predicted, rotterdam, *how) for how in formats]
    for report in reports:
        assert report.parts["verdict"].facts["status"] not in PROBLEMS
        assert report.tables["groups"].rows[0]["slope"] == pytest.approx(1, abs=0.2)
        (said,) = [text for text in report.parts["method"].facts["missing"] if "roportional hazards" in text]
        assert "not tested" in said
        for row, same in zip(report.tables["groups"].rows, reports[0].tables["groups"].rows, strict=True):
            for name in ("expected", "ratio", "survival_predicted", "gain"):
                assert row[name] == pytest.approx(same[name], rel=1e-4)


@pytest.mark.parametrize("score", [np.asarray, np.exp], ids=["log risk", "hazard ratio"])
def test_scores_alone_are_ranked_and_not_called_wrong(rotterdam, score):
    _, y, tested = rotterdam
    risk = score(of_r(*rotterdam)["lp"].to_numpy())
    with warnings.catch_warnings(action="ignore"):
        report = audit(risk, None, y[tested], search_rules=False)
    facts = report.parts["verdict"].facts
    assert facts["status"] == "unclear"
    assert report.tables["groups"].rows[0]["c_index"] > 0.6
