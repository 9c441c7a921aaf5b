from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sksurv import metrics
from sksurv.functions import StepFunction as TheirStepFunction
from sksurv.linear_model import CoxPHSurvivalAnalysis

from drosurv import CoxPH, datasets
from drosurv.curves import (
    Baseline,
    CompetingCurves,
    FittedCurves,
    StepCurves,
    StepFunction,
    TableValues,
    interpolate,
    parse_survival,
)
from drosurv.metrics import integrated_brier_score

TIMES, VALUES = np.array([1.0, 2.0, 4.0]), np.array([0.9, 0.5, 0.2])


def test_step_functions_are_read_as_scikit_survival_reads_them():
    rng = np.random.default_rng(0)
    grid = np.sort(rng.uniform(1, 9, 12))
    functions = [TheirStepFunction(grid, np.sort(rng.random(12))[::-1], domain=(0, 10)) for _ in range(5)]
    times = np.concatenate(([0.0, grid[0], grid[3], grid[-1]], rng.uniform(0, grid[-1], 20)))
    curves = parse_survival(functions, 5)
    np.testing.assert_array_equal(
        curves.survival(times), np.vstack([function(times) for function in functions])
    )
    own = rng.uniform(0, grid[-1], 5)
    expected = [float(function(time)) for function, time in zip(functions, own, strict=True)]
    np.testing.assert_array_equal(curves.survival(own[:, None])[:, 0], expected)


def test_step_functions_are_constant_after_their_last_time():
    (value,) = parse_survival([TheirStepFunction(np.array([0.0, 2.0]), np.array([1.0, 0.4]))], 1).survival(
        np.array([99.0])
    )
    assert value.tolist() == [0.4]


def test_curves_may_have_grids_factors_and_offsets_of_their_own():
    functions = [
        TheirStepFunction(np.array([0.0, 1.0]), np.array([1.0, 0.5])),
        TheirStepFunction(np.array([0.0, 3.0, 4.0]), np.array([0.0, 0.5, 1.0]), a=-1.0, b=1.0),
        lambda times: np.exp(-times),
    ]
    curves = parse_survival(functions, 3)
    expected = [[1.0, 0.5, 0.5], [1.0, 1.0, 0.5], np.exp([-0.5, -2.0, -3.5])]
    np.testing.assert_allclose(curves.survival(np.array([0.5, 2.0, 3.5])), expected)
    own = np.array([[1.0, 0.5], [4.0, 0.0], [2.0, 0.0]])
    np.testing.assert_allclose(curves.survival(own), [[0.5, 1.0], [0.0, 1.0], [np.exp(-2), 1.0]])


def test_an_array_of_steps_is_constant_from_one_between_its_times():
    curves = parse_survival([[0.8, 0.5], [0.6, 0.1]], 2, times=[1.0, 2.0], curve_type="step")
    times = np.array([0.5, 1.0, 1.5, 2.0, 9.0])
    assert curves.survival(times).tolist() == [[1.0, 0.8, 0.8, 0.5, 0.5], [1.0, 0.6, 0.6, 0.1, 0.1]]
    assert curves.survival(np.array([[1.5], [0.0]])).tolist() == [[0.8], [1.0]]


@pytest.mark.parametrize("times", [[1.0, 2.0, 4.0], [0.0, 1.0, 4.0]])
def test_the_cumulative_hazard_of_a_smooth_array_is_linear_between_its_times(times):
    table = np.sort(np.random.default_rng(0).random((5, 3)), axis=1)[:, ::-1]
    table[:, 0] = 1.0 if times[0] == 0 else table[:, 0]
    curves, common = parse_survival(table, 5, times, "smooth"), np.array([0.5, 1.0, 3.0, 9.0])
    knots, at_knots = [0.0, *times], np.column_stack([np.zeros(5), -np.log(table)])
    wanted = np.array([np.interp(common, knots, hazard) for hazard in at_knots])
    np.testing.assert_allclose(curves.cumulative_hazard(common), wanted)
    np.testing.assert_allclose(curves.survival(common), np.exp(-wanted))
    own = np.array([[0.5], [3.0], [9.0]])
    chosen = curves.take(np.array([4, 0, 2]))
    np.testing.assert_allclose(chosen.summed_hazard(own).hazard[:, 0], wanted[[4, 0, 2], [0, 2, 3]])
    np.testing.assert_allclose(chosen.survival(own)[:, 0], np.exp(-wanted[[4, 0, 2], [0, 2, 3]]))


