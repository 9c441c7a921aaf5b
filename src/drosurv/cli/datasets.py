"""``drosurv datasets``: list the datasets and fetch those that need a download."""

from __future__ import annotations

from typing import Annotated

import typer

from drosurv.cli.outputs import PlainMessages, print_frame, say
from drosurv.presentation import written

app = typer.Typer(cls=PlainMessages)
Name = Annotated[str, typer.Argument(help="A dataset that `drosurv datasets` lists.", metavar="NAME")]


@app.callback(invoke_without_command=True)
def show(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """List the datasets: size, censoring, sensitive attributes, and whether they are cached.

    Example: drosurv datasets --json
    """
    if context.invoked_subcommand is not None:
        return
    from drosurv.datasets.catalog import list_datasets

    datasets = list_datasets()
    if as_json:
        typer.echo(datasets.to_json(orient="records", indent=2))
        return
    shown = datasets.assign(
        patients=datasets["patients"].map("{:,}".format),
        censoring=[written(share, "share") for share in datasets["censoring"]],
        cached=datasets["cached"].map({True: "yes", False: "no"}),
    ).drop(columns=["event", "time_unit", "source"])
    print_frame(shown.rename(columns=lambda name: name.replace("_", " ")))
    typer.echo("`drosurv datasets show NAME` shows what a dataset holds and where it comes from.")


@app.command("show")
def show_card(name: Name) -> None:
    """Show what a dataset holds, where it comes from, and which columns are left out and why.

    Example: drosurv datasets show support
    """
    from drosurv.datasets import card

    typer.echo(card(name).to_text())


@app.command("fetch")
def fetch_dataset(name: Name) -> None:
    """Download a dataset into the cache (the folder DROSURV_DATA names, or your user cache).

    Example: drosurv datasets fetch support
    """
    from rich.console import Console

    from drosurv.datasets import DataUnavailableError, fetch

    try:
        with Console(stderr=True).status(f"fetching {name}"):
            path = fetch(name)
    except DataUnavailableError as error:
        say("Error", error)
        raise typer.Exit(1) from error
    typer.echo(f"{name}: {path or 'comes with drosurv, nothing to download'}")
