"""Peak memory of a run, against allocations of known size."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.runs import run
from experiments.runs.run import peak_memory

MEGABYTES = 100

# A small process of its own: pages of this one, which children copy when they touch them, would count too.
SCRIPT = f"""
import json
from multiprocessing import get_context

import numpy as np

from experiments.runs import run
from experiments.runs.run import peak_memory

run.SAMPLE_SECONDS = 0.05
fork = get_context("fork")


def fill(megabytes, filled=None):
    "Hold so much, every page of it written, for a few samples; begin when the other worker has its own."
    held = np.ones(megabytes * 2**17)
    if filled is not None:
        filled.wait()
    run.Event().wait(6 * run.SAMPLE_SECONDS)
    return held.size


def two_workers(megabytes):
    workers = [fork.Process(target=fill, args=(megabytes, both)) for both in 2 * [fork.Barrier(2)]]
    for process in workers:
        process.start()
    for process in workers:
        process.join()


with peak_memory() as idle:
    pass
with peak_memory() as alone:
    fill({MEGABYTES})
held = np.ones({MEGABYTES} * 2**17)
with peak_memory() as sharing:
    two_workers(1)
del held
with peak_memory() as apart:
    two_workers({MEGABYTES})
more = [found.megabytes - idle.megabytes for found in (alone, sharing, apart)]
print(json.dumps({{"more": more, "device": alone.device_megabytes}}))
"""


@pytest.fixture(scope="module")
def measured():
    if run._held_megabytes() == 0:
        pytest.skip("this system does not tell proportional set sizes")
    # Newer Pythons warn of forks beside threads; these children only fill memory.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SCRIPT]
    root = Path(__file__).parents[3]
    return json.loads(subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout)


def test_what_is_held_only_for_a_while_counts(measured):
    assert measured["more"][0] == pytest.approx(MEGABYTES, abs=0.3 * MEGABYTES)
    assert measured["device"] is None


def test_workers_count_and_what_they_share_counts_once(measured):
    assert measured["more"][1:] == pytest.approx([MEGABYTES, 2 * MEGABYTES], abs=0.3 * MEGABYTES)


def test_where_the_system_tells_no_shares_nothing_is_known(monkeypatch):
    monkeypatch.setattr(run, "_held_megabytes", lambda: 0.0)
    with peak_memory() as peak:
        pass
    assert peak.megabytes is None
