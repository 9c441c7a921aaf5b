"""What a command gives: files, checked before the work begins, tables for people and JSON for programs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from drosurv.cli.messages import printable
from drosurv.files import check_writable
from drosurv.presentation import plain

if TYPE_CHECKING:
    import pandas as pd

_PICTURES = (".png", ".svg", ".pdf")


# Columns of the tables that commands write.
_OUR_COLUMNS = (
    "log_risk",
    "log_risk_1",
    "survival_",
    "metric",
    "candidate",
    "covariate",
    "alpha",
    "hazard_ratio",
)
# Where files say who wrote them: models and pages at the beginning, Markdown at the end.
_HEAD, _TAIL = 1 << 16, 1 << 10


def check_outputs(
    outputs: Sequence[Path | None], inputs: Sequence[Path | None], *, force: bool = False
) -> None:
    """Raise if a file cannot be written, is an input, is written twice, or exists and was not written by drosurv.

    None is an option that was not given; `force` allows to overwrite any file that is no input.
    """
    written = [path for path in outputs if path is not None]
    for place, path in enumerate(written):
        check_writable(path)
        if any(_same(path, source) for source in inputs if source is not None):
            raise ValueError(f"{path} is an input, which would be overwritten: choose another name.")
        if path.is_file() and not force and not made_by_drosurv(path):
            raise ValueError(
                f"{path} exists and was not written by drosurv: choose another name, or pass --force."
            )
        if any(path.absolute() == other.absolute() or _same(path, other) for other in written[:place]):
            raise ValueError(f"{path} would be written twice: choose two names.")


def made_by_drosurv(path: Path) -> bool:
    """Whether a file is empty or says that drosurv wrote it; CSV files are recognised by their columns."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_HEAD)
        file.seek(max(0, size - _TAIL))
        tail = file.read()
    if size == 0 or b"drosurv" in head or b"drosurv" in tail:
        return True
    columns = re.split(r"[,;\t|]", head.partition(b"\n")[0].decode("utf-8", errors="ignore").strip())
    return any(name.strip('"').startswith(_OUR_COLUMNS) for name in columns)


def check_picture(path: Path | None) -> None:
    """Raise if a picture's name does not say which kind it is."""
    if path is not None and path.suffix.lower() not in _PICTURES:
        raise ValueError(f"--plot {str(path)!r} must end in {', '.join(_PICTURES)}, which says what to draw.")


def _same(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


# A name of this length stays on one line.
_NAME = 24


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
    for place, name in enumerate(frame.columns):
        right = frame[name].dtype.kind in "iuf"
        # Rows are called by their first column, so short names there stay on one line.
        longest = max((len(str(value)) for value in frame[name]), default=0) if place == 0 else 0
        table.add_column(
            Text(printable(str(name))),
            justify="right" if right else "left",
            overflow="fold",
            min_width=longest if longest <= _NAME else None,
        )
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
