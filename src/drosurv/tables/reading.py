"""Read tables from files: CSV (separator, decimal mark and encoding are detected), Parquet, Excel, Stata, SPSS, SAS."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, ArgumentWarning, did_you_mean, require, warn_caller
from drosurv.files import whole_file
from drosurv.tables.columns import holds_numbers, labels, shown, stray_texts

# What pandas reads as missing, and the point of SAS and Stata. "None" is not among them: it is a level of many medical
# columns.
MISSING = (
    *("", ".", "<NA>", "#NA", "#N/A", "#N/A N/A", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    *("NA", "na", "N/A", "n/a", "NaN", "nan", "NAN", "NULL", "Null", "null"),
)
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Numbers with leading zeros, or with more digits than a float holds, such as ids of patients.
_CODE = r"[+-]?(?:0\d|\d{16})"
# Before pandas 3.1, `to_numeric` may return a neighbour of the float that is nearest to a text with many digits.
# Patients held out in a file would then not be recognised in their table, and would be trained on.
_TO_NUMERIC_IS_EXACT = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
# Numbers of cells that are converted at once, and of lines that are read at once.
_CELLS = 1_000_000
_LINES = 50_000
_SEPARATORS = (",", ";", "\t", "|")
# Bytes and lines from which separator and decimal mark are detected.
_SAMPLE_BYTES, _SAMPLE_LINES = 1 << 18, 200
_COMMA_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+),\d+")
_POINT_NUMBER = re.compile(r"[+-]?\d+\.\d+")
# Appended to a file: where it becomes a part of a field, a quote was never closed.
_END = "\0end-of-file\0"
# Readers of other formats by suffix, and the package of the extra `formats` that they need.
_OTHERS: dict[str, tuple[str, str]] = {
    ".xlsx": ("read_excel", "openpyxl"),
    ".xlsm": ("read_excel", "openpyxl"),
    ".dta": ("read_stata", ""),
    ".sav": ("read_spss", "pyreadstat"),
    ".zsav": ("read_spss", "pyreadstat"),
    ".sas7bdat": ("read_sas", ""),
    ".xpt": ("read_sas", ""),
}
_NOT_TABLES = {
    b"PK\x03\x04": "an Excel workbook or a zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
}


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
) -> pd.DataFrame:
    """Read a table from a CSV, Parquet, Excel, Stata, SPSS or SAS file.

    A CSV column is read as numbers only if every value in it is one; numbers with leading zeros, or with more than 15
    digits, are codes and stay text. Every line must have as many fields as the header; lines without any value, which
    spreadsheets leave behind, are skipped. A CSV file may be compressed with gzip.

    Parameters
    ----------
    path : path
        The file. Parquet and gzip are recognised by their first bytes, Excel, Stata, SPSS and SAS by the suffix;
        Parquet, Excel and SPSS need ``pip install "drosurv[formats]"``.
    separator, decimal, encoding : str, optional
        Of a CSV file; recognised where they are None, with a note where they are not a comma, a point and UTF-8. With
        a decimal comma, points that separate thousands are removed.
    missing : sequence of str
        Texts that mean a missing value, besides empty fields, a lone point, NA, N/A, NaN and null, in capitals or
        not. Written ``column=text``, it means so in that column only, such as ``"age=999"``.

    Returns
    -------
    DataFrame
        Columns of floats or of text, or as the file has them where it is not CSV.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name the CSV or Parquet file in it.")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file: check its name and folder.")
    with path.open("rb") as file:
        start = file.read(4)
    if start == b"PAR1":
        frame = _parquet(path)
    elif path.suffix.lower() in _OTHERS:
        frame = _other_format(path)
    else:
        for magic, kind in _NOT_TABLES.items():
            if start.startswith(magic):
                raise ValueError(f"{path} is {kind}: save its table as .xlsx or CSV.")
        frame = _read_csv(path, FileFormat(separator, decimal, encoding).recognised(path), missing)
        missing = ()
    frame.columns = frame.columns.map(str)
    _refuse_repeated(list(frame.columns), path)
    if missing:
        frame = _with_missing(frame, missing)
    if len(frame) == 0:
        raise ValueError(f"{path} has no rows.")
    return frame


