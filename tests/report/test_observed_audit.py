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
        "later values too, its predictions may be wrong for this reason alone: train it on first rows."
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
def test_models_in_folds_learn_from_all_rows_of_a_patient_and_predict_from_the_first(cohort):
    _, whole, rows = cohort
    recipe, parts = CoxPH(), fold_parts(whole["y"]["event"], 3, 0)
    y = with_fields(rows["y"], entry=rows["entry"], id=rows["id"])
    intervals = PatientRows(rows["X"], y, Rows.parse(y, strata=rows["strata"]), rows["id"])
    late = with_fields(whole["y"], entry=whole["entry"])
    first = Rows.parse(late, strata=whole["strata"])
    found = cross_fitted(recipe, whole["X"], late, parts, rows=first, intervals=intervals)
    train, test = parts[2]
    of_train = np.array([patient in train for patient in rows["id"]])
    alone = clone(recipe).fit(rows["X"][of_train], y[of_train], strata=rows["strata"][of_train])
    i, times, stratum = int(test[3]), np.array([0.2, 0.4]), whole["strata"][test[[3]]]
    curve = alone.predict_survival_function(whole["X"].iloc[[i]], strata=stratum)[0]
    np.testing.assert_allclose(found.survival.survival(times)[i], curve(times))
    report = audited(recipe, **rows, folds=3)
    assert "320 rows are of 160 patients" in report.to_markdown()
    assert "160 patients with " in report.to_markdown()


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
