"""Columns of numbers, whatever pandas type holds them."""

from __future__ import annotations

import re
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import Argument, ArgumentError
from drosurv.presentation import counted
from drosurv.target import FloatArray

# With fewer rows, numbers could be in unit steps, or sorted, by chance.
_FEWEST_COUNTED = 20
_FEWEST_SORTED = 100
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")


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


def to_floats(column: pd.Series[Any]) -> FloatArray:
    """The numbers of a column, (n,), NaN where it is missing; text that is no number is an error."""
    numbers = pd.to_numeric(column.astype(object).where(column.notna(), np.nan), errors="coerce")
    values: FloatArray = numbers.to_numpy(dtype=np.float64)
    wrong = np.isnan(values) & column.notna().to_numpy()
    if wrong.any():
        row = int(wrong.argmax())
        raise ArgumentError(
            f"column {column.name!r} holds {column.iloc[row]!r} (row {row_number(column.index, row)}), "
            f"which is not a number ({counted(int(wrong.sum()), 'such row')}): correct it, or name it in ",
            Argument("missing"),
            ".",
        )
    if np.isinf(values).any():
        raise ValueError(
            f"column {column.name!r} holds infinite values: correct them, or leave the column out."
        )
    return values


def has_decimal_comma(value: Any) -> bool:
    """Whether a value is text like 1,5: a number where a comma is the decimal mark."""
    return isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value) is not None


def finite(column: pd.Series[Any]) -> FloatArray:
    """The finite numbers of a column of numbers."""
    values: FloatArray = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return values[np.isfinite(values)]


def counts_rows(values: FloatArray) -> bool:
    """Whether numbers (n,) count the rows; patients kept away may have left gaps."""
    steps, n = np.diff(values), len(values)
    if not (values == np.floor(values)).all():
        return False
    return bool((n >= _FEWEST_COUNTED and (steps == 1).all()) or (n >= _FEWEST_SORTED and (steps > 0).all()))
