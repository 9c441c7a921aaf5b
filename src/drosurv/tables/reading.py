"""Read tables from files: CSV (separator, decimal mark and encoding are detected), Parquet, Excel, Stata, SPSS, SAS."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from drosurv.errors import (
    ArgumentError,
    ArgumentTypeError,
    ArgumentWarning,
    InputError,
    arg,
    as_names,
    did_you_mean,
    require,
    warn_caller,
)
from drosurv.files import whole_file
from drosurv.patients.observation import in_pandas
from drosurv.presentation import listing
from drosurv.tables.cells import ANY_TEXT, MISSING, Cells, Column, typed, without
from drosurv.tables.csv_file import harmless, read_csv
from drosurv.tables.number_texts import decimal_mark, like_number, number, refuse_contradiction
from drosurv.tables.other_formats import READERS, other_format, parquet, read_by
from drosurv.tables.values import labels
from drosurv.tables.workbook import read_workbook

_WORKBOOKS = (".xlsx", ".xlsm")
_NOT_TABLES = {b"PK\x03\x04": "a zip archive", b"\xd0\xcf\x11\xe0": "an old Excel workbook"}
_NOT_TABLES |= dict.fromkeys((b"<htm", b"<!do", b"<tab", b"<?xm"), "an HTML or XML page")
# Settings of CSV files that need no note.
_USUAL = {"separator": ",", "decimal": ".", "encoding": "utf-8", "header_row": None}


class TableNote(ArgumentWarning):
    """A note on how an ambiguous table was read."""


class Confirmation(TableNote):
    """A note that there is nothing to act on, which reports leave out."""

    in_reports = False


def read_frame(
    path: str | os.PathLike[str],
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    missing: Sequence[str] = (),
    sheet: str | None = None,
    header_row: int | None = None,
) -> pd.DataFrame:
    """Read a table from a CSV, Parquet, Excel, Stata, SPSS or SAS file.

    A column of a CSV or Excel file is read as numbers only if every value in it is one; numbers typed with leading
    zeros, or with more than 15 digits, are codes and stay text. Separators of thousands and percent signs are removed.
    Every line of a CSV file must have as many fields as the header; lines without any value, which spreadsheets leave
    behind, are skipped. A CSV file may be compressed with gzip.

    Parameters
    ----------
    path : path
        The file, or ``"-"`` for standard input. Parquet, Excel and gzip are recognised by their first bytes, Stata,
        SPSS and SAS by the suffix; Parquet, Excel and SPSS need ``pip install "drosurv[formats]"``.
    separator, decimal, encoding : str, optional
        Of a CSV file; recognised where they are None, with a note where they are not a comma, a point and UTF-8. A
        number such as 1,204 that may be 1204 or 1.204, while no other shows which, is an error that asks for `decimal`.
    missing : sequence of str
        Texts that mean a missing value, besides empty fields, a lone point, NA, N/A, NaN and null, in capitals or
        not. Written ``column=text``, it means so in that column only, such as ``"age=999"``; ``"age=*"`` means each
        text of the column that is no number.
    sheet : str, optional
        Name or number, from 1, of a sheet of an Excel workbook. By default the only one that holds a table; if there
        are several, an error asks for it.
    header_row : int, optional
        Number of the row that names the columns, from 1. By default it is recognised, with a note if it is not the
        first.

    Returns
    -------
    DataFrame
        Columns of floats or of text, or as the file has them where it is neither CSV nor Excel.
    """
    return FileFormat(separator, decimal, encoding, tuple(as_names(missing)), sheet, header_row).read(path)


def local_file(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file that can be read several times: a copy of standard input ("-") or of a pipe."""
    named = Path(path)
    return _copied(str(path)) if str(path) == "-" or named.is_fifo() else named


