"""The catalogue and the evaluator: a metric is defined once, and a gap is the same in every view."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import GridSearchCV

from drosurv.estimators import DROCox
from drosurv.evaluation import Predictions, evaluate, get_scorer
from drosurv.evaluation.catalogue import CATALOGUE, metric
from drosurv.metrics.estimates import Estimate
from drosurv.report import audit


def risk_of_the_dead(patients):
    """Mean score of those who died."""
    own = patients.target.event / max(patients.target.n_events, 1)
    value = float(own @ patients.risk)
    return patients.of_all(Estimate(value, own * (patients.risk - value)))


@pytest.fixture
def new_metric(monkeypatch):
    # Entered for one test only.
    monkeypatch.setitem(CATALOGUE, "risk_of_the_dead", None)
    return metric("risk of the dead", "higher")(risk_of_the_dead).name


def test_a_record_takes_its_name_and_its_meaning_from_the_function(new_metric):
    assert CATALOGUE[new_metric].name == "risk_of_the_dead"
    assert CATALOGUE[new_metric].meaning == "mean score of those who died"
    assert all(known.name == name and known.meaning for name, known in CATALOGUE.items())
    # Symbols keep their capital.
    assert CATALOGUE["censored_individual_disparity"].meaning.startswith("F_I over pairs")


def test_a_new_metric_is_one_record(new_metric, model, train, held_out):
    X, y, groups = held_out.X, held_out.y, held_out.sensitive_features[["site"]]
    risk, site = model.predict(X), groups["site"].to_numpy()
    dead = {who: risk[y["event"] & ((site == who) | (who == "all"))].mean() for who in ("all", "a", "b")}

    result = evaluate(model, X, y, y_train=train.y, sensitive_features=groups)
    assert result.value(new_metric) == pytest.approx(dead["all"])
    assert result.value(new_metric, "site", "b") == pytest.approx(dead["b"])
    assert result.value(new_metric, "site") == pytest.approx(abs(dead["a"] - dead["b"]))
    assert "risk of the dead" in result.to_markdown()
    assert result.plot_groups(new_metric).get_xlabel() == "risk of the dead (higher is better)"

    assert result.by_group.loc[("site", "a"), new_metric] == pytest.approx(dead["a"])

    assert get_scorer(new_metric)(model, X, y) == pytest.approx(dead["all"])
    worst = get_scorer(f"worst_group_{new_metric}")(model, X, y, sensitive_features=groups)
    assert worst == pytest.approx(min(dead["a"], dead["b"]))

    search = GridSearchCV(
        DROCox(recalibrate=False), {"alpha": [0.3, 1.0]}, scoring=get_scorer(new_metric), cv=2
    )
    search.fit(X, y)
    assert search.best_index_ == search.cv_results_["mean_test_score"].argmax()

    options = {"y_train": train.y, "sensitive_features": groups, "search_rules": False}
    (shown,) = (
        row
        for row in audit(model, X, y, **options).tables["accuracy"].rows
        if row["metric"] == "risk of the dead"
    )
    assert shown["meaning"] == "mean score of those who died"
    assert shown["value"] == pytest.approx(dead["all"], rel=1e-5)


@pytest.mark.parametrize("missing", ["survival", "groups", "features"])
def test_what_a_metric_needs_decides_whether_it_is_computed(missing, model, train, held_out):
    said = Predictions(
        model.predict(held_out.X),
        None if missing == "survival" else model.predict_survival_function(held_out.X),
    )
    result = evaluate(
        said,
        None if missing == "features" else held_out.X,
        held_out.y,
        y_train=train.y,
        sensitive_features=None if missing == "groups" else held_out.sensitive_features,
        paper=True,
    )
    found = {row.metric for row in result.rows}
    shown = set(CATALOGUE)
    # Gains are those of predicted survival.
    lacking = {missing, "reference", *(("gains",) if missing == "survival" else ())}
    assert shown - found == {name for name in shown if lacking & set(CATALOGUE[name].needs)}


def test_a_gap_is_the_same_in_every_view(model, train, held_out):
    X, y, groups = held_out.X, held_out.y, held_out.sensitive_features["site"]
    result = evaluate(model, X, y, y_train=train.y, sensitive_features=groups)
    names = ["uno_concordance", "brier_skill", "calibration_difference"]
    table = result.to_frame().query("kind == 'gap'").set_index("metric")
    np.testing.assert_allclose(result.difference()[names], table.loc[names, "value"])

    report = audit(model, X, y, y_train=train.y, sensitive_features=groups, search_rules=False)
    shown = {row["metric"]: row for row in report.tables["fairness"].rows}
    for name in names:
        gap = shown[f"Gap of {CATALOGUE[name].label}"]
        wanted = table.loc[name, ["value", "low", "high"]].tolist()
        # The report keeps six digits.
        assert [gap["value"], gap["low"], gap["high"]] == pytest.approx(wanted, rel=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@pytest.mark.filterwarnings("ignore::drosurv.evaluation.SmallGroupWarning")
@pytest.mark.parametrize("odd", ["one patient", "without events", "alike"])
def test_unusual_groups_are_judged_alike_in_every_view(odd, model, train, held_out):
    X, y, place = held_out.X, held_out.y, np.arange(len(held_out.y))
    labels = {
        "one patient": np.where(place == 0, "alone", "rest"),
        "without events": np.where(~y["event"] & (place % 3 > 0), "none", "rest"),
        "alike": np.array([1, "1", 2, "2", 3, "3"], dtype=object)[place % 6],
    }[odd]
    # Rounded scores are tied.
    said = Predictions(np.round(model.predict(X)), model.predict_survival_function(X))
    names = ["concordance_index", "uno_concordance", "integrated_brier_score", "calibration_slope"]
    options = {"sensitive_features": pd.Series(labels, name="odd"), "y_train": train.y}
    result = evaluate(said, X, y, **options)
    gaps = result.table.query("kind == 'gap'").set_index("metric").loc[names, "value"]
    values = result.table.query("kind == 'group'").set_index(["metric", "group"])["value"]
    for name in names:
        np.testing.assert_allclose(result.by_group.loc["odd", name], values[name])
    np.testing.assert_allclose(result.difference()[names], gaps)


def test_a_result_is_a_small_table(without_replicates):
    result = without_replicates
    shown = repr(result)
    assert len(shown.splitlines()) < 15
    for who in ("all patients", "site a", "sex f"):
        assert who in shown
    assert f"{result.value('concordance_index'):.3f}" in shown
    page = result._repr_html_()
    assert page.lstrip().startswith("<")
    assert page.count("<tr") == 6


def test_without_training_targets_those_of_the_model_or_of_the_scored_patients_are_used(
    model, train, held_out
):
    options = {"sensitive_features": held_out.sensitive_features}
    given = evaluate(model, held_out.X, held_out.y, y_train=train.y, **options)
    kept = evaluate(model, held_out.X, held_out.y, **options)
    for name in ("uno_concordance", "integrated_brier_score", "brier_skill", "likelihood_gain"):
        assert kept.value(name) == pytest.approx(given.value(name))
    foreign = evaluate(model.predict(held_out.X), held_out.X, held_out.y, **options)
    own = evaluate(model.predict(held_out.X), held_out.X, held_out.y, y_train=held_out.y, **options)
    assert foreign.value("uno_concordance") == pytest.approx(own.value("uno_concordance"))
    assert any("y_train was not given" in note for note in foreign.notes)


def test_a_score_without_a_value_warns(model, held_out):
    nobody = np.flatnonzero(~held_out.y["event"])[:5]
    with pytest.warns(UndefinedMetricWarning, match="c_index is undefined"):
        assert np.isnan(get_scorer("c_index")(model, held_out.X[nobody], held_out.y[nobody]))
