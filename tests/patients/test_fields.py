"""Fields of y: entry times, patients, clusters and weights stay with their rows."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sksurv.ensemble import RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis

import drosurv
from drosurv import CoxPH, Surv, audit, certify, compare, evaluate, monitor, repair
from drosurv.evaluation import get_scorer
from drosurv.metrics import (
    calibration_slope,
    concordance_index,
    decisions,
    integrated_brier_score,
    log_rank_test,
    median_follow_up,
)
from drosurv.patients.observation import Rows, one_row_each
from drosurv.patients.target import with_fields

N = 300
EVENT, TIME = [True, False, True, True], [2.0, 3.0, 5.0, 6.0]


def drawn(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    entry = rng.uniform(0, 0.3, n)
    time = entry + rng.exponential(np.exp(-X["a"].to_numpy()))
    end = entry + rng.exponential(2.0, n)
    fields = {
        "entry": entry,
        "clusters": rng.choice(["north", "south", "west"], n),
        "weight": rng.integers(1, 3, n),
    }
    return X, Surv.from_arrays(time <= end, np.minimum(time, end), **fields)


X, Y = drawn()


def several_rows(X, y):
    """Each patient's time in two rows, shuffled."""
    n = len(y)
    cut = (y["entry"] + y["time"]) / 2
    event = np.r_[np.zeros(n, bool), y["event"]]
    both = Surv.from_arrays(
        event, np.r_[cut, y["time"]], entry=np.r_[y["entry"], cut], id=[f"p{k}" for k in np.r_[:n, :n]]
    )
    order = np.random.default_rng(1).permutation(2 * n)
    return pd.concat([X, X]).reset_index(drop=True).iloc[order], both[order]


# Building y.


def test_fields_are_float64_whole_numbers_or_fixed_width_text():
    y = Surv.from_arrays(
        EVENT,
        TIME,
        entry=np.array([0, 1, 1, 1], dtype=np.int8),
        id=np.array(["p1", "p2", "long name", "p4"], dtype=object),
        clusters=pd.Series([1, 1, 2, 2], dtype="Int64", name="hospital"),
        weight=[1, 2.5, 1, 0],
    )
    assert y.dtype.names == ("event", "time", "entry", "id", "clusters", "weight")
    assert [y.dtype[name].kind for name in y.dtype.names] == ["b", "f", "f", "U", "i", "f"]
    assert y["id"].tolist() == ["p1", "p2", "long name", "p4"]
    assert Rows.parse(y[[1, 0]], judged=False).clusters_name == "hospital"
    assert Surv.from_arrays(EVENT, TIME, id=[1.0, 2.0, 3.0, 4.0])["id"].dtype.kind == "i"
    assert not any(y.dtype[name].hasobject for name in y.dtype.names)


def test_a_table_gives_fields_by_the_names_of_columns():
    table = pd.DataFrame({"died": EVENT, "stop": TIME, "start": [0, 1, 1, 1], "who": list("abcd")})
    y = Surv.from_dataframe("died", "stop", table, entry="start", id="who")
    assert y.dtype.names == ("died", "stop", "entry", "id")
    assert y["entry"].tolist() == [0, 1, 1, 1]
    # A column may be called as a field.
    odd = table.rename(columns={"died": "id", "stop": "weight"})
    assert Surv.from_dataframe("id", "weight", odd, id="who").dtype.names == ("event", "time", "id")
    with pytest.raises(ValueError, match="weight column 'w' is not in data"):
        Surv.from_dataframe("died", "stop", table, weight="w")


def test_event_and_time_alone_keep_the_names_of_causes():
    y = Surv.competing([0, 1, 2], [1.0, 2.0, 3.0], ["cancer", "other"], weight=[1, 2, 3])
    alone = Surv.event_time(y)
    assert alone.dtype.names == ("cause", "time")
    assert alone.dtype.metadata["causes"] == y.dtype.metadata["causes"] == ("cancer", "other")
    assert alone["cause"].tolist() == [0, 1, 2]


def test_the_first_two_fields_have_any_name_and_the_others_any_order():
    y = np.zeros(N, [("died", "?"), ("days", "f8"), ("weight", "i4"), ("entry", "f4")])
    for name, old in (("died", "event"), ("days", "time"), ("weight", "weight"), ("entry", "entry")):
        y[name] = Y[old]
    same = with_fields(Y, clusters=None, entry=y["entry"])
    np.testing.assert_allclose(CoxPH().fit(X, y).coef_, CoxPH().fit(X, same).coef_, rtol=1e-12)


# scikit-learn.


