import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

import drosurv as package
from drosurv.cli import app

COMMANDS = {name: command for name, command in get_command(app).commands.items() if not command.hidden}
NESTED = [(name, part) for name, command in COMMANDS.items() for part in getattr(command, "commands", ())]


@pytest.mark.parametrize("words", [(), *((name,) for name in COMMANDS), *NESTED], ids=" ".join)
def test_help_shows_an_example(drosurv, words):
    assert " ".join(["Example: drosurv", *words]) in drosurv.ok(*words, "--help").stdout


@pytest.fixture(scope="module")
def with_a_new_command(tmp_path_factory):
    """What a copy of the package with one more command says to mistakes, and which modules are loaded then."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(Path(package.__file__).parent, folder / "drosurv")
    (folder / "drosurv" / "cli" / "greet.py").write_text(GREET)
    rows = "".join(f"{k},{k % 2},{60 + k}\n" for k in range(30))
    (folder / "d.csv").write_text("months,died,age\n" + rows)
    words = ["d.csv", "--time", "mnths", "--event", "died", "-o", "m"]
    quick = [["greet", "--name", "ward"], ["--help"], ["fit", "--help"], ["fti"]]
    missing = [[name, *words] for name in ("fit", "check", "repair")]
    script = SCRIPT.format(batches=[quick, missing])
    env = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done


def test_a_file_with_a_function_is_a_new_command(with_a_new_command):
    for wanted in ("Hello ward.", "Greet somebody."):
        assert wanted in with_a_new_command.stdout


GREET = '''
import typer

from drosurv.cli.options import command, option


@command(place=15)
def greet(name: str = option("Whom to greet.", default="all")) -> None:
    """Greet somebody.

    Example: drosurv greet --name ward
    """
    typer.echo(f"Hello {name}.")
'''


def test_every_option_says_what_it_is_for():
    commands = {name: command.params for name, command in get_command(app).commands.items()}
    assert [
        (name, option.name) for name, options in commands.items() for option in options if not option.help
    ] == []


def test_an_unknown_command_or_option_exits_2(drosurv):
    assert drosurv("fti").exit_code == 2
    assert drosurv("demo", "--alhpa", "1").exit_code == 2


def test_a_seed_that_is_none_is_named(drosurv):
    options = {name: [option.name for option in of.params] for name, of in get_command(app).commands.items()}
    seeded = [name for name, known in options.items() if "seed" in known]
    assert {"fit", "evaluate", "audit", "certify", "repair"} <= {*seeded}
    for name in seeded:
        result = drosurv(name, "--seed", "-3")
        assert result.exit_code == 2
        assert "'--seed'" in result.stderr


HEAVY = {"torch", "sklearn", "sksurv", "numba", "scipy", "matplotlib"}


SCRIPT = """
import sys
from drosurv.cli import app
for lines in {batches}:
    for words in lines:
        try:
            app(words)
        except SystemExit:
            pass
    print("loaded:", *sorted(sys.modules))
"""


def test_help_and_mistakes_are_answered_before_anything_slow_is_imported(with_a_new_command):
    done = with_a_new_command
    first, second = ({*line.split()} for line in done.stdout.splitlines() if line.startswith("loaded: "))
    assert "No such command 'fti'" in done.stderr
    assert (HEAVY | {"numpy", "pandas"}) & first == set()
    assert done.stderr.count("--time column 'mnths' is not in the table. Did you mean 'months'?") == 3
    assert HEAVY & second == set()
    assert "pandas" in second


def test_the_installed_command_runs():
    command = [Path(sys.executable).parent / "drosurv", "--version"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"drosurv {package.__version__}\n"
