"""Cells of a file, and what they hold: numbers, booleans, dates or texts. Every file is read by the rules here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from itertools import compress, count
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import warn_caller
from drosurv.patients.target import IntArray
from drosurv.tables.number_texts import like_number, mark_of, number, numbers, plain_numbers
from drosurv.tables.values import label, labels

# What pandas reads as missing, and the point of SAS and Stata. "None" is not among them: it is a level of many medical
# columns; nor are other errors of Excel's formulas, which may come from a value that is known.
MISSING = (
    *("", ".", "<NA>", "#NA", "#N/A", "#N/A N/A", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    *("NA", "na", "N/A", "n/a", "NaN", "nan", "NAN", "NULL", "Null", "null"),
)
# A missing value `column=*` means each text of the column that is no number.
ANY_TEXT = "*"
# Texts are looked at one by one if a larger share of the first ones is different.
_FIRST, _MOST_DIFFERENT = 500, 0.8
# Excel keeps 15 digits of a number.
_MOST_DIGITS = 1e15


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a column: its `values`, and the place of each cell's value among them, (n,), -1 if it is empty.

    A value is rarely there twice, because each is read once for all its cells.
    """

    places: IntArray
    values: list[Any]

    @classmethod
    def of(cls, cells: Iterable[Any]) -> Cells:
        """Return the cells of a column of numbers, texts, booleans and dates; None is an empty cell."""
        # 1, 1.0 and True would otherwise be the same.
        known: defaultdict[Any, int] = defaultdict(count().__next__)
        places = np.fromiter((known[type(cell), cell] for cell in cells), np.intp)
        values = [cell for _, cell in known]
        return cls(places, values).kept([value is not None for value in values])

    @classmethod
    def of_texts(cls, texts: Sequence[str]) -> Cells:
        """Return the cells of a column of texts."""
        if len({*texts[:_FIRST]}) > _MOST_DIFFERENT * len(texts[:_FIRST]):
            # Looking for equal texts would take longer than reading each of them.
            return cls(np.arange(len(texts)), list(texts))
        known: defaultdict[str, int] = defaultdict(count().__next__)
        return cls(np.fromiter(map(known.__getitem__, texts), np.intp, len(texts)), [*known])

    @classmethod
    def joined(cls, blocks: Sequence[Cells]) -> Cells:
        """Return the cells of several blocks of rows as one column."""
        starts = np.cumsum([0, *(len(block.values) for block in blocks)])
        places = [block.places + start for block, start in zip(blocks, starts[:-1], strict=True)]
        return cls(np.concatenate(places), [value for block in blocks for value in block.values])

    def kept(self, kept: Sequence[bool]) -> Cells:
        """Return the cells with some of the values; the others become empty."""
        place = np.full(len(self.values) + 1, -1)
        place[np.flatnonzero(kept)] = np.arange(np.count_nonzero(kept))
        return Cells(place[self.places], list(compress(self.values, kept)))

    def without(self, absent: set[str]) -> Cells:
        """Return the cells with values whose texts are among those `absent` made empty."""
        # Where all cells are numbers, none has one of the usual texts.
        if self.plain and self.texts is self.values and absent.issubset(MISSING):
            return self
        return self.kept([not _is_absent(value, absent) for value in self.values])

    @cached_property
    def texts(self) -> list[str]:
        """The different texts."""
        if set(map(type, self.values)) <= {str}:
            return self.values
        return [value for value in self.values if isinstance(value, str)]

    @cached_property
    def plain(self) -> tuple[list[float], str | None] | None:
        """The numbers of the texts and the decimal mark that they show, if all are plain numbers; else None."""
        return plain_numbers(self.texts) if self.texts else None

    def mark(self) -> str | None:
        """Return the decimal mark that the texts show, as :func:`drosurv.tables.number_texts.mark_of` does."""
        return self.plain[1] if self.plain else mark_of(self.counts())

    def counts(self) -> Iterator[tuple[str, int]]:
        """Yield the different texts and their numbers of cells."""
        cells = np.bincount(self.places[self.places >= 0], minlength=len(self.values)).tolist()
        return ((value, n) for value, n in zip(self.values, cells, strict=True) if isinstance(value, str))


# A column of a file: cells, or values to which the file gives a type.
Column = Cells | pd.Series


def without(column: Column, absent: set[str]) -> Column:
    """Return a column without the values whose texts are among those `absent`."""
    if isinstance(column, Cells):
        return column.without(absent)
    # A category called NA has the name that the file gives it.
    given = absent.difference(MISSING)
    if not given:
        return column
    return column.mask(labels(column).map(lambda text: _is_absent(text, given), na_action="ignore").eq(True))


def _is_absent(value: Any, absent: set[str]) -> bool:
    # Such as the dates that Excel makes of numbers.
    no_number = ANY_TEXT in absent and not like_number(_text(value))
    return no_number or label(value) in absent


def typed(cells: Cells, name: str, decimal: str | None, absent: Iterable[str] = ()) -> Any:
    """Return the values of a column, (n,): numbers if all are numbers, NaN where they are missing, else texts.

    Booleans and dates of a workbook stay what they are. Numbers that equal one of the texts `absent` are missing.
    """
    kinds = {"text"} if cells.texts is cells.values else set(map(_kind, cells.values))
    if kinds <= {"number", "text"} and (found := _numbers(cells, decimal, name)) is not None:
        values = np.array([*found, np.nan])
        # A missing value 999 may also be written 999.0.
        values[np.isin(values, [one for one in map(number, absent) if one is not None])] = np.nan
        return values[cells.places]
    if kinds == {"bool"}:
        listed = [*cells.values, None]
        kind = object if -1 in cells.places else bool
        return pd.Series([listed[place] for place in cells.places], dtype=kind)
    if kinds == {"date"}:
        moments = [pd.Timestamp(value) for value in cells.values]
        try:
            return pd.Series(pd.to_datetime([*moments, pd.NaT])[cells.places])  # type: ignore[arg-type]
        except (ValueError, OverflowError):
            # Before pandas 3 a year such as 9999 is no date.
            pass
    if "long number" in kinds and any(isinstance(value, float) for value in cells.values):
        warn_caller(
            f"column {name!r} holds numbers with more than 15 digits, of which Excel keeps 15: different ones may have "
            "become equal. Store such numbers as text."
        )
    texts = cells.values if cells.texts is cells.values else list(map(_text, cells.values))
    return pd.Series(pd.Series(texts).array.take(cells.places, allow_fill=True))


def _numbers(cells: Cells, decimal: str | None, name: str) -> list[float] | None:
    """Return the different values of a column as numbers; None if one is no number."""
    if cells.plain and (decimal is None or cells.plain[1] in (decimal, None)):
        found: list[float] | None = cells.plain[0]
    else:
        found = numbers(cells.texts, decimal, name) if cells.texts else []
    if found is None or len(found) == len(cells.values):
        return found
    if any(text.endswith(("%", "％")) for text in cells.texts):
        # Such as 36 % beside 0.36.
        return None
    read = iter(found)
    return [next(read) if isinstance(value, str) else float(value) for value in cells.values]


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, Real):
        return "long number" if abs(float(value)) >= _MOST_DIGITS else "number"
    return "date" if isinstance(value, (datetime, date)) else "other"


def _text(value: Any) -> str:
    if isinstance(value, (datetime, date)):
        return str(value).removesuffix(" 00:00:00")
    return label(value)
