"""Commands of the experiments: the paper and the benchmark, in units that may be stopped and continued."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drosurv.cli.options import Names, about, with_options
from drosurv.cli.outputs import PlainMessages, check_outputs, print_frame, print_json, say
from drosurv.errors import InputError

if TYPE_CHECKING:
    from experiments.benchmark import Benchmark
    from experiments.paper import Reproduction
    from experiments.runs import Progress

app = typer.Typer(
    cls=PlainMessages, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]}
)
_SECONDS_BETWEEN_LINES = 30.0
_INTERRUPTED = 130


@app.command()
@with_options
def benchmark(
    datasets: Annotated[Names, about("Names of datasets, separated by commas; all by default.")] = (),
    methods: Annotated[Names, about("Methods, such as cox-interactions,repair,forest; all by default.")] = (),
    splits: Annotated[int | None, about("Splits of each dataset, 10 by default, 3 with --quick.")] = None,
    seed: Annotated[int, about("Draws the splits.")] = 0,
    quick: Annotated[
        bool, about("Six small datasets and three splits: under ten minutes.", None, "--quick")
    ] = False,
    jobs: Annotated[int | None, about("Processes; by default one per processor core.")] = None,
    minutes: Annotated[
        float | None, about("Start nothing later than this; running again does the rest.")
    ] = None,
    data: Annotated[
        Path | None, about("Folder with the datasets' files; by default that of DROSURV_DATA, or your cache.")
    ] = None,
    output: Annotated[Path, about("Folder for finished units and results.", None, "--output", "-o")] = Path(
        "benchmark"
    ),
    as_json: Annotated[bool, about("Print JSON for programs.", None, "--json")] = False,
) -> None:
    """Compare the methods on real datasets. Stop it at any time: running again continues.

    Example: python -m experiments.benchmark --quick
    """
    if data is not None:
        # By the environment, because worker processes inherit it.
        os.environ["DROSURV_DATA"] = str(data.resolve())
    with _units("benchmark", "benchmarking", output) as report:
        from experiments.benchmark import run_benchmark

        found = run_benchmark(
            output,
            datasets=datasets or None,
            methods=methods or None,
            splits=splits,
            seed=seed,
            quick=quick,
            jobs=jobs,
            minutes=minutes,
            report=report,
        )
    if as_json:
        print_json({**_run_summary(found, [found.path]), "missing": found.missing})
    else:
        _show_benchmark(found)
    if found.unavailable or found.missing:
        raise typer.Exit(1)


def _show_benchmark(found: Benchmark) -> None:
    errors = int((found.results["error"] != "").sum())
    typer.echo(f"{_computed(found)}, of which {errors} are methods that failed; {found.missing} are missing.")
    typer.echo(f"written: {found.path}")
    _tell_of_trouble(found)
    if found.missing:
        typer.echo("Run the same command again to do what is missing.", err=True)


@app.command()
@with_options
def paper(
    only: Annotated[
        Names,
        about(
            "Tables (flc-age, support-gender, seer-race, ..., split-size, sides), the figure (alpha), or "
            "datasets (flc, support, seer), separated by commas; all by default."
        ),
    ] = (),
    methods: Annotated[Names, about("Methods, such as cox,dro-cox,deep-dro-cox-split; all by default.")] = (),
    repeats: Annotated[
        int | None, about("Repeats, each with another validation part, 10 by default, 3 with --quick.")
    ] = None,
    quick: Annotated[
        bool, about("Three tables, linear methods, three repeats: under two minutes.", None, "--quick")
    ] = False,
    select_on: Annotated[
        str, about("Where settings are chosen: validation, or test (a diagnostic, not a result).")
    ] = "validation",
    device: Annotated[str, about("Where to train: cpu, cuda or auto.")] = "auto",
    jobs: Annotated[int | None, about("Processes; by default one per processor core.")] = None,
    seer_file: Annotated[
        Path | None,
        about("Copy of SEER in the authors' row order; by default the public file, ordered otherwise."),
    ] = None,
    output: Annotated[
        Path, about("Folder for finished units, tables and the figure.", None, "--output", "-o")
    ] = Path("reproduction"),
    document: Annotated[
        Path | None, about("Also write everything as a Markdown document to this file.")
    ] = None,
    as_json: Annotated[bool, about("Print JSON for programs.", None, "--json")] = False,
) -> None:
    """Rebuild the paper's tables and figure. Stop it at any time: running again continues.

    Example: python -m experiments.paper --only flc-age --methods dro-cox,cox --repeats 3
    """
    check_outputs([document], [seer_file])
    if seer_file is not None and not seer_file.is_file():
        raise InputError(f"--seer-file {str(seer_file)!r} is not a file: check its name and folder.")
    with _units("paper", "reproducing", output) as report:
        from experiments.paper import reproduce as run

        found = run(
            output,
            only=only or None,
            methods=methods or None,
            repeats=repeats,
            quick=quick,
            select_on=select_on,
            device=device,
            jobs=jobs,
            seer_file=seer_file,
            document=document,
            report=report,
        )
    if as_json:
        agreement = [] if found.agreement is None else found.agreement.to_dict("records")
        summary = {
            "output": str(output),
            **_run_summary(found, found.files),
            "wall_seconds": found.wall_seconds,
        }
        print_json({**summary, "agreement": agreement})
    else:
        _show_reproduction(found, output)
    if not found.complete:
        raise typer.Exit(1)


def _show_reproduction(found: Reproduction, output: Path) -> None:
    from experiments.paper.document import conclusion

    typer.echo(conclusion(found.tabulation))
    if found.agreement is not None:
        title = "Published cells (IBS aside) within two published standard deviations"
        print_frame(found.agreement, title)
    typer.echo(f"{_computed(found)}; {len(found.files)} files written to {output}.")
    _tell_of_trouble(found)
    if found.outcome.failures:
        typer.echo("Run the same command again to try the failed units once more.", err=True)


@contextmanager
def _units(name: str, doing: str, output: Path) -> Iterator[Callable[[Progress], None]]:
    """Work in units kept in a folder; yields a function that shows the progress, in a log by a line now and then.

    Ctrl-C ends the run at once: finished units are stored whole, and workers end with this process.
    """
    from drosurv.presentation.drawing import bar

    if output.exists() and not output.is_dir():
        raise InputError(
            f"--output {str(output)!r} is a file: name a folder, which is made if it is not there."
        )
    shown, last = sys.stderr.isatty(), 0.0
    before, warned = (
        signal.signal(signal.SIGINT, lambda *_: _stop(name, output)),
        os.environ.get("PYTHONWARNINGS"),
    )
    # The process that cleans up after joblib's workers would report everything that it finds.
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [warned, "ignore:resource_tracker:UserWarning"]))
    try:
        with bar(doing, shown=shown) as update:

            def show(step: Progress) -> None:
                nonlocal last
                update(step.done, f"{doing}, {_left(step)}", step.total)
                due = time.monotonic() - last > _SECONDS_BETWEEN_LINES or step.done == step.total
                if due and not shown:
                    last = time.monotonic()
                    typer.echo(f"{step.done} of {step.total} units; {_left(step)}", err=True)

            yield show
    finally:
        signal.signal(signal.SIGINT, before)
        os.environ.pop("PYTHONWARNINGS")
        os.environ.update({} if warned is None else {"PYTHONWARNINGS": warned})


def _stop(name: str, output: Path) -> None:
    from rich.console import Console

    Console(stderr=True).show_cursor()
    words = sys.argv[1:] if sys.argv[1:2] != [name] else sys.argv[2:]
    again = shlex.join(["python", "-m", f"experiments.{name}", *words])
    say("Stopped", f"what is finished is kept in {output}. To go on, run the same again: {again}")
    sys.stderr.flush()
    os._exit(_INTERRUPTED)


def _tell_of_trouble(found: Benchmark | Reproduction) -> None:
    """Print which datasets could not be had, and which units failed."""
    for dataset, reason in found.unavailable.items():
        say("Error", f"{dataset} is left out: {reason}")
    for failure in found.outcome.failures:
        say("Error", f"{failure.unit} failed: {failure.error}")


def _computed(found: Benchmark | Reproduction) -> str:
    """How much was done, in words."""
    outcome = found.outcome
    return f"{outcome.computed} units computed and {outcome.reused} reused in {_duration(found.wall_seconds)}"


def _run_summary(found: Benchmark | Reproduction, files: Iterable[Path]) -> dict[str, Any]:
    """What every run tells programs."""
    return {
        "computed": found.outcome.computed,
        "reused": found.outcome.reused,
        "failures": [{"unit": str(failed.unit), "error": failed.error} for failed in found.outcome.failures],
        "unavailable": found.unavailable,
        "files": list(map(str, files)),
    }


def _left(step: Progress) -> str:
    if step.done == step.total:
        return "done"
    return "time left not known yet" if step.seconds_left is None else f"{_duration(step.seconds_left)} left"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def main(*words: str) -> None:
    """Run a command, such as ``paper``, with the words of the command line behind it."""
    app([*words, *sys.argv[1:]], prog_name="python -m experiments")
