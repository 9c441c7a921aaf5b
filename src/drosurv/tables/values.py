"""Values of a column: their labels and numbers, and where they stand in the file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, InputError, arg, in_command, row_number
from drosurv.patients.outcome_names import STATES, value_word
from drosurv.patients.target import BoolArray, FloatArray, IntArray
from drosurv.presentation import counted
from drosurv.tables.number_texts import DATE, like_number, number

# A text is quoted in messages only if so many rows have it, and if it is not longer than a label.
FEWEST_QUOTED, _LONGEST_QUOTED = 5, 40
# A column of more different numbers holds amounts.
MOST_CODES = 10
# Texts in a larger share of the rows are not missing values.
_MOSTLY = 0.5
# Texts that mean that a value is not known.
_ABSENT = re.compile(
    r"\?|--?|unknown|unk|n/k|nk|not known|not done|nd|n\.d\.|missing|none|k\.a\.|keine angabe|unbekannt|inconnue?|nr|"
    r"n/d|not available|not measured"
)
# That a number lies beyond a limit, as <5 and 60+.
LIMIT = re.compile(r"[<>≤≥]=?\s*[\d.,]+|[\d.,]+\s*\+")
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+(?:[eE][+-]?\d+)?\s*")
# A number with its unit, as 12 mg/l.
_WITH_UNIT = re.compile(r"([\d.,]+)\s*[^\W\d_]{1,4}(?:/[^\W\d_]{1,4})?")


def label(value: Any) -> str:
    """Return a value as text; whole numbers have no decimals, so that 1, 1.0 and "1" are the same category.

    Dates have no time of day.
    """
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, pd.Timestamp) and value == value.normalize():
        return str(value.date())
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def factorized(column: pd.Series[Any]) -> tuple[IntArray, Any]:
    """Return the code of each value, (n,), -1 where it is missing, and the different values in order of appearance."""
    try:
        return pd.factorize(column)
    except TypeError as error:
        raise InputError(
            f"column {column.name!r} holds lists or other collections: drop it, or take them apart."
        ) from error


def coded(column: pd.Series[Any]) -> tuple[IntArray, list[str]]:
    """Return the code of each value's label, (n,), -1 where it is missing, and the labels in order of appearance."""
    codes, values = factorized(column)
    # The array of a column of texts takes longer to walk through.
    names = list(map(label, np.asarray(values, dtype=object)))
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    if len(places) < len(names):
        # Missing values have the code -1, which takes the last element.
        codes = np.array([*(places[name] for name in names), -1], dtype=np.intp)[codes]
    return codes, list(places)


def label_counts(column: pd.Series[Any]) -> dict[str, int]:
    """Return the labels of a column in order of appearance, with their numbers of rows."""
    codes, names = coded(column)
    return dict(zip(names, np.bincount(codes[codes >= 0], minlength=len(names)).tolist(), strict=True))


