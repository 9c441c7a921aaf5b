import numpy as np
import pytest

from drosurv import metrics, paper
from drosurv.evaluation.evaluate import prepare
from drosurv.metrics.partial_likelihood import gain_over_null
from drosurv.predictions import as_predictions


def prepared(train, held_out, risk, reference, **options):
    return prepare(
        as_predictions(risk, held_out.X, len(held_out.y)),
        held_out.y,
        y_train=train.y,
        sensitive_features=held_out.sensitive_features,
        reference=reference,
        paper=True,
        **options,
    )


def control_of(*args, **options):
    return prepared(*args, **options).control


def test_the_curve_is_every_metric_of_the_scaled_scores(model, train, held_out):
    reference = model.predict(held_out.X)
    control = control_of(train, held_out, 0.5 * reference, reference)
    curve, groups = control.curve, held_out.sensitive_features
    assert curve["factor"].tolist() == pytest.approx(np.linspace(0, 1, 11).tolist())
    for row in curve.to_dict("records"):
        scores = row["factor"] * reference
        expected = {
            "log_partial_likelihood": metrics.log_partial_likelihood(held_out.y, scores),
            "share_of_gain": metrics.share_of_gain(held_out.y, scores, reference),
            "individual_disparity": paper.individual_disparity(scores, held_out.X),
            "intersectional_disparity": paper.intersectional_disparity(scores, groups),
            "group_disparity site": paper.group_disparity(scores, groups["site"]),
            "group_disparity sex": paper.group_disparity(scores, groups["sex"]),
        }
        if row["factor"]:
            expected["calibration_slope"] = metrics.calibration_slope(held_out.y, scores)
        for column, value in expected.items():
            assert row[column] == pytest.approx(value, rel=1e-6, abs=1e-12)
    assert np.isnan(curve["calibration_slope"][0])


def test_shrinking_lowers_disparities_but_neither_concordance_nor_imparity(model, train, held_out):
    reference = model.predict(held_out.X)
    curve = control_of(train, held_out, reference, reference).curve
    for column in ("individual_disparity", "intersectional_disparity"):
        assert curve[column].is_monotonic_increasing
    y, groups = held_out.y, held_out.sensitive_features["sex"]
    assert metrics.concordance_index(y, 0.1 * reference) == metrics.concordance_index(y, reference)
    assert paper.concordance_imparity(y, 0.1 * reference, groups) == paper.concordance_imparity(
        y, reference, groups
    )


def test_a_shrunken_model_lies_on_the_curve(model, train, held_out):
    reference = model.predict(held_out.X)
    control = control_of(train, held_out, 0.4 * reference, reference)
    assert control.factor == pytest.approx(0.4, abs=1e-5)
    np.testing.assert_allclose(control.at_equal_gain["model"], control.at_equal_gain["shrunken"], rtol=1e-4)
    assert (control.at_equal_gain["reference"] > control.at_equal_gain["model"]).all()


def test_the_factor_gives_the_models_gain(model, train, held_out):
    reference = model.predict(held_out.X)
    other = 0.4 * held_out.X[:, 1]
    control = control_of(train, held_out, other, reference)
    assert gain_over_null(held_out.y, control.factor * reference) == pytest.approx(
        gain_over_null(held_out.y, other), abs=1e-5
    )


def test_a_useless_model_equals_silence_and_a_better_one_the_best_scaling(model, train, held_out):
    reference = model.predict(held_out.X)
    assert control_of(train, held_out, -reference, reference).factor == 0.0
    sites = np.where(held_out.sensitive_features["site"] == "a", 1.0, -0.5)
    truth = sites * held_out.X[:, 0] + 0.4 * held_out.X[:, 1]
    best = control_of(train, held_out, truth, reference).factor
    grid = np.linspace(0.2, 3, 1000)
    gains = [gain_over_null(held_out.y, c * reference) for c in grid]
    assert best == pytest.approx(grid[np.argmax(gains)], abs=0.01)


def test_without_a_reference_there_is_no_control(train, held_out):
    ready = prepared(train, held_out, np.zeros(len(held_out.y)), None)
    assert ready.control is None


def test_many_patients_are_sampled_alike_for_all_scores_and_a_note_says_so(
    model, train, held_out, monkeypatch
):
    reference = model.predict(held_out.X)
    exact = prepared(train, held_out, 0.4 * reference, reference)
    key = ("overall", "individual_disparity")
    true = exact.disparities(reference)[key]
    of_all = exact.disparities(0.4 * reference)[key]
    assert not exact.control.notes
    monkeypatch.setattr("drosurv.paper.shrinkage.SAMPLED_PAIRS", 10_000)
    sampled = prepared(train, held_out, 0.4 * reference, reference)
    near = sampled.disparities(reference)[key]
    assert near != true
    assert near == pytest.approx(true, rel=0.2)
    control = sampled.control
    assert any("F_I from 10,000 random pairs" in note for note in control.notes)
    np.testing.assert_allclose(control.at_equal_gain["model"], control.at_equal_gain["shrunken"], rtol=1e-4)
    assert sampled.papers_metrics["overall", "all", "individual_disparity"] == pytest.approx(of_all)
