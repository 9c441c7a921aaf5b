"""Peak memory of a run, against allocations of known size."""

import gc
from multiprocessing import get_context

import numpy as np
import pytest

from experiments.runs import run
from experiments.runs.run import peak_memory

MEGABYTES = 200
tells_shares = pytest.mark.skipif(
    run._held_megabytes() == 0, reason="this system does not tell proportional set sizes"
)


@pytest.fixture(autouse=True)
def quick_and_without_garbage(monkeypatch):
    """What earlier tests left must not go away in the middle of a measurement."""
    monkeypatch.setattr(run, "SAMPLE_SECONDS", 0.1)
    gc.collect()


def fill(megabytes):
    """Hold so much, every page of it written, for a few samples."""
    held = np.ones(megabytes * 2**17)
    run.Event().wait(8 * run.SAMPLE_SECONDS)
    return held.size


@tells_shares
def test_what_is_held_only_for_a_while_counts():
    with peak_memory() as idle:
        pass
    with peak_memory() as peak:
        fill(MEGABYTES)
    assert peak.megabytes - idle.megabytes == pytest.approx(MEGABYTES, abs=0.5 * MEGABYTES)
    assert peak.device_megabytes is None


@tells_shares
# Newer Pythons warn of forks beside threads; these children only fill memory.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_workers_count_and_what_they_share_counts_once():
    with peak_memory() as idle:
        pass
    held = np.ones(MEGABYTES * 2**17)
    with peak_memory() as sharing:
        fork = [get_context("fork").Process(target=fill, args=(1,)) for _ in range(2)]
        for process in fork:
            process.start()
        for process in fork:
            process.join()
    assert sharing.megabytes - idle.megabytes == pytest.approx(MEGABYTES, abs=0.5 * MEGABYTES)
    del held
    with peak_memory() as apart:
        fork = [get_context("fork").Process(target=fill, args=(MEGABYTES,)) for _ in range(2)]
        for process in fork:
            process.start()
        for process in fork:
            process.join()
    assert apart.megabytes - idle.megabytes == pytest.approx(2 * MEGABYTES, abs=0.5 * MEGABYTES)


def test_where_the_system_tells_no_shares_nothing_is_known(monkeypatch):
    monkeypatch.setattr(run, "_held_megabytes", lambda: 0.0)
    with peak_memory() as peak:
        pass
    assert peak.megabytes is None