def test_a_frame_of_probabilities_is_an_array():
    frame = pd.DataFrame([[0.8, 0.5], [0.6, 0.1]], columns=[1.0, 2.0], index=[7, 9])
    times = np.array([0.5, 1.0, 2.0])
    expected = parse_survival(frame.to_numpy(), 2, times=[1.0, 2.0]).survival(times)
    for named in (frame, frame.set_axis([0, 1], axis=1), frame.set_axis(["a", "b"], axis=1)):
        np.testing.assert_array_equal(parse_survival(named, 2, times=[1.0, 2.0]).survival(times), expected)


def test_rounding_just_outside_the_unit_interval_is_cut():
    curves = parse_survival([[1 + 1e-9, -1e-9]], 1, times=[1.0, 2.0])
    assert curves.survival(np.array([1.0, 2.0])).tolist() == [[1.0, 0.0]]


def test_survival_that_rises_by_rounding_does_not_rise():
    curves = parse_survival([[0.5, 0.5 + 1e-9, 0.4]], 1, times=[1.0, 2.0, 3.0])
    assert (np.diff(curves.cumulative_hazard(np.linspace(0, 4, 99))) >= 0).all()


def test_parsed_curves_parse_to_themselves():
    curves = parse_survival([[0.8, 0.5]], 1, times=[1.0, 2.0])
    assert parse_survival(curves, 1) is curves


# Expected events, from their definition: increments of the hazard, one patient and one time after the other.

rng = np.random.default_rng(3)
N, JUMPS = 40, np.array([0.5, 1.0, 2.0, 3.0, 5.0])
TABLE = np.sort(rng.uniform(0.05, 0.95, (N, len(JUMPS))), axis=1)[:, ::-1]
BASELINE = np.cumsum(rng.uniform(0.05, 0.4, (2, len(JUMPS))), axis=1)
SCORES, STRATUM = rng.normal(size=N), rng.integers(0, 2, N)
UNTIL = rng.choice([0.2, 1.0, 1.5, 3.0, 4.0, 9.0], N)
OWN, SINCE, CUTS = UNTIL[:, None], UNTIL * rng.random(N), np.array([0.9, 2.0])


def table_curves(curve_type="step"):
    return parse_survival(TABLE, N, JUMPS, curve_type)


def baseline_curves():
    return Baseline(JUMPS, np.log(BASELINE), stratum=STRATUM).of_scores(SCORES, 9.0)


@dataclass(frozen=True, eq=False)
class Power(FittedCurves):
    """Cumulative hazards rate t^p, with rates as scores."""

    p: float
    times = np.array([1.0])

    def cumulative_hazard(self, scores, times=None):
        return scores[:, None] * times**self.p


def increments(curves):
    """The hazard of each patient's jumps, (N, K)."""
    if curves.own_hazard:
        return np.diff(BASELINE[STRATUM] * np.exp(SCORES)[:, None], axis=1, prepend=0.0)
    return 1 - TABLE / np.column_stack([np.ones(N), TABLE[:, :-1]])


@pytest.mark.parametrize("curves", [table_curves(), baseline_curves()], ids=["table", "baseline"])
def test_expected_events_are_the_summed_increments_of_the_hazard(curves):
    found = curves.expected_events(UNTIL, SINCE, CUTS)
    assert found.hazard.shape == (N, 3)
    ends = [0.0, *CUTS, np.inf]
    for i, d in enumerate(increments(curves)):
        for period in range(3):
            inside = (
                (ends[period] < JUMPS)
                & (ends[period + 1] >= JUMPS)
                & (SINCE[i] < JUMPS)
                & (UNTIL[i] >= JUMPS)
            )
            assert found.hazard[i, period] == pytest.approx(d[inside].sum(), abs=1e-12)
            variance = (d * np.maximum(1 - d, 0))[inside].sum()
            assert found.variance[i, period] == pytest.approx(variance, abs=1e-12)
    whole = curves.expected_events(UNTIL)
    np.testing.assert_allclose(whole.hazard, curves.expected_events(UNTIL, cuts=CUTS).hazard.sum(axis=1))
    np.testing.assert_allclose(curves.summed_hazard(OWN)[0][:, 0], whole.hazard)
    np.testing.assert_allclose(curves.summed_hazard(OWN)[1][:, 0], whole.variance)
    summed = np.column_stack([np.zeros(N), np.cumsum(increments(curves), axis=1)])
    at = np.array([0.1, 1.0, 2.5, 9.0])
    np.testing.assert_allclose(curves.cumulative_hazard(at), summed[:, [0, 2, 3, 5]])


def test_a_models_own_increments_give_its_survival():
    curves = baseline_curves()
    for times in (JUMPS, np.array([0.1, 2.7])):
        np.testing.assert_allclose(curves.survival(times), np.exp(-curves.cumulative_hazard(times)))
    np.testing.assert_allclose(curves.survival(OWN), np.exp(-curves.summed_hazard(OWN).hazard))


