"""Values of a column, whatever pandas type holds them: labels, numbers and dates."""

from __future__ import annotations

import re
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError
from drosurv.presentation import counted
from drosurv.target import BoolArray, FloatArray

# With fewer rows, numbers could be in unit steps, or sorted, by chance.
_FEWEST_COUNTED = 20
_FEWEST_SORTED = 100
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")


def label(value: Any) -> str:
    """The text of one value; whole numbers have no decimals, so that 1, 1.0 and "1" are the same category."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def labels(column: pd.Series[Any]) -> pd.Series[Any]:
    """The labels of a column, missing where the column is missing."""
    known = {value: label(value) for value in column.dropna().unique()}
    return column.astype(object).map(known)


def shown(values: Any, limit: int = 6) -> str:
    """A few values for a message, with a note if there are more."""
    # A number of NumPy is written as Python writes it.
    listed = [repr(value.item() if isinstance(value, np.generic) else value) for value in values]
    return ", ".join(listed[:limit]) + (f" and {len(listed) - limit:,} more" if len(listed) > limit else "")


def row_number(index: pd.Index[Any], place: int) -> int:
    """Which row of its file stands at a place, counted from 1.

    Rows of a file are numbered from 0 and keep their number when others are left out.
    """
    numbered = index.dtype.kind in "iu" and index.is_monotonic_increasing and index.is_unique
    return int(index[place] if numbered else place) + 1


def holds_numbers(column: pd.Series[Any]) -> bool:
    """Whether every value present is a number; booleans and numbers written as text are not."""
    if column.dtype.kind in "iuf":
        return True
    if column.dtype.kind != "O" or isinstance(column.dtype, pd.CategoricalDtype):
        return False
    return all(
        isinstance(value, (Real, Decimal)) and not isinstance(value, bool)
        for value in column.dropna().unique()
    )


def to_floats(column: pd.Series[Any], role: str = "") -> FloatArray:
    """The numbers of a column, (n,), NaN where it is missing; text that is no number is an error."""
    values = floats(column) if column.dtype.kind in "iuf" else _parsed(column, role)
    if np.isinf(values).any():
        raise ValueError(
            f"{role}{first_wrong(column, np.isinf(values), 'infinite')}: correct or remove them."
        )
    return values


def _parsed(column: pd.Series[Any], role: str) -> FloatArray:
    numbers = pd.to_numeric(column.astype(object).where(column.notna(), np.nan), errors="coerce")
    values: FloatArray = numbers.to_numpy(dtype=np.float64)
    wrong = np.isnan(values) & column.notna().to_numpy()
    if wrong.any():
        # One text that is no number leaves all of a column as text, its decimal commas too: that one is the fault.
        others = wrong & ~column.map(has_decimal_comma).to_numpy(dtype=np.bool_)
        wrong = others if others.any() else wrong
        comma = "if the comma is a decimal mark, read the table with decimal=','; otherwise "
        raise ArgumentError(
            "missing",
            f"{role}{first_wrong(column, wrong, 'not a number')}: "
            f"{comma if has_decimal_comma(column[wrong].iloc[0]) else ''}correct it, or name it in "
            f"missing.",
        )
    return values


def first_wrong(column: pd.Series[Any], wrong: BoolArray, fault: str) -> str:
    """Where a column is wrong, in words: the first such value, its row, and how many there are."""
    row = int(wrong.argmax())
    value = column.iloc[row]
    held = repr(value) if isinstance(value, str) else f"{value:g}"
    place, rows = row_number(column.index, row), counted(int(wrong.sum()), "such row")
    return f"column {column.name!r} holds {held} (row {place}), which is {fault} ({rows})"


def has_decimal_comma(value: Any) -> bool:
    """Whether a value is text like 1,5: a number where a comma is the decimal mark."""
    return isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value) is not None


def floats(column: pd.Series[Any]) -> FloatArray:
    """A column of numbers as it is, (n,), NaN where it is missing."""
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def counts_rows(column: pd.Series[Any]) -> bool:
    """Whether a column counts the rows; patients kept away may have left gaps."""
    if not holds_numbers(column):
        return False
    values, n = floats(column), len(column)
    if not (values == np.floor(values)).all():
        return False
    steps = np.diff(values)
    # Rows keep their number when others are left out.
    of_rows = np.diff(column.index) if column.index.dtype.kind in "iu" else 1
    counted = (steps == 1).all() or (steps == of_rows).all()
    return bool((n >= _FEWEST_COUNTED and counted) or (n >= _FEWEST_SORTED and (steps > 0).all()))


_ISO = re.compile(r"\d{4}-(\d{1,2}-\d{1,2}([ T].*)?|0?[1-9]|1[0-2])")
_OTHER = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})")


def holds_dates(column: pd.Series[Any]) -> bool:
    """Whether every value present is a date, or text that looks like one."""
    if column.dtype.kind in "mM":
        return True
    values = [str(value) for value in column.dropna().unique()[:200]]
    return bool(values) and all(_ISO.fullmatch(value) or _OTHER.fullmatch(value) for value in values)


def days_between(start: pd.Series[Any], end: pd.Series[Any]) -> FloatArray:
    """Days from one column of dates to another, (n,); missing where either is."""
    first, last = _dates(start, "start"), _dates(end, "end")
    days: FloatArray = (last - first).dt.total_seconds().to_numpy(dtype=np.float64) / 86_400
    before = np.flatnonzero(days < 0)
    if len(before):
        row = int(before[0])
        raise ArgumentError(
            "end",
            f"end column {end.name!r} lies before start column {start.name!r} in "
            f"{counted(len(before), 'row')} (first in row {row_number(end.index, row)}: {start.iloc[row]} to "
            f"{end.iloc[row]}): correct or remove them.",
        )
    return days


def _dates(column: pd.Series[Any], argument: str) -> pd.Series[Any]:
    if column.dtype.kind == "M":
        return pd.to_datetime(column, utc=True)
    if not holds_dates(column):
        values = [value for value in column.dropna().unique() if not holds_dates(pd.Series([value]))]
        raise ArgumentError(
            argument,
            f"{argument} column {column.name!r} holds {shown(values, 3)}, which is not a date like "
            "2021-03-31: correct it.",
        )
    text = column.astype("string").str.strip()
    read = pd.to_datetime(
        text, format=_format(text.dropna(), argument, column.name), utc=True, errors="coerce"
    )
    wrong = (read.isna() & text.notna()).to_numpy()
    if wrong.any():
        fault = first_wrong(column, wrong, "no day of the calendar or is written unlike the others")
        raise ArgumentError(argument, f"{argument} {fault}: correct it.")
    return read


def _format(text: pd.Series[str], argument: str, name: Any) -> str:
    """How the dates are written. 03/04/2021 is two dates: which one, another row must tell."""
    found = [_OTHER.fullmatch(value) for value in text]
    if not any(found):
        return "ISO8601"
    parts = [(int(match[1]), int(match[3]), match[2]) for match in found if match is not None]
    mark = parts[0][2]
    if mark == "." or any(first > 12 for first, _, _ in parts):
        return f"%d{mark}%m{mark}%Y"
    if any(second > 12 for _, second, _ in parts):
        return f"%m{mark}%d{mark}%Y"
    raise ArgumentError(
        argument,
        f"{argument} column {name!r} holds dates such as {text.iloc[0]!r}, of which nothing tells whether "
        "the day or the month comes first: write them like 2021-03-31.",
    )
