import threading

import joblib
import numpy as np

from drosurv.patients.draws import in_parallel
from drosurv.patients.observation import generator


def test_few_patients_are_not_shared_among_threads_unless_it_is_asked_for():
    def threads_of(patients, n_jobs=None):
        return {*in_parallel(lambda _: threading.get_ident(), 64, n_jobs, patients)}

    here = {threading.get_ident()}
    assert threads_of(10) == here
    # Workers, which threads are, and not this one.
    assert not threads_of(10, n_jobs=2) & here
    with joblib.parallel_config("threading", n_jobs=2):
        assert not threads_of(10) & here


def test_a_generator_is_used_as_it_is():
    given = np.random.default_rng(0)
    assert generator(given) is given
    assert generator(7).random() == np.random.default_rng(7).random()
