"""Dates of a table, written as text or as numbers such as 202103 and 20210331, and the time between two of them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, arg, row_number
from drosurv.patients.target import BoolArray, FloatArray
from drosurv.presentation import counted
from drosurv.tables.number_texts import in_ascii
from drosurv.tables.values import (
    coded,
    factorized,
    finite,
    first_wrong,
    holds_numbers,
    label,
    labels,
    numbers_in,
    quoted,
    to_floats,
)

_ISO = re.compile(r"\d{4}-(\d{1,2}-\d{1,2}([ T].*)?|0?[1-9]|1[0-2])")
_YEAR_FIRST = re.compile(r"(\d{4})([./-])(\d{1,2})\2(\d{1,2})")
_OTHER = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})")
# A year after 2100, alone or in a date, or one after 2199 in a number.
_LATE = r"(?<!\d)(?:2[1-9]|[3-9]\d)\d\d(?!\d)|^(?:2[2-9]|[3-9]\d)\d{6}$"
# Nobody is followed up for longer, in days and in months: a date such as 9999-12-31 means that there is none.
_LONGEST = {"days": 120 * 365.25, "months": 120 * 12.0}
# Calendar years of dates.
YEARS = 1900, 2100
# Dates such as 10321 have lost a zero; at least this share have six digits, as no number of days has.
_SIX_DIGITS = 0.1
# Share of the numbers of a column that may be no dates if it holds dates.
_SLIPS = 0.05


def holds_dates(column: pd.Series[Any]) -> bool:
    """Whether every value present is a date, or text that looks like one."""
    if column.dtype.kind in "mM":
        return True
    if column.dtype.kind in "biufc":
        return False
    values = [_plain(label(value)) for value in factorized(column)[1][:200]]
    return bool(values) and all(_ISO.fullmatch(value) or _OTHER.fullmatch(value) for value in values)


def _plain(text: str) -> str:
    """Return a date with the digits 0 to 9; one that begins with the year as in 2021-03-31."""
    found = _YEAR_FIRST.fullmatch(text := in_ascii(text))
    return text if found is None else f"{found[1]}-{found[3]:0>2}-{found[4]:0>2}"


def _texts(column: pd.Series[Any]) -> pd.Series[Any]:
    return labels(column).map(_plain, na_action="ignore").astype("string")


def dates_in_numbers(column: pd.Series[Any]) -> str:
    """Return "YYYYMM", "YYYYMMDD", "DDMMYYYY" or "MMDDYYYY" if the numbers of a column are dates written so, else "".

    It is "?" if they are dates of which the day or the month may come first. Texts of eight digits are such numbers.
    """
    if holds_numbers(column):
        known = finite(column)
    elif column.dtype.kind in "OT" and all(re.fullmatch(r"\d{8}", one) for one in coded(column)[1]):
        known = numbers_in(column.dropna())
    else:
        return ""
    first, second, last = known // 1_000_000, known // 10_000 % 100, known % 10_000
    found: dict[str, float] = {}
    for form, year, month, day in (
        ("YYYYMM", known // 100, known % 100, np.ones(len(known))),
        ("YYYYMMDD", known // 10_000, known // 100 % 100, known % 100),
        ("DDMMYYYY", last, second, first),
        ("MMDDYYYY", last, first, second),
    ):
        valid = (known % 1 == 0) & (year >= YEARS[0]) & (year <= YEARS[1]) & _may_be_date(month, day)
        if len(known) and valid.mean() >= 1 - _SLIPS:
            found[form] = float(valid.mean())
    best = [form for form, share in found.items() if share == max(found.values())]
    return "?" if len(best) > 1 else best[0] if best else ""


def holds_years(column: pd.Series[Any]) -> bool:
    """Whether the numbers of a column are several years of the calendar."""
    known = finite(column)
    return bool(len(known) and np.ptp(known) > 0 and known.min() >= YEARS[0] and known.max() <= YEARS[1])


def _may_be_date(month: FloatArray, day: FloatArray) -> BoolArray:
    return np.asarray((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31), np.bool_)


def _short_dates(column: pd.Series[Any]) -> bool:
    """Whether numbers are dates with two digits for the year, such as 310321, in any order."""
    known = finite(column)
    six_digits = len(known) and (known > 100_000).mean() > _SIX_DIGITS
    if not six_digits or (known % 1 > 0).any() or known.max() >= 10**6:
        return False
    a, b, c = known // 10_000, known // 100 % 100, known % 100
    orders = ((b, a), (a, b), (b, c))
    return any(_may_be_date(month, day).mean() >= 1 - _SLIPS for month, day in orders)


def unit_between(start: pd.Series[Any], end: pd.Series[Any]) -> str:
    """Return the unit of :func:`time_between`: "days", "months", or "time", that of two columns of numbers."""
    forms = dates_in_numbers(start), dates_in_numbers(end)
    if "YYYYMM" in forms:
        return "months"
    numbers = holds_numbers(start) and holds_numbers(end)
    return "time" if numbers and forms == ("", "") else "days"


def time_between(start: pd.Series[Any], end: pd.Series[Any]) -> FloatArray:
    """Return the time between two columns, (n,): days between dates, months between months, or their difference.

    It is NaN where either is missing.
    """
    unit = unit_between(start, end)
    if unit == "time":
        for column, argument in ((start, "start"), (end, "end")):
            if _short_dates(column):
                raise ArgumentError(
                    argument,
                    f"{arg(argument)} column {column.name!r} holds numbers such as {column.dropna().iloc[0]:.0f}, "
                    "which look like dates with two digits for the year: write them like 2021-03-31.",
                )
        time = to_floats(end, "end") - to_floats(start, "start")
    else:
        first, last = to_dates(start, "start", end), to_dates(end, "end", start)
        if unit == "months":
            between = 12 * (last.dt.year - first.dt.year) + last.dt.month - first.dt.month
        else:
            between = (last - first).dt.total_seconds() / 86_400
        time = between.to_numpy(dtype=np.float64)
    late = time > _LONGEST.get(unit, np.inf)
    for wrong, fault in ((time < 0, "lies before"), (late, "lies more than 120 years after")):
        if wrong.any():
            row = int(wrong.argmax())
            swapped = (time < 0).sum() > (time >= 0).sum()
            remedy = "were the two columns swapped?" if swapped else "correct or remove them."
            raise ArgumentError(
                "end",
                f"{arg('end')} column {end.name!r} {fault} start column {start.name!r} in "
                f"{counted(int(wrong.sum()), 'row')} (first in row {row_number(row, end)}: {start.iloc[row]} to "
                f"{end.iloc[row]}): {remedy}",
            )
    return time


def to_dates(column: pd.Series[Any], argument: str, other: pd.Series[Any] | None = None) -> pd.Series[Any]:
    """Return a column of text, of numbers such as 20210331 or 202103, or of dates as dates; raise if some are none.

    Where no row shows whether the day or the month comes first, an `other` column of dates that are written alike may.
    """
    if column.dtype.kind == "M":
        text, parsed = column.astype("string"), pd.to_datetime(column, utc=True)
    elif form := dates_in_numbers(column):
        if form == "?":
            raise _unclear_order(column, argument)
        text = _texts(column)
        if form == "YYYYMM":
            text += "01"
        elif form != "YYYYMMDD":
            text = text.str.zfill(8)
            day, month = (0, 2) if form == "DDMMYYYY" else (2, 0)
            text = text.str[4:] + text.str[month : month + 2] + text.str[day : day + 2]
        parsed = pd.to_datetime(text, format="%Y%m%d", utc=True, errors="coerce")
    elif holds_dates(column):
        text = _texts(column)
        parsed = pd.to_datetime(text, format=_format(column, argument, other)[0], utc=True, errors="coerce")
    else:
        known = labels(column).value_counts()
        others = known[[not holds_dates(pd.Series([value])) for value in known.index]]
        raise ArgumentError(
            argument,
            f"{arg(argument)} column {column.name!r} holds {quoted(others, 3)}, no dates: write them like "
            "2021-03-31.",
        )
    late = text.str.contains(_LATE).fillna(False).to_numpy(dtype=np.bool_)
    unknown = "if it means that the date is not known, write the date of the last visit there"
    for wrong, fault, remedy in (
        (late, "a date that no patient has", unknown),
        (
            (parsed.isna() & column.notna()).to_numpy(),
            "not a valid date, or not written like the others",
            "correct it",
        ),
    ):
        if wrong.any():
            raise ArgumentError(argument, f"{arg(argument)} {first_wrong(column, wrong, fault)}: {remedy}.")
    return parsed


def latest_date() -> pd.Timestamp:
    """Return tomorrow: clocks differ by up to a day between time zones, and only later dates are in the future."""
    return pd.Timestamp.today().normalize() + pd.Timedelta(days=1)


def in_future(column: pd.Series[Any], argument: str, other: pd.Series[Any]) -> BoolArray:
    """Return which dates of a column lie after :func:`latest_date`, (n,); none if it does not hold dates.

    The `other` column is as in :func:`to_dates`.
    """
    if not (dates_in_numbers(column) or holds_dates(column)):
        return np.zeros(len(column), dtype=np.bool_)
    days = to_dates(column, argument, other).dt.tz_localize(None).dt.normalize()
    return np.asarray(days > latest_date(), np.bool_)


def how_read(column: pd.Series[Any], argument: str, other: pd.Series[Any] | None = None) -> str:
    """Say how dates such as 03/04/2021 or 2021-03 of a column are read; empty if it is clear.

    The `other` column is as in :func:`to_dates`.
    """
    if column.dtype.kind == "M" or not holds_dates(column):
        return ""
    for value in _texts(column).dropna().unique():
        read = f"{value!r} of {arg(argument)} column {column.name!r} is read as"
        if re.fullmatch(r"\d{4}-\d{1,2}", value):
            return f"{read} the first day of that month."
        match = _OTHER.fullmatch(value)
        # With dots, the day comes first everywhere.
        if match is None or match[2] == "." or match[1] == match[3] or max(int(match[1]), int(match[3])) > 12:
            continue
        form, shown_by = _format(column, argument, other)
        date = pd.to_datetime(value, format=form, errors="coerce")
        first = "day" if form[1] == "d" else "month"
        # A date that is not written like the others is refused where the dates are read.
        if not pd.isna(date):
            return f"{read} {date.day} {date:%B %Y}, because {shown_by} have the {first} first."
    return ""


def _unclear_order(column: pd.Series[Any], argument: str) -> ArgumentError:
    first = label(column.dropna().iloc[0])
    return ArgumentError(
        argument,
        f"{arg(argument)} column {column.name!r} holds dates such as {first!r}, and no row shows "
        "whether the day or the month comes first: write them like 2021-03-31.",
    )


def _format(column: pd.Series[Any], argument: str, other: pd.Series[Any] | None) -> tuple[str, str]:
    """Return the format of the dates, and which dates show it.

    03/04/2021 is ambiguous unless another row, or else the other column, has a number above 12.
    """
    mark, first = _written(column)
    if not mark:
        return "ISO8601", ""
    shown_by = "other dates of the column"
    if not first and other is not None:
        its_mark, its_first = _written(other)
        first, shown_by = its_first if its_mark == mark else "", f"dates of column {other.name!r}"
    if not first:
        raise _unclear_order(column, argument)
    return f"%{first}{mark}%{'m' if first == 'd' else 'd'}{mark}%Y", shown_by


def _written(column: pd.Series[Any]) -> tuple[str, str]:
    """Return the mark of dates such as 31/12/2020, and "d" or "m", what comes first; empty texts if not known."""
    found = [_OTHER.fullmatch(value) for value in _texts(column).dropna()]
    parts = [(int(match[1]), int(match[3]), match[2]) for match in found if match is not None]
    if not parts:
        return "", ""
    mark = parts[0][2]
    if mark == "." or any(first > 12 for first, _, _ in parts):
        return mark, "d"
    return mark, "m" if any(second > 12 for _, second, _ in parts) else ""
