import warnings
from functools import partial

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from drosurv.cli.outputs import PlainMessages, as_option, print_recalibration, printable
from drosurv.errors import SPELLING, ArgumentError, ArgumentWarning, MissingPackage, arg

app = typer.Typer(cls=PlainMessages)


@app.command()
def fail(event_value: str = "", groups: str = "", kind: str = "value") -> None:
    if kind == "value":
        raise ArgumentError(
            "event_value",
            f"which value?\n  Pass {arg('event_value')}, for example {arg('event_value', 'yes')}.",
        )
    if kind == "file":
        open("/nonexistent/file")  # noqa: SIM115 - never opens
    if kind == "own file":
        raise FileNotFoundError("data.csv is not a file.")
    if kind == "pipe":
        raise BrokenPipeError(32, "Broken pipe")
    if kind == "memory":
        raise MemoryError("Unable to allocate 80 GiB")
    if kind == "extra":
        raise MissingPackage('a network needs torch: pip install "drosurv[deep]".')
    if kind == "fault":
        int("not a number")
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn(
                ArgumentWarning("sensitive_features", f"pass {arg('sensitive_features')}"), stacklevel=1
            )
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
        ("extra", 'Error: a network needs torch: pip install "drosurv[deep]".'),
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


def test_an_error_of_the_library_is_a_traceback_after_a_sentence_that_asks_to_report_it():
    result = run("--kind", "fault")
    assert isinstance(result.exception, ValueError)
    (sentence,) = result.stderr.splitlines()
    assert sentence.startswith("This is an error in drosurv, not in your table or options. Please report it")
    assert "This is an error in drosurv" not in run("--knd", "fault").stderr


def test_warnings_are_lines_on_stderr_said_once_and_deprecations_are_not_for_users():
    result = run("--kind", "warning")
    assert result.exit_code == 0
    assert result.stdout == "done\n"
    assert result.stderr == "Warning: pass --groups\n"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("separator", ";", "--separator ';'"),
        ("missing", None, "--missing"),
        ("missing", ["age=999", "x"], "--missing 'age=999,x'"),
        ("missing", ["crp=<0,5"], """--missing '"crp=<0,5"'"""),
        ("hold_out_share", None, "--hold-out-share"),
        ("share", None, "--hold-out-share"),
        ("n_jobs", None, "--jobs"),
        ("cv", 9, "--folds 9"),
        ("cv", np.int64(9), "--folds 9"),
        ("as_json", None, "--json"),
        ("recalibrate", True, "--recalibrate"),
        ("recalibrate", False, "--no-recalibrate"),
        # A parameter of an estimator without an option of its own.
        ("min_group", 37, "--set min_group=37"),
        ("penalty", "keya_group", "--set penalty='keya_group'"),
        # What the command line does not know stays as the library writes it.
        ("X", None, "X"),
        ("y_train", 3, "y_train=3"),
    ],
)
def test_arguments_are_named_as_options(name, value, expected):
    names = ("separator", "missing", "hold_out_share", "jobs", "folds", "recalibrate")
    options = {name: f"--{name.replace('_', '-')}" for name in names} | {"set_": "--set", "as_json": "--json"}
    token = SPELLING.set(partial(as_option, options))
    try:
        assert arg(name, value) == expected
    finally:
        SPELLING.reset(token)


def test_python_names_arguments_by_their_names():
    assert [arg("missing"), arg("missing", ["x"]), arg("id", text="COLUMN")] == [
        "missing",
        "missing=['x']",
        "id=COLUMN",
    ]


def test_a_command_without_settings_names_parameters_as_python_does():
    assert as_option({"jobs": "--jobs"}, "min_group", "37") == "min_group=37"


def test_control_characters_do_not_reach_the_terminal():
    assert printable("a\x1b[31mb\x07c\u202ed") == "a�[31mb�c�d"


def test_a_factor_that_was_not_taken_is_not_called_the_best(capsys):
    print_recalibration(1.0, "so")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("factor", "silent"), [(1.4, False), (0.5, False), (0.012, True)])
def test_a_model_that_recalibration_has_silenced_is_warned_of(capsys, factor, silent):
    print_recalibration(factor, "--no-recalibrate leaves them as they are")
    told = capsys.readouterr()
    assert (
        f"Log risks were multiplied by {factor}, the best factor for patients not trained on (--no-rec"
        in told.out
    )
    assert ("now predicts nearly the same for everybody" in told.err) is silent
