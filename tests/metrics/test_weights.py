"""A weight of a whole number stands for so many copies of the patient, in every metric that takes weights."""

import inspect

import numpy as np
import pandas as pd
import pytest

from drosurv import Surv, metrics

N, TIMES = 60, np.array([5.0, 10.0, 20.0])
RNG = np.random.default_rng(0)
RISK = RNG.normal(size=N).round(1)
TIME = np.ceil(20 * RNG.exponential(np.exp(-RISK)))
CAUSE = (RNG.random(N) < 0.6) * RNG.integers(1, 3, N)
SURVIVAL = np.exp(-TIMES / 30 * np.exp(RISK[:, None]))
WEIGHT = RNG.integers(0, 4, N)
TRAIN = Surv.from_arrays(RNG.random(200) < 0.6, np.append(np.ceil(20 * RNG.exponential(size=199)), 300.0))
# By the name of an argument: a row of each patient, or what is not of patients.
ROWS = {
    "y": Surv.from_arrays(CAUSE > 0, TIME),
    "y_test": Surv.from_arrays(CAUSE > 0, TIME),
    "cause": CAUSE,
    "time": TIME,
    "events": CAUSE > 0,
    "expected": np.exp(RISK) * TIME / 30,
    "groups": np.arange(N) % 2,
    "risk": RISK,
    "reference_risk": RISK + RNG.normal(size=N) / 5,
    "log_risk": RISK,
    "survival": SURVIVAL,
    "incidence": (1 - SURVIVAL) / 2,
}
OTHERS = {"y_train": TRAIN, "follow_up": metrics.FollowUp.parse(TRAIN), "times": TIMES, "at": TIMES}
OTHERS |= {"horizon": 10.0, "horizons": TIMES}


def parameters(name):
    function = getattr(metrics, name)
    return {} if isinstance(function, type) else inspect.signature(function).parameters


WEIGHTED = [name for name in metrics.__all__ if "sample_weight" in parameters(name)]


def numbers(found):
    """The numbers of a result; intervals and numbers of rows at risk aside."""
    if isinstance(found, pd.DataFrame):
        return found.drop(columns=["low", "high", "at_risk"], errors="ignore").to_numpy(dtype=float)
    return np.array(found[:3] if isinstance(found, tuple) else found, dtype=float)


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_are_copies(name):
    metric, asked = getattr(metrics, name), parameters(name)
    rows = np.repeat(np.arange(N), WEIGHT)
    given = {argument: OTHERS[argument] for argument in asked if argument in OTHERS}
    own = {argument: ROWS[argument] for argument in asked if argument in ROWS}
    weighted = metric(**own, **given, sample_weight=WEIGHT)
    copied = metric(**{argument: values[rows] for argument, values in own.items()}, **given)
    np.testing.assert_allclose(numbers(weighted), numbers(copied), rtol=1e-8, atol=1e-12)
    assert not np.allclose(numbers(weighted), numbers(metric(**own, **given)), rtol=1e-6)
