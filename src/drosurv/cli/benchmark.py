"""``drosurv benchmark``: every method on many real datasets, judged overall and for the worst served."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from drosurv.cli.options import Names, command
from drosurv.cli.outputs import check_outputs, print_json
from drosurv.cli.progress import computed, run_summary, tell_of_trouble, units

if TYPE_CHECKING:
    from drosurv.benchmark import Benchmark


@command
def benchmark(
    datasets: Names = (),
    methods: Names = (),
    splits: int | None = None,
    seed: int = 0,
    quick: bool = False,
    jobs: int | None = None,
    minutes: float | None = None,
    data: Path | None = None,
    output: Path = Path("benchmark"),
    document: Path | None = None,
    as_json: bool = False,
) -> None:
    """Compare the methods on real datasets. Stop it at any time: running again continues.

    Example: drosurv benchmark --quick --document benchmark.md

    --datasets: Datasets that `drosurv datasets` lists, separated by commas; all by default.
    --methods: Methods, such as cox-interactions,repair,forest; all by default.
    --splits: Splits of each dataset, 10 by default, 3 with --quick.
    --seed: Draws the splits.
    --quick: Six small datasets and three splits: under ten minutes.
    --minutes: Start nothing later than this; running again does the rest.
    --data: Folder with the datasets' files, as DROSURV_DATA names one; your cache by default.
    --output: Folder for finished units and results.
    """
    import os

    check_outputs([document], [])
    if data is not None:
        # By the environment, because worker processes inherit it.
        os.environ["DROSURV_DATA"] = str(data.resolve())
    with units("benchmarking", output) as report:
        from drosurv.benchmark import run_benchmark

        found = run_benchmark(
            output,
            datasets=datasets or None,
            methods=methods or None,
            splits=splits,
            seed=seed,
            quick=quick,
            jobs=jobs,
            minutes=minutes,
            document=document,
            report=report,
        )
    if as_json:
        print_json({**run_summary(found), "missing": found.missing})
    else:
        _show(found)
    if found.unavailable or found.missing:
        raise typer.Exit(1)


def _show(found: Benchmark) -> None:
    errors = int((found.results["error"] != "").sum())
    typer.echo(f"{computed(found)}, of which {errors} are methods that failed; {found.missing} are missing.")
    for path in found.files:
        typer.echo(f"written: {path}")
    tell_of_trouble(found)
    if found.missing:
        typer.echo("Run the same command again to do what is missing.", err=True)
