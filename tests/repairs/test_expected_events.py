import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sksurv.ensemble import RandomSurvivalForest
from sksurv.functions import StepFunction

from drosurv import CoxPH, DiscreteTimeHazard, Surv, evaluate
from drosurv.curves import survival_curves
from drosurv.datasets import make_hidden_minority
from drosurv.patients.target import parse_target
from drosurv.predictions import as_predictions
from drosurv.repairs import repair
from drosurv.repairs.expected import (
    Expected,
    ProportionalIntervals,
    expected_of_fitted,
    expected_of_frozen,
    reference_times,
)

DATA = make_hidden_minority(n_samples=300, random_state=0)
TARGET = parse_target(DATA.y)
TIMES = reference_times(TARGET)


@pytest.fixture(scope="module")
def model():
    train = make_hidden_minority(n_samples=300, random_state=1)
    return CoxPH().fit(train.X, train.y)


def test_fitted_models_expect_their_cumulative_hazard_at_each_patients_own_time(model):
    found = expected_of_fitted(as_predictions(model, DATA.X, 300).survival_curves, TARGET, TIMES)
    hazards = model.predict_cumulative_hazard_function(DATA.X)
    own = [hazard(time) for hazard, time in zip(hazards, TARGET.time, strict=True)]
    np.testing.assert_allclose(found.hazard, own, rtol=1e-9, atol=1e-15)
    np.testing.assert_array_equal(found.events, TARGET.event)
    risk = np.log([np.mean([hazard(time) for time in TIMES]) for hazard in hazards])
    np.testing.assert_allclose(found.log_risk, risk)
    # Under proportional hazards this is the log risk up to a constant.
    np.testing.assert_allclose(np.ptp(found.log_risk - model.predict(DATA.X)), 0, atol=1e-9)


def test_scikit_survivals_forests_expect_events_too():
    forest = RandomSurvivalForest(n_estimators=5, min_samples_leaf=20, random_state=0).fit(
        DATA.X.to_numpy(), DATA.y
    )
    found = expected_of_fitted(as_predictions(forest, DATA.X.to_numpy(), 300).survival_curves, TARGET, TIMES)
    assert found.hazard.sum() == pytest.approx(TARGET.n_events, rel=0.5)
    assert (expected_of_frozen(forest, DATA.X.to_numpy(), TARGET, TIMES).hazard <= found.hazard + 1e-9).all()


def test_steps_of_a_frozen_model_count_their_conditional_probabilities(model):
    found = expected_of_frozen(model, DATA.X, TARGET, TIMES)
    for row in range(0, 300, 40):
        curve = model.predict_survival_function(DATA.X.iloc[[row]])[0]
        total, before = 0.0, 1.0
        for time, height in zip(curve.x, curve.y, strict=True):
            if time <= TARGET.time[row]:
                total, before = total + 1 - height / before, height
        assert found.hazard[row] == pytest.approx(total)
        assert found.events[row] == (TARGET.event[row] and TARGET.time[row] <= curve.x[-1])


def test_a_patient_counts_as_censored_where_the_curve_ends():
    class Vendor:
        def predict_survival_function(self, X):
            return [StepFunction(np.arange(1.0, end), np.linspace(0.9, 0.5, end - 1)) for end in X]

    target = parse_target(Surv.from_arrays([1, 1, 1], [2.5, 2.5, 3.0]))
    assert expected_of_frozen(Vendor(), [3, 4, 4], target, TIMES).events.tolist() == [0, 1, 1]


