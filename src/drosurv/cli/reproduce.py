"""``drosurv reproduce``: rebuild the paper's tables and figure, and compare them with the published values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from drosurv.cli.options import Names, command
from drosurv.cli.outputs import check_outputs, print_frame, print_json
from drosurv.cli.progress import computed, run_summary, tell_of_trouble, units

if TYPE_CHECKING:
    from drosurv.paper import Reproduction


@command
def reproduce(
    only: Names = (),
    methods: Names = (),
    repeats: int | None = None,
    quick: bool = False,
    select_on: str = "validation",
    device: str = "auto",
    jobs: int | None = None,
    seer_file: Path | None = None,
    output: Path = Path("reproduction"),
    document: Path | None = None,
    as_json: bool = False,
) -> None:
    """Rebuild the paper's tables and figure. Stop it at any time: running again continues.

    Example: drosurv reproduce --only flc-age --methods dro-cox,cox --repeats 3

    --only: Tables (flc-age, support-gender, seer-race, ..., split-size, sides), the figure (alpha), or datasets (flc,
        support, seer), separated by commas; all by default.
    --methods: Methods, such as cox,dro-cox,deep-dro-cox-split; all by default.
    --repeats: Repeats, each with another validation part, 10 by default, 3 with --quick.
    --quick: Three tables, linear methods, three repeats: under two minutes.
    --select-on: Where settings are chosen: validation, or test (a diagnostic, not a result).
    --device: Where to train: cpu, cuda or auto.
    --seer-file: Copy of SEER in the authors' row order; by default the public file, ordered otherwise.
    --output: Folder for finished units, tables and the figure.
    """
    check_outputs([document], [seer_file])
    if seer_file is not None and not seer_file.is_file():
        raise ValueError(f"--seer-file {str(seer_file)!r} is not a file: check its name and folder.")
    with units("reproducing", output) as report:
        from drosurv.paper import reproduce as run

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
        told = {"output": str(output), **run_summary(found), "wall_seconds": found.wall_seconds}
        print_json({**told, "agreement": agreement})
    else:
        _show(found, output)
    if not found.complete:
        raise typer.Exit(1)


def _show(found: Reproduction, output: Path) -> None:
    if found.agreement is not None:
        title = "Published cells (IBS aside) within two published standard deviations"
        print_frame(found.agreement, title)
        typer.echo("Explained cells differ for a known cause, told under the tables named -comparison.md.")
    typer.echo(f"{computed(found)}; {len(found.files)} files written to {output}.")
    tell_of_trouble(found)
    if found.outcome.failures:
        typer.echo("Run the same command again to try the failed units once more.", err=True)
