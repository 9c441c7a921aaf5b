"""Bounds of subgroups for one of several causes."""

import numpy as np
import pandas as pd
import pytest

from drosurv import CauseSpecificCox, CoxPH, Surv, certify
from drosurv.metrics import FollowUp, brier_score_by_cause
from drosurv.predictions import Predictions

from ..repairs.test_repair_model import cohort


@pytest.fixture(scope="module")
def model():
    return CauseSpecificCox().fit(*cohort(0, 800, hidden=0.0))


def test_the_subgroup_of_a_wrong_cause_is_found_and_the_right_cause_is_not_blamed(model):
    X, y = cohort(1, 1_500, hidden=1.2)
    found = certify(model, X, y, cause=1, n_bootstrap=99)
    assert any("x2 >" in group for group in found.significant["group"])
    assert certify(model, X, y, cause=2, n_bootstrap=99).significant.empty
    times = np.linspace(0.03, 4.5, 150)
    table = Predictions(
        incidence={k: model.predict_cumulative_incidence(X, times, k) for k in (1, 2)}, times=times
    )
    of_table = certify(table, X, y, cause=1, n_bootstrap=99)
    assert of_table.overall["expected"] == pytest.approx(found.overall["expected"], rel=0.02)
    assert any("x2 >" in group for group in of_table.significant["group"])


def test_the_brier_score_is_that_of_the_incidence(model):
    X, y = cohort(2, 800, hidden=0.0)
    found = certify(model, X, y, cause=2, brier_time=2.0, n_bootstrap=59)
    incidence = model.predict_cumulative_incidence(X, [2.0], 2)
    follow_up = FollowUp.parse(Surv.from_arrays(y["cause"] > 0, y["time"]))
    wanted = brier_score_by_cause(follow_up, y["cause"], y["time"], incidence, [2.0], of=2)
    assert found.overall["brier"] == pytest.approx(wanted.item())


def test_one_cause_gives_the_bounds_of_an_event():
    X, y = cohort(3, 800, hidden=0.0)
    train, old = cohort(4, 800, hidden=0.0)
    plain, one = (
        (Surv.from_arrays(each["cause"] == 1, each["time"]), Surv.competing(each["cause"] == 1, each["time"]))
        for each in (y, old)
    )
    cox = certify(CoxPH().fit(train, one[0]), X, plain[0], n_bootstrap=99)
    causes = certify(CauseSpecificCox().fit(train, one[1]), X, plain[1], cause=1, n_bootstrap=99)
    pd.testing.assert_frame_equal(causes.bounds, cox.bounds, rtol=1e-3)
    assert causes.overall == pytest.approx(cox.overall, rel=1e-3)
