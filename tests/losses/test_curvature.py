"""The curvature that trees take is the second derivative of the weighted losses in each patient's own score."""

import numpy as np
import pytest

from drosurv.losses import TorchLoss
from drosurv.losses.cox_partial import CoxPartial
from drosurv.losses.cox_split import CoxSplit
from drosurv.losses.discrete_time import DiscreteHazard
from drosurv.losses.full_likelihood import PiecewiseExponential
from drosurv.losses.log_time import DISTRIBUTIONS, LogTime
from drosurv.losses.summed_likelihood import StratifiedLikelihood
from drosurv.patients.target import Target

N = 40
RNG = np.random.default_rng(0)
TARGET = Target(RNG.random(N) < 0.6, np.ceil(RNG.exponential(size=N) * 6) / 6)

LATE = Target(TARGET.event, TARGET.time, entry=0.5 * RNG.random(N) * TARGET.time, stratum=np.arange(N) % 3)

LOSSES = {
    "cox": lambda: CoxPartial(TARGET),
    "late entry and strata": lambda: CoxPartial(LATE),
    "split": lambda: CoxSplit(TARGET, np.arange(N) % 2 == 0),
    "one side": lambda: CoxSplit(TARGET, np.arange(N) % 2 == 0, both=False),
    "full": lambda: PiecewiseExponential(TARGET, 5),
    "full, late entry and strata": lambda: StratifiedLikelihood(LATE, 5),
    "logit": lambda: DiscreteHazard(TARGET, 5),
    "cloglog": lambda: DiscreteHazard(TARGET, 5, "cloglog"),
    **{name: (lambda name=name: LogTime(TARGET, name)) for name in DISTRIBUTIONS},
}


@pytest.mark.parametrize("name", LOSSES)
def test_curvature_equals_finite_differences_of_the_gradient(name):
    loss, rng = LOSSES[name](), np.random.default_rng(1)
    scores, weights = rng.normal(size=(2, N)), rng.random((2, len(loss.rows)))
    extra = np.tile(loss.start, (2, 1))

    def gradient(at):
        loss(at, extra)
        return loss.pullback(weights)[0]

    loss(scores, extra)
    found = loss.curvature(weights)
    for j in range(0, N, 7):
        step = np.zeros((1, N))
        step[0, j] = 1e-5
        slope = (gradient(scores + step) - gradient(scores - step))[:, j] / 2e-5
        np.testing.assert_allclose(found[:, j], slope, atol=1e-7)


def test_torch_losses_use_autograd_or_weights_where_curvature_is_small():
    def exponential(scores, event, time):
        return scores.exp() * time - event * scores

    scores, weights = np.linspace(-4, 2, N)[None], np.random.default_rng(4).random((1, N))
    hazard = np.exp(scores) * TARGET.time
    assert (hazard < 0.1).any()
    loss, straight = (
        TorchLoss(exponential, TARGET),
        TorchLoss(lambda f, d, t: (1 - 2 * d.float()) * f, TARGET),
    )
    loss(scores)
    np.testing.assert_allclose(
        loss.curvature(weights), np.where(hazard > 0.1, weights * hazard, weights), rtol=1e-12
    )
    straight(scores)
    np.testing.assert_array_equal(straight.curvature(weights), weights)


@pytest.mark.parametrize("spread", [1.0, 150.0, 400.0])
def test_curvature_equals_the_definition_for_scores_far_apart(spread):
    """The diagonal sum of p (1 - p), with shares from differences of scores, which never leave the floats."""
    loss, scores = CoxPartial(TARGET), spread * np.random.default_rng(4).normal(size=N)
    loss(scores[None])
    expected = np.zeros(N)
    for i in np.flatnonzero(TARGET.event):
        at_risk = np.flatnonzero(TARGET.time >= TARGET.time[i])
        share = np.exp(scores[at_risk] - np.logaddexp.reduce(scores[at_risk]))
        expected[at_risk] += share * (1 - share)
    np.testing.assert_allclose(loss.curvature(np.ones((1, len(loss.rows))))[0], expected, atol=1e-12)
