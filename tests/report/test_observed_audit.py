"""Audits of patients who entered late, belong to strata or have several rows."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from drosurv import CoxPH, Surv
from drosurv.evaluation.evaluate import prepare
from drosurv.patients.observation import Rows, one_row_each
from drosurv.patients.target import with_fields
from drosurv.predictions import as_predictions
from drosurv.predictions.any_model import fitted_plain_cox
from drosurv.report import Page, audit
from drosurv.report.cross_fit import PatientRows, cross_fitted, fold_parts


@pytest.fixture(scope="module")
def cohort():
    """Patients with one row each, and cut in two rows whose second has other features."""
    rng = np.random.default_rng(0)
    n = 160
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    time = rng.exponential(np.exp(-0.8 * X["a"])) + 0.5
    y, entry = Surv.from_arrays(rng.random(n) < 0.7, time), rng.uniform(0, 0.4, n)
    strata, groups = rng.choice(["north", "south"], n), pd.DataFrame({"sex": rng.choice(["f", "m"], n)})
    cut = (entry + time) / 2
    shuffled = rng.permutation(2 * n)
    rows = {
        "X": pd.concat([X, X + 5], ignore_index=True).iloc[shuffled],
        "y": Surv.from_arrays(np.r_[np.zeros(n, bool), y["event"]], np.r_[cut, time])[shuffled],
        "entry": np.r_[entry, cut][shuffled],
        "strata": np.r_[strata, strata][shuffled],
        "sensitive_features": pd.concat([groups, groups], ignore_index=True).iloc[shuffled],
        "id": np.r_[:n, :n][shuffled],
    }
    whole = {"X": X, "y": y, "entry": entry, "strata": strata, "sensitive_features": groups}
    return CoxPH().fit(X, y, strata=strata), whole, rows


def audited(model, **given):
    X, y = (
        given.pop("X"),
        with_fields(given.pop("y"), entry=given.pop("entry", None), id=given.pop("id", None)),
    )
    return audit(model, X, y, **given, search_rules=False)


def test_patients_of_several_rows_are_audited_once_by_what_was_known_first(cohort):
    model, whole, rows = cohort
    split, alone = audited(model, **rows), audited(model, **whole)
    assert set(split.tables) == set(alone.tables)
    for key, table in alone.tables.items():
        found, wanted = (pd.DataFrame(list(t.rows)) for t in (split.tables[key], table))
        pd.testing.assert_frame_equal(found, wanted, rtol=1e-9)
    assert "320 rows are of 160 patients" in split.to_markdown()
    assert "rows are of" not in alone.to_markdown()


@pytest.mark.sections("verdict", "method")
def test_features_that_change_over_time_are_named_beside_the_verdict(cohort):
    model, whole, rows = cohort
    used = (
        "only the values of each patient's first row were used to predict and to judge. If the model was trained on "
        "later values too, its predictions may be wrong for this reason alone: train it on first rows, as "
        "drosurv fit does."
    )
    told = f"'a' and 'b' change over time: {used}"
    report = audited(model, **rows)
    assert told in [statement.text for statement in report.statements]
    assert told in json.loads(report.to_summary())["limits"]
    # Only what the model uses, in columns that readers know.
    described = rows["X"].assign(visit=np.arange(len(rows["X"])))
    assert told in audited(model, **rows, features=described).to_markdown()
    constant = rows | {"X": whole["X"].iloc[rows["id"]]}
    assert used not in audited(model, **constant).to_markdown()


@pytest.mark.parametrize(
    ("later", "told"),
    [
        # A value that is known later only was not used; one that is missing later was.
        ({"a": [1.0, np.nan, 2.0, 2.0], "b": ["x", "x", None, "y"]}, "'b' changes over time"),
        (
            {f"c{k}": [0, 1, 2, 3] for k in range(7)},
            "'c0', 'c1', 'c2', 'c3', 'c4' and 2 others change over time",
        ),
        (np.array([[0, 0], [1, 0], [0, 0], [0, 0]]), "'x0' changes over time"),
        ({"a": [1.0, np.nan, 2.0, 2.0]}, ""),
        (None, ""),
    ],
)
def test_features_change_where_a_later_value_differs_from_that_of_the_first_row(later, told):
    y = Surv.from_arrays([False, True, False, False], [1.0, 2.0, 1.0, 3.0])
    y = with_fields(y, entry=[0.0, 1.0, 0.0, 1.0], id=[5, 5, 3, 3])
    features = pd.DataFrame(later) if isinstance(later, dict) else later
    found = one_row_each(y, Rows.parse(y), features).changing
    assert found.startswith(told) if told else not found


@pytest.mark.sections("verdict")
def test_a_reference_for_each_row_goes_with_the_rows(cohort):
    model, whole, rows = cohort
    risk = whole["X"]["a"].to_numpy()
    # The second rows' scores must not be looked at.
    of_rows = np.r_[risk, -risk][rows["X"].index]
    split = audited(model, **rows, reference=of_rows, page=Page(reference_name="a"))
    alone = audited(model, **whole, reference=risk, page=Page(reference_name="a"))
    assert split.tables["groups"].rows == alone.tables["groups"].rows


@pytest.mark.sections("verdict")
def test_a_reference_that_was_fitted_with_strata_is_given_them(cohort):
    model, whole, _ = cohort
    report = audited(model, **whole, reference=model, page=Page(reference_name="itself"))
    rows = report.tables["groups"].rows
    assert all(
        abs(row["gain_over_reference"]) < 1e-6 for row in rows if row.get("gain_over_reference") is not None
    )


@pytest.mark.sections("verdict", "method")
def test_models_in_folds_are_told_of_entry_and_strata(cohort):
    _, whole, _ = cohort
    X, y, entry, strata = (whole[name] for name in ("X", "y", "entry", "strata"))
    recipe = make_pipeline(StandardScaler(), CoxPH(l2=0.1))
    parts = fold_parts(y["event"], 3, 0)
    y = with_fields(y, entry=entry)
    seen = cross_fitted(recipe, X, y, parts, rows=Rows.parse(y, strata=strata))
    train, test = parts[1]
    alone = clone(recipe).fit(X.iloc[train], y[train], coxph__strata=strata[train])
    i, times = int(test[4]), np.array([0.2, 0.4])
    curve = alone[-1].predict_survival_function(alone[:-1].transform(X.iloc[[i]]), strata=strata[[i]])[0]
    np.testing.assert_allclose(seen.survival.survival(times)[i], curve(times))
    # Scores are hazards at one time since entry.
    evaluator = prepare(as_predictions(seen, X, len(y), rows=Rows.parse(y)), y)
    np.testing.assert_allclose(seen.risk, evaluator.everyone.data.risk)
    wanted = curve(entry[i] + times) / curve(entry[i])
    np.testing.assert_allclose(evaluator.everyone.data.curves.survival(times)[i], wanted)
    report = audited(recipe, **whole, folds=parts)
    assert "evaluated from their entry on" in report.to_markdown()
    assert "cross-fitted" in report.model
    assert "plain Cox" in report.to_markdown()


@pytest.mark.sections("verdict", "method")
def test_models_in_folds_learn_and_predict_from_the_first_values_of_a_patient(cohort):
    _, whole, rows = cohort
    recipe, parts = CoxPH(), fold_parts(whole["y"]["event"], 3, 0)
    y = with_fields(rows["y"], entry=rows["entry"], id=rows["id"])
    late = with_fields(whole["y"], entry=whole["entry"])
    first = Rows.parse(late, strata=whole["strata"])
    found = cross_fitted(recipe, whole["X"], late, parts, rows=first, intervals=PatientRows(y, rows["id"]))
    # One row of each patient, from entry to the end, is as good as two.
    train, test = parts[2]
    alone = clone(recipe).fit(whole["X"].iloc[train], late[train], strata=whole["strata"][train])
    i, times, stratum = int(test[3]), np.array([0.2, 0.4]), whole["strata"][test[[3]]]
    curve = alone.predict_survival_function(whole["X"].iloc[[i]], strata=stratum)[0]
    np.testing.assert_allclose(found.survival.survival(times)[i], curve(times))
    # Whatever the later values are, in the model and in plain Cox.
    strata, offset = np.where(rows["X"]["a"] > 4, "east", rows["strata"]), rows["X"]["b"].to_numpy()
    rows = rows | {"strata": strata, "offset": offset}
    firsts = rows | {
        "X": whole["X"].iloc[rows["id"]],
        "strata": np.where(whole["X"]["a"] > 4, "east", whole["strata"])[rows["id"]],
        "offset": whole["X"]["b"].to_numpy()[rows["id"]],
    }
    report, wanted = (audited(recipe, **given, folds=3) for given in (rows, firsts))
    assert report.tables["groups"].rows == wanted.tables["groups"].rows
    assert "320 rows are of 160 patients" in report.to_markdown()
    assert "160 patients with " in report.to_markdown()
    assert "first row were used to train, to predict and to judge." in report.to_markdown()


def rising(seed, n=400):
    """A marker that rises by 1 at time 1 and so raises the hazard: a Cox model of first values is right."""
    rng = np.random.default_rng(seed)
    marker, left = rng.normal(size=n), rng.exponential(size=n)
    hazard = 0.2 * np.exp(0.8 * marker)
    time = np.where(left < hazard, left / hazard, 1 + (left - hazard) / (hazard * np.exp(0.8)))
    end = rng.uniform(0.5, 5, n)
    event, time = time <= end, np.minimum(time, end)
    late = np.flatnonzero(time > 1)
    y = Surv.from_arrays(
        np.r_[event & (time <= 1), event[late]],
        np.r_[np.minimum(time, 1), time[late]],
        entry=np.r_[np.zeros(n), np.ones(len(late))],
        id=np.r_[:n, late],
    )
    return pd.DataFrame({"marker": np.r_[marker, marker[late] + 1]}), y


@pytest.mark.sections("verdict")
def test_a_model_in_folds_is_not_condemned_for_values_that_no_prediction_knows():
    def verdict(model, seed, **given):
        return audit(model, *rising(seed), search_rules=False, **given).parts["verdict"].statements[0].text

    found = [verdict(CoxPH(), seed, folds=3) for seed in range(4)]
    assert sum(text.startswith("No problem is shown") for text in found) >= 3
    # The later values, which rise by time, make a model of all rows wrong from the first.
    of_all_rows = CoxPH().fit(*rising(9))
    assert verdict(of_all_rows, 0).startswith("The number of events is wrong for all patients")


def test_plain_cox_of_training_rows_has_the_first_values():
    X, y = rising(0)
    first = X.to_numpy()[y["id"]]
    found = fitted_plain_cox(CoxPH(), X, y)
    np.testing.assert_array_equal(found.coef_, CoxPH().fit(first, y).coef_)
    assert found.coef_[0] == pytest.approx(0.8, abs=0.2)
    # Rows of one patient without entry times are no pieces of a follow-up.
    eyes = with_fields(y, entry=None, id=None, clusters=y["id"])
    np.testing.assert_array_equal(fitted_plain_cox(CoxPH(), X, eyes).coef_, CoxPH().fit(X, eyes).coef_)


def test_what_counts_from_entry_says_so(cohort):
    model, whole, _ = cohort
    given = {name: whole[name] for name in ("X", "y", "sensitive_features")}
    late, early = audited(model, **whole), audited(CoxPH().fit(given["X"], given["y"]), **given)
    for report, since in ((late, " since entry"), (early, "")):
        page = report.to_html()
        assert f"Observed survival{since} by sex" in page
        assert f"have the same survival{since}:" in page
        assert ("time since entry" in page) == bool(since)


@pytest.mark.sections("verdict", "patients", "calibration")
def test_predictions_at_few_times_of_late_patients_are_not_called_no_survival(cohort):
    _, whole, _ = cohort
    survival = np.asarray(
        CoxPH().fit(whole["X"], whole["y"]).predict_survival_function(whole["X"], times=[0.8, 1.5])
    )
    given = {"sensitive_features": whole["sensitive_features"], "search_rules": False}
    page = audit(
        (np.array([0.8, 1.5]), survival), None, with_fields(whole["y"], entry=whole["entry"]), **given
    ).to_html()
    assert "Patients enter late, and survival since entry is not known" in page
    assert "predicts no survival curves" not in page
