"""Columns of dates: recognised, read without guessing, and turned into days."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError
from drosurv.presentation import counted
from drosurv.tables.values import first_wrong, row_number, shown
from drosurv.target import FloatArray

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
