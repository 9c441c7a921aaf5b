"""The command line: each command parses its options, calls one function and prints the result.

Heavy packages are imported only when a command runs.
"""

from __future__ import annotations

from typing import Annotated

import typer

from drosurv import __version__
from drosurv.cli.datasets import app as datasets
from drosurv.cli.options import COMMANDS
from drosurv.cli.outputs import PlainMessages
from drosurv.files import import_files

app = typer.Typer(
    name="drosurv",
    cls=PlainMessages,
    no_args_is_help=True,
    # A traceback must not show local variables, which may hold data of patients.
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"drosurv {__version__}")
        raise typer.Exit


@app.callback()
def drosurv(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find whom a survival model predicts wrongly, correct it for them, and test that on held-out patients.

    Start with `drosurv check patients.csv`; then fit, audit and repair (docs/guide/what_to_use.md has the numbers).

    Example: drosurv demo
    """


# Every file of this folder may define commands.
import_files("drosurv.cli")
for command in sorted(COMMANDS, key=COMMANDS.__getitem__):
    app.command()(command)
app.add_typer(datasets, name="datasets")


def main() -> None:
    """Run the command line."""
    app(prog_name="drosurv")
