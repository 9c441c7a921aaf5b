"""Excel workbooks: the sheet that holds the table, titles above its header, and cells as they were typed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, InputError, arg, did_you_mean, warn_caller
from drosurv.presentation import counted, listing
from drosurv.tables.csv_file import header_place, refuse_repeated

# A sheet with fewer rows or columns is no table of patients but, for example, a legend.
_FEWEST_ROWS, _FEWEST_COLUMNS = 10, 2
# Excel keeps 15 digits of a number.
_MOST_DIGITS = 1e15


class Sheet(NamedTuple):
    """The cells of a sheet by rows, without empty columns at the right and empty rows at the end."""

    name: str
    rows: list[list[Any]]

    @property
    def is_table(self) -> bool:
        """Whether it is large enough to be a table of patients."""
        filled = [row for row in self.rows if sum(cell is not None for cell in row) >= _FEWEST_COLUMNS]
        return len(filled) > _FEWEST_ROWS


def read_workbook(path: Path, sheet: str | None, header_row: int | None) -> tuple[pd.DataFrame, list[str]]:
    """Return the table of a workbook, and notes on what was chosen in it.

    `sheet` is the name or the number of a sheet, counted from 1; `header_row` is the number of the row that names the
    columns. Columns hold numbers, dates, booleans or texts; numbers typed as texts are texts.
    """
    sheets = _sheets(path)
    chosen, notes = _chosen(path, sheets, sheet)
    if not chosen.rows:
        raise InputError(f"{path} has no rows in sheet {chosen.name!r}.")
    at = header_place(chosen.rows[:200]) if header_row is None else header_row - 1
    if not 0 <= at < len(chosen.rows):
        raise ArgumentError.must("header_row", f"be between 1 and {len(chosen.rows)}", header_row)
    if header_row is None and at > 0:
        notes.append(
            f"{path} was read with {arg('header_row', at + 1)}: {counted(at, 'row')} above it named no columns."
        )
    names = _names(chosen.rows[at])
    width = max(len(row) for row in chosen.rows[at:])
    names += [f"column {place}" for place in range(len(names) + 1, width + 1)]
    body = [row for row in chosen.rows[at + 1 :] if any(cell is not None for cell in row)]
    columns = [[row[place] if place < len(row) else None for row in body] for place in range(width)]
    named = {
        place: name
        for place, name in enumerate(names)
        if (place < len(chosen.rows[at]) and chosen.rows[at][place] is not None)
        or any(cell is not None for cell in columns[place])
    }
    refuse_repeated(list(named.values()), path)
    empty = [name for place, name in named.items() if all(cell is None for cell in columns[place])]
    if body and empty:
        _refuse_formulas(path, chosen.name, empty, at)
    return pd.DataFrame({name: _column(columns[place], name) for place, name in named.items()}), notes


def _sheets(path: Path) -> list[Sheet]:
    """Read all visible sheets; every cell of a merged range gets its value."""
    from openpyxl import load_workbook

    with path.open("rb") as file, warnings.catch_warnings(action="ignore"):
        # Of styles and extensions that openpyxl does not know.
        book = load_workbook(file, data_only=True)
    found = []
    for sheet in book.worksheets:
        if sheet.sheet_state != "visible":
            continue
        merged = [span.bounds for span in sheet.merged_cells.ranges]
        cells = sheet.iter_rows(values_only=True)
        rows = [[(c.strip() or None) if isinstance(c, str) else c for c in row] for row in cells]
        for left, top, _, bottom in merged:
            # Side by side, cells are merged in titles, which are no names of columns.
            for row in range(top, bottom):
                rows[row][left - 1] = rows[top - 1][left - 1]
        while rows and all(cell is None for cell in rows[-1]):
            rows.pop()
        found.append(Sheet(sheet.title, rows))
    return found


def _chosen(path: Path, sheets: Sequence[Sheet], wanted: str | None) -> tuple[Sheet, list[str]]:
    """Return the sheet that was asked for, or the only one that is a table; raise if there are several."""
    names = [sheet.name for sheet in sheets]
    if wanted is not None:
        by_name = [sheet for sheet in sheets if sheet.name == wanted]
        by_place = sheets[int(wanted) - 1 : int(wanted)] if wanted.isdigit() and int(wanted) > 0 else []
        for sheet in (*by_name, *by_place):
            return sheet, []
        raise ArgumentError(
            "sheet",
            f"{arg('sheet')} {wanted!r} is not in {path}, which has {names}.{did_you_mean(wanted, names)}",
        )
    tables = [sheet for sheet in sheets if sheet.is_table]
    if len(tables) > 1:
        sizes = [f"{sheet.name!r} ({counted(len(sheet.rows), 'row')})" for sheet in tables]
        raise ArgumentError(
            "sheet",
            f"which sheet of {path} holds the patients? It has {listing(sizes, 8)}: pass "
            f"{arg('sheet', tables[0].name)} or another one; if patients are on several sheets, put them on one.",
        )
    if not sheets:
        raise InputError(f"{path} has no visible sheet.")
    chosen = tables[0] if tables else max(sheets, key=lambda sheet: len(sheet.rows))
    others = [repr(name) for name in names if name != chosen.name]
    note = f"sheet {chosen.name!r} of {path} was read, and not {listing(others, 8)}."
    return chosen, [note] if others else []


def _names(cells: Sequence[Any]) -> list[str]:
    whole = [int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in cells]
    return [
        f"column {place}" if cell is None else " ".join(str(cell).split())
        for place, cell in enumerate(whole, start=1)
    ]


def _refuse_formulas(path: Path, sheet: str, empty: Sequence[str], at: int) -> None:
    """Raise if columns are empty because they hold formulas that no program has computed yet."""
    from openpyxl import load_workbook

    with path.open("rb") as file, warnings.catch_warnings(action="ignore"):
        rows = list(load_workbook(file, read_only=True)[sheet].iter_rows(values_only=True))[at:]
    for place, name in enumerate(_names(rows[0])):
        below = (row[place] for row in rows[1:] if place < len(row))
        if name in empty and any(isinstance(cell, str) and cell.startswith("=") for cell in below):
            raise InputError(
                f"column {name!r} of {path} holds formulas whose values are not in the file: open and save it in "
                "Excel or LibreOffice first."
            )


def _column(cells: list[Any], name: str) -> pd.Series[Any]:
    """Return a column of numbers, of booleans, of dates, or of texts."""
    known = [cell for cell in cells if cell is not None]
    kinds = {_kind(cell) for cell in known}
    if kinds <= {"number"}:
        return pd.Series(np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64))
    if kinds == {"bool"}:
        return pd.Series(cells, dtype=bool if len(known) == len(cells) else object)
    if kinds == {"date"}:
        moments = [None if cell is None else pd.Timestamp(cell) for cell in cells]
        try:
            return pd.Series(pd.to_datetime(moments))  # type: ignore[arg-type]
        except (ValueError, OverflowError):
            # Before pandas 3 a year such as 9999 is no date.
            return pd.Series([None if cell is None else str(cell) for cell in cells], dtype=object)
    if "long number" in kinds and any(isinstance(cell, float) for cell in known):
        warn_caller(
            f"column {name!r} holds numbers with more than 15 digits, of which Excel keeps 15: different ones may have "
            "become equal. Store such numbers as text."
        )
    return pd.Series([None if cell is None else _text(cell) for cell in cells], dtype=object)


def _kind(cell: Any) -> str:
    if isinstance(cell, bool):
        return "bool"
    if isinstance(cell, (int, float)):
        return "long number" if abs(cell) >= _MOST_DIGITS else "number"
    if isinstance(cell, (datetime, date)):
        return "date"
    return "text"


def _text(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, (datetime, date)):
        return str(cell).removesuffix(" 00:00:00")
    return str(cell)
