"""``drosurv benchmark``: every method on many real datasets, judged overall and for the worst served."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from drosurv.cli.options import AsJson, Document, Jobs, listed
from drosurv.cli.outputs import check_outputs
from drosurv.cli.progress import duration, progress, run_summary, stoppable, tell_of_trouble
from drosurv.cli.rendering import print_json

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
    jobs: Jobs = None,
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
    document: Document = None,
    as_json: AsJson = False,
) -> None:
    """Compare the methods on real datasets. Stop it at any time: running again continues.

    Example: drosurv benchmark --quick --document benchmark.md
    """
    import os

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
        told = run_summary(found.outcome, found.unavailable, found.files)
        print_json({**told, "missing": found.missing})
    else:
        _show(found)
    if found.unavailable or found.missing:
        raise typer.Exit(1)


def _show(found: Benchmark) -> None:
    errors = int((found.results["error"] != "").sum())
    typer.echo(
        f"{found.outcome.computed} units computed and {found.outcome.reused} reused in "
        f"{duration(found.wall_seconds)}, of which {errors} are methods that failed; {found.missing} are missing."
    )
    for path in found.files:
        typer.echo(f"written: {path}")
    tell_of_trouble(found.outcome, found.unavailable)
    if found.missing:
        typer.echo("Run the same command again to do what is missing.", err=True)
