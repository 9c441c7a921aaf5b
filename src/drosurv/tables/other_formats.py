"""Tables of Parquet, Stata, SPSS and SAS files, whose columns have types, and values that have labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import InputError
from drosurv.presentation import counted
from drosurv.tables.cells import MISSING, Cells, Column
from drosurv.tables.values import means_absent, shown

# Readers by suffix, and the package of the extra `formats` that they need.
READERS: dict[str, tuple[str, str]] = {
    ".dta": ("read_stata", ""),
    ".sav": ("read_spss", "pyreadstat"),
    ".zsav": ("read_spss", "pyreadstat"),
    ".sas7bdat": ("read_sas", ""),
    ".xpt": ("read_sas", ""),
}
# The first bytes of SAS's newer transport files.
_XPORT_8 = b"HEADER RECORD*******LIBV8"


@contextmanager
def read_by(package: str, path: Path, fault: str) -> Iterator[None]:
    """Turn errors of a package that reads a file into input errors with a `fault`; it may not be installed."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except ImportError as error:
        raise InputError(
            f'{path} needs the package {package} to be read: pip install "drosurv[formats]".'
        ) from error
    except Exception as error:
        raise InputError(f"{path} {fault}: {error}") from error


def parquet(path: Path) -> tuple[dict[str, Column], list[str]]:
    """Read a Parquet file; see :func:`other_format`."""
    with read_by("pyarrow", path, "begins like a Parquet file but cannot be read"):
        frame = pd.read_parquet(path, engine="pyarrow")
    return _columns(frame.reset_index(drop=frame.index.names == [None]), labelled=False)


def other_format(path: Path) -> tuple[dict[str, Column], list[str]]:
    """Read a Stata, SPSS or SAS file; return its columns, texts as cells, and notes on how they were read."""
    name, package = READERS[path.suffix.lower()]
    read: Callable[..., pd.DataFrame] = getattr(pd, name)
    with path.open("rb") as file:
        if file.read(len(_XPORT_8)) == _XPORT_8:
            raise InputError(
                f"{path} is a SAS transport file (XPORT) of version 8, which cannot be read: write version 5, or CSV."
            )
    with read_by(package, path, f"cannot be read as a {path.suffix} file"):
        frame = read(path, encoding="utf-8") if name == "read_sas" else read(path)
        # pandas reads the zero of transport files as the smallest number of their format.
        frame = frame.replace(16.0**-65, 0.0) if path.suffix.lower() == ".xpt" else frame
    return _columns(frame, labelled=True)


def _columns(frame: pd.DataFrame, labelled: bool) -> tuple[dict[str, Column], list[str]]:
    columns: dict[str, Column] = {}
    notes: list[str] = []
    for name, column in frame.items():
        columns[str(name)] = column
        kind = pd.api.types.infer_dtype(column, skipna=True) if column.dtype.kind == "O" else ""
        if labelled and isinstance(column.dtype, pd.CategoricalDtype):
            columns[str(name)] = _labelled(column, notes)
        elif kind == "mixed" and not labelled:
            notes.append(f"column {str(name)!r} holds lists or other collections: read as texts.")
            columns[str(name)] = _cells(column.map(str, na_action="ignore"))
        elif kind in ("string", "empty"):
            columns[str(name)] = _cells(column)
    return columns, notes


def _cells(column: pd.Series[Any]) -> Cells:
    known = column.astype(object).where(column.notna(), None)
    return Cells.of(value.strip() if isinstance(value, str) else value for value in known)


def _labelled(column: pd.Series[Any], notes: list[str]) -> Column:
    """Return a column whose values may have labels: categories if all have, else cells; add a note of missing ones.

    In a column of numbers a label such as "unknown" says that the value is missing.
    """
    column = column.mask(column.isin(MISSING))
    used = column.cat.remove_unused_categories()
    labels = [value for value in used.cat.categories if isinstance(value, str)]
    if len(labels) == len(used.cat.categories) and labels:
        return column
    all_absent = all(map(means_absent, labels))
    if labels:
        rows = counted(int(column.isin(labels).sum()), "row")
        notes.append(
            f"column {str(column.name)!r} holds numbers, and {rows} with a value that the file calls "
            f"{shown(labels)}: {'taken as missing' if all_absent else 'read as texts'}."
        )
    if all_absent:
        column = column.mask(column.isin(labels))
        return pd.Series(np.asarray(column.astype(object), dtype=np.float64), name=column.name)
    return _cells(column)
