"""Arguments and options that several commands share."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import typer


def _mark(text: str) -> str:
    """A separator as a user can type it: a shell hands a tab on as two characters."""
    return "\t" if text in ("\\t", "tab") else text


DataFile = Annotated[Path, typer.Argument(metavar="DATA", help="CSV or Parquet file, one row per patient.")]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model that `drosurv fit` or save() wrote.")]
Groups = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns that define groups, separated by commas; cut numbers like 'age>65', in quotes."
    ),
]
Separator = Annotated[str, typer.Option(help="Separator of a CSV file, such as ';' or tab.", callback=_mark)]
Decimal = Annotated[str, typer.Option(help="Decimal mark of a CSV file.")]
Missing = Annotated[
    list[str] | None,
    typer.Option(help="Texts that mean a missing value, besides empty, NA, N/A, NaN and null."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def listed(values: list[str] | None) -> tuple[str, ...]:
    """The entries of an option given once or several times, separated by commas; quote one that holds a comma."""
    found = [entry.strip() for row in csv.reader(values or [], skipinitialspace=True) for entry in row]
    return tuple(entry for entry in found if entry)