@dataclass(frozen=True)
class FileFormat:
    """Separator, decimal mark, encoding and missing values of a CSV file; parameters as in :func:`read_frame`."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()

    def read(self, path: str | os.PathLike[str]) -> pd.DataFrame:
        """Read the table of a file."""
        return read_frame(path, **asdict(self))

    def recognised(self, path: str | os.PathLike[str]) -> FileFormat:
        """Return the format with what is None detected from a CSV file; give a note of what is unusual."""
        path = Path(path)
        for name, mark in (("separator", self.separator), ("decimal", self.decimal)):
            require(mark is None or len(mark) == 1, name, "be one character", mark)
        if not path.is_file() or path.suffix.lower() in _OTHERS:
            return self
        with _binary(path) as file:
            sample = file.read(_SAMPLE_BYTES)
        if sample.startswith(b"PAR1"):
            return self
        found = replace(self, encoding=self.encoding or _encoding_of(path, sample))
        try:
            text = sample.decode(found.codec, errors="ignore" if len(sample) == _SAMPLE_BYTES else "strict")
        except UnicodeError:
            # Reading the whole file will report the byte that cannot be decoded.
            text = sample.decode("latin-1")
        separator = self.separator or _separator_of(text, self.decimal)
        decimal = self.decimal or ("." if separator == "," else _decimal_of(text, separator))
        found = replace(found, separator=separator, decimal=decimal)
        usual = {"separator": ",", "decimal": ".", "encoding": "utf-8"}
        if marks := [
            f"{name}={getattr(found, name)!r}"
            for name, value in usual.items()
            if getattr(self, name) is None and getattr(found, name) != value
        ]:
            warn_caller(f"{path} was read with {', '.join(marks)}.", category=TableNote)
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
            _whole_as_integers(frame).to_csv(
                part,
                index=False,
                sep=self.separator or ",",
                decimal=self.decimal or ".",
                encoding=self.encoding or "utf-8",
            )

    def text(self, frame: pd.DataFrame) -> str:
        """Return a table as the text of such a CSV file."""
        whole = _whole_as_integers(frame)
        return str(whole.to_csv(index=False, sep=self.separator or ",", decimal=self.decimal or "."))


@contextmanager
def _binary(path: Path) -> Iterator[Any]:
    """Open a file, decompressed where it is gzip."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not packed:
            yield file
            return
        try:
            with gzip.open(file) as unpacked:
                yield unpacked
        except (EOFError, gzip.BadGzipFile) as error:
            raise ValueError(f"{path} begins like a gzip archive but cannot be read: {error}.") from error


def _encoding_of(path: Path, sample: bytes) -> str:
    """Return UTF-16 if the file has its byte order mark, UTF-8 if all bytes are valid, else cp1252 (Windows)."""
    if sample.startswith(_UTF_16):
        return "utf-16"
    decoder = codecs.getincrementaldecoder("utf-8")()
    with _binary(path) as file:
        try:
            while block := file.read(1 << 20):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8"


