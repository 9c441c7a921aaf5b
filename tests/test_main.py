"""``python -m drosurv`` is the ``drosurv`` command."""

import runpy
import subprocess
import sys

import pytest

import drosurv


@pytest.fixture
def run(monkeypatch, capsys):
    """Does what ``python -m drosurv`` does, in this process: exit code, and what is printed."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["drosurv", *arguments])
        with pytest.raises(SystemExit) as end:
            runpy.run_module("drosurv", run_name="__main__")
        return end.value.code, *capsys.readouterr()

    return call


def test_it_does_what_the_command_does():
    done = subprocess.run([sys.executable, "-m", "drosurv", "--version"], capture_output=True, text=True)
    assert done.stdout == f"drosurv {drosurv.__version__}\n"


def test_its_exit_code_and_help_are_the_commands(run):
    code, printed, error = run("fti")
    assert (code, printed) == (2, "")
    assert "No such command 'fti'" in error
    code, printed, _ = run("fit", "--help")
    assert code == 0
    assert "Usage: drosurv fit" in printed
