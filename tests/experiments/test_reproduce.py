"""The command rebuilds, continues after a stop, and says what went wrong in one line."""

import os
import signal
import subprocess
import sys

import pytest

from experiments.paper import Protocol, reproduction

WHAT = ["--only", "flc-age", "--methods", "cox", "--repeats", "2", "--jobs", "1", "--device", "cpu"]


@pytest.fixture(scope="module", autouse=True)
def short():
    """Training is short: how well it goes is not looked at here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduction, "Protocol", lambda: Protocol(max_iter=2, bootstrap=2))
        yield


def stored(folder):
    return sorted((folder / "units").rglob("repeat-*.json"))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory, experiments):
    """The folder of a run of two units that ended in the middle of the second, and what it had stored."""
    folder = tmp_path_factory.mktemp("reproduction")
    evaluate = reproduction.evaluate_unit

    def evaluate_one(unit, **options):
        if unit.repeat == 1:
            raise KeyboardInterrupt
        return evaluate(unit, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reproduction, "evaluate_unit", evaluate_one)
        assert experiments("paper", *WHAT, "-o", folder).exit_code != 0
    return folder, [(path, path.stat().st_mtime_ns) for path in stored(folder)]


def test_a_stopped_run_continues_where_it_was_and_a_diagnostic_choice_is_labelled(stopped, experiments):
    folder, kept = stopped
    assert len(kept) == 1
    # JSON is all that is printed.
    found = experiments.json("paper", *WHAT, "-o", folder)
    assert found["output"] == str(folder)
    assert (found["computed"], found["reused"]) == (1, 1)
    assert all(path.stat().st_mtime_ns == written for path, written in kept)
    assert len(stored(folder)) == 2
    (counts,) = found["agreement"]
    assert counts["experiment"] == "flc-age"
    assert counts["cells"] == 8
    assert found["failures"] == []
    assert all(os.path.isfile(path) for path in found["files"])
    assert not any("diagnostic" in path for path in found["files"])
    shown = experiments.ok("paper", *WHAT, "-o", folder, "--select-on", "test")
    assert "0 units computed and 2 reused" in shown.stdout
    assert "2 of 2 units; done" in shown.stderr
    assert list(folder.rglob("flc-age-ci-diagnostic.md"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "flc-height"], "'flc-height' is not an experiment or a dataset; choose from flc-age"),
        (["--only", "flc-age", "--methods", "dro"], "'dro' is not a method; choose from cox"),
        (["--only", "flc-age", "--repeats", "0"], "repeats must be a whole number, at least 1, got 0"),
        (["--only", "flc-age", "--jobs", "0"], "jobs must be a whole number, at least 1, got 0"),
        (["--select-on", "train"], "--select-on must be 'validation' or 'test', got 'train'"),
        (["--device", "tpu"], "--device 'tpu' is not a torch device"),
        (["--seer-file", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_bad_input_is_one_line(experiments, options, message, tmp_path):
    assert message in experiments.fails("paper", *options, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_is_no_folder_for_the_results(experiments, tmp_path):
    (tmp_path / "out").write_text("mine")
    assert "is a file: name a folder" in experiments.fails(
        "paper", "--only", "flc-age", "-o", tmp_path / "out"
    )
    assert (tmp_path / "out").read_text() == "mine"
    assert "there is no folder" in experiments.fails("paper", "--document", tmp_path / "none" / "d.md")


def test_data_that_cannot_be_had_make_the_command_fail_after_the_rest(experiments, tmp_path, monkeypatch):
    from drosurv.datasets import DataUnavailableError

    def offline(name, **_):
        raise DataUnavailableError(f"{name} cannot be downloaded here")

    monkeypatch.setattr(reproduction, "load_dataset", offline)
    result = experiments("paper", "--only", "seer", "--jobs", "1", "-o", tmp_path)
    assert result.exit_code == 1
    assert "seer is left out: seer cannot be downloaded here" in result.stderr


def test_help_shows_an_example(experiments):
    assert "Example: python -m experiments.paper --only flc-age" in experiments.ok("paper", "--help").stdout


# The command as it is, with work that takes no imports: two units of which none ends.
INTERRUPTED = """
import sys, time, types
from dataclasses import dataclass
from experiments.command import main
from experiments.runs import Store, Task, work_through

@dataclass(frozen=True)
class Wait(Task):
    number: int

    @property
    def address(self):
        return "none", "none", "number", self.number

    def determinants(self):
        return {"number": self.number}

def wait(unit):
    time.sleep(60)

def reproduce(output, *, jobs, report, **_):
    work_through([Wait(0), Wait(1)], Store(output), wait, n_jobs=jobs, report=report)

sys.modules["experiments.paper"] = types.SimpleNamespace(reproduce=reproduce)
main("paper")
"""


def test_an_interrupted_run_says_that_it_stops_and_how_to_go_on(tmp_path):
    what = ["--only", "flc-age", "--methods", "cox", "--repeats", "2", "--jobs", "2", "--device", "cpu"]
    command = [sys.executable, "-c", INTERRUPTED, *what, "-o", str(tmp_path / "out put")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    # The first line of progress: the work has begun, and workers are being started.
    assert "0 of 2 units" in process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"Stopped: what is finished is kept in {tmp_path / 'out put'}." in told
    assert "run the same again: python -m experiments.paper --only flc-age --methods cox" in told
    assert "resource_tracker" not in told
