"""CSV files: their separator, encoding and header are recognised, and their cells read as text."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, InputError, arg, require
from drosurv.tables.cells import Cells
from drosurv.tables.number_texts import like_number
from drosurv.tables.values import label

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# By the zeros among the first and the second bytes of the first two letters.
_WITHOUT_MARK = {(2, 0): "utf-16-be", (0, 2): "utf-16-le"}
# Numbers of lines that are read at once.
_LINES = 50_000
_SEPARATORS = (",", ";", "\t", "|")
# Bytes and lines from which separator and header are detected.
_SAMPLE_BYTES, _SAMPLE_LINES = 1 << 18, 2_000
# Excel reads the separator from such a first line.
_SEPARATOR_LINE = re.compile(r"\ufeff?\"?sep=(.)\"?\r?\n", re.IGNORECASE)
# Appended to a file: where it becomes a part of a field, a quote was never closed.
_END = "\0end-of-file\0"
# The header is looked for in so many rows.
_MOST_TITLES = 20
# Shares of the columns for which a header has a name; a smaller one is tried if no row has the larger.
_SHARES = 0.75, 0.5
_NUMBER = re.compile(r"[+-]?[\d.,]*\d[\d.,]*\s?%?")
# A spreadsheet would run such a text, and one that `harmless` wrote.
_FORMULA = re.compile(r"[=+\-@\t\r].*\w", re.DOTALL)
_WAS_FORMULA = re.compile(r"'[=+\-@\t\r].*\w", re.DOTALL)


def read_csv(
    path: Path, separator: str | None, decimal: str | None, encoding: str | None, header_row: int | None
) -> tuple[dict[str, Cells], dict[str, Any]]:
    """Return the cells of a CSV file, and separator, encoding and header row with which it was read.

    Those that are None are recognised; the header row stays None if it is the first row of the table. Lines without any
    value are left out.
    """
    for name, mark in (("separator", separator), ("decimal", decimal)):
        require(mark is None or len(mark) == 1, name, "be one character", mark)
    data = _content(path)
    encoding = encoding or _encoding_of(data)
    try:
        # A byte order mark is no part of the first column's name.
        codec = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    except LookupError:
        raise ArgumentError.must("encoding", "be one that Python knows, such as cp1252", encoding) from None
    # Reading the whole file will report a byte that cannot be decoded.
    text = data[:_SAMPLE_BYTES].decode(codec, errors="replace")
    separator = separator or _separator_of(text, decimal)
    rows = list(_sampled(text, separator))
    header = header_row or (rows[header_place([row for _, row in rows])][0] if rows else 1)
    try:
        columns = _cells(data, path, separator, codec, header)
    except UnicodeError as error:
        raise _undecodable(data, path, encoding) from error
    except csv.Error as error:
        raise InputError(
            f"{path} is not a regular table: {error}. Every line needs as many fields as the header."
        ) from error
    named = header if header > _first_row(text) else header_row
    return columns, {"separator": separator, "encoding": encoding, "header_row": named}


def _content(path: Path) -> bytes:
    """Return the bytes of a file, decompressed where it is gzip."""
    data = path.read_bytes()
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, gzip.BadGzipFile) as error:
        raise InputError(f"{path} begins like a gzip archive but cannot be read: {error}.") from error


def _encoding_of(data: bytes) -> str:
    """Return UTF-16 if a file has its byte order mark, or begins with two of its letters; else UTF-8 or cp1252.

    It is UTF-8 if most characters beyond ASCII are valid, so that reading it names the byte that is not.
    """
    if data.startswith(_UTF_16):
        return "utf-16"
    if found := _WITHOUT_MARK.get((data[:4:2].count(0), data[1:4:2].count(0))):
        return found
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", errors="replace")
        beyond = len(text) - len(text.encode("ascii", errors="ignore"))
        return "utf-8" if beyond > 2 * text.count("\ufffd") else "cp1252"
    return "utf-8"


def _separator_of(text: str, decimal: str | None) -> str:
    """Return the separator with which most lines have the same number of fields; if tied, with most fields."""
    if line := _SEPARATOR_LINE.match(text):
        return line[1]
    best, most = ",", (0.0, 1)
    for separator in _SEPARATORS:
        if separator == decimal or separator not in text or not (rows := _whole_rows(text, separator)):
            continue
        width, lines = max(Counter(map(len, rows)).items(), key=lambda item: (item[1], item[0]))
        score = (lines / len(rows), width)
        if width > 1 and score > most:
            best, most = separator, score
    rows = _whole_rows(text, " ") if most[1] == 1 else []
    # R's write.table separates by spaces.
    return " " if rows and len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows) else best


def _first_row(text: str) -> int:
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
    if len(rows) < 2:
        return 0
    usual = float(np.median([len(_filled(row)) for row in rows[len(rows) // 2 :]]))
    if len(_filled(rows[0])) > usual / 2:
        return 0
    filled = list(map(_filled, rows[:_MOST_TITLES]))
    for share in _SHARES:
        for place, cells in enumerate(filled):
            texts = [cell for cell in cells if not _NUMBER.fullmatch(cell)]
            named = len(cells) > max(1.0, share * usual) and len(set(cells)) == len(cells)
            if named and len(texts) > len(cells) / 2:
                return place
    return 0


def _filled(row: Sequence[Any]) -> list[str]:
    return [text for cell in row if cell is not None and (text := str(cell).strip())]


def _rows(lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of the lines of a CSV file, each with the number of its last line."""
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    return ((reader.line_num, row) for row in reader)