def test_some_patients_have_the_curves_that_they_have_among_all():
    rows = np.array([7, 3, 3, 0])
    smooth = Power(1.0).of_scores(np.exp(SCORES), 9.0)
    for curves in (table_curves(), baseline_curves(), smooth, table_curves().computed(JUMPS, UNTIL)):
        for some, index in (
            (curves.take(rows), rows),
            (curves.take(slice(2, 9)).take([1, 0]), np.array([3, 2])),
        ):
            assert len(some) == len(index)
            np.testing.assert_allclose(some.survival(CUTS), curves.survival(CUTS)[index])
            np.testing.assert_allclose(some.survival(OWN[index]), curves.survival(OWN)[index])
            found, wanted = some.summed_hazard(OWN[index]), curves.summed_hazard(OWN)
            np.testing.assert_allclose(found, [part[index] for part in wanted])
        assert curves.take(rows).values is curves.values


def test_smooth_curves_expect_minus_log_survival():
    curves = Power(1.5).of_scores(np.exp(SCORES), 9.0)
    found = curves.expected_events(UNTIL, SINCE)
    wanted = np.exp(SCORES) * (UNTIL**1.5 - SINCE**1.5)
    np.testing.assert_allclose(found.hazard, wanted)
    np.testing.assert_allclose(found.variance, wanted)
    np.testing.assert_allclose(curves.survival(OWN)[:, 0], np.exp(-np.exp(SCORES) * UNTIL**1.5))


def test_tables_at_few_times_are_read_as_smooth_curves():
    found, wanted = table_curves("points"), table_curves("smooth")
    np.testing.assert_array_equal(found.survival(CUTS), wanted.survival(CUTS))
    np.testing.assert_array_equal(found.expected_events(UNTIL, SINCE), wanted.expected_events(UNTIL, SINCE))


