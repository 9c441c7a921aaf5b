import numpy as np
import pytest

from drosurv.metrics import bootstrap, concordance_index, paired_comparison
from drosurv.target import Surv


def cohort(seed=0, n=200):
    rng = np.random.default_rng(seed)
    risk = rng.normal(size=n)
    y = Surv.from_arrays(rng.random(n) < 0.6, rng.exponential(size=n) / np.exp(risk))
    return y, risk, risk + 0.3 * rng.normal(size=n), rng.normal(size=n)


def statistic(y, risk):
    return lambda weight: concordance_index(y, risk, weight)


def test_a_model_does_not_differ_from_itself():
    y, risk, _, _ = cohort()
    found = paired_comparison(statistic(y, risk), statistic(y, risk), len(y), replicates=50, random_state=0)
    assert (found.difference.estimate, found.difference.low, found.difference.high) == (0.0, 0.0, 0.0)
    assert found.p_value == 1.0


def test_a_clear_difference_is_seen_in_both_directions():
    y, risk, _, noise = cohort()
    first = paired_comparison(statistic(y, risk), statistic(y, noise), len(y), replicates=199, random_state=0)
    second = paired_comparison(
        statistic(y, noise), statistic(y, risk), len(y), replicates=199, random_state=0
    )
    assert first.first == concordance_index(y, risk)
    assert first.second == concordance_index(y, noise)
    assert first.difference.low > 0 > second.difference.high
    assert first.p_value == second.p_value == 1 / 200


def test_pairing_removes_what_the_patients_have_in_common():
    y, risk, similar, _ = cohort()
    paired = paired_comparison(
        statistic(y, risk), statistic(y, similar), len(y), replicates=300, random_state=0
    )
    alone = [
        bootstrap(statistic(y, scores), len(y), replicates=300, random_state=0).interval().standard_error
        for scores in (risk, similar)
    ]
    assert paired.difference.standard_error < 0.6 * np.hypot(*alone)


def test_p_values_are_uniform_when_two_models_are_equally_good():
    p_values = []
    for seed in range(40):
        rng = np.random.default_rng(1000 + seed)
        y, risk, _, _ = cohort(seed, n=100)
        first, second = risk + rng.normal(size=(2, 100))
        test = paired_comparison(
            statistic(y, first), statistic(y, second), 100, replicates=99, random_state=seed, threads=1
        )
        p_values.append(test.p_value)
    assert 0.3 < np.mean(p_values) < 0.7
    assert np.mean(np.array(p_values) <= 0.05) <= 0.15


def test_rows_can_be_resampled_instead():
    y, risk, _, noise = cohort()
    found = paired_comparison(
        lambda rows: concordance_index(y[rows], risk[rows]),
        lambda rows: concordance_index(y[rows], noise[rows]),
        len(y),
        resample="rows",
        replicates=30,
        random_state=0,
    )
    expected = paired_comparison(
        statistic(y, risk), statistic(y, noise), len(y), replicates=30, random_state=0
    )
    assert found.difference.low == pytest.approx(expected.difference.low)