def test_a_split_keeps_the_fields_with_the_rows():
    X_train, X_test, y_train, y_test = train_test_split(X, Y, test_size=0.3, random_state=0)
    rows = X_test.index.to_numpy()
    for name in Y.dtype.names:
        np.testing.assert_array_equal(y_test[name], Y[name][rows])
    model = CoxPH().fit(X_train, y_train)
    assert evaluate(model, X_test, y_test).settings.clusters == 3


def test_cross_validated_scores_compare_patients_at_risk_together_by_weight():
    cv = [(np.arange(150, N), np.arange(150)), (np.arange(150), np.arange(150, N))]
    found = cross_val_score(make_pipeline(StandardScaler(), CoxPH()), X, Y, cv=cv)
    for (train, test), score in zip(cv, found, strict=True):
        own = Y[test]
        risk = CoxPH().fit(X.iloc[train], Y[train]).predict(X.iloc[test])
        right = pairs = 0.0
        for i in np.flatnonzero(own["event"]):
            at_risk = (own["time"] > own["time"][i]) & (own["entry"] < own["time"][i])
            both = own["weight"][i] * own["weight"][at_risk]
            right, pairs = right + both @ (risk[i] > risk[at_risk]), pairs + both.sum()
        assert score == pytest.approx(right / pairs, abs=1e-9)


def test_a_search_fits_and_scores_with_entry_times_and_weights():
    search = GridSearchCV(CoxPH(), {"l2": [0.001, 10.0]}, cv=3).fit(X, Y)
    assert search.best_estimator_.follow_up_.late_entry
    np.testing.assert_allclose(
        search.best_estimator_.coef_, CoxPH(l2=search.best_params_["l2"]).fit(X, Y).coef_
    )
    assert search.best_estimator_.n_patients_ == Y["weight"].sum()


@pytest.mark.parametrize("score", ["c_index", "neg_ibs", "likelihood_gain"])
def test_a_scorer_judges_as_evaluate_does(score):
    metric = {"c_index": "concordance_index", "neg_ibs": "integrated_brier_score"}.get(score, score)
    train, test = np.arange(150), np.arange(150, N)
    rows, both = several_rows(X, with_fields(Y, clusters=None, weight=None))
    cases = [(X, with_fields(Y, entry=None)), (X, Y), (rows, both)]
    for features, y in cases:
        model = CoxPH().fit(features.iloc[train], with_fields(y[train], id=None))
        if "id" in y.dtype.names:
            test = np.flatnonzero(np.isin(y["id"], [f"p{k}" for k in range(100)]))
        found = get_scorer(score)(model, features.iloc[test], y[test])
        wanted = evaluate(model, features.iloc[test], y[test]).value(metric)
        assert abs(found) == pytest.approx(abs(wanted), rel=1e-9)


def test_rows_of_one_patient_stay_together_in_groups_of_folds():
    rows, y = several_rows(X, Y)
    scorer = get_scorer("c_index")
    found = cross_val_score(CoxPH(), rows, y, cv=GroupKFold(3), groups=y["id"], scoring=scorer)
    assert (found > 0.6).all()
    # Rows that plain folds cut apart leave a gap, or overlap where they are drawn twice.
    three = Surv.from_arrays([False] * 3, [1.0, 2.0, 3.0], entry=[0.0, 1.0, 2.0], id=["p", "p", "p"])
    three = np.concatenate([three, Surv.from_arrays([True], [4.0], entry=[0.0], id=["q"])])
    for kept, said in (([0, 2, 3], "rows 1 and 2 of one id leave a gap"), ([0, 0, 3], "of one id overlap")):
        with pytest.raises(ValueError, match=f"{said}.*GroupKFold with groups=y\\['id'\\]"):
            Rows.parse(three[kept])
    Rows.parse(three)


# Weights.


def test_fractions_train_and_score_but_do_not_judge():
    y = with_fields(Y, weight=np.linspace(0.5, 1.5, N))
    model = CoxPH().fit(X, y)
    plain = with_fields(y, weight=None)
    np.testing.assert_allclose(model.coef_, CoxPH().fit(X, plain, y["weight"]).coef_)
    assert model.score(X, y) == concordance_index(plain, model.predict(X), y["weight"])
    with pytest.raises(ValueError, match=r"weight must hold whole numbers.*row 1 has 0.5"):
        compare({"m": model}, X, y)


# Metrics.


