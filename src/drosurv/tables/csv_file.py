"""CSV files: their separator, decimal mark, encoding and header are recognised, and their cells read as text."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, InputError, arg
from drosurv.tables.number_texts import decimal_mark

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Numbers of lines that are read at once.
_LINES = 50_000
_SEPARATORS = (",", ";", "\t", "|")
# Bytes and lines from which separator and decimal mark are detected.
SAMPLE_BYTES, _SAMPLE_LINES = 1 << 18, 2_000
# Excel reads the separator from such a first line.
_SEPARATOR_LINE = re.compile(r"\ufeff?\"?sep=(.)\"?\r?\n", re.IGNORECASE)
# Appended to a file: where it becomes a part of a field, a quote was never closed.
_END = "\0end-of-file\0"
# The header is looked for in so many rows.
_MOST_TITLES = 20
# Shares of the columns for which a header has a name; a smaller one is tried if no row has the larger.
_SHARES = 0.75, 0.5
_NUMBER = re.compile(r"[+-]?[\d.,]*\d[\d.,]*\s?%?")


@contextmanager
def binary(path: Path) -> Iterator[Any]:
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
            raise InputError(f"{path} begins like a gzip archive but cannot be read: {error}.") from error


def encoding_of(path: Path, sample: bytes) -> str:
    """Return UTF-16 if the file has its byte order mark, UTF-8 if all bytes are valid, else cp1252 (Windows)."""
    if sample.startswith(_UTF_16):
        return "utf-16"
    decoder = codecs.getincrementaldecoder("utf-8")()
    with binary(path) as file:
        try:
            while block := file.read(1 << 20):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8"


def separator_of(text: str, decimal: str | None) -> str:
    """Return the separator with which most lines have the same number of fields; if tied, with most fields."""
    if line := _SEPARATOR_LINE.match(text):
        return line[1]
    best, most = ",", (0.0, 1)
    for separator in _SEPARATORS:
        if separator == decimal or separator not in text or not (rows := _sampled(text, separator)):
            continue
        width, lines = max(Counter(map(len, rows)).items(), key=lambda item: (item[1], item[0]))
        score = (lines / len(rows), width)
        if width > 1 and score > most:
            best, most = separator, score
    rows = _sampled(text, " ") if most[1] == 1 else []
    # R's write.table separates by spaces.
    return " " if rows and len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows) else best


def decimal_of(text: str, separator: str, header_row: int) -> str | None:
    """Return the decimal mark of the first lines; None if they do not show it."""
    columns = zip_longest(*_sampled(text, separator, header_row), fillvalue="")
    return decimal_mark(([cell.strip() for cell in column] for column in columns), separator)


def first_row(text: str) -> int:
    """Return the number of the first line of the table, which is the second if the first names the separator."""
    return 2 if _SEPARATOR_LINE.match(text) else 1


def header_place(rows: Sequence[Sequence[Any]]) -> int:
    """Return the place of the row that names the columns: the first one unless it has too few cells for a header.

    A row is a header if it has a cell for most of the columns, and most of its cells are different texts.

    Examples
    --------
    >>> header_place([["Study of 2020", "", ""], ["", "", ""], ["time", "died", "age"], ["5", "1", "61"]])
    2
    """
    filled = [[str(cell).strip() for cell in row if cell is not None and str(cell).strip()] for row in rows]
    if len(filled) < 2:
        return 0
    usual = float(np.median([len(row) for row in filled[len(filled) // 2 :]]))
    if len(filled[0]) > usual / 2:
        return 0
    for share in _SHARES:
        for place, cells in enumerate(filled[:_MOST_TITLES]):
            texts = [cell for cell in cells if not _NUMBER.fullmatch(cell)]
            named = len(cells) > max(1.0, share * usual) and len(set(cells)) == len(cells)
            if named and len(texts) > len(cells) / 2:
                return place
    return 0


def header_row_of(text: str, separator: str) -> int:
    """Return the number of the line that names the columns, counted from 1."""
    rows = list(_numbered(text, separator))
    return rows[header_place([row for _, row in rows])][0] if rows else 1


def _numbered(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first lines of a CSV file with their numbers, without blank ones and that of the separator."""
    line = _SEPARATOR_LINE.match(text)
    reader = csv.reader(
        io.StringIO(text[line.end() :] if line else text, newline=""),
        delimiter=separator,
        skipinitialspace=True,
    )
    before = first_row(text) - 1
    try:
        rows = (row for row in reader if any(map(str.strip, row)))
        for row in islice(rows, _SAMPLE_LINES):
            yield reader.line_num + before, row
    except csv.Error:
        return


