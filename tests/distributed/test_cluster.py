"""Grids, bootstraps and long runs go to a cluster when joblib is told to use it, and give the same numbers.

So do fits of a table that is cut into parts, even if a worker is killed in the middle of one.
"""

import multiprocessing
import os
import signal
from dataclasses import dataclass

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from drosurv import CoxPH, DROCox, Surv, distributed, evaluation
from drosurv.datasets import make_hidden_minority
from drosurv.estimators import network_estimator
from drosurv.evaluation import get_scorer
from drosurv.patients.draws import in_parallel
from drosurv.solvers.chunk_problem import ChunkProblem
from experiments.runs import Store, Task, work_through

# Dask leaves sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
DATA = make_hidden_minority(300, random_state=0)


@pytest.fixture(scope="module")
def cluster():
    """Two processes of a cluster, which joblib uses inside the block."""
    import distributed as dask
    from dask import config

    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    with config.set({"distributed.worker.multiprocessing-method": method}):
        # Forks of one process share what it has imported.
        shared = ("distributed", "dask.dataframe", "drosurv.evaluation", "drosurv.solvers.chunk_problem")
        dask.utils.get_mp_context().set_forkserver_preload([*shared, "drosurv.estimators"])
        with (
            dask.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as workers,
            dask.Client(workers),
        ):
            yield lambda: joblib.parallel_config(backend="dask")


def test_replicates_are_computed_by_the_workers(cluster):
    def where(number):
        return os.getpid(), number**2

    here = list(in_parallel(where, 20, None))
    with cluster():
        there = list(in_parallel(where, 20, None))
    assert {process for process, _ in here} == {os.getpid()}
    assert len({process for process, _ in there} - {os.getpid()}) == 2
    assert [square for _, square in here] == [square for _, square in there]


def test_an_evaluation_and_a_table_of_coefficients_are_those_of_one_process(cluster):
    model = CoxPH().fit(DATA.X, DATA.y)

    def numbers():
        found = evaluation.evaluate(
            model, DATA.X, DATA.y, sensitive_features=np.where(DATA.X.iloc[:, 0] > 0, "a", "b")
        )
        return found.to_frame(), model.summary(method="bootstrap", n_bootstrap=2)

    here = numbers()
    with cluster():
        there = numbers()
    for own, other in zip(here, there, strict=True):
        pd.testing.assert_frame_equal(own, other)


def test_a_grid_search_chooses_the_same(cluster):
    def search():
        grid = GridSearchCV(
            DROCox(recalibrate=False), {"alpha": [0.2, 0.5]}, cv=2, scoring=get_scorer("c_index")
        )
        return grid.fit(DATA.X, DATA.y).cv_results_["mean_test_score"]

    here = search()
    with cluster():
        there = search()
    np.testing.assert_array_equal(here, there)


def test_units_of_a_run_are_computed_by_the_workers_and_stored_here(cluster, tmp_path):
    # Defined here, so that it travels to the workers by value.
    @dataclass(frozen=True)
    class Unit(Task):
        number: int

        @property
        def address(self):
            return "data", "method", "split", self.number

        def determinants(self):
            return {"number": self.number}

    def evaluate(unit):
        return {"process": os.getpid(), "square": unit.number**2}

    units, store = [Unit(number) for number in range(4)], Store(tmp_path)
    with cluster():
        there = work_through(units, store, evaluate, n_jobs=2)
    assert (there.computed, there.failures) == (4, ())
    again = work_through(units, store, evaluate)
    assert (again.reused, again.computed) == (4, 0)
    results = [store.get(unit) for unit in units]
    assert [result["square"] for result in results] == [0, 1, 4, 9]
    assert os.getpid() not in {result["process"] for result in results}


FRAME = DATA.X.assign(time=np.ceil(20 * DATA.y["time"]), event=DATA.y["event"])


def fit_parts(model, table):
    features = list(DATA.X.columns)
    return distributed.fit(model, table, time="time", event="event", features=features, rows_per_chunk=150)


def test_a_dask_table_in_parts_gives_the_same_model(cluster):
    import dask.dataframe as dd

    y = Surv.from_dataframe("event", "time", FRAME)
    model = DROCox(alpha=0.4, tol=1e-9, recalibrate=False)
    whole = clone(model).fit(DATA.X, y)
    table = dd.from_pandas(FRAME, npartitions=3)
    # A partition may be empty.
    table = dd.concat([table, table[table["time"] < 0]])
    np.testing.assert_allclose(fit_parts(model, table).coef_, whole.coef_, atol=1e-6)
    holes = table.assign(x2=table["x2"].where(table["time"] != table["time"].max()))
    with pytest.raises(ValueError, match=r"partition \d: column 'x2' has \d+ missing"):
        fit_parts(CoxPH(), holes)


# Dask says that a worker was lost.
@pytest.mark.filterwarnings("ignore")
def test_a_worker_killed_in_the_middle_of_a_fit_of_files_changes_nothing(cluster, monkeypatch, tmp_path):
    from distributed import Nanny, default_client

    async def leave_it_dead(self):
        return self.status

    # Starting another worker would take longer than the fit.
    monkeypatch.setattr(Nanny, "instantiate", leave_it_dead)
    monkeypatch.setattr(network_estimator, "N_FOLDS", 2)
    # The folds of recalibration depend on the order of the rows: here that of the files.
    parts = [FRAME.iloc[part::4] for part in range(4)]
    rows = pd.concat(parts)
    whole = CoxPH(recalibrate=True).fit(rows[DATA.X.columns], Surv.from_dataframe("event", "time", rows))
    victim, survivor = default_client().run(os.getpid).values()
    problems, derivatives = [], ChunkProblem.curvature

    def kill_in_second(self):
        if self not in problems:
            problems.append(self)
            if len(problems) == 2:
                os.kill(victim, signal.SIGKILL)
        return derivatives(self)

    # The model of all patients is known, and the workers train on those outside of the first fold.
    monkeypatch.setattr(ChunkProblem, "curvature", kill_in_second)
    for number, part in enumerate(parts):
        part.to_parquet(tmp_path / f"part-{number}.parquet")
    found = fit_parts(CoxPH(recalibrate=True), tmp_path)
    # One problem of all patients, and two of each fold: training and held-out patients.
    assert len(problems) == 5
    assert found.recalibration_ == pytest.approx(whole.recalibration_, rel=1e-6)
    assert set(default_client().run(os.getpid).values()) == {survivor}
    np.testing.assert_allclose(found.coef_, whole.coef_, atol=1e-6)
