"""Of very many patients, some sections and replicates use a random sample, and the method card says so."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from drosurv import CoxPH, audit, compare, evaluate, observation
from drosurv.datasets import make_hidden_minority
from drosurv.evaluation import Predictions
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.evaluate import prepare
from drosurv.metrics.brier import brier_against_null
from drosurv.observation import Rows, sample_of_many, sample_rows, sample_size
from drosurv.predictions import as_predictions
from drosurv.report.alpha_path import Stop
from drosurv.report.evidence import Evidence
from drosurv.target import parse_target

SIZE = 700


@pytest.fixture
def many(monkeypatch):
    """Patients who count as very many, and a model that is wrong for some of them."""
    monkeypatch.setattr(observation, "MANY_PATIENTS", SIZE)
    train, test = (
        make_hidden_minority(1000, n_features=6, minority=0.25, random_state=seed) for seed in (0, 1)
    )
    return make_pipeline(StandardScaler(), CoxPH()).fit(train.X, train.y), test


def test_the_card_says_that_repairs_and_curves_are_of_a_sample(many, monkeypatch):
    model, test = many
    given = {
        "sensitive_features": test.sensitive_features,
        "features": test.X[["x1", "x5"]],
        "n_bootstrap": 4,
    }
    sampled = audit(model, test.X, test.y, **given)
    monkeypatch.setattr(observation, "MANY_PATIENTS", 1000)
    whole = audit(model, test.X, test.y, **given)
    said = f"random sample of {SIZE} patients"
    limits = [" ".join(report.parts["method"].facts["limits"]) for report in (sampled, whole)]
    assert said in limits[0]
    assert "random sample" not in limits[1]
    # Findings, bounds and the group table are of all patients.
    for fact in ("status", "problems", "findings"):
        assert sampled.parts["verdict"].facts[fact] == whole.parts["verdict"].facts[fact]
    # The intervals of the c-index are those of replicates.
    tables = [
        [
            {name: value for name, value in row.items() if name not in ("c_index_low", "c_index_high")}
            for row in report.parts["verdict"].tables[0].rows
        ]
        for report in (sampled, whole)
    ]
    assert tables[0] == tables[1]
    assert sampled.parts["missed"].facts == whole.parts["missed"].facts
    counts = [
        {row["patients"] for row in report.parts["remedy"].table("remedies").rows}
        for report in (sampled, whole)
    ]
    assert max(counts[0]) < max(counts[1])


def test_curves_are_those_of_the_sample_alone(many, monkeypatch):
    model, test = many
    rows = sample_of_many(parse_target(test.y))
    monkeypatch.setattr("drosurv.evaluation.curves_by_group._WHOLE_GROUP", 0)
    follow_up, horizon = model[-1].follow_up_, 0.5
    how = {"y_train": follow_up, "horizon": horizon, "thresholds": [0.2, 0.4], "n_bootstrap": 20}
    labels = np.asarray(test.sensitive_features)
    found = evaluate(model, test.X, test.y, sensitive_features=labels, **how).decision_curves
    part = evaluate(model, test.X.iloc[rows], test.y[rows], sensitive_features=labels[rows], **how)
    np.testing.assert_allclose(found["net_benefit"], part.decision_curves["net_benefit"], rtol=1e-9)
    np.testing.assert_allclose(found["low"], part.decision_curves["low"], rtol=1e-6)


def test_rows_of_one_patient_are_drawn_together(many):
    model, test = many
    id = np.arange(1000) // 5
    evidence = Evidence(
        stops=(Stop("CoxPH", None, model, test.X),),
        y=test.y,
        follow_up=model[-1].follow_up_,
        sensitive_features=None,
        features=test.X,
        rows=Rows(id=id),
    )
    drawn = evidence.sample
    assert SIZE <= len(drawn.y) < SIZE + 5
    assert (np.unique(drawn.rows.id, return_counts=True)[1] == 5).all()
    assert len(drawn.stop.X) == len(drawn.features) == len(drawn.y)


@pytest.mark.parametrize(
    ("n", "events", "size"), [(1e6, 5e5, 40_000), (1e6, 1e4, 100_000), (1e6, 1e6, 20_000)]
)
def test_a_sample_has_twenty_thousand_events_within_limits(n, events, size):
    assert sample_size(n, events, 100_000, 20_000) == size


def test_a_sample_has_no_row_twice():
    rows = sample_rows(50, 20, np.random.default_rng(0))
    assert len(np.unique(rows)) == 20


def test_replicates_of_a_sample_give_the_standard_errors_of_all_patients(many, monkeypatch):
    model, test = many
    how = {"sensitive_features": test.sensitive_features, "n_bootstrap": 100}
    # A sample of a quarter of the patients, and of those of each group.
    monkeypatch.setattr(observation, "MANY_PATIENTS", 250)
    monkeypatch.setattr(observation, "MANY_RESAMPLED", 250)
    results = [evaluate(model, test.X, test.y, **how)]
    monkeypatch.setattr(observation, "MANY_PATIENTS", 1000)
    results.append(evaluate(model, test.X, test.y, **how))
    widths = [one.calibration["difference_high"] - one.calibration["difference_low"] for one in results]
    assert (widths[0] / widths[1]).between(0.6, 1.6).all()
    sampled, whole = (one.to_frame() for one in results)
    np.testing.assert_allclose(sampled["value"], whole["value"], rtol=1e-12)
    names = ("concordance_index", "likelihood_gain", "integrated_brier_score", "calibration_slope")
    of_pairs = ("individual_disparity", "censored_individual_disparity", "censored_group_disparity")
    for name in (*names, "concordance_fraction", *of_pairs):
        chosen = (whole["metric"] == name) & ((whole["kind"] != "gap") | (name in of_pairs))
        assert chosen.any(), name
        ratio = sampled["standard_error"][chosen] / whole["standard_error"][chosen]
        assert ratio.between(0.7, 1.4).all(), name
    # Few patients have most of the squared error: that of all patients is not left to the sample.
    scores = brier_against_null(model[-1].follow_up_, test.y, model.predict_survival_function(test.X))
    residual = scores.model - scores.model.sum() / scores.null.sum() * scores.null
    skill = sampled.query("metric == 'brier_skill' and kind == 'overall'")["standard_error"].item()
    assert 0.8 < skill / (np.std(residual) / np.mean(scores.null) / np.sqrt(1000)) < 1.25
    # Statistics are of all patients, those of permuted labels of the sample.
    gaps = (whole["kind"] == "gap") & (whole["test"] == "permutation")
    assert gaps.any()
    assert (sampled["p"][gaps] - whole["p"][gaps]).abs().max() < 0.15


def test_a_sample_has_patients_of_the_smallest_group(many, monkeypatch):
    monkeypatch.setattr(observation, "MANY_RESAMPLED", 100)
    monkeypatch.setattr(observation, "_RESAMPLED_EVENTS", 100)
    target = parse_target(many[1].y)
    sizes = [
        len(target) if rows is None else len(rows)
        for rows in (sample_of_many(target, resampled=True, smallest=least) for least in (1000, 300, 100))
    ]
    assert sizes[0] < 200
    assert sizes[1:] == [500, 1000]


def test_models_with_and_without_hazards_are_compared_on_the_same_replicates_of_samples(many, monkeypatch):
    model, test = many
    monkeypatch.setattr(observation, "MANY_RESAMPLED", 200)
    monkeypatch.setattr(observation, "_RESAMPLED_EVENTS", 100)
    # Intersections are so small that only those of all patients can be compared.
    groups = {"a": np.arange(1000) % 2, "b": np.arange(1000) // 250}
    scores = Predictions(risk=model.predict(test.X), score_type="other")
    how = {"sensitive_features": groups, "n_bootstrap": 20, "y_train": model[-1].follow_up_}
    found = compare({"Cox": model, "scores": scores}, test.X, test.y, **how)
    chosen = found[(found["metric"] == "concordance_index") & (found["model"] == "scores")]
    np.testing.assert_allclose(chosen[["difference_low", "difference_high"]], 0.0, atol=1e-12)


def test_the_partial_likelihood_does_not_depend_on_how_many_of_a_sample_are_drawn(many):
    model, test = many
    everyone = prepare(as_predictions(model, test.X, 1000), test.y).everyone
    weight = np.random.default_rng(0).poisson(1.0, 1000).astype(np.float64)
    value = CATALOGUE["log_partial_likelihood"].function
    assert value(everyone, 2 * weight) == pytest.approx(value(everyone, weight), rel=1e-12)
