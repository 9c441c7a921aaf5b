"""A model beside plain Cox: who is predicted better, and whether its calibration slope is far from 1."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from drosurv import CoxPH, Surv, compare
from drosurv.evaluation import Predictions
from drosurv.metrics import likelihood_gain
from drosurv.workflows.comparison import METRICS, MODEL, PLAIN, PlainComparison


def cohort(seed, n=400):
    """The first feature works the other way round in site b, which plain Cox therefore predicts badly."""
    rng = np.random.default_rng(seed)
    site = rng.choice(["a", "b"], n, p=[0.7, 0.3])
    X = np.column_stack([rng.normal(size=n), rng.normal(size=n), site == "b"])
    X = np.column_stack([X, X[:, 0] * X[:, 2]])
    time = rng.exponential(np.exp(-np.where(site == "a", 1.0, -1.0) * X[:, 0] - 0.5 * X[:, 1]))
    censoring = rng.exponential(2.0, n)
    return X, Surv.from_arrays(time <= censoring, np.minimum(time, censoring)), pd.Series(site, name="site")


X, Y, _ = cohort(0)
X_TEST, Y_TEST, SITE = cohort(1)


def against_plain(model, plain, *, n_bootstrap=60, **said):
    table = compare(
        {PLAIN: plain, MODEL: model},
        X_TEST,
        Y_TEST,
        y_train=Y,
        sensitive_features=SITE,
        metrics=METRICS,
        n_bootstrap=n_bootstrap,
    )
    return PlainComparison(table, "On others", **said)


@pytest.fixture(scope="module")
def shrunken():
    return against_plain(CoxPH(l2=5.0).fit(X, Y), CoxPH().fit(X, Y))


def test_a_shrunken_model_is_worse_and_its_slope_is_far_from_one(shrunken):
    assert shrunken.dominated
    worse, slope = shrunken.statements
    assert worse.concern
    assert worse.text.startswith("Plain Cox predicts everybody")
    assert worse.text.endswith("use plain Cox.")
    gains = [
        likelihood_gain(Y, Y_TEST, CoxPH(l2=l2).fit(X, Y).predict_survival_function(X_TEST)) for l2 in (5, 0)
    ]
    shown = re.search(r"likelihood gain (\S+); plain Cox: ([0-9.]+)\)", worse.text)
    # The metric takes the last interval, of few patients, as a whole.
    assert [float(number) for number in shown.groups()] == pytest.approx(gains, abs=5e-3)
    assert "understated" in slope.text
    # Slopes above 20 have no upper limit.
    assert re.search(r"calibration slope is 21\.\d+ \(1\d\.\d+ or more; plain Cox: 1\.07", slope.text)
    assert "probabilities without recalibrating." in slope.text
    assert shrunken.to_dict()["dominated"]


def test_advice_to_recalibrate_is_not_given_where_it_was_done_or_cannot_be(shrunken):
    done = replace(shrunken, recalibrated=True).statements[1].text
    assert "It was recalibrated in training already" in done
    assert "without recalibrating" not in done
    assert "recalibrat" not in replace(shrunken, can_recalibrate=False).statements[1].text


def test_a_model_that_knows_the_product_is_better_for_the_worst_group():
    plain = CoxPH().fit(X[:, :3], Y)
    risk, curves = plain.predict(X_TEST[:, :3]), plain.predict_survival_function(X_TEST[:, :3], times=TIMES)
    found = against_plain(CoxPH().fit(X, Y), Predictions(risk, curves, TIMES))
    assert not found.dominated
    (said,) = found.statements
    assert said.text.startswith("The model predicts everybody and the worst group better than plain Cox")


TIMES = np.unique(Y["time"][Y["event"]])


def test_plain_cox_is_the_same_as_itself():
    plain = CoxPH().fit(X, Y)
    found = against_plain(CoxPH(tol=1e-12).fit(X, Y), plain, n_bootstrap=5)
    assert [statement.text for statement in found.statements] == ["The model predicts the same as plain Cox."]


def test_a_difference_below_half_a_thousandth_is_no_difference():
    plain, shrunk = CoxPH().fit(X, Y), CoxPH(l2=5.0).fit(X, Y)
    risk = plain.predict(X_TEST)
    better, curves = (model.predict_survival_function(X_TEST, times=TIMES) for model in (plain, shrunk))
    almost = Predictions(risk, 0.9999 * curves + 0.0001 * better, TIMES)
    found = against_plain(almost, Predictions(risk, curves, TIMES))
    row = found.table[(found.table["model"] == MODEL) & (found.table["metric"] == "likelihood_gain")].iloc[0]
    assert 0 < row["difference"] < 5e-4
    assert row["p"] < 0.05
    assert "predict equally well" in found.statements[0].text
