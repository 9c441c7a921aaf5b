"""Work is stored unit by unit: killing it loses the unit in hand, and running again does only the rest."""

import inspect
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from joblib import parallel_config

from experiments.paper.methods import METHODS
from experiments.paper.unit import Unit
from experiments.runs import Store, work_through

UNITS = [Unit("flc", ("age",), METHODS["cox"], repeat, "f" * 64) for repeat in range(6)]


@dataclass(frozen=True)
class Piece:
    """The least that can be worked through."""

    repeat: int
    kind = ("piece",)

    @property
    def key(self):
        return f"{self.repeat:064x}"

    @property
    def place(self):
        return f"piece-{self.repeat}"

    def determinants(self):
        return {"repeat": self.repeat}


PIECES = [Piece(repeat) for repeat in range(6)]

# A process that writes down what it evaluates: it waits after the first unit, ends a worker, or does the rest.
SCRIPT = f"""
import json, os, sys, time
from dataclasses import dataclass
from experiments.runs import Store, work_through

{inspect.getsource(Piece)}

def evaluate(unit):
    with open(sys.argv[2], "a") as log:
        log.write(f"{{unit.repeat}} {{os.getpid()}}\\n")
    if sys.argv[3] == "killed" and unit.repeat == 3:
        os.kill(os.getpid(), 9)
    time.sleep(60 if sys.argv[3] == "waits" and unit.repeat > 0 else 0)
    return {{"half": unit.repeat / 2}}

if __name__ == "__main__":
    units = [Piece(repeat) for repeat in range(6)]
    outcome = work_through(units, Store(sys.argv[1]), evaluate, n_jobs=2)
    print(json.dumps([outcome.reused, outcome.computed, len(outcome.failures)]))
"""


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


@pytest.fixture
def command(tmp_path, store, monkeypatch):
    root = str(Path(__file__).parents[3])
    monkeypatch.setenv("PYTHONPATH", root, prepend=os.pathsep)
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)

    def make(mode):
        return [sys.executable, str(script), str(store.folder), str(tmp_path / "evaluated.txt"), mode]

    return make


def evaluated(command):
    with open(command[3]) as log:
        return [tuple(map(int, line.split())) for line in log]


