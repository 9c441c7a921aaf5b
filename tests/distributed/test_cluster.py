"""Grids, bootstraps and long runs go to a cluster when joblib is told to use it, and give the same numbers.

So does a fit in the middle of which a worker is killed.
"""

import os
import signal
import threading

import joblib
import numpy as np
import pandas as pd
import pytest

from drosurv import CoxPH, DROCox, Surv, distributed, evaluation
from drosurv.datasets import make_hidden_minority
from drosurv.metrics.inference import bootstrap
from drosurv.tuning import BestScore, GridSearch
from experiments.benchmark import run_benchmark

DATA = make_hidden_minority(300, random_state=0)


@pytest.fixture(scope="module")
def cluster():
    """Two processes of a cluster, which joblib uses inside the block."""
    dask = pytest.importorskip("distributed", reason="Dask is an extra")
    with (
        dask.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as workers,
        dask.Client(workers) as client,
    ):
        # The groups that a forest finds in a benchmark are not looked at here.
        client.run(exec, "from experiments.benchmark import measures; measures.TREES = 3")
        yield lambda: joblib.parallel_config(backend="dask")


def test_replicates_of_a_bootstrap_are_computed_by_the_workers(cluster):
    def where(weight):
        return [os.getpid(), weight[0]]

    here = bootstrap(where, 30, replicates=20, random_state=0)
    with cluster():
        there = bootstrap(where, 30, replicates=20, random_state=0)
    assert set(here.draws[:, 0]) == {os.getpid()}
    assert len(set(there.draws[:, 0]) - {os.getpid()}) == 2
    np.testing.assert_array_equal(here.draws[:, 1], there.draws[:, 1])


def test_an_evaluation_and_a_table_of_coefficients_are_those_of_one_process(cluster):
    model = CoxPH().fit(DATA.X, DATA.y)

    def numbers():
        found = evaluation.evaluate(
            model, DATA.X, DATA.y, sensitive_features=DATA.sensitive_features, n_bootstrap=4, min_group=20
        )
        return found.to_frame(), model.summary(method="bootstrap", n_boot=4)

    here = numbers()
    with cluster():
        there = numbers()
    for own, other in zip(here, there, strict=True):
        pd.testing.assert_frame_equal(own, other)


def test_a_grid_search_chooses_the_same(cluster):
    def search():
        grid = GridSearch(
            DROCox(recalibrate=False),
            {"alpha": [0.2, 0.5]},
            rule=BestScore(),
            cv=2,
            random_state=0,
            min_group=20,
        )
        return grid.fit(DATA.X, DATA.y, sensitive_features=DATA.sensitive_features).results_

    here = search()
    with cluster():
        there = search()
    pd.testing.assert_frame_equal(here, there)


def test_a_benchmark_stores_what_the_workers_found(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.benchmark.measures.TREES", 3)
    small = {"datasets": ["flc"], "methods": ["null"], "splits": 1}
    with cluster():
        there = run_benchmark(tmp_path / "there", **small)
    assert (there.outcome.computed, there.outcome.failures) == (2, ())
    again = run_benchmark(tmp_path / "there", jobs=1, **small)
    assert (again.outcome.reused, again.outcome.computed) == (2, 0)
    run_benchmark(tmp_path / "here", jobs=1, **small)
    here, there = (pd.read_csv(tmp_path / where / "results.csv") for where in ("here", "there"))
    seconds = [column for column in here if "seconds" in column]
    pd.testing.assert_frame_equal(here.drop(columns=seconds), there.drop(columns=seconds))


# Workers leave sockets behind when they are killed, and Dask says that one was lost.
@pytest.mark.filterwarnings("ignore")
def test_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(cluster, tmp_path):
    dd = pytest.importorskip("dask.dataframe", reason="Dask is an extra")
    from distributed import default_client

    rng = np.random.default_rng(0)
    X = rng.normal(size=(6_000, 4))
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["time"] = rng.exponential(np.exp(-X @ [0.5, 0.2, 0.0, 0.0]))
    frame["event"] = rng.random(6_000) < 0.7
    frame.to_parquet(tmp_path / "patients.parquet", row_group_size=1_500)
    whole = CoxPH().fit(frame[list("abcd")], Surv.from_dataframe("event", "time", frame))
    table = dd.read_parquet(tmp_path / "patients.parquet", split_row_groups=True)
    victim = next(iter(default_client().run(os.getpid).values()))
    timer = threading.Timer(0.3, os.kill, (victim, signal.SIGKILL))
    timer.start()
    parts = distributed.fit(CoxPH(), table, time="time", event="event", rows_per_chunk=1_500)
    assert timer.finished.is_set()
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-8)
