import numpy as np
import pytest

from drosurv.metrics import censored_group_disparity, censored_individual_disparity, individual_disparity
from drosurv.paper.sampled_pairs import censored_influence, individual_influence
from drosurv.patients.groups import Groups
from drosurv.patients.target import Target

SCALE = 0.3


def scene(seed, n=40):
    rng = np.random.default_rng(seed)
    target = Target(rng.random(n) < 0.5, np.ceil(10 * rng.random(n)))
    return target, rng.normal(size=n), rng.normal(size=(n, 2)), rng.integers(3, size=n)


def derivatives(value_of_copies, n):
    """How much one more copy of each patient adds, from the definition on many copies of everybody."""
    copies = 400
    everyone = np.repeat(np.arange(n), copies)
    plain = value_of_copies(everyone)
    return np.array(
        [(value_of_copies(np.append(everyone, i)) - plain) * copies for i in range(0, n, 9)]
    ), plain


def weighted_pairs(rows, hazard, X, keep):
    """Sum over pairs of the excess, patients counted as often as they stand in rows."""
    count = np.bincount(rows, minlength=len(hazard)).astype(float)
    distance = np.linalg.norm(X[:, None] - X[None], axis=2)
    excess = np.maximum(np.abs(hazard[:, None] - hazard[None]) - SCALE * distance, 0.0)
    return float(count @ (excess * keep) @ count)


@pytest.mark.parametrize("convention", ["paper", "table"])
def test_influences_on_individual_disparity_sum_to_twice_it_and_are_each_patients_pairs(convention):
    _, risk, X, _ = scene(0)
    found, influence = individual_influence(np.exp(risk), X, scale=SCALE, convention=convention)
    value = individual_disparity(risk, X, scale=SCALE, convention=convention)
    assert found == pytest.approx(value, rel=1e-12)
    assert influence.sum() == pytest.approx(2 * value)
    without = np.arange(1, len(risk))
    less = individual_disparity(risk[without], X[without], scale=SCALE, convention=convention)
    # A table's value is a mean over the n (n - 1) ordered pairs, the paper's a sum.
    n = len(risk)
    share = (n - 2) / n if convention == "table" else 1.0
    assert influence[0] == pytest.approx(value - share * less)


@pytest.mark.parametrize("grouped", [False, True])
def test_influences_on_censoring_aware_disparities_are_derivatives(grouped):
    target, risk, X, codes = scene(1)
    hazard = np.exp(risk)
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    keep = (~target.event[:, None]) & target.event[None] & (target.time[:, None] <= target.time[None])
    groups = Groups(codes, (0, 1, 2)) if grouped else None
    if grouped:
        keep &= codes[:, None] == codes[None]

    def value(rows):
        pairs = target.event[rows].sum() * (~target.event[rows]).sum()
        return weighted_pairs(rows, hazard, units, keep) / pairs

    expected, plain = derivatives(value, len(risk))
    metric = (
        censored_group_disparity(target, risk, X, codes, scale=SCALE)
        if grouped
        else censored_individual_disparity(target, risk, X, scale=SCALE)
    )
    assert plain == pytest.approx(metric)
    found, influence = censored_influence(target, hazard, X, groups, scale=SCALE)
    assert found == pytest.approx(metric, rel=1e-12)
    np.testing.assert_allclose(influence[::9], expected, rtol=1e-3, atol=1e-6)


def test_replicates_from_influences_have_the_spread_of_resampled_patients():
    _, risk, X, _ = scene(2, n=300)
    _, influence = individual_influence(np.exp(risk), X, scale=SCALE, convention="table")
    rng = np.random.default_rng(0)
    direct, linear = [], []
    for _ in range(150):
        rows = rng.integers(300, size=300)
        direct.append(individual_disparity(risk[rows], X[rows], scale=SCALE, convention="table"))
        linear.append(influence[rows].sum() - influence.sum())
    assert np.std(linear) == pytest.approx(np.std(direct), rel=0.05)
    assert np.corrcoef(direct, linear)[0, 1] > 0.99


def test_without_events_there_is_no_influence():
    target, risk, X, _ = scene(3)
    nobody = Target(np.zeros(len(target), dtype=bool), target.time)
    found, influence = censored_influence(nobody, np.exp(risk), X, None, scale=SCALE)
    assert found is None
    assert np.isnan(influence).all()
