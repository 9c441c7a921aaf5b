"""Hazards in discrete time against a binary regression on one row per patient and interval."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from drosurv import DiscreteTimeHazard, Surv, Trees, datasets
from drosurv.estimators.discrete_time_hazard import IntervalCurves
from drosurv.losses.discrete_time import DiscreteHazard
from drosurv.patients.target import Target, with_fields

DATA = datasets.make_hidden_minority(n_samples=300, random_state=0)
X, Y = DATA.X.to_numpy(), DATA.y


ENTRY = np.random.default_rng(1).uniform(-0.5, 0.9, len(X)) * Y["time"]


def stacked(model, entry=None):
    """Person-period rows: features, an indicator of the interval, whether the event came there, and weights.

    Rows without an event count for the share of their interval between entry and the end of observation.
    """
    cuts = model.interval_ends_[:-1]
    index = np.searchsorted(cuts, Y["time"], side="left")
    first = np.zeros_like(index) if entry is None else (cuts <= entry[:, None]).sum(axis=1)
    patient = np.repeat(np.arange(len(X)), index - first + 1)
    interval = np.concatenate([np.arange(*ends) for ends in zip(first, index + 1, strict=True)])
    died = (interval == index[patient]) & Y["event"][patient]
    begin, end = np.append(0.0, cuts)[interval], model.interval_ends_[interval]
    since = begin if entry is None else np.maximum(begin, entry[patient])
    share = (np.minimum(end, Y["time"][patient]) - since) / (end - begin)
    return np.hstack([X[patient], np.eye(len(cuts) + 1)[interval]]), died, np.where(died, 1.0, share)


@pytest.mark.parametrize("entry", [None, ENTRY], ids=["from the start", "from entry on"])
def test_it_is_a_logistic_regression_on_person_period_rows(entry):
    model = DiscreteTimeHazard(n_intervals=8, tol=1e-12).fit(X, with_fields(Y, entry=entry))
    rows, died, weight = stacked(model, entry)
    reference = LogisticRegression(C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-10)
    expected = reference.fit(rows, died, weight).coef_[0]
    np.testing.assert_allclose([*model.coef_, *model.levels_], expected, atol=1e-5)


def test_with_the_other_link_it_is_the_binary_regression_of_that_link():
    model = DiscreteTimeHazard(n_intervals=4, link="cloglog", tol=1e-12).fit(X, Y)
    rows, died, weight = stacked(model)

    def loss(p):
        gone = np.exp(rows @ p)
        return weight[~died] @ gone[~died] - np.log(-np.expm1(-gone[died])).sum()

    best = minimize(loss, np.zeros(rows.shape[1]), options={"gtol": 1e-4})
    found = np.concatenate([model.coef_, model.levels_])
    assert loss(found) <= best.fun + 1e-9
    np.testing.assert_allclose(found, best.x, atol=1e-4)


@pytest.mark.parametrize("link", ["logit", "cloglog"])
def test_curves_of_scores_of_any_size_are_numbers(link):
    curves = IntervalCurves(np.array([0.0, 1.0, 2.0, 3.0]), np.zeros(3), link)
    hazard = curves.cumulative_hazard(np.array([-2000.0, 2000.0]), times=np.array([0.0, 0.5, 1.5, 2.5]))
    np.testing.assert_allclose(np.exp(-hazard), [[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0]], atol=1e-12)


@pytest.mark.parametrize("link", ["logit", "cloglog"])
def test_derivatives_of_scores_of_any_size_are_numbers(link):
    loss = DiscreteHazard(Target(np.array([True, False]), np.array([1.0, 2.0])), 1, link)
    for score in (-1000.0, 1000.0):
        # Of the one who had the event: certain of it, nothing is lost and nothing is to be gained.
        (lost, _), slope = loss(np.array([[score, 0.0]]), np.zeros((1, 1)))[0], loss.pullback(np.eye(1, 2))[0]
        assert lost == pytest.approx(0.0 if score > 0 else 1000.0)
        np.testing.assert_allclose(slope, [[0.0 if score > 0 else -1.0, 0.0]], atol=1e-12)
        np.testing.assert_allclose(loss.curvature(np.eye(1, 2)), 0.0, atol=1e-12)


@pytest.mark.parametrize("link", ["logit", "cloglog"])
def test_curves_multiply_the_chances_to_survive_each_interval(link):
    model = DiscreteTimeHazard(n_intervals=6, link=link).fit(X, Y)
    eta = (X @ model.coef_)[:, None] + model.levels_
    hazard = 1 / (1 + np.exp(-eta)) if link == "logit" else 1 - np.exp(-np.exp(eta))
    found = model.predict_survival_function(X, times=model.interval_ends_)
    np.testing.assert_allclose(found, np.cumprod(1 - hazard, axis=1), rtol=1e-9)


def test_a_worst_case_is_no_better_on_average_and_better_at_its_worst():
    plain = DiscreteTimeHazard(8).fit(X, Y)
    robust = DiscreteTimeHazard(8, alpha=0.5).fit(X, Y)
    assert robust.objective_ > plain.objective_
    assert robust.worst_case_weights_.sum() == pytest.approx(1.0)


def test_late_entry_reaches_those_who_are_watched_and_is_nothing_before_the_start():
    settings = {"n_intervals": 5, "network": Trees(max_iter=15), "random_state": 0}
    late = DiscreteTimeHazard(**settings).fit(X, with_fields(Y, entry=ENTRY))
    plain, early = (
        DiscreteTimeHazard(**settings).fit(X, with_fields(Y, entry=entry))
        for entry in (None, np.zeros(len(X)))
    )
    np.testing.assert_array_equal(early.predict(X), plain.predict(X))
    assert late.status_ == "stopped_early"
    assert np.abs(late.predict(X) - plain.predict(X)).max() > 0.01


def test_patients_censored_within_an_interval_do_not_lower_its_hazard():
    rng = np.random.default_rng(0)
    time, end = rng.exponential(1.0, 20_000), rng.uniform(0, 2, 20_000)
    y = Surv.from_arrays(time <= end, np.minimum(time, end))
    model = DiscreteTimeHazard(n_intervals=20, link="cloglog").fit(np.zeros((20_000, 1)), y)
    ends = model.interval_ends_
    np.testing.assert_allclose(
        -np.log(model.predict_survival_function(np.zeros((1, 1)), times=ends)[0]), ends, rtol=0.08
    )
