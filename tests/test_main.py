"""``python -m drosurv`` is the ``drosurv`` command."""

import subprocess
import sys

import drosurv


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "drosurv", *arguments], capture_output=True, text=True)


def test_it_does_what_the_command_does():
    assert run("--version").stdout == f"drosurv {drosurv.__version__}\n"


def test_its_exit_code_and_help_are_the_commands():
    failed = run("fti")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert "No such command 'fti'" in failed.stderr
    assert "Usage: drosurv fit" in run("fit", "--help").stdout
