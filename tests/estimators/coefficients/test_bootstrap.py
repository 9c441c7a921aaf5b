import threading

import numpy as np
import pytest

from drosurv.estimators.coefficients.summary import bootstrap_coefficients


def mean_of(values):
    def refit(counts):
        return np.array([counts @ values / counts.sum()]) if counts.sum() else None

    return refit


def test_draws_of_a_mean_have_its_standard_error():
    values = np.random.default_rng(0).normal(size=400)
    draws = bootstrap_coefficients(mean_of(values), np.arange(400), n_bootstrap=2000)
    assert draws.shape == (2000, 1)
    assert draws.std() == pytest.approx(values.std() / 20, rel=0.06)


def test_rows_of_a_cluster_are_drawn_together():
    seen = []

    def refit(counts):
        seen.append(counts)
        return np.zeros(1)

    clusters = np.repeat(np.arange(10), 3)
    bootstrap_coefficients(refit, clusters, n_bootstrap=20)
    assert len(seen) == 20
    for counts in seen:
        assert (counts.reshape(10, 3) == counts.reshape(10, 3)[:, :1]).all()
        assert counts.reshape(10, 3)[:, 0].sum() == 10


def test_draws_do_not_depend_on_the_number_of_threads():
    values = np.arange(30.0)
    one, three = (
        bootstrap_coefficients(mean_of(values), np.arange(30), n_bootstrap=40, n_jobs=n_jobs)
        for n_jobs in (1, 3)
    )
    np.testing.assert_array_equal(one, three)


def test_refits_that_fail_are_left_out_and_many_are_an_error():
    lock, calls = threading.Lock(), []

    def failing(every):
        def refit(counts):
            with lock:
                calls.append(1)
                if len(calls) % (2 * every) == 0:
                    raise ValueError("none of the patients drawn had an event.")
                return None if len(calls) % every == 0 else np.ones(1)

        return refit

    assert len(bootstrap_coefficients(failing(20), np.arange(5), n_bootstrap=100)) == 95
    with pytest.raises(ValueError, match="only 50 of 100 bootstrap refits"):
        bootstrap_coefficients(failing(2), np.arange(5), n_bootstrap=100)
