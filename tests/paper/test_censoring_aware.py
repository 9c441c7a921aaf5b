import numpy as np
import pytest
import torch

from drosurv.paper.penalties import RPGroup, RPIndividual
from drosurv.patients.target import Target


@pytest.mark.parametrize(
    ("event", "time"),
    [
        ([False] * 4, [1.0, 2.0, 3.0, 4.0]),
        ([True] * 4, [1.0, 2.0, 3.0, 4.0]),
        ([True, True, False, False], [1.0, 2.0, 3.0, 4.0]),
    ],
    ids=["all censored", "no one censored", "every event before every censoring"],
)
@pytest.mark.parametrize("codes", [None, [0, 0, 1, 1]])
def test_without_comparable_pairs_value_and_gradient_are_zero(event, time, codes):
    X, target = np.random.default_rng(0).normal(size=(4, 2)), Target(np.array(event), np.array(time))
    penalty = RPIndividual(X, target, None, 1) if codes is None else RPGroup(X, target, np.array(codes), 2)
    scores = np.random.default_rng(1).normal(size=(2, 4))
    for values, gradient in (penalty(scores), penalty.tiled(torch.tensor(scores))):
        np.testing.assert_array_equal(values, 0.0)
        np.testing.assert_array_equal(gradient, 0.0)
