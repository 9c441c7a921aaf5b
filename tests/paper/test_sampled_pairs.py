import numpy as np
import pytest

from drosurv.paper import censored_group_disparity, censored_individual_disparity, individual_disparity
from drosurv.paper.disparities import sampled_individual_disparity
from drosurv.paper.sampled_pairs import MOST_EXACT, SAMPLED, sampled_number
from drosurv.patients.target import Target


@pytest.fixture(scope="module")
def scene():
    rng = np.random.default_rng(0)
    n = 500
    X = rng.normal(size=(n, 3))
    target = Target(rng.random(n) < 0.3, np.ceil(10 * rng.random(n)))
    return target, 0.3 * X[:, 0], X, rng.integers(3, size=n)


@pytest.mark.parametrize("convention", ["paper", "table"])
def test_sampled_pairs_give_the_exact_value_within_their_standard_error(scene, convention):
    _, risk, X, _ = scene
    exact = individual_disparity(risk, X, scale=0.1, convention=convention, pairs="all")
    value, error = sampled_individual_disparity(risk, X, scale=0.1, convention=convention, pairs=200_000)
    assert abs(value - exact) < 3 * error
    assert error < 0.01 * exact
    assert individual_disparity(risk, X, scale=0.1, convention=convention, pairs=200_000) == value


def test_the_standard_error_is_the_spread_over_other_samples(scene):
    """Patients in another order are paired otherwise."""
    _, risk, X, _ = scene
    rng = np.random.default_rng(1)
    found = []
    for _ in range(200):
        order = rng.permutation(len(risk))
        found.append(sampled_individual_disparity(risk[order], X[order], scale=0.1, pairs=5_000))
    values, errors = np.transpose(found)
    assert errors.mean() == pytest.approx(values.std(), rel=0.2)


def test_sampled_censoring_aware_disparities_are_near_the_exact_ones(scene):
    target, risk, X, codes = scene
    y = target.to_structured()
    for metric, more in ((censored_individual_disparity, ()), (censored_group_disparity, (codes,))):
        exact = metric(y, risk, X, *more, scale=0.1, pairs="all")
        assert metric(y, risk, X, *more, scale=0.1, pairs=500_000) == pytest.approx(exact, rel=0.03)


def test_all_pairs_are_looked_at_up_to_a_size_and_on_request():
    assert sampled_number("auto", MOST_EXACT) is None
    assert sampled_number("auto", MOST_EXACT + 1) == SAMPLED
    assert sampled_number("all", 10**9) is None
    assert sampled_number(123, 10) == 123
    for wrong in ("some", 0, -5, 1.5, True):
        with pytest.raises(ValueError, match="'auto', 'all' or a whole number of pairs"):
            sampled_number(wrong, 10)
    with pytest.raises(ValueError, match="whole number of pairs, got 0"):
        sampled_individual_disparity([0.0, 1.0], [[1.0], [2.0]], pairs=0)
    with pytest.raises(ValueError, match="risk must hold the scores of at least two patients, got 1"):
        sampled_individual_disparity([0.0], [[1.0]])


def test_many_patients_take_a_sample_by_default():
    """Quadratic time would be minutes here."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(100_000, 2))
    value = individual_disparity(0.3 * X[:, 0], X, convention="table")
    some = individual_disparity(0.3 * X[:4000, 0], X[:4000], convention="table")
    assert value == pytest.approx(some, rel=0.05)