def test_steps_that_are_too_many_are_read_together(monkeypatch):
    """From exact, where steps are few, to close, where they are many: between 1 - S(t) / S(t-) and -log of it."""
    train = make_hidden_minority(n_samples=3000, random_state=2)
    model = CoxPH().fit(train.X, train.y)
    exact = expected_of_frozen(model, DATA.X, TARGET, TIMES)
    larger = expected_of_fitted(as_predictions(model, DATA.X, 300).survival_curves, TARGET, TIMES).hazard
    for most, rtol in ((1000, 2e-4), (100, 1e-3), (7, 1e-2)):
        monkeypatch.setattr(survival_curves, "_MOST_JUMPS", most)
        monkeypatch.setattr(survival_curves, "_FEWEST_JUMPS", 1)
        monkeypatch.setattr(survival_curves, "_VALUES", 10 * most)
        found = expected_of_frozen(model, DATA.X, TARGET, TIMES)
        np.testing.assert_allclose(found.hazard, exact.hazard, rtol=rtol, atol=1e-12)
        assert (found.hazard >= exact.hazard - 1e-12).all()
        assert (found.hazard <= larger + 1e-12).all()
        np.testing.assert_array_equal(found.events, exact.events)


def test_patients_count_as_censored_after_the_last_point():
    target = parse_target(Surv.from_arrays([1, 1], [0.5, 3.0]))
    found = expected_of_frozen(([1.0], [[0.7], [0.7]]), None, target, np.array([1.0]))
    assert found.events.tolist() == [1, 0]


def test_smooth_models_with_few_times_are_not_read_as_steps():
    """Expected events are cumulative hazards at each time, also inside of the intervals of the model."""
    model = DiscreteTimeHazard(5, link="cloglog", max_iter=50, random_state=0).fit(DATA.X, DATA.y)
    assert model.curve_type == "smooth"
    assert CoxPH().fit(DATA.X, DATA.y).curve_type == "step"
    found = expected_of_frozen(model, DATA.X, TARGET, TIMES)
    at_times = model.predict_survival_function(DATA.X, times=TARGET.time)
    np.testing.assert_allclose(found.hazard, -np.log(np.diag(at_times)), rtol=1e-6)


def test_functions_without_steps_are_smooth():
    class Vendor:
        def predict_survival_function(self, X):
            return [lambda t, rate=rate: np.exp(-rate * np.asarray(t)) for rate in X]

    rate = np.linspace(0.5, 2, 300)
    found = expected_of_frozen(Vendor(), rate, TARGET, TIMES)
    np.testing.assert_allclose(found.hazard, rate * TARGET.time)


@pytest.mark.parametrize("r", [-1.0, 0.7])
def test_a_right_models_likelihood_ratios_have_mean_one(r, monkeypatch):
    """The exponential martingale, for predictions at six times and for events that happen in steps."""
    rng = np.random.default_rng(0)
    # Fewer steps between the six times, which are read as exactly, for more patients in the same time.
    monkeypatch.setattr(survival_curves, "_MOST_JUMPS", 50)
    n = 40_000
    risk = np.exp(0.5 * rng.normal(size=n))
    time, end = rng.exponential(size=n) / risk, rng.exponential(size=n)
    target = parse_target(Surv.from_arrays(time <= end, np.minimum(time, end)))
    grid = np.linspace(0.1, 3, 6)
    coarse = expected_of_frozen((grid, np.exp(-np.outer(risk, grid))), None, target, grid[:1])

    def mean_ratio(expected):
        ratio = np.exp(r * expected.events - np.expm1(r) * expected.hazard)
        return ratio.mean(), ratio.std() / np.sqrt(n)

    mean, error = mean_ratio(coarse)
    assert abs(mean - 1) < 4 * error
    # In steps: at times 1, 2, ... each patient dies with probability 0.3. Too large a hazard would make r < 0 pay.
    steps = rng.geometric(0.3, size=n).astype(float)
    last = rng.integers(1, 6, n)
    events, hazard = (steps <= last).astype(float), 0.3 * np.minimum(steps, last)
    mean, error = mean_ratio(Expected(events, hazard, hazard))
    assert mean < 1 + 4 * error
    if r < 0:
        too_much = Expected(events, -np.log(0.7) * np.minimum(steps, last), hazard)
        assert mean_ratio(too_much)[0] > 1 + 4 * error