def _sampled(text: str, separator: str, after: int = 0) -> list[list[str]]:
    rows = [row for line, row in _numbered(text, separator) if line > after]
    # The sample may end within a line.
    return rows[:-1] if len(rows) > 2 else rows


def csv_texts(path: Path, separator: str, codec: str, header_row: int) -> pd.DataFrame:
    """Read the cells of a CSV file as text; `header_row` is the number of the line that names the columns."""
    with _lines(path, separator, codec, header_row) as lines:
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
                raise _ragged(path, separator, codec, header_row, len(names))
            blocks.append(pd.DataFrame(dict(zip(names, zip(*whole, strict=True), strict=False)), dtype=str))
    return pd.concat([block for block in blocks if len(block)] or [pd.DataFrame(columns=names, dtype=str)])


@contextmanager
def _lines(path: Path, separator: str, codec: str, header_row: int) -> Iterator[Any]:
    """Open a CSV file; return an iterator over its rows from the header on, the last of which marks the end."""
    with binary(path) as file, io.TextIOWrapper(file, encoding=codec, newline="") as text:
        reader = csv.reader(chain(text, [_END]), delimiter=separator, skipinitialspace=True)
        rows = (row for row in reader if reader.line_num >= header_row)
        yield chain([next(rows, [_END])], reader)


def _ragged(path: Path, separator: str, codec: str, header_row: int, expected: int) -> csv.Error:
    """Return an error that names the first line with another number of fields than the header."""
    with binary(path) as file, io.TextIOWrapper(file, encoding=codec, newline="") as text:
        lines = csv.reader(text, delimiter=separator, skipinitialspace=True)
        for row in lines:
            if lines.line_num >= header_row and len(row) != expected and any(map(str.strip, row)):
                return csv.Error(f"line {lines.line_num:,} has {len(row)} fields, the header {expected}")
    raise AssertionError("no line is ragged")


def undecodable(path: Path, encoding: str) -> ArgumentError:
    """Return the error of a file that is not text in this encoding, with the encoding that may be its own."""
    with binary(path) as file:
        content = file.read()
    position = ""
    try:
        content.decode(encoding)
    except UnicodeDecodeError as error:
        position = f" (byte {error.start:,})"
    other = "utf-16" if content.startswith(_UTF_16) else "cp1252"
    usual = ", which is usual for files from Windows" if other == "cp1252" else ""
    known = codecs.lookup(other).name == codecs.lookup(encoding).name
    advice = "" if known else f", or pass {arg('encoding', other)}{usual}"
    return ArgumentError(
        "encoding", f"{path} is not text in {encoding.upper()}{position}: save it as UTF-8 CSV{advice}."
    )


def _header(fields: list[str], path: Path, separator: str) -> list[str]:
    if not any(field.strip() for field in fields):
        raise InputError(f"{path} is empty: its first line must name the columns.")
    names = [field.strip() or f"column {place}" for place, field in enumerate(fields, start=1)]
    if len(names) == 1:
        other = next((mark for mark in (";", "\t", "|", ",") if mark != separator and mark in names[0]), None)
        if other is not None:
            raise ArgumentError(
                "separator",
                f"{path} has a single column {names[0][:60]!r}; its fields seem to be separated by {other!r}: pass "
                f"{arg('separator', other)}.",
            )
    refuse_repeated(names, path)
    return names


def refuse_repeated(names: Sequence[str], path: Path) -> None:
    """Raise if two columns of a file have the same name."""
    found = pd.Index(names)
    if found.has_duplicates:
        raise InputError(f"{path} has two columns named {found[found.duplicated()][0]!r}: rename one.")