def test_metrics_use_the_weights_of_y_and_refuse_what_they_do_not_define():
    plain, groups = Surv.event_time(Y), np.where(X["b"] > 0, "p", "q")
    weighted = with_fields(plain, weight=Y["weight"])
    for metric in (concordance_index, lambda y, risk, **how: calibration_slope(y, risk, **how)):
        assert metric(weighted, X["a"]) == metric(plain, X["a"], sample_weight=Y["weight"])
    tests = log_rank_test(weighted, groups), log_rank_test(plain, groups, sample_weight=Y["weight"])
    assert tests[0].p == tests[1].p
    late = with_fields(plain, entry=Y["entry"])
    for call in (
        lambda: log_rank_test(late, groups),
        lambda: integrated_brier_score(plain, late, np.full((N, 1), 0.5), [1.0]),
        lambda: median_follow_up(late),
    ):
        with pytest.raises(
            ValueError, match=r"has a field 'entry', which this metric does not take: pass Surv\.event"
        ):
            call()
    with pytest.raises(ValueError, match="has a field 'weight', which this metric does not take"):
        decisions(weighted, np.full(N, 0.5), threshold=0.5, horizon=1.0)


def test_no_function_takes_fields_as_arguments():
    functions = [evaluate, audit, compare, certify, repair, monitor, concordance_index, calibration_slope]
    methods = [cls.fit for _, cls in drosurv.all_estimators(causes=True)]
    methods += [cls.score for _, cls in drosurv.all_estimators(causes=True)]
    for function in (*functions, *methods):
        taken = set(inspect.signature(function).parameters)
        assert taken.isdisjoint({"entry", "id", "clusters", "weight"})
        assert "sample_weight" not in taken or function not in functions[:6]


# Estimators of other libraries.


@pytest.mark.parametrize(
    "estimator", [CoxPHSurvivalAnalysis(alpha=0.1), RandomSurvivalForest(10, random_state=0)]
)
def test_estimators_of_scikit_survival_get_event_and_time(estimator):
    y = with_fields(Y, entry=None, weight=None)
    with warnings.catch_warnings(action="ignore"):
        fitted = estimator.fit(X[:150], Surv.event_time(y[:150]))
        assert evaluate(fitted, X[150:], y[150:]).value("concordance_index") > 0.6
        how = {"search_rules": False}
        page = audit(estimator, X, with_fields(y, id=np.arange(N)), folds=3, **how).to_markdown()
        assert "300 patients in 3 clusters" in page
        for base in (estimator, make_pipeline(StandardScaler(), estimator)):
            repaired = repair(base, X, y, max_repairs=1, max_conditions=1, folds=3, random_state=0)
            assert repaired.n_patients_ == N
        repair(fitted, X[150:], y[150:], frozen=True, max_repairs=1, max_conditions=1, random_state=0)
        # One event and time for each row of y.
        assert 0 < compare({"m": fitted}, X[150:], y[150:], y_train=y[:150])["value"].iloc[0] < 1


def test_clusters_have_no_part_in_monitoring():
    start = pd.Series(pd.date_range("2001-01-01", periods=N))
    with pytest.warns(UserWarning, match="clusters are alike, false alarms are more frequent"):
        monitor(CoxPH().fit(X, Y), X, with_fields(Y, weight=None), start=start, time_unit="years")


def test_one_id_without_entry_times_is_an_error_in_training_and_a_cluster_where_a_model_is_judged():
    i = np.repeat(np.arange(100), 3)
    y = Surv.from_arrays(Y["event"][i], Y["time"][i], id=i)
    with pytest.raises(
        ValueError, match=r"id names several rows of one patient .* but there are no entry times"
    ):
        CoxPH().fit(X.iloc[i], y)
    as_clusters = with_fields(y, id=None, clusters=i)
    model = CoxPH().fit(X.iloc[i], as_clusters)
    one, other = (evaluate(model, X.iloc[i], given) for given in (y, as_clusters))
    np.testing.assert_allclose(
        *(found.groups[["ratio_low", "ratio_high"]].to_numpy(float) for found in (one, other))
    )
    repaired, again = (
        repair(model, X.iloc[i], given, frozen=True, random_state=0).status_ for given in (y, as_clusters)
    )
    assert (
        repaired == again.replace("in 100 clusters, each of which", "of 100 patients, each of whom") != again
    )


def test_one_row_of_each_patient_has_event_and_time_alone():
    rows, both = several_rows(X, Y)
    found = one_row_each(both, Rows.parse(both), rows)
    assert found.y.dtype.names == ("event", "time")
    assert found.rows.patient is found.rows.weight is None
    order = np.argsort([int(name[1:]) for name in np.unique(both["id"])])
    np.testing.assert_allclose(found.y["time"][order], Y["time"])
    np.testing.assert_allclose(found.rows.entry[order], Y["entry"])