def test_folds_are_joined_in_the_order_of_the_patients():
    folds = np.array([2, 0, 1, 0, 2])
    whole = np.arange(5.0)
    parts = [Expected(whole[folds == k], 10 * whole[folds == k], -whole[folds == k]) for k in range(3)]
    joined = Expected.joined(parts, folds)
    np.testing.assert_array_equal(joined.events, whole)
    np.testing.assert_array_equal(joined.hazard, 10 * whole)
    np.testing.assert_array_equal(joined.clipped(15, 35).hazard, [15, 15, 20, 30, 35])


def test_a_frozen_model_need_not_know_how_to_be_fitted(model):
    class Vendor(BaseEstimator):
        def predict_survival_function(self, X):
            return model.predict_survival_function(X)

    found, wanted = (expected_of_frozen(one, DATA.X, TARGET, TIMES) for one in (Vendor(), model))
    np.testing.assert_allclose(found.hazard, wanted.hazard)


def test_events_count_until_the_longest_training_time():
    """The last training event is at 3, and a patient was observed until 6: curves are constant from 3 to 6."""
    x = np.arange(8.0)[:, None] % 3
    model = CoxPH().fit(x, Surv.from_arrays([1, 1, 1, 0, 0, 0, 0, 0], [1.0, 2, 3, 4, 4, 5, 5, 6]))
    y = Surv.from_arrays([1, 1, 1, 0], [2.0, 5.5, 6.5, 7.0])
    found = expected_of_frozen(model, x[:4], parse_target(y), np.ones(1))
    assert found.events.tolist() == [1, 1, 0, 0]
    survival = np.column_stack([np.ones(4), model.predict_survival_function(x[:4], times=[1.0, 2.0, 3.0])])
    jumps = 1 - survival[:, 1:] / survival[:, :-1]
    np.testing.assert_allclose(found.hazard, [jumps[0, :2].sum(), *jumps[1:].sum(axis=1)])
    result = evaluate(model, x[:4], y)
    assert result.groups["observed"].iloc[0] == 2
    assert "1 event is not counted as observed: the predictions end before." in result.notes


def test_a_repair_on_longer_follow_up_does_not_lengthen_the_curves(model):
    last = float(model.follow_up_.times[-1])
    later = Surv.from_arrays(DATA.y["event"], DATA.y["time"] * 3)
    assert later["time"].max() > last
    repaired = repair(model, DATA.X, later, frozen=True)
    events = expected_of_frozen(repaired, DATA.X, parse_target(later), TIMES).events
    np.testing.assert_array_equal(events, later["event"] & (later["time"] <= last))


def test_events_in_intervals_are_the_same_if_they_are_computed_when_read(model):
    other = CoxPH(l2=0.1).fit(DATA.X, DATA.y)
    folds, ends = np.arange(300) % 2, np.quantile(TARGET.time, [0.2, 0.4, 0.6, 0.8])
    weight = np.random.default_rng(0).uniform(0.5, 2, 300)

    def joined(many):
        parts = []
        for fold, fitted in enumerate((model, other)):
            rows = np.flatnonzero(folds == fold)
            curves = as_predictions(fitted, DATA.X.iloc[rows], len(rows)).survival_curves
            part = expected_of_fitted(curves, TARGET.take(rows), TIMES, ends, many=many)
            assert isinstance(part.by_interval, ProportionalIntervals) == many
            parts.append(part.clipped(1e-4, 0.5))
        whole = Expected.joined(parts, folds).weighted(weight)
        # Once more, in longer intervals.
        longer = [whole.part(folds == fold, np.array([0, 2, 3])) for fold in (0, 1)]
        return whole, Expected.joined(longer, folds)

    for stored, computed in zip(joined(False), joined(True), strict=True):
        np.testing.assert_allclose(computed.hazard, stored.hazard)
        # In single precision.
        np.testing.assert_allclose(computed.by_interval[:], stored.by_interval, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(computed.by_interval[[7, 2]], stored.by_interval[[7, 2]], atol=1e-6)
    forest = RandomSurvivalForest(n_estimators=2, random_state=0).fit(DATA.X, DATA.y)
    curves = as_predictions(forest, DATA.X, 300).survival_curves
    assert isinstance(expected_of_fitted(curves, TARGET, TIMES, ends, many=True).by_interval, np.ndarray)
