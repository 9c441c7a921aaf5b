"""Read tables from files: CSV (separator, decimal mark and encoding are detected), Parquet, Excel, Stata, SPSS, SAS."""

from __future__ import annotations

import atexit
import codecs
import csv
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
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
from drosurv.observation import in_pandas
from drosurv.tables.columns import stray_texts
from drosurv.tables.csv_file import (
    SAMPLE_BYTES,
    binary,
    csv_texts,
    decimal_of,
    encoding_of,
    first_row,
    header_row_of,
    refuse_repeated,
    separator_of,
    undecodable,
)
from drosurv.tables.number_texts import CODE, decimal_mark, like_number, nearest_floats, number_column
from drosurv.tables.values import holds_numbers, labels
from drosurv.tables.workbook import read_workbook

# What pandas reads as missing, and the point of SAS and Stata. "None" is not among them: it is a level of many medical
# columns.
MISSING = (
    *("", ".", "<NA>", "#NA", "#N/A", "#N/A N/A", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    *("NA", "na", "N/A", "n/a", "NaN", "nan", "NAN", "NULL", "Null", "null"),
)
# Errors of Excel's formulas.
_ERRORS = ("#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!")
# A missing value `column=*` means each text of the column that is no number.
ANY_TEXT = "*"
# Number of cells that are converted at once.
_CELLS = 1_000_000
# Readers of other formats by suffix, and the package of the extra `formats` that they need.
_OTHERS: dict[str, tuple[str, str]] = {
    ".dta": ("read_stata", ""),
    ".sav": ("read_spss", "pyreadstat"),
    ".zsav": ("read_spss", "pyreadstat"),
    ".sas7bdat": ("read_sas", ""),
    ".xpt": ("read_sas", ""),
}
_WORKBOOKS = (".xlsx", ".xlsm")
_NOT_TABLES = {b"PK\x03\x04": "a zip archive", b"\xd0\xcf\x11\xe0": "an old Excel workbook"}


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
    path = local_file(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name the CSV or Parquet file in it.")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file: check its name and folder.")
    require(header_row is None or header_row >= 1, "header_row", "be at least 1", header_row)
    kind = _kind_of(path)
    require(sheet is None or kind == "workbook", "sheet", "be given for an Excel workbook only", sheet)
    if kind == "csv":
        marks = FileFormat(separator, decimal, encoding, header_row=header_row).recognised(path)
        frame, missing = _read_csv(path, marks, missing), ()
    elif kind == "workbook":
        frame, missing = _read_workbook(path, sheet, header_row, decimal, missing), ()
    else:
        frame = _parquet(path) if kind == "parquet" else _other_format(path)
    frame.columns = frame.columns.map(str)
    refuse_repeated(list(frame.columns), path)
    if missing:
        frame = _with_missing(frame, missing)
    if len(frame) == 0:
        raise InputError(f"{path} has no rows.")
    return frame


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
    if path.suffix.lower() in _OTHERS:
        return "other"
    if path.suffix.lower() in _WORKBOOKS or (start == b"PK\x03\x04" and _is_workbook(path)):
        return "workbook"
    if start in _NOT_TABLES:
        raise InputError(f"{path} is {_NOT_TABLES[start]}: save its table as .xlsx or CSV.")
    return "csv"


def _is_workbook(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except zipfile.BadZipFile:
        return False


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
        return read_frame(path, **asdict(self))

    def recognised(self, path: str | os.PathLike[str]) -> FileFormat:
        """Detect the settings that are None from a CSV file; give a note of unusual ones.

        The decimal mark stays None where numbers do not show it.
        """
        path = local_file(path)
        for name, mark in (("separator", self.separator), ("decimal", self.decimal)):
            require(mark is None or len(mark) == 1, name, "be one character", mark)
        if not path.is_file() or _kind_of(path) != "csv":
            return self
        with binary(path) as file:
            sample = file.read(SAMPLE_BYTES)
        found = replace(self, encoding=self.encoding or encoding_of(path, sample))
        try:
            text = sample.decode(found.codec, errors="ignore" if len(sample) == SAMPLE_BYTES else "strict")
        except UnicodeError:
            # Reading the whole file will report the byte that cannot be decoded.
            text = sample.decode("latin-1")
        separator = self.separator or separator_of(text, self.decimal)
        found = replace(found, separator=separator)
        header_row = self.header_row or header_row_of(text, separator)
        decimal = self.decimal or decimal_of(text, separator, header_row)
        found = replace(found, decimal=decimal, header_row=header_row if header_row > 1 else self.header_row)
        usual = {"separator": ",", "decimal": ".", "encoding": "utf-8", "header_row": first_row(text)}
        if marks := [
            arg(name, getattr(found, name))
            for name, value in usual.items()
            if getattr(self, name) is None and getattr(found, name) not in (value, None)
        ]:
            warn_caller(f"{path} was read with {', '.join(marks)}.", category=Confirmation)
        return found

    @property
    def codec(self) -> str:
        """Name of the codec that decodes the file."""
        encoding = self.encoding or "utf-8"
        try:
            # A byte order mark is no part of the first column's name.
            return "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
        except LookupError:
            raise ArgumentError.must(
                "encoding", "be one that Python knows, such as cp1252", encoding
            ) from None

    def write(self, frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
        """Write a table as a CSV file of this format; the file appears whole or not at all."""
        with whole_file(path) as part:
            self._to_csv(frame, part)

    def text(self, frame: pd.DataFrame) -> str:
        """Return a table as the text of such a CSV file."""
        return str(self._to_csv(frame, None))

    def _to_csv(self, frame: pd.DataFrame, part: Any) -> str | None:
        """Write whole floats as integers: patient 10165 is read as a float but not written as 10165.0."""
        whole = {
            name: "Int64"
            for name, column in frame.select_dtypes("float").items()
            if column.dropna().abs().lt(2**53).all() and column.dropna().mod(1).eq(0).all()
        }
        marks: Any = {"sep": self.separator or ",", "decimal": self.decimal or "."}
        written = frame.astype(whole)
        text: str | None = written.to_csv(part, index=False, encoding=self.encoding or "utf-8", **marks)
        return text


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


@contextmanager
def _read_by(package: str, path: Path, fault: str) -> Iterator[None]:
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


def _parquet(path: Path) -> pd.DataFrame:
    with _read_by("pyarrow", path, "begins like a Parquet file but cannot be read"):
        frame = pd.read_parquet(path, engine="pyarrow")
    return frame.reset_index(drop=frame.index.names == [None])


def _other_format(path: Path) -> pd.DataFrame:
    """Read a Stata, SPSS or SAS file."""
    name, package = _OTHERS[path.suffix.lower()]
    read: Callable[..., pd.DataFrame] = getattr(pd, name)
    with _read_by(package, path, f"cannot be read as a {path.suffix} file"):
        frame = read(path, encoding="utf-8") if name == "read_sas" else read(path)
    # These formats store missing text as empty text.
    texts = [column for column in frame if frame[column].dtype.kind == "O" or frame[column].dtype == "str"]
    for column in texts:
        frame[column] = frame[column].mask(frame[column].isin(MISSING))
    return frame


def _read_workbook(
    path: Path, sheet: str | None, header_row: int | None, decimal: str | None, missing: Sequence[str]
) -> pd.DataFrame:
    """Read the table of an Excel workbook; columns in which all texts are numbers become numbers."""
    with _read_by("openpyxl", path, "cannot be read as a .xlsx file"):
        frame, notes = read_workbook(path, sheet, header_row)
    for note in notes:
        warn_caller(note, category=TableNote)
    everywhere, by_column = _missing_texts(missing, frame)
    texts = [
        name
        for name in frame.columns
        if frame[name].dtype.kind == "O" and all(isinstance(cell, str) for cell in frame[name].dropna())
    ]
    decimal = decimal or decimal_mark((frame[name].dropna().tolist() for name in texts), "")
    for name in frame.columns:
        absent = everywhere | by_column.get(name, set())
        if name in texts:
            cells = frame[name].fillna("").astype("str").str.strip()
            ((_, values),) = _typed(cells, [name], decimal, absent | {*_ERRORS})
            frame[name] = pd.Series(values, frame.index)
        elif labels(frame[name]).isin(absent).any():
            frame[name] = frame[name].mask(labels(frame[name]).isin(absent).to_numpy())
    return frame


def _read_csv(path: Path, marks: FileFormat, missing: Sequence[str]) -> pd.DataFrame:
    """Read the columns of a CSV file as floats or text."""
    try:
        text = csv_texts(path, marks.separator or ",", marks.codec, marks.header_row or 1)
    except UnicodeError as error:
        raise undecodable(path, marks.encoding or "utf-8") from error
    except csv.Error as error:
        raise InputError(
            f"{path} is not a regular table: {error}. Every line needs as many fields as the header."
        ) from error
    everywhere, by_column = _missing_texts(missing, text)
    others = [name for name in text.columns if name not in by_column]
    # Short columns are converted together, because each conversion has a fixed cost.
    step = max(1, _CELLS // max(len(text), 1))
    blocks = [[name] for name in by_column] + [others[k : k + step] for k in range(0, len(others), step)]
    filled = np.zeros(len(text), dtype=np.bool_)
    columns: dict[str, Any] = {}
    for names in blocks:
        cells = pd.concat([text[name] for name in names], ignore_index=True).str.strip()
        filled |= (cells != "").to_numpy().reshape(len(names), len(text)).any(axis=0)
        columns.update(_typed(cells, names, marks.decimal, everywhere | by_column.get(names[0], set())))
    return pd.DataFrame({name: columns[name] for name in text.columns})[filled].reset_index(drop=True)


def _missing_texts(missing: Sequence[str], text: pd.DataFrame) -> tuple[set[str], dict[str, set[str]]]:
    """Return the texts that mean missing in every column, and those given as ``column=text``, by column."""
    everywhere: set[str] = {*MISSING}
    by_column: dict[str, set[str]] = {}
    for entry in as_names(missing):
        # Texts such as ">=90", and names of columns, may themselves hold an equals sign.
        named = [name for name in text.columns if re.match(rf"{re.escape(name)}\s*=", entry)]
        if named:
            name = max(named, key=len)
            by_column.setdefault(name, set()).add(entry.removeprefix(name).lstrip()[1:].strip())
            continue
        # If a mistyped column were not an error, its codes would be used as numbers.
        mistyped = re.match(r"([\w .-]*\w)\s*=", entry)
        if mistyped and not text.isin([entry.strip()]).any(axis=None):
            require_columns(text, [mistyped[1]], "missing")
        everywhere.add(entry.strip())
    return everywhere, by_column


def _typed(
    cells: pd.Series[str], names: Sequence[str], decimal: str | None, missing: set[str]
) -> Iterator[tuple[str, Any]]:
    """Yield columns of floats or of text; `cells` holds the cells of all columns, one column after the other."""
    n = len(cells) // len(names)
    texts = cells.mask(cells.isin(missing - {ANY_TEXT}))
    codes = texts.str.match(CODE, na=False).to_numpy()
    numbers = nearest_floats(texts)
    # Other marks than a decimal point are looked for in these columns only.
    marked = (numbers.isna() & texts.notna()).to_numpy()
    if decimal != ".":
        marked = marked | texts.str.contains(r"[.,]", na=False).to_numpy()
    # A missing value 999 may also be written 999.0.
    absent = pd.to_numeric(pd.Series(list(missing)), errors="coerce").dropna()
    values = numbers.mask(numbers.isin(absent)).to_numpy()
    for k, name in enumerate(names):
        at = slice(k * n, (k + 1) * n)
        column = texts[at].rename(name)
        if ANY_TEXT in missing:
            column = column.where(column.map(like_number, na_action="ignore").eq(True))
        if not marked[at].any() and not codes[at].any():
            yield name, values[at]
            continue
        found = number_column(column, decimal)
        yield name, texts.array[at] if found is None else found.mask(found.isin(absent)).to_numpy()


def strays_as_missing(
    frame: pd.DataFrame, decimal: str | None = ".", kept: Sequence[str] = ()
) -> tuple[pd.DataFrame, dict[str, dict[str, int]]]:
    """Make columns of numbers of those that hold a few other texts, which become missing.

    Return the table, and the texts of each such column with their numbers of rows. Columns in `kept` stay as they are.
    """
    found: dict[str, dict[str, int]] = {}
    changed = frame.copy(deep=False)
    for name in (one for one in frame.columns if one not in kept):
        if texts := stray_texts(frame[name]):
            column = _without(frame[name], {*texts}, decimal)
            # Numbers with leading zeros are codes, and stay text.
            if holds_numbers(column):
                changed[name], found[str(name)] = column, texts
    return changed, found


def _with_missing(frame: pd.DataFrame, missing: Sequence[str]) -> pd.DataFrame:
    """Make the texts `missing` of a table that is not from a CSV file missing values."""
    everywhere, by_column = _missing_texts(missing, frame)
    for name in frame.columns:
        texts = everywhere.difference(MISSING) | by_column.get(str(name), set())
        if ANY_TEXT in texts or labels(frame[name]).isin(texts).any():
            frame[name] = _without(frame[name], texts)
    return frame


def _without(column: pd.Series[Any], texts: set[str], decimal: str | None = ".") -> pd.Series[Any]:
    """Return a column whose values with these texts are missing; it holds numbers if all other values are numbers."""
    known = labels(column)
    rest = column.mask(known.isin(texts).to_numpy())
    if holds_numbers(rest):
        return rest
    cells = known.reset_index(drop=True).fillna("").astype("str")
    ((_, values),) = _typed(cells, [str(column.name)], decimal, {*MISSING, *texts})
    return pd.Series(values, column.index, name=column.name) if values.dtype.kind == "f" else rest
