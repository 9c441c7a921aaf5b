import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sksurv.functions import StepFunction
from sksurv.metrics import integrated_brier_score as reference_ibs
from sksurv.nonparametric import kaplan_meier_estimator, nelson_aalen_estimator

from drosurv.curves import parse_survival
from drosurv.metrics import FollowUp, brier_skill, integrated_brier_score, likelihood_gain
from drosurv.metrics.brier import brier_scores
from drosurv.metrics.likelihood_gain import interval_rates, likelihood_gains
from drosurv.patients.target import Surv, parse_target


def cohort(rng, n, effect=1.0, longest=8.0):
    x = rng.normal(size=n)
    time = rng.exponential(size=n) / np.exp(effect * x)
    censoring = rng.uniform(0.5, 4, n)
    event = time <= censoring
    time = np.minimum(time, censoring)
    time[0], event[0] = longest, False
    return x, Surv.from_arrays(event, time)


def curves(x, grid, effect=1.0):
    """The true survival functions of `cohort`, as steps on a fine grid."""
    return [StepFunction(grid, np.exp(-grid * np.exp(effect * value))) for value in x]


GRID = np.linspace(0, 8, 2001)


def test_skill_compares_the_ibs_with_that_of_the_training_kaplan_meier_curve():
    rng = np.random.default_rng(0)
    (_, train), (x, test) = cohort(rng, 200), cohort(rng, 150, longest=5.0)
    times = np.linspace(0.2, 3, 20)
    steps, heights = kaplan_meier_estimator(train["event"], train["time"])
    null = np.tile(StepFunction(steps, heights)(times), (150, 1))
    survival = np.exp(-times * np.exp(x[:, None]))
    expected = 1 - reference_ibs(train, test, survival, times) / reference_ibs(train, test, null, times)
    assert brier_skill(train, test, survival, times) == pytest.approx(expected, rel=1e-10)
    assert brier_skill(train, test, null, times) == pytest.approx(0.0, abs=1e-12)
    of_model, of_null = brier_scores(train, test, survival, times)
    assert 1 - of_model.sum() / of_null.sum() == pytest.approx(expected)


def test_the_right_model_helps_and_the_reversed_one_harms():
    rng = np.random.default_rng(1)
    (_, train), (x, test) = cohort(rng, 400), cohort(rng, 400)
    assert brier_skill(train, test, curves(x, GRID)) > 0.1
    assert likelihood_gain(train, test, curves(x, GRID)) > 0.1
    assert brier_skill(train, test, curves(-x, GRID)) < -0.1
    assert likelihood_gain(train, test, curves(-x, GRID)) < -0.1


def by_definition(train, test, survival, n_intervals, hazard_floor):
    """l_i = -d_i log lambda + H(Y_i), patient by patient, for the model and for Nelson-Aalen."""
    events = train["time"][train["event"]]
    edges = np.quantile(events, np.linspace(0, 1, n_intervals + 1))
    edges[0] = 0.0
    steps, heights = nelson_aalen_estimator(train["event"], train["time"])

    def null(t):
        return heights[steps <= t][-1] if (steps <= t).any() else 0.0

    smallest = hazard_floor * heights[-1] / steps[-1]
    gains = []
    for (event, time), function in zip(test, survival, strict=True):
        losses = []
        for hazard in (null, lambda t, f=function: -np.log(max(f.y[f.x <= t][-1], 1e-10)) if t > 0 else 0.0):
            inside = [m for m in range(n_intervals) if edges[m] < time <= edges[m + 1]]
            m = inside[0] if inside else (0 if time <= edges[0] else n_intervals - 1)
            rate = (hazard(edges[m + 1]) - hazard(edges[m])) / (edges[m + 1] - edges[m])
            losses.append(hazard(time) - event * np.log(max(rate, smallest)))
        gains.append(losses[0] - losses[1])
    return gains


@pytest.mark.parametrize("n_intervals", [1, 5, 20])
def test_gains_equal_the_definition_patient_by_patient(n_intervals):
    rng = np.random.default_rng(2)
    (_, train), (x, test) = cohort(rng, 150), cohort(rng, 60)
    test["time"][1] = 0.0
    expected = by_definition(train, test, curves(x, GRID), n_intervals, 1e-6)
    found = likelihood_gains(train, test, curves(x, GRID), n_intervals=n_intervals)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(
        found, likelihood_gains(FollowUp.parse(train), test, curves(x, GRID), n_intervals=n_intervals)
    )


def test_gains_do_not_depend_on_the_unit_of_time():
    rng = np.random.default_rng(3)
    (_, train), (x, test) = cohort(rng, 150), cohort(rng, 60)
    years = likelihood_gains(train, test, curves(x, GRID))
    days = [StepFunction(function.x * 365.25, function.y) for function in curves(x, GRID)]
    for y in (train, test):
        y["time"] *= 365.25
    np.testing.assert_allclose(likelihood_gains(train, test, days), years, rtol=1e-9, atol=1e-12)


def test_impossible_predictions_cost_no_more_than_the_floors():
    train = Surv.from_arrays([True, True, True, False], [1.0, 2.0, 3.0, 4.0])
    immortal = [StepFunction(np.array([0.0, 4.0]), np.array([1.0, 1.0]))] * 4
    doomed = [StepFunction(np.array([0.0, 0.5]), np.array([1.0, 0.0]))] * 4
    for survival in (immortal, doomed):
        assert np.isfinite(likelihood_gains(train, train, survival, n_intervals=2)).all()
    strict = likelihood_gains(train, train, immortal, n_intervals=2, hazard_floor=1e-9)
    lenient = likelihood_gains(train, train, immortal, n_intervals=2, hazard_floor=1e-6)
    np.testing.assert_allclose(lenient - strict, [np.log(1e3)] * 3 + [0.0])


