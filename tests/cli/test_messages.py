import warnings

import pytest
import typer
from typer.testing import CliRunner

from drosurv.cli.plain_messages import PlainMessages, in_options, printable

app = typer.Typer(cls=PlainMessages)


@app.command()
def fail(event_value: str = "", groups: str = "", kind: str = "value") -> None:
    if kind == "value":
        raise ValueError("which value?\n  Pass event_value, for example event_value='yes'.")
    if kind == "file":
        open("/nonexistent/file")  # noqa: SIM115 - never opens
    if kind == "own file":
        raise FileNotFoundError("data.csv is not a file.")
    if kind == "pipe":
        raise BrokenPipeError(32, "Broken pipe")
    if kind == "memory":
        raise MemoryError("Unable to allocate 80 GiB")
    if kind == "bug":
        raise ZeroDivisionError
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("pass sensitive_features", UserWarning, stacklevel=1)
    warnings.warn("old", DeprecationWarning, stacklevel=1)
    typer.echo("done")


@app.command()
def other() -> None:
    pass


def run(*arguments):
    return CliRunner().invoke(app, ["fail", *arguments])


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("value", "Error: which value? Pass --event-value, for example --event-value 'yes'."),
        ("file", "Error: /nonexistent/file: No such file or directory."),
        ("own file", "Error: data.csv is not a file."),
        (
            "memory",
            "Error: not enough memory (Unable to allocate 80 GiB): use fewer rows, columns or categories.",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(kind, line):
    result = run("--kind", kind)
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [line]
    assert result.stdout == ""


def test_a_reader_that_has_seen_enough_is_no_error():
    result = run("--kind", "pipe")
    assert (result.exit_code, result.output) == (1, "")


def test_a_bug_keeps_its_traceback():
    assert isinstance(run("--kind", "bug").exception, ZeroDivisionError)


def test_warnings_are_lines_on_stderr_said_once_and_deprecations_are_not_for_users():
    result = run("--kind", "warning")
    assert result.exit_code == 0
    assert result.stdout == "done\n"
    assert result.stderr == "Warning: pass --groups\n"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("pass separator=';'.", "pass --separator ';'."),
        (
            "name those texts in missing; or name it in categorical",
            "name those texts in --missing; or name it in --categorical",
        ),
        ("alpha must lie in (0, 1], got 3", "alpha must lie in (0, 1], got 3"),
        ("does not occur in missing column", "does not occur in missing column"),
        ("hold_out_share must lie", "--hold-out-share must lie"),
        ("set l2 > 0, missing values", "set l2 > 0, missing values"),
        ("n_jobs must be at least 1", "jobs must be at least 1"),
        ("cv=9 folds are too many", "--folds 9 folds are too many"),
        ("as_json is not for set_", "--json is not for --set"),
        ("penalty='keya_group' compares groups", "penalty='keya_group' compares groups"),
    ],
)
def test_arguments_are_named_as_options(message, expected):
    names = ("separator", "missing", "categorical", "alpha", "hold_out_share", "l2", "jobs", "folds")
    options = {name: f"--{name.replace('_', '-')}" for name in names} | {"set_": "--set", "as_json": "--json"}
    assert in_options(message, options) == expected


def test_control_characters_do_not_reach_the_terminal():
    assert printable("a\x1b[31mb\x07c\u202ed") == "a�[31mb�c�d"
