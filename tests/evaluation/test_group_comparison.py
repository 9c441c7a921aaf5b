import numpy as np

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


def test_linear_replicates_follow_the_weights_and_are_not_asked_for_without_any():
    weights = np.array([[2, 0, 1], [1, 1, 1]], dtype=np.uint8)
    target = Target(np.array([True, True, True]), np.array([1.0, 2.0, 3.0]))
    everyone = Subset(EvaluationData(as_predictions(np.zeros(3), None, 3), target))

    def linear(patients, drawn, influence, of_all_pairs=None):
        between = GroupComparison(patients, None, {}, {}, drawn)
        return between.linear(lambda: 5.0, lambda: PairInfluence(of_all_pairs, np.array(influence)))

    assert linear(everyone, weights, [0.5, 0.25, 7.0]).draws.tolist() == [5.25, 5.0]
    # Those left out of an attribute have no influence on it.
    assert linear(everyone.take(np.array([0, 2])), weights, [0.5, 7.0]).draws.tolist() == [5.5, 5.0]
    # The value over all pairs is computed once, with the influence.
    found = linear(everyone, weights, [0.5, 0.25, 7.0], of_all_pairs=6.0)
    assert (found.estimate, found.draws.tolist()) == (6.0, [6.25, 6.0])

    def fail():
        raise AssertionError

    without = GroupComparison(everyone, None, {}, {}, weights[:0]).linear(lambda: 5.0, fail)
    assert (without.estimate, len(without.draws)) == (5.0, 0)