def test_an_array_of_steps_is_a_step_function_from_one():
    rng = np.random.default_rng(4)
    (_, train), (x, test) = cohort(rng, 150), cohort(rng, 60)
    functions = curves(x, GRID)
    table = np.vstack([function.y for function in functions])
    np.testing.assert_allclose(
        likelihood_gains(train, test, parse_survival(table, 60, GRID, "step")),
        likelihood_gains(train, test, functions),
        rtol=1e-12,
    )


def test_brier_skill_without_weight_or_with_a_null_model_without_error_is_nan_with_a_warning():
    train = Surv.from_arrays([True, True, False], [5.0, 6.0, 7.0])
    test = Surv.from_arrays([True, False, False], [4.0, 5.0, 6.0])
    survival, times = np.full((3, 2), 0.9), [4.0, 4.5]
    nobody = np.zeros(3)
    for metric in (brier_skill, likelihood_gain, integrated_brier_score):
        with pytest.warns(UndefinedMetricWarning, match=r"undefined \(NaN\)"):
            assert np.isnan(metric(train, test, survival, times, sample_weight=nobody))
    # No training patient had the event by then, and of the scored ones only the last two count.
    with pytest.warns(UndefinedMetricWarning, match="null model's Brier score is 0"):
        assert np.isnan(brier_skill(train, test, survival, times, sample_weight=[0.0, 1.0, 1.0]))


@pytest.mark.parametrize("n_times", [4, 40])
def test_the_true_model_on_few_times_gains_what_it_gains_on_many(n_times):
    """DeepHit, discrete time and files give curves at few times; most intervals hold none of them."""
    rng = np.random.default_rng(5)
    (_, train), (x, test) = cohort(rng, 2000), cohort(rng, 2000)
    grid = np.quantile(train["time"], np.linspace(0, 0.99, n_times + 1)[1:])
    table = np.exp(-grid * np.exp(x[:, None]))
    fine = likelihood_gains(train, test, curves(x, GRID))
    found = likelihood_gains(train, test, table, grid)
    # The hazards are constant over time, so that few times say all; only those after the last are not judged.
    judged = test["time"] <= grid[-1]
    assert found.mean() == pytest.approx(fine.mean(), abs=0.02)
    assert np.abs(found - fine)[judged].mean() < 0.05
    assert found.mean() > 0.2


def test_the_null_model_on_few_times_gains_nearly_nothing():
    rng = np.random.default_rng(6)
    (_, train), (_, test) = cohort(rng, 2000), cohort(rng, 2000)
    grid = np.quantile(train["time"], np.linspace(0.1, 1, 12))
    null = np.tile(FollowUp.parse(train).survival_at(grid), (2000, 1))
    assert likelihood_gain(train, test, null, grid) == pytest.approx(0.0, abs=0.01)


def test_curves_at_few_times_are_judged_up_to_the_last_of_them():
    train = Surv.from_arrays([True] * 40, np.arange(1.0, 41.0))
    test = Surv.from_arrays([True, False], [30.0, 30.0])
    # Hazard .02 up to 20, and nothing said of what comes after.
    gains = likelihood_gains(train, test, np.exp(-0.02 * np.array([[10.0, 20.0]] * 2)), [10.0, 20.0])
    own_null = FollowUp.parse(train).cumulative_hazard_at(np.array([20.0]))[0]
    np.testing.assert_allclose(gains, own_null - 0.4, rtol=1e-12)


def test_a_null_model_of_the_scored_patients_does_not_make_the_truth_look_harmful():
    generator, seen, allowed = np.random.default_rng(0), [], []
    for _ in range(60):
        time, censored = generator.exponential(1.0, 200), generator.uniform(0.0, 2.0, 200)
        y = Surv.from_arrays(time <= censored, np.minimum(time, censored))
        times = np.unique(y["time"][y["event"]])
        truth = np.broadcast_to(np.exp(-times), (200, len(times)))
        seen.append(likelihood_gains(y, y, truth, times).sum())
        of_test = FollowUp.of_test_patients(parse_target(y))
        allowed.append(likelihood_gains(of_test, y, truth, times).sum())
    # Half a unit for each of 20 intervals; the standard error is 0.4.
    assert np.mean(seen) < -9
    assert abs(np.mean(allowed)) < 1.5


def test_a_null_model_of_few_scored_patients_has_at_least_five_events_in_each_interval():
    x, y = cohort(np.random.default_rng(3), 60)
    of_test, n = FollowUp.of_test_patients(parse_target(y)), y["event"].sum() // 5
    assert 1 < n < 20
    found, wanted = (likelihood_gains(of_test, y, curves(x, GRID), n_intervals=k) for k in (None, int(n)))
    np.testing.assert_array_equal(found, wanted)
    assert not np.allclose(found, likelihood_gains(of_test, y, curves(x, GRID), n_intervals=20))


def test_intervals_without_a_step_are_joined_with_the_next_that_has_one():
    edges = np.linspace(0.0, 2.0, 21) ** 2
    # Steps in the third and in the tenth interval, or in all of them.
    few = np.where(edges >= edges[10], 2.0, np.where(edges >= edges[3], 0.5, 0.0))
    found = interval_rates(np.array([few, 1.3 * edges]), edges, joined=True)
    np.testing.assert_allclose(found[0, :3], 0.5 / edges[3])
    np.testing.assert_allclose(found[0, 3:], 1.5 / (edges[-1] - edges[3]))
    np.testing.assert_allclose(found[1], 1.3)