@pytest.mark.parametrize("own_hazard", [False, True])
def test_very_many_jumps_are_read_together(monkeypatch, own_hazard):
    times = np.linspace(0.0, 9.0, 1500)[1:]
    values = TableValues(times, np.exp(-np.outer(np.exp(SCORES), 0.2 * times)))
    curves = StepCurves(values, times, 9.0, own_hazard=own_hazard)
    exact = curves.summed_hazard(OWN)
    monkeypatch.setattr("drosurv.curves.survival_curves._MOST_JUMPS", 60)
    monkeypatch.setattr("drosurv.curves.survival_curves._FEWEST_JUMPS", 1)
    for found, wanted in zip(curves.summed_hazard(OWN), exact, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_incidences_of_all_causes_are_found_again_from_their_hazards():
    share = np.array([0.2, 0.5, 0.9, 0.3, 0.6])
    left = -np.diff(TABLE, axis=1, prepend=1.0)
    incidence = {1: np.cumsum(left * share, axis=1), 2: np.cumsum(left * (1 - share), axis=1)}
    curves = CompetingCurves.of_incidences(JUMPS, incidence)
    for cause, given in incidence.items():
        np.testing.assert_allclose(curves.incidence(cause, JUMPS), given, atol=1e-12)
        np.testing.assert_allclose(
            curves.take(slice(3, 5)).incidence(cause, np.array([0.1, 4.0]))[:, 1], given[3:5, 3]
        )
    np.testing.assert_allclose(curves.any_cause.survival(JUMPS), TABLE)
    # The hazard of a cause at a jump is dF / S(t-), and those of all causes add up to that of any event.
    before = np.column_stack([np.ones(N), TABLE[:, :-1]])
    np.testing.assert_allclose(
        curves.of_cause(1).cumulative_hazard(JUMPS), np.cumsum(left * share / before, axis=1)
    )
    total = sum(curves.of_cause(k).summed_hazard(OWN).hazard for k in (1, 2))
    np.testing.assert_allclose(total, curves.any_cause.summed_hazard(OWN).hazard)
    with pytest.raises(ValueError, match="cause must be one of 1 to 2, got 3"):
        curves.of_cause(3)


@pytest.mark.parametrize("shift", [-5000.0, 5000.0])
def test_scores_and_baseline_of_any_size_give_the_same_curves(shift):
    base, scores = np.log([0.1, 0.4, 0.9]), np.array([-1.0, 0.0, 2.0])
    times = np.array([1.0, 2.0, 3.0])
    plain, moved = (Baseline(times, base - by).of_scores(scores + by, 3.0) for by in (0.0, shift))
    np.testing.assert_allclose(moved.survival(times), plain.survival(times), rtol=1e-10)


def test_interpolation_at_common_and_own_times_is_numpys():
    rng, knots = np.random.default_rng(0), np.array([0.0, 1.0, 2.5, 7.0])
    values, common, own = rng.random((5, 4)), np.array([0.0, 0.5, 1.0, 7.0, 9.0]), rng.uniform(0, 8, (5, 3))
    expected = [np.interp(common, knots, row) for row in values]
    np.testing.assert_allclose(interpolate(knots, values, common), expected, rtol=1e-13)
    expected = [np.interp(times, knots, row) for times, row in zip(own, values, strict=True)]
    np.testing.assert_allclose(interpolate(knots, values, own), expected, rtol=1e-13)
    np.testing.assert_array_equal(interpolate(knots[:1], values[:, :1], common), values[:, [0] * 5])
    values[:, 3] = np.inf
    np.testing.assert_array_equal(interpolate(knots, values, knots), values)


def test_a_table_has_linear_hazards_between_its_times():
    """A time one rounding error before a known one has the same value."""
    times = np.linspace(0.06, 6.0, 100)
    rate = np.array([[0.1], [0.3]])
    curves = parse_survival(np.exp(-rate * times), 2, times)
    at = np.array([0.01, 1.0, np.nextafter(times[49], 0), 5.999])
    assert np.allclose(curves.survival(at), np.exp(-rate * at), rtol=1e-12)
    assert np.allclose(curves.cumulative_hazard(at), rate * at, rtol=1e-12)
    assert np.allclose(curves.survival(at[:2, None]), np.exp(-rate * at[:2, None]), rtol=1e-12)
    assert (curves.survival(times[[3, 7]]) == np.exp(-rate * times[[3, 7]])).all()
    assert np.allclose(curves.survival(np.array([9.0])), np.exp(-rate * 6.0))


def test_survival_is_linear_where_it_reaches_zero():
    curves = parse_survival(np.array([[0.8, 0.4, 0.0, 0.0], [0.9, 0.8, 0.7, 0.6]]), 2, [1.0, 2.0, 3.0, 4.0])
    assert np.allclose(curves.survival(np.array([2.25, 2.5, 3.0, 3.5]))[0], [0.3, 0.2, 0.0, 0.0])
    assert np.allclose(curves.cumulative_hazard(np.array([2.5]))[0], -np.log(0.2))
    assert np.allclose(curves.survival(np.array([1.5]))[0], np.sqrt(0.8 * 0.4))
    assert np.allclose(curves.survival(np.array([3.5]))[1], np.sqrt(0.7 * 0.6))


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.0), (2.0, -0.5)])
def test_values_equal_scikit_survivals_between_the_first_and_the_last_step(a, b):
    theirs = TheirStepFunction(TIMES, VALUES, a=a, b=b)
    ours = StepFunction(TIMES, VALUES, a, b)
    grid = np.linspace(1.0, 4.0, 31)
    np.testing.assert_array_equal(ours(grid), theirs(grid))
    np.testing.assert_array_equal(ours.x, theirs.x)
    np.testing.assert_array_equal(ours.y, theirs.y)
    assert (ours.a, ours.b) == (theirs.a, theirs.b)


def test_step_functions_hold_their_first_and_last_values_and_know_their_domain():
    step = StepFunction(TIMES, VALUES)
    assert [step(0.0), step(1.999), step(2.0), step(1e9)] == [0.9, 0.9, 0.5, 0.2]
    assert step([0.5, 3.0, 4.5]).tolist() == [0.9, 0.5, 0.2]
    assert isinstance(step(1.5), float)
    assert step.domain == (0.0, np.inf)


def test_curves_work_in_metrics_of_scikit_survival_and_the_other_way_round():
    data = datasets.make_hidden_minority(n_samples=300, random_state=0)
    X, y = data.X, data.y
    times = np.quantile(y[y.dtype.names[1]], [0.2, 0.4, 0.6])
    ours = CoxPH().fit(X, y).predict_survival_function(X)
    theirs = CoxPHSurvivalAnalysis(ties="breslow").fit(X, y).predict_survival_function(X)
    stacked = np.array([[curve(t) for t in times] for curve in ours])
    expected = metrics.integrated_brier_score(y, y, stacked, times)
    assert (
        metrics.integrated_brier_score(y, y, np.vstack([curve(times) for curve in ours]), times) == expected
    )
    assert integrated_brier_score(y, y, ours, times=times) == pytest.approx(expected)
    assert integrated_brier_score(y, y, theirs, times=times) == pytest.approx(expected, rel=1e-4)