@cache
def _copied(path: str) -> Path:
    folder = tempfile.mkdtemp(prefix="drosurv-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    scratch = Path(folder) / ("stdin" if path == "-" else Path(path).name)
    scratch.write_bytes(sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes())
    return scratch


def _kind_of(path: Path) -> str:
    """Return "parquet", "workbook", "csv", or "other" for a format that its suffix tells; raise for other files."""
    with path.open("rb") as file:
        start = file.read(4)
    if start == b"PAR1":
        return "parquet"
    if path.suffix.lower() in READERS:
        return "other"
    if path.suffix.lower() in _WORKBOOKS:
        return "workbook"
    if start == b"PK\x03\x04" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if "xl/workbook.xml" in archive.namelist():
                return "workbook"
    if other := _NOT_TABLES.get(start) or _NOT_TABLES.get(start.lower()):
        raise InputError(f"{path} is {other}: save its table as .xlsx or CSV.")
    return "csv"


def _version(path: Path) -> tuple[Path, int, int]:
    """Return what tells a file from another, and from what it was before it was written again."""
    known = path.stat()
    return path.absolute(), known.st_mtime_ns, known.st_size


@dataclass(frozen=True)
class FileFormat:
    """How to read a file: marks of CSV, missing values, sheet, header; parameters as in :func:`read_frame`."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()
    sheet: str | None = None
    header_row: int | None = None

    def read(self, path: str | os.PathLike[str]) -> pd.DataFrame:
        """Read the table of a file."""
        return self.table(path)[0]

    def table(self, path: str | os.PathLike[str]) -> tuple[pd.DataFrame, FileFormat]:
        """Read the table of a file; return it with the format, in which the settings that were None are recognised."""
        path = local_file(path)
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder: name the CSV or Parquet file in it.")
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not a file: check its name and folder.")
        columns, found, notes = self._columns(path)
        named = [number(name) or 0.0 for name in columns if like_number(name)]
        # Columns of predictions are named by times in order.
        if len(named) > len(columns) / 2 and named != sorted(set(named)):
            notes += ["most columns have numbers as names: if the first row is a patient, write names above."]
        for note in notes:
            warn_caller(note, category=TableNote)
        absent = _missing_texts(self.missing, columns)
        present = {name: without(column, absent[name]) for name, column in columns.items()}
        for name in (one for one in columns if ANY_TEXT in absent[one]):
            _refuse_all_missing(name, columns[name], present[name])
        _refuse_second_header(present)
        cells = {name: column for name, column in present.items() if isinstance(column, Cells)}
        marks = {} if self.decimal else {name: column.mark() for name, column in cells.items()}
        decimal = self.decimal or decimal_mark([*marks.values()], found.separator or "")
        for name, mark in marks.items():
            refuse_contradiction(cells[name].texts, mark, decimal, name)
        found = replace(found, decimal=decimal)
        if _kind_of(path) == "csv":
            _recognised[self, _version(path)] = found
            told = {name: getattr(found, name) for name in _USUAL if getattr(self, name) is None}
            notes = [arg(name, value) for name, value in told.items() if value not in (_USUAL[name], None)]
            if notes:
                warn_caller(f"{path} was read with {', '.join(notes)}.", category=Confirmation)
        typed_cells = {name: typed(column, name, decimal, absent[name]) for name, column in cells.items()}
        frame = pd.DataFrame({**present, **typed_cells})
        if len(frame) == 0:
            raise InputError(f"{path} has no rows.")
        return frame, found

    def recognised(self, path: str | os.PathLike[str]) -> FileFormat:
        """Return the format of a CSV file, in which settings that are None are recognised; give a note of unusual ones.

        The decimal mark stays None where no cell shows it. A file that was read is not read again.
        """
        path = local_file(path)
        if _kind_of(path) != "csv":
            return self
        return _recognised.get((self, _version(path))) or self.table(path)[1]

    def _columns(self, path: Path) -> tuple[Mapping[str, Column], FileFormat, list[str]]:
        """Return the columns of a file, the format but for the decimal mark, and notes."""
        kind, wanted_row = _kind_of(path), self.header_row
        require(wanted_row is None or wanted_row >= 1, "header_row", "be at least 1", wanted_row)
        only = "be given for an Excel workbook only"
        require(self.sheet is None or kind == "workbook", "sheet", only, self.sheet)
        if kind == "csv":
            cells, marks = read_csv(path, self.separator, self.decimal, self.encoding, wanted_row)
            return cells, replace(self, **marks), []
        if kind == "workbook":
            with read_by("openpyxl", path, "cannot be read as a .xlsx file"):
                cells, notes = read_workbook(path, self.sheet, wanted_row)
            return cells, self, notes
        columns, notes = parquet(path) if kind == "parquet" else other_format(path)
        return columns, self, notes

    def write(self, frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
        """Write a table as a CSV file of this format; the file appears whole or not at all."""
        with whole_file(path) as part:
            self._to_csv(frame, part)

    def text(self, frame: pd.DataFrame) -> str:
        """Return a table as the text of such a CSV file."""
        return str(self._to_csv(frame, None))

    def _to_csv(self, frame: pd.DataFrame, part: Any) -> str | None:
        """Write whole floats as integers, and texts so that no spreadsheet runs them.

        Patient 10165 is read as a float but not written as 10165.0.
        """
        whole = {
            name: "Int64"
            for name, column in frame.select_dtypes("float").items()
            if column.dropna().abs().lt(2**53).all() and column.dropna().mod(1).eq(0).all()
        }
        texts: dict[Any, Any] = {
            name: column.map(harmless) for name, column in frame.items() if column.dtype.kind == "O"
        }
        marks: Any = {"sep": self.separator or ",", "decimal": self.decimal or "."}
        written = frame.astype(whole).assign(**texts).rename(columns=harmless)
        text: str | None = written.to_csv(part, index=False, encoding=self.encoding or "utf-8", **marks)
        return text


# Formats of files that were read, by the settings that were given.
_recognised: dict[tuple[FileFormat, tuple[Path, int, int]], FileFormat] = {}


def as_table(given: Any, name: str = "table") -> pd.DataFrame:
    """Return a table of pandas or polars with texts as names of its columns; messages call the argument `name`.

    Raise for anything else, and unless the table has rows, and columns with different names.
    """
    frame = in_pandas(given)
    if not isinstance(frame, pd.DataFrame):
        raise ArgumentTypeError(
            name,
            f"{arg(name)} must be a DataFrame of pandas or polars, or the path of a file, got "
            f"{type(given).__name__}.",
        )
    if not isinstance(frame.columns.dtype, pd.StringDtype):
        frame = frame.set_axis(frame.columns.map(str), axis="columns")
    if frame.columns.has_duplicates:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ArgumentError(name, f"{arg(name)} has two columns named {twice!r}: rename or drop one.")
    if len(frame) == 0 or frame.shape[1] == 0:
        raise ArgumentError(name, f"{arg(name)} must have rows and columns, got shape {frame.shape}.")
    return frame


def require_columns(frame: pd.DataFrame, columns: Sequence[str], role: str) -> None:
    """Raise if a column is missing, and suggest the nearest name; `role` is the argument that named the column."""
    for column in columns:
        if column not in frame.columns:
            hint = did_you_mean(column, frame.columns)
            shown = ", ".join(map(str, frame.columns[:30])) + (", ..." if frame.shape[1] > 30 else "")
            raise ArgumentError(
                role,
                f"{arg(role)} column {column!r} is not in the table.{hint} It has: {shown or 'no columns with names'}.",
            )


def require_roles(frame: pd.DataFrame, roles: Mapping[str, str | None]) -> None:
    """Raise if a column that an argument names, the role, is missing, or is named by two."""
    taken: dict[str, str] = {}
    for role, name in roles.items():
        if name is None:
            continue
        require_columns(frame, [name], role)
        if name in taken:
            both = f"{arg(taken[name])} and {arg(role)} both name column {name!r}"
            raise ArgumentError(taken[name], f"{both}: name the column of each, or leave out one of them.")
        taken[name] = role


def _missing_texts(missing: Sequence[str], columns: Mapping[str, Column]) -> dict[str, set[str]]:
    """Return the texts that mean missing, by column; some are given as ``column=text``."""
    everywhere: set[str] = {*MISSING}
    by_column: dict[str, set[str]] = {}
    for entry in as_names(missing):
        # Texts such as ">=90", and names of columns, may themselves hold an equals sign.
        named = [name for name in columns if re.match(rf"{re.escape(name)}\s*=", entry)]
        if named:
            name = max(named, key=len)
            by_column.setdefault(name, set()).add(entry.removeprefix(name).lstrip()[1:].strip())
            continue
        # If a mistyped column were not an error, its codes would be used as numbers.
        mistyped = re.match(r"([\w .-]*\w)\s*=", entry)
        held = (one.values if isinstance(one, Cells) else labels(one).tolist() for one in columns.values())
        if mistyped and not any(entry.strip() in values for values in held):
            require_columns(pd.DataFrame(columns=[*columns]), [mistyped[1]], "missing")
        everywhere.add(entry.strip())
    return {name: everywhere | by_column.get(name, set()) for name in columns}


def _refuse_second_header(columns: Mapping[str, Column]) -> None:
    """Raise if the first row holds no number, and texts in columns that hold numbers in all other rows."""
    texts: list[str] = []
    for name, cells in columns.items():
        if not isinstance(cells, Cells) or len(cells.places) == 0 or (first := cells.places[0]) < 0:
            continue
        # Where all cells are plain numbers, none need be looked at.
        if cells.plain:
            return
        others = [one for place, one in enumerate(cells.values) if place != first]
        if others and all(isinstance(one, (int, float)) or like_number(str(one)) for one in others):
            if not isinstance(cells.values[first], str) or like_number(cells.values[first]):
                return
            texts.append(f"{cells.values[first]!r} in {name!r}")
    if len(texts) > 1:
        raise InputError(
            f"the row below the names of the columns holds {listing(texts, 4)}, and all other rows hold numbers there: "
            "it seems to be a second header, such as units. Remove that row from the file."
        )


def _refuse_all_missing(name: str, column: Column, present: Column) -> None:
    """Raise if every text of a column would be missing because it holds no number."""
    held, rest = ({*(one.values if isinstance(one, Cells) else one.dropna())} for one in (column, present))
    if not rest and held.difference(MISSING):
        here = arg("missing", [f"{name}={ANY_TEXT}"])
        text = f"{here}: column {name!r} holds no number, so that all of it would be missing."
        raise ArgumentError("missing", text)