def _sampled(text: str, separator: str) -> list[list[str]]:
    """Return the first lines of a CSV file, without blank ones."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    try:
        rows = list(islice((row for row in reader if any(map(str.strip, row))), _SAMPLE_LINES))
    except csv.Error:
        return []
    # The sample may end within a line.
    return rows[:-1] if len(rows) > 2 else rows


def _separator_of(text: str, decimal: str | None) -> str:
    """Return the separator with which most lines have as many fields as the header; if tied, with most fields."""
    best, most = ",", (0.0, 1)
    for separator in _SEPARATORS:
        if separator == decimal or not (rows := _sampled(text, separator)) or len(rows[0]) < 2:
            continue
        score = (sum(len(row) == len(rows[0]) for row in rows) / len(rows), len(rows[0]))
        if score > most:
            best, most = separator, score
    rows = _sampled(text, " ") if most[1] == 1 else []
    # R's write.table separates by spaces.
    return " " if rows and len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows) else best


def _decimal_of(text: str, separator: str) -> str:
    cells = [cell.strip() for row in _sampled(text, separator)[1:] for cell in row]
    commas = sum(_COMMA_NUMBER.fullmatch(cell) is not None for cell in cells)
    points = sum(_POINT_NUMBER.fullmatch(cell) is not None for cell in cells)
    return "," if commas > points else "."


def _whole_as_integers(frame: pd.DataFrame) -> pd.DataFrame:
    """Turn columns of whole floats into integers: patient 10165 is read as a float but not written as 10165.0."""
    whole = {
        name: "Int64"
        for name, column in frame.select_dtypes("float").items()
        if column.dropna().abs().lt(2**53).all() and column.dropna().mod(1).eq(0).all()
    }
    return frame.astype(whole)


def require_columns(frame: pd.DataFrame, columns: Sequence[str], role: str) -> None:
    """Raise if a column is missing, and suggest the nearest name; `role` is the argument that named the column."""
    for column in columns:
        if column not in frame.columns:
            hint = did_you_mean(column, frame.columns)
            shown = ", ".join(map(str, frame.columns[:30])) + (", ..." if frame.shape[1] > 30 else "")
            raise ArgumentError(role, f"{role} column {column!r} is not in the table.{hint} It has: {shown}.")


def _parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path, engine="pyarrow")
    except ImportError as error:
        raise _not_installed(path, "pyarrow") from error
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} begins like a Parquet file but cannot be read: {error}") from error
    return frame.reset_index(drop=frame.index.names == [None])


def _other_format(path: Path) -> pd.DataFrame:
    """Read an Excel, Stata, SPSS or SAS file."""
    name, package = _OTHERS[path.suffix.lower()]
    read: Callable[..., pd.DataFrame] = getattr(pd, name)
    try:
        frame = read(path, encoding="utf-8") if name == "read_sas" else read(path)
    except ImportError as error:
        raise _not_installed(path, package) from error
    except Exception as error:
        raise ValueError(f"{path} cannot be read as a {path.suffix} file: {error}") from error
    # These formats store missing text as empty text.
    texts = [column for column in frame if frame[column].dtype.kind == "O" or frame[column].dtype == "str"]
    for column in texts:
        frame[column] = frame[column].mask(frame[column].isin(MISSING))
    return frame


def _not_installed(path: Path, package: str) -> ValueError:
    return ValueError(f'{path} needs the package {package} to be read: pip install "drosurv[formats]".')


def _read_csv(path: Path, marks: FileFormat, missing: Sequence[str]) -> pd.DataFrame:
    """Read the columns of a CSV file as floats or text."""
    separator, decimal = marks.separator or ",", marks.decimal or "."
    if separator == decimal:
        raise ArgumentError(
            "separator", f"separator={separator!r} and decimal={decimal!r} are the same: change one."
        )
    try:
        text = _fields(path, separator, marks.codec)
    except UnicodeError as error:
        raise _undecodable(path, marks.encoding or "utf-8") from error
    except csv.Error as error:
        raise ValueError(
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
        columns.update(_typed(cells, names, decimal, everywhere | by_column.get(names[0], set())))
    return pd.DataFrame({name: columns[name] for name in text.columns})[filled].reset_index(drop=True)


def _fields(path: Path, separator: str, codec: str) -> pd.DataFrame:
    """Read the cells of a CSV file as text."""
    with _lines(path, separator, codec) as lines:
        first = next(lines)
        names = _header([] if first == [_END] else first, path, separator)
        blocks = []
        while rows := list(islice(lines, _LINES)):
            if rows[-1] == [_END]:
                rows.pop()
            elif _END in rows[-1][-1]:
                raise csv.Error("a quote is never closed")
            whole = [row for row in rows if len(row) == len(names)]
            if len(whole) < len(rows) and any(
                len(row) != len(names) and any(map(str.strip, row)) for row in rows
            ):
                raise _ragged(path, separator, codec, len(names))
            blocks.append(pd.DataFrame(dict(zip(names, zip(*whole, strict=True), strict=False)), dtype=str))
    return pd.concat([block for block in blocks if len(block)] or [pd.DataFrame(columns=names, dtype=str)])


@contextmanager
def _lines(path: Path, separator: str, codec: str) -> Iterator[Any]:
    """Open a CSV file and return an iterator over its rows, the last of which holds the mark of the end."""
    with _binary(path) as file, io.TextIOWrapper(file, encoding=codec, newline="") as text:
        yield csv.reader(chain(text, [_END]), delimiter=separator, skipinitialspace=True)


def _ragged(path: Path, separator: str, codec: str, expected: int) -> csv.Error:
    """Return an error that names the first line with another number of fields than the header."""
    with _lines(path, separator, codec) as lines:
        for row in lines:
            if len(row) != expected and any(map(str.strip, row)):
                return csv.Error(f"line {lines.line_num:,} has {len(row)} fields, the header {expected}")
    raise AssertionError("no line is ragged")


def _undecodable(path: Path, encoding: str) -> ValueError:
    with _binary(path) as file:
        content = file.read()
    position = ""
    try:
        content.decode(encoding)
    except UnicodeDecodeError as error:
        position = f" (byte {error.start:,})"
    other = "utf-16" if content.startswith(_UTF_16) else "cp1252"
    usual = ", which is usual for files from Windows" if other == "cp1252" else ""
    known = codecs.lookup(other).name == codecs.lookup(encoding).name
    advice = "" if known else f", or pass encoding={other!r}{usual}"
    return ArgumentError(
        "encoding", f"{path} is not text in {encoding.upper()}{position}: save it as UTF-8 CSV{advice}."
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
    """Return the texts that mean missing in every column, and those given as ``column=text``, by column."""
    everywhere: set[str] = {*MISSING}
    by_column: dict[str, set[str]] = {}
    for entry in missing:
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
    cells: pd.Series[str], names: Sequence[str], decimal: str, missing: set[str]
) -> Iterator[tuple[str, Any]]:
    """Yield columns of floats or of text; `cells` holds the cells of all columns, one column after the other."""
    n = len(cells) // len(names)
    rows = {name: slice(k * n, (k + 1) * n) for k, name in enumerate(names)}
    texts = cells.mask(cells.isin(missing))
    codes = texts.str.match(_CODE, na=False).to_numpy()
    plain = texts
    if decimal != ".":
        parts = [texts[at].dropna().rename(name) for name, at in rows.items() if not codes[at].any()]
        plain = pd.concat([_with_point(part, decimal) for part in parts] or [texts]).reindex(texts.index)
    numbers = _nearest_floats(plain)
    wrong = codes | (numbers.isna() & texts.notna()).to_numpy()
    # A missing value 999 may also be written 999.0.
    absent = pd.to_numeric(pd.Series(list(missing)), errors="coerce").dropna()
    values = numbers.mask(numbers.isin(absent)).to_numpy()
    for name, at in rows.items():
        yield name, texts.array[at] if wrong[at].any() else values[at]


def strays_as_missing(
    frame: pd.DataFrame, decimal: str = ".", kept: Sequence[str] = ()
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
        if labels(frame[name]).isin(texts).any():
            frame[name] = _without(frame[name], texts)
    return frame


def _without(column: pd.Series[Any], texts: set[str], decimal: str = ".") -> pd.Series[Any]:
    """Return a column whose values with these texts are missing; it holds numbers if all other values are numbers."""
    known = labels(column)
    rest = column.mask(known.isin(texts).to_numpy())
    if holds_numbers(rest):
        return rest
    cells = known.reset_index(drop=True).fillna("").astype("str")
    ((_, values),) = _typed(cells, [str(column.name)], decimal, {*MISSING, *texts})
    return pd.Series(values, column.index, name=column.name) if values.dtype.kind == "f" else rest


def _nearest_floats(text: pd.Series[str]) -> pd.Series[float]:
    """Return the float nearest to each text, NaN where a text is no number."""
    numbers = pd.to_numeric(text, errors="coerce").astype(float)
    if not _TO_NUMERIC_IS_EXACT:
        exact = (text.str.len() <= 15) & numbers.abs().between(1e-9, 1e22)
        again = numbers.notna() & ~exact
        numbers[again] = text[again].astype(float)
    return numbers


def _with_point(text: pd.Series[str], decimal: str) -> pd.Series[str]:
    """Replace the decimal mark by a point; remove points that separate thousands."""
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
