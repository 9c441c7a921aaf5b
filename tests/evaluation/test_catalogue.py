import warnings

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.exceptions import UndefinedMetricWarning

from drosurv import metrics
from drosurv.evaluation.catalogue import CATALOGUE
from drosurv.evaluation.data import EvaluationData, Subset
from drosurv.evaluation.evaluator import Evaluator, estimate_of
from drosurv.metrics import FollowUp
from drosurv.metrics.brier import brier_estimates
from drosurv.metrics.nonparametric import Incidence
from drosurv.metrics.risk_strata import EventsByTime, followed_until
from drosurv.patients.target import Target
from drosurv.predictions import Predictions, as_predictions

MEASURES = {name: metric for name, metric in CATALOGUE.items() if not metric.is_papers}


def reference_of(cohort):
    return 0.4 * cohort.X[:, 1]


@pytest.fixture(scope="module")
def patients(model, train, held_out):
    return Subset(
        EvaluationData(
            as_predictions(model, held_out.X, len(held_out.y)),
            held_out.target,
            train.y,
            given_horizon=12.0,
            reference=as_predictions(reference_of(held_out), None, len(held_out.y)),
        )
    )


def increments(model, X):
    """Hazards (n, k) of the model at its times."""
    times = model.unique_times_
    return np.diff(-np.log(model.predict_survival_function(X, times=times)), axis=1, prepend=0.0), times


def gain_of_tied_times(train, y, model, X):
    """Log likelihood of events and of none at each time, less that of the training patients' hazards."""
    p, times = increments(model, X)
    deaths = np.array([(train.y["event"] & (train.y["time"] == t)).sum() for t in times])
    null = deaths / np.array([(train.y["time"] >= t).sum() for t in times])
    total = 0.0
    for own, event, time in zip(np.clip(p, 1e-6, 1 - 1e-6), y["event"], y["time"], strict=True):
        last = min(np.searchsorted(times, time), len(times) - 1)
        for hazard, sign in ((own, 1), (np.clip(null, 1e-6, 1 - 1e-6), -1)):
            free = np.log1p(-hazard[times <= time]).sum()
            if event and time <= times[-1]:
                free += np.log(hazard[last]) - (np.log1p(-hazard[last]) if times[last] <= time else 0.0)
            total += sign * free
    return total / len(y)


def poisson_slope(y, model, X):
    """Slope of the Poisson likelihood of events around the model's expected events, at horizon 12."""
    hazard, times = increments(model, X)
    until = np.minimum(y["time"], train_end := model.follow_up_.times[-1])
    expected = (hazard * (times <= until[:, None])).sum(axis=1)
    events = y["event"] & (y["time"] <= train_end)
    score = np.log((hazard * (times <= 12.0)).sum(axis=1))

    def loss(b):
        tilted = expected * np.exp((b - 1) * (score - score.mean()))
        return events.sum() * np.log(tilted.sum()) - (b - 1) * (events * (score - score.mean())).sum()

    return minimize_scalar(loss, bracket=(0.0, 1.0), tol=1e-12).x


def less_predicted(y, curves):
    """Observed risk by 12.0 within strata of predicted risk, less the predicted risk of the same patients."""
    risk = np.array([1 - curve(12.0) for curve in curves])
    target = Target(y["event"], y["time"])
    followed = followed_until(12.0, target, risk)
    assert followed.all()
    return EventsByTime.of(12.0, target, risk).outcomes.mean() - risk.mean()


def by_definition(model, train, held_out, rows):
    """Metrics of the given rows that are not among the definitions of tests/evaluation/test_from_definitions.py."""
    X, y = held_out.X[rows], held_out.y[rows]
    curves = model.predict_survival_function(X)
    return {
        "likelihood_gain": gain_of_tied_times(train, y, model, X),
        "calibration_slope": poisson_slope(y, model, X),
        "calibration_difference": less_predicted(y, curves),
        "integrated_calibration_index": metrics.integrated_calibration_index(y, curves, 12.0),
    }


