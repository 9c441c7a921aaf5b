"""SurvivalMetricFrame still gives fairlearn's numbers, warns, and says what replaces it."""

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import MetricFrame

from drosurv import Surv
from drosurv.evaluation import Predictions, SurvivalMetricFrame, evaluate
from drosurv.metrics import concordance_index, log_partial_likelihood

TWO = {"c": concordance_index, "lpl": log_partial_likelihood}
ignored = pytest.mark.filterwarnings("ignore:SurvivalMetricFrame will be removed:DeprecationWarning")


@ignored
@pytest.mark.parametrize("metrics", [concordance_index, TWO], ids=["one", "two"])
@pytest.mark.parametrize("method", ["between_groups", "to_overall"])
def test_functions_give_the_numbers_of_fairlearn(model, held_out, metrics, method):
    risk, site = model.predict(held_out.X), held_out.sensitive_features["site"]
    ours = SurvivalMetricFrame(metrics=metrics, y=held_out.y, risk=risk, sensitive_features=site)
    theirs = MetricFrame(metrics=metrics, y_true=held_out.y, y_pred=risk, sensitive_features=site)
    for found, expected in (
        (ours.overall, theirs.overall),
        (ours.by_group, theirs.by_group),
        (ours.difference(method), theirs.difference(method)),
        (ours.ratio(method), theirs.ratio(method)),
    ):
        np.testing.assert_allclose(np.asarray(found, float), np.asarray(expected, float))


@ignored
def test_several_features_mean_their_intersections(model, held_out):
    risk, both = model.predict(held_out.X), held_out.sensitive_features[["site", "sex"]]
    found = SurvivalMetricFrame(
        metrics=concordance_index, y=held_out.y, risk=risk, sensitive_features=both
    ).by_group
    expected = MetricFrame(
        metrics=concordance_index, y_true=held_out.y, y_pred=risk, sensitive_features=both
    ).by_group
    assert sorted(found.dropna()) == pytest.approx(sorted(expected.dropna()))


@ignored
def test_names_give_the_numbers_of_evaluate(model, train, held_out):
    said = Predictions(model.predict(held_out.X), model.predict_survival_function(held_out.X))
    options = {"y_train": train.y, "sensitive_features": held_out.sensitive_features["site"]}
    names = ["concordance_index", "brier_skill", "likelihood_gain"]
    frame = SurvivalMetricFrame(metrics=names, y=held_out.y, risk=said, **options)
    result = evaluate(said, None, held_out.y, n_bootstrap=0, **options)
    pd.testing.assert_frame_equal(frame.by_group, result.by_group.loc["site", names], check_names=False)
    np.testing.assert_allclose(frame.overall[names], result.overall[names])
    np.testing.assert_allclose(frame.difference()[names], result.difference()[names])


def test_the_warning_names_the_replacement():
    y = Surv.from_arrays([True, True, True], [1.0, 2.0, 3.0])
    with pytest.warns(
        DeprecationWarning, match=r"drosurv\.evaluate.* by_group, difference\(\) and ratio\(\)"
    ):
        frame = SurvivalMetricFrame(
            metrics=lambda y, risk: 0.0, y=y, risk=[1, 2, 3], sensitive_features=["a", "b", "b"]
        )
    with pytest.raises(AttributeError, match=r"'gaps': use drosurv\.evaluate\(\.\.\.\)\.to_frame\(\)"):
        frame.gaps()


@ignored
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sensitive_features": None}, "sensitive_features must be given"),
        ({"metrics": []}, "at least one metric"),
        ({"metrics": 3}, "must be a callable"),
        ({"control_features": ["a"]}, "control_features was removed in 0.3: call drosurv.evaluate"),
        ({"sample_params": {}}, "sample_params was removed in 0.3: pass metrics that hold them"),
        ({"metrics": "log_partial_likelihood"}, "metrics must be among"),
    ],
)
def test_bad_input_is_named(model, held_out, changes, message):
    given = {
        "metrics": concordance_index,
        "y": held_out.y,
        "risk": model.predict(held_out.X),
        "sensitive_features": held_out.sensitive_features["site"],
    }
    with pytest.raises(ValueError, match=message):
        SurvivalMetricFrame(**given | changes)


@ignored
def test_a_comparison_must_be_known(model, held_out):
    frame = SurvivalMetricFrame(
        metrics=concordance_index,
        y=held_out.y,
        risk=model.predict(held_out.X),
        sensitive_features=held_out.sensitive_features["site"],
    )
    with pytest.raises(ValueError, match="method must be"):
        frame.difference("sideways")
