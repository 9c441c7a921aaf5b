import numpy as np
import pandas as pd
import pytest

import drosurv
from drosurv import CoxPH, PublishedCox, Surv
from drosurv.errors import ArgumentWarning
from drosurv.judging.known_columns import known_columns
from drosurv.tables import LeakWarning
from drosurv.tables.leaks import find_leaks

N = 400
LEFT_OUT = r"^columns 'days' .* and 'died' .* may give the outcome away, and were not used to find subgroups"


@pytest.fixture(scope="module")
def patients():
    """Patients of a right score; the table holds their outcome too."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(60, 10, N).round(), "bmi": rng.normal(25, 4, N).round(1)})
    time = rng.exponential(8 / np.exp(0.05 * (X["age"] - 60)))
    end = rng.uniform(4, 12, N)
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    return X.assign(days=365.25 * y["time"], died=y["event"]), y


@pytest.fixture(scope="module")
def score():
    return PublishedCox({"age": 0.05}, {2: np.exp(-0.25), 4: np.exp(-0.5)}, center={"age": 60})


@pytest.mark.sections("verdict", "missed", "method")
def test_columns_of_the_outcome_define_no_subgroups(patients, score):
    table, y = patients
    with pytest.warns(ArgumentWarning, match=LEFT_OUT):
        bounds = drosurv.certify(score, table, y, n_bootstrap=59)
    known = drosurv.certify(score, table[["age", "bmi"]], y, n_bootstrap=59)
    pd.testing.assert_frame_equal(bounds.bounds, known.bounds)
    given = ([2, 4], score.predict_survival_function(table, times=[2, 4]))
    for model in (score, given):
        with pytest.warns(ArgumentWarning, match=LEFT_OUT) as warned:
            report = drosurv.audit(model, table, y)
        assert len(warned) == 1
        assert "not used to find subgroups" in report.to_markdown()
        assert report.parts["verdict"].facts["status"] != "data_problem"
        assert report.parts["missed"].facts["bounds"]["n_subgroups"] == bounds.n_subgroups
    # Named features are searched alone, without a word about the other columns.
    assert drosurv.certify(score, table, y, features=table[["bmi"]], n_bootstrap=59).n_columns == 1


def test_a_repair_neither_uses_nor_needs_columns_of_the_outcome(patients, score):
    table, y = patients
    with pytest.warns(ArgumentWarning, match=LEFT_OUT):
        repaired = drosurv.repair(score, table, y, random_state=0)
    assert list(repaired.feature_names_in_) == ["age", "bmi"]
    chosen = drosurv.repair(score, table.assign(other=1.0), y, features=table[["bmi"]], random_state=0)
    assert list(chosen.feature_names_in_) == ["age", "bmi"]
    given = ([2, 4], score.predict_survival_function(table, times=[2, 4]))
    assert list(drosurv.repair(given, table, y, features=table[["bmi"]]).feature_names_in_) == ["bmi"]


@pytest.mark.sections("verdict")
def test_a_model_that_uses_the_time_has_a_data_problem_unless_the_column_is_known(patients):
    table, y = patients
    rng = np.random.default_rng(1)
    # Of those without a relapse, the time of censoring.
    relapse = np.where(rng.random(N) < 0.6, rng.uniform(0, 10, N), y["time"])
    X, train = table[["age"]].assign(relapse=relapse), np.arange(N) < 200
    model = CoxPH().fit(X[train], y[train])
    given = {"search_rules": False}
    report = drosurv.audit(model, X[~train], y[~train], **given)
    assert report.parts["verdict"].facts["status"] == "data_problem"
    assert "'relapse' (it equals the time, in some unit, for" in report.to_markdown()
    known = drosurv.audit(model, X[~train], y[~train], keep_columns=["relapse"], **given)
    assert known.parts["verdict"].facts["status"] != "data_problem"
    (fact,) = [one["text"] for one in known.parts["verdict"].facts["warnings"] if "relapse" in one["text"]]
    assert fact.endswith("may give the outcome away; it is used as known when a prediction is made.")
    with pytest.warns(LeakWarning, match=r"'relapse' .*, which the model uses, may give the outcome away"):
        drosurv.repair(model, X[~train], y[~train], frozen=True, max_repairs=0)
    in_folds = drosurv.audit(CoxPH(), X, y, folds=3, **given)
    assert in_folds.parts["verdict"].facts["status"] == "data_problem"


def test_a_level_whose_patients_all_had_the_event_may_be_a_good_marker():
    """Stage IV with a long follow-up: training asks about such a column, an audit does not condemn the model."""
    event = np.r_[np.ones(140, np.bool_), np.zeros(60, np.bool_)]
    y = Surv.from_arrays(event, np.arange(1.0, 201.0))
    X = pd.DataFrame({"stage": np.r_[np.repeat("IV", 60), np.tile(["I", "II"], 70)]})
    assert "stage" in find_leaks(X, y)
    known = known_columns(None, X, y)
    assert not known.problem
    assert not known.note


@pytest.mark.sections("verdict")
def test_a_number_whose_cut_tells_the_event_is_a_problem_of_the_model(patients):
    table, y = patients
    noise = np.random.default_rng(2).normal(0, 0.05, N)
    X, train = table[["age"]].assign(psa=2 * y["event"] + noise), np.arange(N) < 200
    model = CoxPH(l2=1.0).fit(X[train], y[train])
    report = drosurv.audit(model, X[~train], y[~train], search_rules=False)
    assert report.parts["verdict"].facts["status"] == "data_problem"
    assert "'psa' (whether it is above" in report.to_markdown()


def test_a_text_is_one_column_to_keep(patients, score):
    table, y = patients
    assert list(known_columns(score, table, y, keep_columns="died").kept) == ["died"]
