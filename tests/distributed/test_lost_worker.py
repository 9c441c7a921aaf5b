"""A worker that is killed in the middle of a fit changes nothing."""

import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest

from drosurv import CoxPH, Surv, distributed


# Workers leave sockets behind when they are killed, and Dask says that one was lost.
@pytest.mark.filterwarnings("ignore")
def test_a_killed_worker_changes_nothing(tmp_path):
    dd = pytest.importorskip("dask.dataframe", reason="Dask is an extra")
    from distributed import Client, LocalCluster

    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4))
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["time"] = rng.exponential(np.exp(-X @ [0.5, 0.2, 0.0, 0.0]))
    frame["event"] = rng.random(20_000) < 0.7
    frame.to_parquet(tmp_path / "patients.parquet", row_group_size=2_500)
    whole = CoxPH().fit(frame[list("abcd")], Surv.from_dataframe("event", "time", frame))
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        table = dd.read_parquet(tmp_path / "patients.parquet", split_row_groups=True)
        victim = next(iter(client.run(os.getpid).values()))
        timer = threading.Timer(0.6, os.kill, (victim, signal.SIGKILL))
        timer.start()
        parts = distributed.fit(CoxPH(), table, time="time", event="event", rows_per_slab=1_500)
        timer.join()
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-8)
