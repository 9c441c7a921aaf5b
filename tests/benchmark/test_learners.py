"""The benchmark's own learners, against what they should be."""

import numpy as np
import pytest
from sksurv.linear_model import CoxPHSurvivalAnalysis

from drosurv.benchmark import split_in_two
from drosurv.benchmark.learners import Scored, breslow
from drosurv.datasets import make_hidden_minority


@pytest.fixture(scope="module")
def parts():
    return split_in_two(make_hidden_minority(400, random_state=0), 0)


def test_scores_with_a_baseline_have_the_curves_of_scikit_survival(parts):
    train, test = parts
    peer = CoxPHSurvivalAnalysis().fit(train.X.to_numpy(), train.y)
    model = Scored.of(lambda X: X @ peer.coef_, train)
    times = np.quantile(train.y["time"], [0.1, 0.5, 0.8])
    expected = [[curve(t) for t in times] for curve in peer.predict_survival_function(test.X.to_numpy())]
    np.testing.assert_allclose(model.predict_survival_function(test.X, times), expected, rtol=1e-10)


def test_expected_events_sum_to_the_events(parts):
    train, _ = parts
    scores = np.random.default_rng(0).normal(size=len(train.X))
    times, cumulative = breslow(train.target, scores)
    at_own = np.concatenate([[0.0], cumulative])[np.searchsorted(times, train.y["time"], side="right")]
    assert (np.exp(scores) * at_own).sum() == pytest.approx(train.y["event"].sum())
