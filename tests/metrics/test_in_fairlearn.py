"""The metrics are plain functions of (y_true, y_pred), so that fairlearn's MetricFrame can slice them."""

import inspect
from functools import partial

import numpy as np
import pytest
from fairlearn.metrics import MetricFrame
from sklearn.exceptions import UndefinedMetricWarning
from sksurv.functions import StepFunction

from drosurv import metrics
from drosurv.metrics import brier_skill, concordance_index, integrated_brier_score
from drosurv.patients.target import Surv


def cohort(seed=0, n=120):
    rng = np.random.default_rng(seed)
    risk = rng.normal(size=n)
    y = Surv.from_arrays(rng.random(n) < 0.6, np.ceil(30 * rng.exponential(size=n) / np.exp(risk)))
    return y, risk, rng.choice(["f", "m"], n)


def metrics_of_risk(train):
    """Metrics of which all arguments but outcomes and risk scores have defaults, as functions of these two."""
    found = {}
    for name in metrics.__all__:
        parameters = inspect.signature(getattr(metrics, name)).parameters.values()
        required = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
        if required in (["y", "risk"], ["y_train", "y_test", "risk"]):
            given = (train,) if "y_train" in required else ()
            found[name] = partial(getattr(metrics, name), *given)
    return found


def test_every_metric_of_risk_scores_gives_each_group_its_own_value():
    y, risk, sex = cohort()
    train, _, _ = cohort(1)
    found = metrics_of_risk(train)
    assert {"concordance_index", "uno_concordance"} < found.keys()
    frame = MetricFrame(metrics=found, y_true=y, y_pred=risk, sensitive_features=sex)
    for name, metric in found.items():
        assert frame.overall[name] == pytest.approx(metric(y, risk))
        for label in ("f", "m"):
            expected = metric(y[sex == label], risk[sex == label])
            assert frame.by_group.loc[label, name] == pytest.approx(expected)


def test_metrics_of_survival_curves_take_arrays_and_objects():
    y, risk, sex = cohort()
    train, _, _ = cohort(1)
    times = np.array([5.0, 10.0, 20.0])
    table = np.exp(-times / 30 * np.exp(risk[:, None]))
    grid = np.linspace(0, 200, 401)
    functions = np.array([StepFunction(grid, np.exp(-grid / 30 * np.exp(f))) for f in risk], dtype=object)
    for metric in (integrated_brier_score, brier_skill):
        for survival in (table, functions):
            frame = MetricFrame(
                metrics={"value": partial(metric, train, times=times)},
                y_true=y,
                y_pred=survival,
                sensitive_features=sex,
            )
            expected = metric(train, y[sex == "f"], survival[sex == "f"], times)
            assert frame.by_group.loc["f", "value"] == pytest.approx(expected)


def test_weights_are_sliced_with_the_patients():
    y, risk, sex = cohort()
    weight = np.random.default_rng(2).integers(0, 3, len(y))
    frame = MetricFrame(
        metrics=concordance_index,
        y_true=y,
        y_pred=risk,
        sensitive_features=sex,
        sample_params={"sample_weight": weight},
    )
    inside = sex == "m"
    assert frame.by_group["m"] == pytest.approx(concordance_index(y[inside], risk[inside], weight[inside]))
    assert frame.difference() == pytest.approx(np.ptp(frame.by_group))


def test_a_group_without_pairs_does_not_stop_the_others():
    y, risk, sex = cohort()
    sex[0] = "x"
    with pytest.warns(UndefinedMetricWarning, match="no pair of the 1 patients"):
        by_group = MetricFrame(
            metrics=concordance_index, y_true=y, y_pred=risk, sensitive_features=sex
        ).by_group
    assert np.isnan(by_group["x"])
    assert np.isfinite(by_group[["f", "m"]]).all()