def _sampled(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the first rows of a CSV file with their numbers, without blank ones and that of the separator."""
    first, rows = _first_row(text), _rows(io.StringIO(text, newline=""), separator)
    filled = ((place, row) for place, row in rows if place >= first and any(map(str.strip, row)))
    with suppress(csv.Error):
        yield from islice(filled, _SAMPLE_LINES)


def _whole_rows(text: str, separator: str) -> list[list[str]]:
    rows = [row for _, row in _sampled(text, separator)]
    # The sample may end within a line.
    return rows[:-1] if len(rows) > 2 else rows


def _cells(data: bytes, path: Path, separator: str, codec: str, header_row: int) -> dict[str, Cells]:
    """Read the cells of a CSV file; `header_row` is the number of the line that names the columns."""
    text = io.TextIOWrapper(io.BytesIO(data), encoding=codec, newline="")
    # The last row marks the end.
    lines = _rows(chain(text, [_END]), separator)
    first = next((row for number, row in lines if number >= header_row), [_END])
    names = _header([] if first == [_END] else first, path, separator)
    blocks: list[list[Cells]] = [[] for _ in names]
    while rows := list(islice(lines, _LINES)):
        last = rows[-1][1]
        if last == [_END]:
            rows.pop()
        elif _END in last[-1]:
            raise csv.Error("a quote is never closed")
        whole = [row for _, row in rows if len(row) == len(names)]
        for number, row in rows if len(whole) < len(rows) else ():
            if len(row) != len(names) and any(map(str.strip, row)):
                raise csv.Error(f"line {number:,} has {len(row)} fields, the header {len(names)}")
        for block, texts in zip(blocks, zip(*whole, strict=True), strict=False):
            block.append(Cells.of_texts(texts))
    if not any(blocks):
        return {name: Cells.of(()) for name in names}
    columns = {name: _stripped(Cells.joined(block)) for name, block in zip(names, blocks, strict=True)}
    filled = np.zeros(len(columns[names[0]].places), dtype=np.bool_)
    for column in columns.values():
        filled |= column.places >= 0
        if filled.all():
            return columns
    return {name: Cells(column.places[filled], column.values) for name, column in columns.items()}


def _stripped(cells: Cells) -> Cells:
    """Return cells without spaces around their texts, and empty where nothing else was there."""
    if cells.plain:
        return cells
    texts: list[Any] = list(map(str.strip, cells.values))
    if "\n'" in "\n".join(["", *texts]):
        texts = list(map(_cell, texts))
    found = Cells(cells.places, texts)
    return found.kept(list(map(bool, texts))) if "" in texts else found


def _cell(text: str) -> str:
    text = text.strip()
    return text[1:] if text.startswith("'") and _WAS_FORMULA.match(text) else text


def harmless(text: Any) -> Any:
    """Return a value so that a spreadsheet shows it: an apostrophe stands before a text that it would run.

    Numbers, and signs alone such as "+", are not changed. Reading a CSV file removes the apostrophe.

    Examples
    --------
    >>> [harmless(value) for value in ("=1+1", "-1.5", "@SUM(A1)", "++", "+pos", -2)]
    ["'=1+1", '-1.5', "'@SUM(A1)", '++', "'+pos", -2]
    """
    runs = isinstance(text, str) and _FORMULA.match(text) and not like_number(text)
    return f"'{text}" if runs else text


def _undecodable(data: bytes, path: Path, encoding: str) -> ArgumentError:
    """Return the error of a file that is not text in this encoding, with the encoding that may be its own."""
    position = ""
    try:
        data.decode(encoding)
    except UnicodeDecodeError as error:
        position = f" (byte {error.start:,})"
    windows = ("cp1252", ", which is usual for files from Windows")
    other, usual = ("utf-16", "") if data.startswith(_UTF_16) else windows
    known = codecs.lookup(other).name == codecs.lookup(encoding).name
    advice = "" if known else f", or pass {arg('encoding', other)}{usual}"
    return ArgumentError(
        "encoding", f"{path} is not text in {encoding.upper()}{position}: save it as UTF-8 CSV{advice}."
    )


def _header(fields: list[str], path: Path, separator: str) -> list[str]:
    if not any(field.strip() for field in fields):
        raise InputError(f"{path} is empty: its first line must name the columns.")
    names = column_names(map(_cell, fields))
    others = [mark for mark in _SEPARATORS if mark != separator and mark in fields[0]]
    if len(names) == 1 and others:
        raise ArgumentError(
            "separator",
            f"{path} has a single column {names[0][:60]!r}; its fields seem to be separated by {others[0]!r}: pass "
            f"{arg('separator', others[0])}.",
        )
    refuse_repeated(names, path)
    return names


def column_names(cells: Iterable[Any]) -> list[str]:
    """Return the names of columns, with line breaks and runs of spaces as one space; those without are numbered."""
    names = [" ".join(label("" if cell is None else cell).split()) for cell in cells]
    return [name or f"column {place}" for place, name in enumerate(names, start=1)]


def refuse_repeated(names: Sequence[str], path: Path) -> None:
    """Raise if two columns of a file have the same name."""
    found = pd.Index(names)
    if found.has_duplicates:
        raise InputError(f"{path} has two columns named {found[found.duplicated()][0]!r}: rename one.")
