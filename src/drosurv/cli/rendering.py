"""Results on the terminal: tables for people, JSON for programs."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import typer

from drosurv.cli.messages import printable
from drosurv.presentation import plain

if TYPE_CHECKING:
    import pandas as pd


def print_frame(frame: pd.DataFrame, title: str = "", *, on_stderr: bool = False) -> None:
    """Print a DataFrame as a table; numbers to the right, everything literally."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(title) if title else None,
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for name in frame.columns:
        right = frame[name].dtype.kind in "iuf"
        table.add_column(Text(printable(str(name))), justify="right" if right else "left")
    for row in frame.itertuples(index=False, name=None):
        table.add_row(*(Text(printable(_cell(value))) for value in row))
    Console(stderr=on_stderr).print(table)


def print_json(value: Any) -> None:
    """Print a value as strict JSON: numbers that are not finite become null."""
    typer.echo(json.dumps(plain(value, digits=None), indent=2, ensure_ascii=False, allow_nan=False))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
