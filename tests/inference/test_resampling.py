import threading

import joblib

from drosurv.inference.resampling import in_parallel


def test_few_patients_are_not_shared_among_threads_unless_it_is_asked_for():
    def threads_of(patients, threads=None):
        return {*in_parallel(lambda _: threading.get_ident(), 64, threads, patients)}

    here = {threading.get_ident()}
    assert threads_of(10) == here
    # Workers, which threads are, and not this one.
    assert not threads_of(10, threads=2) & here
    with joblib.parallel_config("threading", n_jobs=2):
        assert not threads_of(10) & here
