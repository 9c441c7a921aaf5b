import threading

import joblib
import numpy as np
import pytest

from drosurv.patients.observation import generator
from drosurv.patients.replicates import in_parallel, seed_sequence


def test_few_patients_are_not_shared_among_threads_unless_it_is_asked_for():
    def threads_of(patients, n_jobs=None):
        return {*in_parallel(lambda _: threading.get_ident(), 64, n_jobs, patients)}

    here = {threading.get_ident()}
    assert threads_of(10) == here
    # Workers, which threads are, and not this one.
    assert not threads_of(10, n_jobs=2) & here
    with joblib.parallel_config("threading", n_jobs=2):
        assert not threads_of(10) & here


@pytest.mark.parametrize("seed", ["seven", 1.5, -1])
@pytest.mark.parametrize("seeded", [generator, seed_sequence])
def test_what_is_no_seed_is_named(seeded, seed):
    with pytest.raises(ValueError, match=f"random_state must be a whole number .* got {seed!r}"):
        seeded(seed)


def test_a_generator_is_used_as_it_is():
    given = np.random.default_rng(0)
    assert generator(given) is given
    assert generator(7).random() == np.random.default_rng(7).random()
