"""``drosurv benchmark``: every method on many real datasets, judged overall and for the worst served."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drosurv.cli.options import AsJson, listed
from drosurv.cli.outputs import check_outputs
from drosurv.cli.progress import duration, progress, stoppable
from drosurv.cli.rendering import print_json
from drosurv.errors import Argument, ArgumentError

if TYPE_CHECKING:
    from drosurv.benchmark import Benchmark


def benchmark(
    datasets: Annotated[
        list[str] | None,
        typer.Option(help="Datasets that `drosurv datasets` lists, separated by commas; all by default."),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(help="Methods, such as cox-interactions,repair,forest; all by default."),
    ] = None,
    splits: Annotated[
        int | None, typer.Option(help="Splits of each dataset, 10 by default, 3 with --quick.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Draws the splits.")] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Six small datasets and three splits: under ten minutes.")
    ] = False,
    jobs: Annotated[int | None, typer.Option(help="Processes; by default one per processor core.")] = None,
    minutes: Annotated[
        float | None,
        typer.Option(help="Start nothing later than this; running again does the rest."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the datasets' files, as DROSURV_DATA names one; your cache by default."
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for finished units and results.")
    ] = Path("benchmark"),
    document: Annotated[
        Path | None, typer.Option(help="Also write everything as one Markdown document to this file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the methods on real datasets. Stop it at any time: running again continues.

    Example: drosurv benchmark --quick --document benchmark.md
    """
    import os

    if output.exists() and not output.is_dir():
        raise ArgumentError(
            Argument("output", str(output)), " is a file: name a folder, which is made if it is not there."
        )
    check_outputs([document], [])
    if data is not None:
        # By the environment, because worker processes inherit it.
        os.environ["DROSURV_DATA"] = str(data.resolve())
    with stoppable(output), progress("benchmarking") as report:
        from drosurv.benchmark import run_benchmark

        found = run_benchmark(
            output,
            datasets=listed(datasets) or None,
            methods=listed(methods) or None,
            splits=splits,
            seed=seed,
            quick=quick,
            jobs=jobs,
            minutes=minutes,
            document=document,
            report=report,
        )
    if as_json:
        print_json(_summary(found))
    else:
        _show(found)
    if found.unavailable or found.missing:
        raise typer.Exit(1)


def _summary(found: Benchmark) -> dict[str, Any]:
    return {
        "computed": found.outcome.computed,
        "reused": found.outcome.reused,
        "missing": found.missing,
        "failures": [
            {"unit": str(failure.unit), "error": failure.error} for failure in found.outcome.failures
        ],
        "unavailable": found.unavailable,
        "files": [str(path) for path in found.files],
    }


def _show(found: Benchmark) -> None:
    errors = int((found.results["error"] != "").sum())
    typer.echo(
        f"{found.outcome.computed} units computed and {found.outcome.reused} reused in "
        f"{duration(found.wall_seconds)}, of which {errors} are methods that failed; {found.missing} are missing."
    )
    for path in found.files:
        typer.echo(f"written: {path}")
    for dataset, reason in found.unavailable.items():
        typer.echo(f"Error: {dataset} is left out: {reason}", err=True)
    for failure in found.outcome.failures:
        typer.echo(f"Error: {failure.unit} failed: {failure.error}", err=True)
    if found.missing:
        typer.echo("Run the same command again to do what is missing.", err=True)
