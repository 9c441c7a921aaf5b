"""The page about one of several causes."""

import re

import numpy as np
import pandas as pd
import pytest

from drosurv import CauseSpecificCox, Surv, audit
from drosurv.metrics import aalen_johansen, log_rank_test
from drosurv.metrics.nonparametric import KaplanMeier
from drosurv.patients.target import Target
from drosurv.predictions import Predictions
from drosurv.presentation import p_text


def cohort(seed, hidden, n=400):
    """Cause 1 is more frequent in men than the features of the first cohort say."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.normal(60, 10, n).round(), "man": rng.integers(0, 2, n)})
    first = 0.2 * np.exp(0.04 * (X["age"] - 60) + hidden * X["man"])
    T, C = rng.exponential(1 / (first + 0.2)), rng.uniform(0.5, 5, n)
    cause = np.where(T > C, 0, np.where(rng.random(n) < first / (first + 0.2), 1, 2))
    return X, Surv.competing(cause, np.minimum(T, C))


@pytest.fixture(scope="module")
def model():
    return CauseSpecificCox().fit(*cohort(0, 0.0))


def test_the_cause_is_searched_repaired_and_its_remedies_are_measured_on_its_events(model):
    X, y = cohort(1, 1.2)
    report = audit(model, X, y, sensitive_features=X[["man"]], cause=1, horizon=2.0, threshold=0.4)
    assert report.parts["verdict"].facts["status"] == "miscalibrated"
    remedies = report.tables["remedies"]
    as_it_is, repair = (
        next(row for row in remedies.rows if row["remedy"] == name) for name in ("as it is", "repair")
    )
    assert as_it_is["ratio"] > 1.5
    assert 0.8 < repair["ratio"] < 1.25
    text = report.to_html()
    assert "The event is an event of cause 1." in text
    assert "patients who had another one stay free of it" in text
    # Of a cause, pages show incidences: a patient who died of another cause has not survived.
    everybody = report.tables["groups"].rows[0]
    assert {"Risk by time 2, predicted", "Risk by time 2, observed"} <= set(report.tables["groups"].header)
    # Near that of all patients together.
    wanted = 100 * aalen_johansen(y["cause"], y["time"]).at(np.array([2.0]))[0]
    assert 100 * everybody["risk_observed"] == pytest.approx(wanted, abs=2.5)
    assert re.search(
        r"By time 2: of 100 patients[\w ]* \d+ \(\d+ to \d+\) had an event of cause 1; the model", text
    )
    assert "Aalen-Johansen within groups of like predicted risk" in text
    assert "predicted probability of an event of cause 1 by time 2" in text
    over_time = [row for row in report.tables["incidence"].rows if row["group"] == "all patients"]
    assert over_time[0]["predicted"] == 0 < over_time[-1]["predicted"]
    assert all(
        row["low"] <= row["observed"] <= row["high"] for row in over_time if row["observed"] is not None
    )
    for wrong in ("free of the event", "Survival at", "Observed survival", "(Kaplan-Meier)"):
        assert wrong not in text
    # Follow-up ends at an event of any cause, as in R's quantile(survfit(Surv(time, cause == 0) ~ 1)).
    _, censoring = KaplanMeier.both(Target(y["cause"] > 0, y["time"]))
    median = censoring.times[np.argmax(censoring.survival <= 0.5)]
    (followed,) = (
        row["group All audited"]
        for row in report.tables["patients man"].rows
        if row["name"] == "Median follow-up"
    )
    assert followed == f"time {median:.3g}"
    # Another cause ends the time at risk. Times differ, so that one minus incidence sums over the events so far.
    men = X["man"].to_numpy() == 1
    for row in report.tables["kaplan_meier man"].rows[1::97]:
        inside = men if row["group"] == "1" else ~men
        time, cause = y["time"][inside], y["cause"][inside]
        at = time[np.abs(time - row["time"]).argmin()]
        assert row["at_risk"] == (time >= at).sum()
        left = (time >= time[:, None]).sum(axis=1)
        free = np.where((cause > 0) & (time < time[:, None]), 1 - 1 / left, 1.0).prod(axis=1)
        incidence = (free / left)[(cause == 1) & (time <= at)].sum()
        assert row["incidence"] == pytest.approx(incidence, rel=1e-4)
    wanted = log_rank_test(Surv.from_arrays(y["cause"] == 1, y["time"]), men)
    assert (
        f"other causes counted as censored: {p_text(wanted.p)} (chi-square {wanted.chi_square:.2f}," in text
    )


@pytest.mark.sections("verdict", "remedy")
def test_of_one_incidence_alone_hazards_are_not_known_so_that_nothing_is_repaired(model):
    X, y = cohort(1, 1.2)
    times = np.array([1.0, 2.0])
    alone = Predictions(incidence={1: model.predict_cumulative_incidence(X, times, 1)}, times=times)
    found = audit(alone, None, y, sensitive_features=X[["man"]], features=X, cause=1)
    assert found.parts["verdict"].facts["status"] == "miscalibrated"
    assert "remedies" not in found.tables
