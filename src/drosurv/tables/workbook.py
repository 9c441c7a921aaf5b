"""Excel workbooks: the sheet that holds the table, titles above its header, and cells as they were typed."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from drosurv.errors import ArgumentError, InputError, arg, did_you_mean
from drosurv.presentation import counted, listing
from drosurv.tables.cells import Cells
from drosurv.tables.csv_file import column_names, header_place, refuse_repeated

# A sheet with fewer rows or columns is no table of patients but, for example, a legend.
_FEWEST_ROWS, _FEWEST_COLUMNS = 10, 2


class Sheet(NamedTuple):
    """The values of a sheet by rows, without empty rows at the end, and its cells as openpyxl has them."""

    name: str
    rows: list[list[Any]]
    cells: Any


def read_workbook(
    path: Path, sheet: str | None, header_row: int | None
) -> tuple[dict[str, Cells], list[str]]:
    """Return the columns of the table of a workbook, and notes on what was chosen in it.

    `sheet` is the name or the number of a sheet, counted from 1; `header_row` is the number of the row that names the
    columns.
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
    header, *body = chosen.rows[at:]
    filled = [row for row in body if any(cell is not None for cell in row)]
    # The title of each column, and its cells.
    columns = list(zip_longest(header, *filled))
    named = zip(column_names(title for title, *_ in columns), columns, strict=True)
    used = [(name, cells) for name, cells in named if any(cell is not None for cell in cells)]
    refuse_repeated([name for name, _ in used], path)
    if empty := _formulas_without_value(path, chosen, at + 1):
        raise InputError(
            f"sheet {chosen.name!r} of {path} has {counted(len(empty), 'formula')} without a value in the file, in "
            f"{listing(empty, 6)}: open and save it in Excel or LibreOffice first."
        )
    return {name: Cells.of(cells) for name, (_, *cells) in used}, notes


def _sheets(path: Path) -> list[Sheet]:
    """Read all visible sheets; every cell of a merged range gets its value."""
    found = []
    for sheet in _book(path, data_only=True).worksheets:
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
        found.append(Sheet(sheet.title, rows, sheet))
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
    rows = [[sum(cell is not None for cell in row) >= _FEWEST_COLUMNS for row in one.rows] for one in sheets]
    tables = [sheet for sheet, filled in zip(sheets, rows, strict=True) if sum(filled) > _FEWEST_ROWS]
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


def _formulas_without_value(path: Path, sheet: Sheet, after: int) -> list[str]:
    """Return the cells of a sheet, below row `after`, with formulas that no program has computed yet."""
    with zipfile.ZipFile(path) as archive:
        files = [archive.read(name) for name in archive.namelist() if name.startswith("xl/worksheets/")]
    if not any(re.search(rb"<(?:\w+:)?f[\s/>]", content) for content in files):
        return []
    formulas = (cell for row in _book(path, data_only=False)[sheet.name].iter_rows(after + 1) for cell in row)
    found = [(cell, sheet.cells[cell.coordinate]) for cell in formulas if cell.data_type == "f"]
    # A formula may have an empty text as its value.
    return [cell.coordinate for cell, held in found if held.value is None and held.data_type != "str"]


def _book(path: Path, *, data_only: bool) -> Any:
    from openpyxl import load_workbook

    with path.open("rb") as file, warnings.catch_warnings(action="ignore"):
        # Of styles and extensions that openpyxl does not know.
        return load_workbook(file, data_only=data_only)
