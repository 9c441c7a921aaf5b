import numpy as np
import pandas as pd
import pytest
from sksurv.functions import StepFunction

from drosurv.metrics import parse_survival


def test_step_functions_are_read_as_scikit_survival_reads_them():
    rng = np.random.default_rng(0)
    grid = np.sort(rng.uniform(1, 9, 12))
    functions = [StepFunction(grid, np.sort(rng.random(12))[::-1], domain=(0, 10)) for _ in range(5)]
    times = np.concatenate(([0.0, grid[0], grid[3], grid[-1]], rng.uniform(0, grid[-1], 20)))
    curves = parse_survival(functions, 5)
    np.testing.assert_array_equal(curves.at(times), np.vstack([function(times) for function in functions]))
    own = rng.uniform(0, grid[-1], 5)
    expected = [float(function(time)) for function, time in zip(functions, own, strict=True)]
    np.testing.assert_array_equal(curves.at_patient_times(own), expected)


def test_step_functions_are_constant_after_their_last_time():
    (value,) = parse_survival([StepFunction(np.array([0.0, 2.0]), np.array([1.0, 0.4]))], 1).at(
        np.array([99.0])
    )
    assert value.tolist() == [0.4]


def test_curves_may_have_grids_factors_and_offsets_of_their_own():
    functions = [
        StepFunction(np.array([0.0, 1.0]), np.array([1.0, 0.5])),
        StepFunction(np.array([0.0, 3.0, 4.0]), np.array([0.0, 0.5, 1.0]), a=-1.0, b=1.0),
        lambda times: np.exp(-times),
    ]
    curves = parse_survival(functions, 3)
    expected = [[1.0, 0.5, 0.5], [1.0, 1.0, 0.5], np.exp([-0.5, -2.0, -3.5])]
    np.testing.assert_allclose(curves.at(np.array([0.5, 2.0, 3.5])), expected)
    np.testing.assert_allclose(curves.at_patient_times(np.array([1.0, 4.0, 2.0])), [0.5, 0.0, np.exp(-2)])


def test_an_array_is_a_step_function_from_one_between_its_times():
    curves = parse_survival([[0.8, 0.5], [0.6, 0.1]], 2, times=[1.0, 2.0])
    times = np.array([0.5, 1.0, 1.5, 2.0, 9.0])
    assert curves.at(times).tolist() == [[1.0, 0.8, 0.8, 0.5, 0.5], [1.0, 0.6, 0.6, 0.1, 0.1]]
    assert curves.at_patient_times(np.array([1.5, 0.0])).tolist() == [0.8, 1.0]


def test_a_frame_of_probabilities_is_an_array():
    frame = pd.DataFrame([[0.8, 0.5], [0.6, 0.1]], columns=[1.0, 2.0], index=[7, 9])
    times = np.array([0.5, 1.0, 2.0])
    expected = parse_survival(frame.to_numpy(), 2, times=[1.0, 2.0]).at(times)
    np.testing.assert_array_equal(parse_survival(frame, 2, times=[1.0, 2.0]).at(times), expected)


def test_rounding_just_outside_the_unit_interval_is_cut():
    curves = parse_survival([[1 + 1e-9, -1e-9]], 1, times=[1.0, 2.0])
    assert curves.at(np.array([1.0, 2.0])).tolist() == [[1.0, 0.0]]


def test_parsed_curves_parse_to_themselves():
    curves = parse_survival([[0.8, 0.5]], 1, times=[1.0, 2.0])
    assert parse_survival(curves, 1) is curves


@pytest.mark.parametrize(
    ("survival", "arguments", "message"),
    [
        ([[0.8, 0.5]], {}, "array of 2 columns: pass their times"),
        ([[0.8, 0.5]], {"times": [1.0]}, "one time for each of the 2 columns"),
        ([[0.8, 0.5]], {"times": [2.0, 1.0]}, "strictly ascending"),
        ([[0.8, 0.5]], {"times": [1.0, 2.0], "n": 2}, "1 curves for 2 patients"),
        ([0.8], {"times": [1.0]}, r"got shape \(1,\)"),
        ([[2.0]], {"times": [1.0]}, "got 2.0 for row 0; pass survival functions, not cumulative hazards"),
    ],
)
def test_bad_curves_are_refused_with_the_reason(survival, arguments, message):
    with pytest.raises(ValueError, match=message):
        parse_survival(survival, **({"n": 1} | arguments))