def running(pid):
    """Whether a process is alive; one that has ended and was not yet collected is not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_killed_run_keeps_every_finished_unit_and_the_next_does_the_rest(store, command):
    slow = command("waits")
    process = subprocess.Popen(slow)
    while not store.path(PIECES[0]).exists() or len(evaluated(slow)) < 3:
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    # The workers end with the run.
    for _, worker in evaluated(slow):
        for _ in range(1000):
            if not running(worker):
                break
            time.sleep(0.01)
        assert not running(worker)
    assert [unit.repeat for unit, _ in store.finished(PIECES)] == [0]
    assert sorted(repeat for repeat, _ in evaluated(slow)) == [0, 1, 2]
    # Several processes share the rest.
    again = subprocess.run(command("rest"), capture_output=True, text=True, check=True)
    assert json.loads(again.stdout) == [1, 5, 0]
    assert sorted(repeat for repeat, _ in evaluated(slow)[3:]) == [1, 2, 3, 4, 5]
    assert [result["half"] for _, result in store.finished(PIECES)] == [0, 0.5, 1, 1.5, 2, 2.5]


def test_a_worker_that_is_killed_is_reported_and_its_unit_not_stored(store, command):
    run = subprocess.run(command("killed"), capture_output=True, text=True, check=False)
    assert run.returncode == 1
    # Which the command line prints as one line, as it does every error of the system.
    (said,) = (line for line in run.stderr.splitlines() if line.startswith("ChildProcessError"))
    assert said.startswith("ChildProcessError: a worker process was killed")
    assert said.endswith("run again to continue, with fewer jobs.")
    assert store.get(PIECES[3]) is None


def test_progress_counts_what_was_stored_before_and_estimates_the_rest(store, result):
    store.put(UNITS[0], {**result(UNITS[0]), "seconds": 30.0})
    seen = []
    outcome = work_through(UNITS[:3], store, result, report=seen.append)
    assert (outcome.reused, outcome.computed, outcome.failures) == (1, 2, ())
    assert [(step.done, step.total) for step in seen] == [(1, 3), (2, 3), (3, 3)]
    assert [step.unit for step in seen] == [None, *UNITS[1:3]]
    # Two units left of a kind that took 30 s; then one, of 30 s and about 0 s on average.
    assert seen[0].seconds_left == 60
    assert seen[1].seconds_left == pytest.approx(15, abs=1)
    assert seen[2].seconds_left == 0


def test_training_for_all_in_one_process_is_not_shared_out(store, result):
    seen = []

    def work(training):
        store.put(UNITS[0], {**result(UNITS[0]), "seconds": 12.0, "training_seconds": training})
        # Threads in the place of processes, which take seconds to start.
        with parallel_config("threading"):
            work_through(UNITS[:4], store, result, n_jobs=2, train=fail_to_train, report=seen.append)

    # Three units left: 30 s of training one after the other, while 6 s of the rest pass in two processes.
    work(10.0)
    assert seen[0].seconds_left == 30
    work(2.0)
    assert seen[4].seconds_left == 15


def fail_to_train(units):
    raise RuntimeError("not needed")


def test_nothing_is_known_of_the_time_before_the_first_unit(store, result):
    seen = []
    work_through(UNITS[:1], store, result, report=seen.append)
    assert seen[0].seconds_left is None


def test_a_unit_that_fails_does_not_stop_the_others_and_is_tried_again(store, result):
    def evaluate(unit):
        if unit.repeat == 1:
            raise RuntimeError("no such luck")
        return result(unit)

    outcome = work_through(UNITS[:3], store, evaluate)
    assert (outcome.computed, len(outcome.failures)) == (2, 1)
    failure = outcome.failures[0]
    assert failure.unit == UNITS[1]
    assert failure.error == "RuntimeError: no such luck"
    assert "in evaluate" in failure.traceback
    assert work_through(UNITS[:3], store, result).computed == 1


def test_a_unit_asked_for_twice_is_evaluated_once(store, result):
    assert work_through([UNITS[0], UNITS[0]], store, result).computed == 1


def test_less_than_one_job_is_an_error(store, result):
    with pytest.raises(ValueError, match="n_jobs must be a whole number, at least 1, got 0"):
        work_through(UNITS, store, result, n_jobs=0)


def test_units_of_one_method_are_trained_together_and_stored_one_by_one(store, result):
    other = Unit("flc", ("age",), METHODS["deepsurv"], 0, "f" * 64)
    bundles = []

    def train(units):
        bundles.append(units)
        return [unit.repeat for unit in units]

    def evaluate(unit, trained):
        assert trained == unit.repeat
        assert unit.repeat == 0 or store.get(UNITS[unit.repeat - 1]) is not None
        return result(unit)

    outcome = work_through([*UNITS[:3], other], store, evaluate, train=train)
    assert (outcome.computed, outcome.failures) == (4, ())
    assert bundles == [UNITS[:3], [other]]
    assert work_through([*UNITS[:3], other], store, evaluate, train=train).reused == 4
    assert len(bundles) == 2


def test_a_training_that_fails_fails_its_units_and_no_others(store, result):
    other = Unit("flc", ("age",), METHODS["deepsurv"], 0, "f" * 64)

    def train(units):
        if units[0].method.name == "cox":
            raise RuntimeError("no memory")
        raise ValueError("no data")

    outcome = work_through([*UNITS[:2], other], store, result, train=train)
    errors = [failure.error for failure in outcome.failures]
    assert errors == ["RuntimeError: no memory", "RuntimeError: no memory", "ValueError: no data"]
