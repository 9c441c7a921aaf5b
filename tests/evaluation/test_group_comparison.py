import numpy as np

from drosurv.evaluation import catalogue
from drosurv.evaluation.catalogue import GroupComparison
from drosurv.evaluation.data import EvaluationData, Subset
from drosurv.metrics.inference import Draws
from drosurv.metrics.sampled_pairs import PairInfluence
from drosurv.predictions import as_predictions
from drosurv.target import Target


def test_without_replicates_a_number_has_no_interval():
    interval = Draws(0.5, np.empty(0), lowest=0.0).interval(0.95)
    assert np.isnan([interval.low, interval.high, interval.standard_error]).all()


def test_intervals_are_cut_at_the_lowest_value_there_can_be():
    draws = np.linspace(-0.1, 0.2, 101)
    assert Draws(0.02, draws, lowest=0.0).interval(0.9).low == 0.0
    assert Draws(0.02, draws).interval(0.9).low < 0.0


def test_linear_replicates_follow_the_weights_and_are_not_asked_for_without_any(monkeypatch):
    weights = np.array([[2, 0, 1], [1, 1, 1]], dtype=np.uint8)
    target = Target(np.array([True, True, True]), np.array([1.0, 2.0, 3.0]))
    everyone = Subset(EvaluationData(as_predictions(np.zeros(3), None, 3), target))

    def linear(influence, of_all_pairs=None):
        between = GroupComparison(everyone, None, {}, {}, (everyone, None), lambda values: weights @ values)
        found = PairInfluence(of_all_pairs, np.array(influence))
        return between.linear(lambda some, groups: 5.0, lambda some, groups: found)

    np.testing.assert_allclose(linear([0.5, 0.25, 7.0]).draws, [5.25, 5.0])
    # The value over all pairs is computed once, with the influence.
    found = linear([0.5, 0.25, 7.0], of_all_pairs=6.0)
    assert found.estimate == 6.0
    np.testing.assert_allclose(found.draws, [6.25, 6.0])

    def fail(some, groups):
        raise AssertionError

    without = GroupComparison(everyone, None, {}, {}, (everyone, None))
    found = without.linear(fail, lambda some, groups: PairInfluence(6.0, np.zeros(3)))
    assert (found.estimate, len(found.draws)) == (6.0, 0)
    monkeypatch.setattr(catalogue, "_FEW", 2)
    found = without.linear(lambda some, groups: 5.0, fail)
    assert (found.estimate, len(found.draws)) == (5.0, 0)
