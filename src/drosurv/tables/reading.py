"""CSV and Parquet files read into DataFrames, with errors that say what to do; answers are written in kind."""

from __future__ import annotations

import codecs
import csv
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, did_you_mean, require
from drosurv.files import whole_file
from drosurv.tables.values import shown

# What pandas takes as missing, in any case of letters, and the point of SAS and Stata. "None" is not among them: it is
# a level of many medical columns.
MISSING = (
    *("", ".", "<NA>", "#NA", "#N/A", "#N/A N/A", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    *("NA", "na", "N/A", "n/a", "NaN", "nan", "NAN", "NULL", "Null", "null"),
)
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Numbers with leading zeros, or with more digits than a float keeps apart, such as patients'.
_CODE = r"[+-]?(?:0\d|\d{16})"
# Cells that are read at once.
_CELLS = 1_000_000
_KINDS = {b"PK\x03\x04": "an Excel workbook or a zip archive", b"\x1f\x8b": "a gzip archive"}


def read_frame(
    path: str | os.PathLike[str],
    *,
    separator: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8",
    missing: Sequence[str] = (),
) -> pd.DataFrame:
    """Read a CSV or Parquet file.

    A CSV column is read as numbers only if every value in it is one; numbers with leading zeros, or with more than 15
    digits, are codes and stay text. Nothing else is inferred. Every line must have as many fields as the header; lines
    without any value, which spreadsheets leave behind, are passed over.

    Parameters
    ----------
    path : path
        The file; Parquet is recognised by its first bytes, whatever its name.
    separator, decimal, encoding : str
        Of a CSV file. With a decimal comma, points that separate thousands are understood.
    missing : sequence of str
        Texts of a CSV file that mean a missing value, besides empty fields, a lone point, NA, N/A, NaN and null, in
        capitals or not. Written ``column=text``, it means so in that column only, such as ``"age=999"``.

    Returns
    -------
    DataFrame
        Columns of floats or of text, or as the Parquet file has them.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name the CSV or Parquet file in it.")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file: check its name and folder.")
    with path.open("rb") as file:
        start = file.read(4)
    for magic, kind in _KINDS.items():
        if start.startswith(magic):
            raise ValueError(
                f"{path} is {kind}, not a CSV or Parquet file: unpack it, or save its table as CSV."
            )
    if start == b"PAR1":
        frame = _parquet(path)
    else:
        frame = _read_csv(path, separator, decimal, encoding, missing)
    frame.columns = frame.columns.map(str)
    _refuse_repeated(list(frame.columns), path)
    if len(frame) == 0:
        raise ValueError(f"{path} has no rows.")
    return frame


@dataclass(frozen=True)
class FileFormat:
    """Marks of a CSV file; parameters as in :func:`read_frame`."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ()

    def read(self, path: str | os.PathLike[str]) -> pd.DataFrame:
        """The table of a CSV or Parquet file."""
        return read_frame(path, **asdict(self))

    def write(self, frame: pd.DataFrame, path: str | os.PathLike[str]) -> None:
        """Write a table as CSV with the same marks, whole or not at all."""
        with whole_file(path) as part:
            _plain(frame).to_csv(
                part, index=False, sep=self.separator, decimal=self.decimal, encoding=self.encoding
            )

    def text(self, frame: pd.DataFrame) -> str:
        """A table as the text of such a CSV file."""
        return str(_plain(frame).to_csv(index=False, sep=self.separator, decimal=self.decimal))


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Whole numbers without a fraction: patient 10165 is read as a float, but must not come back as 10165.0."""
    whole = {
        name: "Int64"
        for name, column in frame.select_dtypes("float").items()
        if column.dropna().abs().lt(2**53).all() and column.dropna().mod(1).eq(0).all()
    }
    return frame.astype(whole)


def require_columns(frame: pd.DataFrame, columns: Sequence[str], role: str) -> None:
    """Raise if a column is not there, with the nearest name that is; `role` is the argument that names it."""
    for column in columns:
        if column not in frame.columns:
            hint = did_you_mean(column, frame.columns)
            shown = ", ".join(map(str, frame.columns[:30])) + (", ..." if frame.shape[1] > 30 else "")
            raise ArgumentError(role, f"{role} column {column!r} is not in the table.{hint} It has: {shown}.")


def _parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} begins like a Parquet file but cannot be read: {error}") from error
    return frame.reset_index(drop=frame.index.names == [None])


def _read_csv(
    path: Path, separator: str, decimal: str, encoding: str, missing: Sequence[str]
) -> pd.DataFrame:
    """Columns of floats or of text."""
    for name, mark in (("separator", separator), ("decimal", decimal)):
        require(len(mark) == 1, name, "be one character", mark)
    if separator == decimal:
        raise ArgumentError(
            "separator", f"separator={separator!r} and decimal={decimal!r} are the same: change one."
        )
    try:
        # A byte order mark is no part of the first column's name.
        codec = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    except LookupError:
        raise ArgumentError.must("encoding", "be one that Python knows, such as cp1252", encoding) from None
    try:
        text = _fields(path, separator, codec)
    except UnicodeError as error:
        raise _undecodable(path, encoding) from error
    except (csv.Error, pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise ValueError(
            f"{path} is not a regular table: {error}. Every line needs as many fields as the header."
        ) from error
    everywhere, own = _missing_texts(missing, text)
    shared = [name for name in text.columns if name not in own]
    # Many short columns are read together: each alone costs more than its cells.
    step = max(1, _CELLS // max(len(text), 1))
    blocks = [[name] for name in own] + [shared[k : k + step] for k in range(0, len(shared), step)]
    filled = np.zeros(len(text), dtype=np.bool_)
    columns: dict[str, Any] = {}
    for names in blocks:
        cells = pd.concat([text[name] for name in names], ignore_index=True).str.strip()
        filled |= (cells != "").to_numpy().reshape(len(names), len(text)).any(axis=0)
        columns.update(_typed(cells, names, decimal, everywhere | own.get(names[0], set())))
    return pd.DataFrame({name: columns[name] for name in text.columns})[filled].reset_index(drop=True)


def _fields(path: Path, separator: str, codec: str) -> pd.DataFrame:
    """The texts of a CSV file."""
    with path.open(encoding=codec, newline="") as file:
        lines = csv.reader(file, delimiter=separator, skipinitialspace=True)
        names = _header(next(lines, []), path, separator)
        for fields in lines:
            # pandas would fill short lines up.
            if len(fields) != len(names) and any(map(str.strip, fields)):
                raise csv.Error(f"line {lines.line_num:,} has {len(fields)} fields, the header {len(names)}")
    with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
        return pd.read_csv(
            path,
            sep=separator,
            dtype=str,
            na_filter=False,
            encoding=codec,
            skipinitialspace=True,
            skip_blank_lines=False,
            index_col=False,
            header=0,
            names=names,
        )


def _undecodable(path: Path, encoding: str) -> ValueError:
    content = path.read_bytes()
    place = ""
    try:
        content.decode(encoding)
    except UnicodeDecodeError as error:
        place = f" (byte {error.start:,})"
    other = "utf-16" if content.startswith(_UTF_16) else "cp1252"
    usual = ", which is usual for files from Windows" if other == "cp1252" else ""
    known = codecs.lookup(other).name == codecs.lookup(encoding).name
    advice = "" if known else f", or pass encoding={other!r}{usual}"
    return ArgumentError(
        "encoding", f"{path} is not text in {encoding.upper()}{place}: save it as UTF-8 CSV{advice}."
    )


def _header(fields: list[str], path: Path, separator: str) -> list[str]:
    if not any(field.strip() for field in fields):
        raise ValueError(f"{path} is empty: its first line must name the columns.")
    names = [field.strip() or f"column {place}" for place, field in enumerate(fields, start=1)]
    if len(names) == 1:
        other = next((mark for mark in (";", "\t", "|", ",") if mark != separator and mark in names[0]), None)
        if other is not None:
            raise ArgumentError(
                "separator",
                f"{path} has a single column {names[0][:60]!r}; its fields seem to be separated by {other!r}: pass "
                f"separator={other!r}.",
            )
    _refuse_repeated(names, path)
    return names


def _refuse_repeated(names: Sequence[str], path: Path) -> None:
    found = pd.Index(names)
    if found.has_duplicates:
        raise ValueError(f"{path} has two columns named {found[found.duplicated()][0]!r}: rename one.")


def _missing_texts(missing: Sequence[str], text: pd.DataFrame) -> tuple[set[str], dict[str, set[str]]]:
    """The texts that are missing in every column, and those written ``column=text``, by their column."""
    everywhere: set[str] = {*MISSING}
    own: dict[str, set[str]] = {}
    for entry in missing:
        # Texts such as ">=90", and names of columns, may hold the sign themselves.
        named = [name for name in text.columns if re.match(rf"{re.escape(name)}\s*=", entry)]
        if named:
            name = max(named, key=len)
            own.setdefault(name, set()).add(entry.removeprefix(name).lstrip()[1:].strip())
            continue
        # Who mistypes a column would take its codes for numbers.
        mistyped = re.match(r"([\w .-]*\w)\s*=", entry)
        if mistyped and not text.isin([entry.strip()]).any(axis=None):
            require_columns(text, [mistyped[1]], "missing")
        everywhere.add(entry.strip())
    return everywhere, own


def _typed(
    cells: pd.Series[str], names: Sequence[str], decimal: str, missing: set[str]
) -> Iterator[tuple[str, Any]]:
    """Columns of floats or of text, one for each name, of cells that stand in one column after the other."""
    n = len(cells) // len(names)
    own = {name: slice(k * n, (k + 1) * n) for k, name in enumerate(names)}
    texts = cells.mask(cells.isin(missing))
    codes = texts.str.match(_CODE, na=False).to_numpy()
    plain = texts
    if decimal != ".":
        parts = [texts[at].dropna().rename(name) for name, at in own.items() if not codes[at].any()]
        plain = pd.concat([_with_point(part, decimal) for part in parts] or [texts]).reindex(texts.index)
    numbers = pd.to_numeric(plain, errors="coerce").astype(float)
    wrong = codes | (numbers.isna() & texts.notna()).to_numpy()
    # 999 is also written 999.0.
    absent = pd.to_numeric(pd.Series(list(missing)), errors="coerce").dropna()
    values = numbers.mask(numbers.isin(absent)).to_numpy()
    for name, at in own.items():
        yield name, texts.array[at] if wrong[at].any() else values[at]


def _with_point(text: pd.Series[str], decimal: str) -> pd.Series[str]:
    """Numbers with another decimal mark, written with a point; points that separate thousands are removed."""
    points = text[text.str.contains(".", regex=False)]
    if len(points) and text.str.fullmatch(rf"[+-]?[\d.]*{re.escape(decimal)}?\d*(?:[eE][+-]?\d+)?").all():
        thousands = points.str.fullmatch(rf"[+-]?[1-9]\d{{0,2}}(?:\.\d{{3}})+(?:{re.escape(decimal)}\d+)?")
        if not thousands.all():
            raise ArgumentError(
                "decimal",
                f"column {text.name!r} holds {shown(points[~thousands].unique(), 3)}, with a point that does not "
                f"separate thousands, although decimal={decimal!r}: write all numbers with the same "
                "decimal mark.",
            )
        text = text.str.replace(".", "", regex=False)
    return text.str.replace(decimal, ".", regex=False)