@pytest.mark.parametrize("who", ["all", "b"])
def test_a_measure_is_the_metric_of_its_patients(patients, model, train, held_out, who):
    site = held_out.sensitive_features["site"].to_numpy()
    rows = np.flatnonzero((site == who) | (who == "all"))
    for name, definition in by_definition(model, train, held_out, rows).items():
        found = estimate_of(MEASURES[name], patients.take(rows)).value
        within = 1e-6 if name == "calibration_slope" else 1e-9
        assert found == pytest.approx(definition, rel=within), name


def test_a_group_without_events_has_no_value_or_a_finite_one_but_never_a_wrong_zero(patients):
    censored = patients.take(np.flatnonzero(~patients.target.event)[:6])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        values = {name: estimate_of(measure, censored).value for name, measure in MEASURES.items()}
    assert 0.0 not in values.values()
    by_ranks = {"concordance_index", "uno_concordance", "dynamic_auc"}
    by_order = {"log_partial_likelihood", "gain_over_null", "share_of_gain"}
    for name in by_ranks | by_order | {"calibration_slope", "integrated_calibration_index"}:
        assert np.isnan(values[name]), name
    finite = ("integrated_brier_score", "brier_skill", "likelihood_gain", "calibration_difference")
    for name in (*finite, "d_calibration_p"):
        assert np.isfinite(values[name]), name


def test_a_set_of_no_patients_has_no_value(patients):
    for measure in MEASURES.values():
        assert np.isnan(estimate_of(measure, patients.take(np.arange(0))).value)


def test_metrics_are_computed_where_the_predictions_allow(train, held_out):
    def metrics_of(model):
        evaluator = Evaluator(
            Subset(EvaluationData(as_predictions(model, None, 240), held_out.target, train.y))
        )
        return {metric.name for metric in evaluator.metrics}

    bare = metrics_of(np.arange(len(held_out.y)))
    assert bare.isdisjoint({"brier_skill", "share_of_gain", "concordance_imparity", "individual_disparity"})
    assert "dynamic_auc" in bare
    curves = Predictions(np.arange(len(held_out.y)), np.full((len(held_out.y), 1), 0.5), [3.0])
    # One time is not enough for a score over time, and what is known at few times is no curve.
    assert metrics_of(curves).isdisjoint({"brier_skill", "d_calibration_p"})
    assert "likelihood_gain" in metrics_of(curves)


@pytest.mark.parametrize("own", [True, False], ids=["everybody", "group"])
@pytest.mark.parametrize("setting", ["plain", "tied", "causes"])
def test_the_influence_on_the_skill_is_the_derivative_through_the_null_model_too(setting, own):
    """The null model is the curve of all patients, also where the skill is that of a group."""
    rng = np.random.default_rng(3)
    x, grid = rng.normal(size=40), np.linspace(0.05, 3, 60)
    died, left = rng.exponential(np.exp(-x)), rng.exponential(1.5, 40)
    if setting == "tied":
        died, left = np.ceil(4 * died) / 4, np.ceil(4 * left) / 4
    ended, other = died <= left, rng.random(40) < (0.4 if setting == "causes" else 0.0)
    target = Target(ended & ~other, np.minimum(died, left), other=ended & other)
    predicted = as_predictions(Predictions(x, np.exp(-np.outer(np.exp(x), grid)), grid), None, 40)
    data = EvaluationData(predicted, target, FollowUp.of_test_patients(target))
    members = np.arange(40) if own else np.flatnonzero(rng.random(40) < 0.5)
    times, inside = data.brier_times, np.bincount(members, minlength=40)
    survival = predicted.survival_curves.survival(times)

    def skill(weight):
        null = 1 - Incidence.of(target, weight).at(times)
        return brier_estimates(target, survival, times, weight * inside, null=null).skill.value

    found = Subset(data, members).brier.skill
    steps = 1e-6 * np.eye(40)
    derivative = [(skill(1 + step) - skill(1 - step)) / 2e-6 for step in steps]
    assert found.value == pytest.approx(skill(np.ones(40)), abs=1e-12)
    np.testing.assert_allclose(found.influence, derivative, atol=1e-8)
    assert own or np.abs(found.influence[inside == 0]).max() > 1e-4