def labels(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return the values of a column as text; missing values stay missing."""
    codes, names = coded(column)
    if not names:
        return pd.Series(np.full(len(codes), np.nan, dtype=object), index=column.index, name=column.name)
    # Each different text is converted once.
    texts: Any = pd.Series(names).array
    return pd.Series(texts.take(codes, allow_fill=True), index=column.index, name=column.name)


def shown(values: Any, limit: int = 6) -> str:
    """List a few values for a message, and say how many more there are."""
    # NumPy's numbers are written as Python's.
    listed = [repr(value.item() if isinstance(value, np.generic) else value) for value in values]
    return ", ".join(listed[:limit]) + (f" and {len(listed) - limit:,} more" if len(listed) > limit else "")


def may_be_quoted(text: str, rows: int) -> bool:
    """Whether a text of so many rows may stand in a message or file: free text about single patients may not.

    Numbers, dates, states such as dead, and usual texts for missing values are no free text.
    """
    plain = text.strip().casefold()
    known = any(re.fullmatch(form, plain) for form in (_ABSENT, DATE, LIMIT))
    known = known or value_word(plain) in STATES or like_number(plain)
    return known or (rows >= FEWEST_QUOTED and len(plain) <= _LONGEST_QUOTED)


def means_absent(text: str) -> bool:
    """Whether a text says that a value is not known; "none" may also be zero."""
    plain = text.strip().casefold()
    return plain != "none" and _ABSENT.fullmatch(plain) is not None


def quoted(counts: Mapping[Any, int] | pd.Series[int], limit: int = 6, *, rows: bool = False) -> str:
    """List texts, given with their numbers of rows, as far as they may be quoted, and count the others."""
    known = [
        f"{text!r} in {counted(int(n), 'row')}" if rows else repr(text)
        for text, n in counts.items()
        if may_be_quoted(str(text), int(n))
    ][:limit]
    rest = len(counts) - len(known)
    if not known:
        return counted(rest, "text")
    return ", ".join(known) + (f" and {counted(rest, 'other text')}" if rest else "")


def holds_numbers(column: pd.Series[Any]) -> bool:
    """Whether every value present is a number; booleans and numbers written as text are not."""
    if column.dtype.kind in "iuf":
        return True
    if column.dtype.kind != "O" or isinstance(column.dtype, pd.CategoricalDtype):
        return False
    if isinstance(column.dtype, pd.StringDtype):
        return bool(column.array.isna().all())
    known = factorized(column)[1]
    return all(isinstance(one, (Real, Decimal)) and not isinstance(one, bool) for one in known)


def to_floats(column: pd.Series[Any], role: str = "") -> FloatArray:
    """Return the numbers of a column, (n,), NaN where missing; raise where text is not a number.

    `role` is the argument that names the column, for messages.
    """
    role = f"{arg(role)} " if role else ""
    values = floats(column) if column.dtype.kind in "iuf" else numbers_in(column)
    wrong = np.isnan(values) & column.notna().to_numpy()
    if wrong.any():
        # A value such as "n/k" keeps a whole column as text, with its decimal commas: report that value.
        others = wrong & ~column.map(has_decimal_comma).to_numpy(dtype=np.bool_)
        raise no_numbers(column, others if others.any() else wrong, role)
    if (infinite := np.isinf(values)).any():
        raise InputError(f"{role}{first_wrong(column, infinite, 'infinite')}: correct or remove them.")
    return values


def numbers_in(column: pd.Series[Any]) -> FloatArray:
    """Return the numbers of a column, (n,), also those written as text; NaN where a value is missing or is none."""
    codes, values = factorized(column)
    found = (number(value) if isinstance(value, str) else value for value in values)
    known = [float(one) if isinstance(one, (Real, Decimal)) else np.nan for one in found]
    # Missing values have the code -1, which takes the last element.
    return np.array([*known, np.nan], dtype=np.float64)[codes]


def no_numbers(column: pd.Series[Any], wrong: BoolArray, role: str = "", also: str = "") -> ArgumentError:
    """Return the error of texts, at `wrong` rows (n,), in a column of numbers: what and where, and what to do.

    `role` is the argument that names the column, with a space, and `also` a further remedy.
    """
    held, here = label_counts(column[wrong]), arg("missing", [f"{column.name}=*"])
    absent = f"pass {here} if such texts mean a missing value"
    if not in_command():
        in_pandas = f"pandas.to_numeric(table[{str(column.name)!r}], errors='coerce')"
        absent = f"read the file with {here}, or use {in_pandas}, if such texts mean a missing value"
    remedy = f"correct the table, or {absent}"
    if like_number(text := next(iter(held))):
        remedy = "write all numbers of the column in the same way"
        if has_decimal_comma(text):
            read = (
                f"write points, or read the table with {arg('decimal', ',')} if all its numbers have commas"
            )
            remedy = f"if the comma is the decimal mark, {read}; if it separates thousands, remove it"
    elif all(map(LIMIT.fullmatch, held)):
        remedy = f"write numbers, such as the limits, or {absent}"
    elif all(map(_WITH_UNIT.fullmatch, held)):
        alone = _WITH_UNIT.sub(r"\1", text)
        remedy = f"write numbers without units there, such as {alone} for {text!r}"
    elif np.mean(wrong) > _MOSTLY:
        remedy = "write numbers alone there, without their units"
    first = row_number(int(wrong.argmax()), column)
    are = "is no number" if len(held) == 1 else "are no numbers"
    told = f"{role}column {column.name!r} holds {quoted(held, rows=True)} (first: row {first}), which {are}"
    return ArgumentError("missing", f"{told}: {remedy}{also}.")


def first_wrong(column: pd.Series[Any], wrong: BoolArray, fault: str) -> str:
    """Say where a column is wrong: the first such value, its row, and the number of such rows."""
    row = int(wrong.argmax())
    value = column.iloc[row]
    held = f"{value:.10g}" if isinstance(value, (float, np.floating)) else label(value)
    if isinstance(value, str):
        held = repr(value) if may_be_quoted(value, int((column == value).sum())) else "a text"
    place, rows = row_number(row, column), counted(int(wrong.sum()), "such row")
    return f"column {column.name!r} holds {held} (row {place}), which is {fault} ({rows})"


def has_decimal_comma(value: Any) -> bool:
    """Whether a value is text like 1,5: a number where a comma is the decimal mark."""
    return isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value) is not None


def finite(column: pd.Series[Any]) -> FloatArray:
    """Return the numbers of a column that are known and finite; none if it does not hold numbers."""
    values = floats(column) if holds_numbers(column) else np.zeros(0)
    return values[np.isfinite(values)]


def floats(column: pd.Series[Any]) -> FloatArray:
    """Return a column of numbers as floats, (n,), NaN where missing."""
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def amounts(frame: pd.DataFrame) -> dict[str, FloatArray]:
    """Return the columns of numbers with many different values, as floats (n,)."""
    numbers = (name for name in frame.columns if holds_numbers(frame[name]))
    return {str(name): floats(frame[name]) for name in numbers if frame[name].nunique() > MOST_CODES}
