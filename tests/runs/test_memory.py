"""Peak memory of a run, against allocations of known size."""

import gc
from multiprocessing import get_context

import numpy as np
import pytest

from drosurv.runs import PeakMemory, memory

MEGABYTES = 200
tells_shares = pytest.mark.skipif(
    memory._held_megabytes() == 0, reason="this system does not tell proportional set sizes"
)


@pytest.fixture(autouse=True)
def no_garbage():
    """What earlier tests left must not go away in the middle of a measurement."""
    gc.collect()


def fill(megabytes):
    """Hold so much, every page of it written, for a few samples."""
    held = np.ones(megabytes * 2**17)
    memory.Event().wait(4 * memory.SAMPLE_SECONDS)
    return held.size


@tells_shares
def test_what_is_held_only_for_a_while_counts():
    with PeakMemory(1) as idle:
        pass
    with PeakMemory(1) as peak:
        fill(MEGABYTES)
    assert peak.megabytes - idle.megabytes == pytest.approx(MEGABYTES, abs=0.5 * MEGABYTES)
    assert peak.device_megabytes is None


@tells_shares
# Newer Pythons warn of forks beside threads; these children only fill memory.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_workers_count_and_what_they_share_counts_once():
    with PeakMemory(1) as idle:
        pass
    held = np.ones(MEGABYTES * 2**17)
    with PeakMemory(2) as sharing:
        fork = [get_context("fork").Process(target=fill, args=(1,)) for _ in range(2)]
        for process in fork:
            process.start()
        for process in fork:
            process.join()
    assert sharing.megabytes - idle.megabytes == pytest.approx(MEGABYTES, abs=0.5 * MEGABYTES)
    del held
    with PeakMemory(2) as apart:
        fork = [get_context("fork").Process(target=fill, args=(MEGABYTES,)) for _ in range(2)]
        for process in fork:
            process.start()
        for process in fork:
            process.join()
    assert apart.megabytes - idle.megabytes == pytest.approx(2 * MEGABYTES, abs=0.5 * MEGABYTES)


def test_where_the_system_tells_no_shares_the_peaks_bound_it(monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(memory, "_held_megabytes", lambda: 0.0)
    with PeakMemory(1) as peak:
        pass
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Kilobytes on Linux, bytes on macOS.
    assert peak.megabytes in (pytest.approx(own / 2**10, rel=0.01), pytest.approx(own / 2**20, rel=0.01))
