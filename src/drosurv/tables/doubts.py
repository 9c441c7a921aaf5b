"""What looks wrong in a table although it can be read: said once, for the user to decide."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import Argument, ArgumentWarning
from drosurv.presentation import counted
from drosurv.tables.columns import MOST_LEVELS
from drosurv.tables.labels import label, labels
from drosurv.tables.number_values import finite, holds_numbers, row_number
from drosurv.tables.same_patients import row_numbers
from drosurv.tables.spellings import spellings
from drosurv.target import FloatArray

# Numbers that stand for "not known" in registries and questionnaires.
_SENTINELS = {-1, -7, -8, 88, 777, 888, 7777, 8888}
_SENTINELS |= {sign * (10**k - 1) for k in (1, 2, 3, 4, 5) for sign in (-1, 1)}
_MOST_CODES = 10
_FEWEST_ROWS = 50
_CODE_NAME = re.compile(
    r"code|zip|postal|_?cd$|icd|race|ethnic|region|centre|center|site|ward|hospital", re.IGNORECASE
)
_ID_NAME = re.compile(r"(^|_)(id|mrn|pid|patient|subject|case)(_?(id|no|nr|num|number|key))?$", re.IGNORECASE)


def doubts(
    frame: pd.DataFrame,
    *,
    features: Sequence[str],
    target: Sequence[str],
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    id: str | None = None,
) -> Iterator[ArgumentWarning]:
    """Warnings about a table that trains a model.

    The user says which columns are codes (`categorical`) or amounts (`numeric`): they are not asked about.
    """
    yield from _copies(frame, target)
    if id is None:
        yield from _repeated_ids(frame, features)
    yield from _codes(frame, [name for name in features if name not in (*categorical, *numeric)])
    for name in [*features, *target]:
        if name not in categorical:
            yield from _sentinels(frame[name])
    for name in features:
        yield from _spellings(frame[name])


def _copies(frame: pd.DataFrame, target: Sequence[str]) -> Iterator[ArgumentWarning]:
    numbers = row_numbers(frame, target)
    copies = len(numbers) - len(np.unique(numbers))
    if copies:
        second = int(np.flatnonzero(pd.Series(numbers).duplicated())[0])
        first = int(np.flatnonzero(numbers == numbers[second])[0])
        rows = [row_number(frame.index, place) for place in (second, first)]
        yield ArgumentWarning(
            f"{'1 row is a copy' if copies == 1 else f'{copies:,} rows are copies'} of another row (first: row "
            f"{rows[0]} of row {rows[1]}). They are used as they stand, and never divided "
            "between training and hold-out; remove them if they are the same patients."
        )


def _repeated_ids(frame: pd.DataFrame, features: Sequence[str]) -> Iterator[ArgumentWarning]:
    n = len(frame)
    for name in frame.columns:
        different = frame[name].nunique()
        # Far fewer would be a class of patients, such as cases and controls.
        if _ID_NAME.search(str(name)) and n >= _FEWEST_ROWS and n / 10 < different < frame[name].count():
            yield ArgumentWarning(
                f"column {name!r} names {different:,} different patients in {n:,} rows: to keep the rows of a patient "
                "together, and to predict nothing from it, pass ",
                Argument("id", str(name)),
                ".",
            )


def _codes(frame: pd.DataFrame, features: Sequence[str]) -> Iterator[ArgumentWarning]:
    found = [name for name in features if _is_code(frame[name])] if len(frame) >= _FEWEST_ROWS else []
    if found:
        examples = "; ".join(f"{name!r}: {_levels(frame[name])}" for name in found[:6])
        more = f" and {len(found) - 6} more columns" if len(found) > 6 else ""
        yield ArgumentWarning(
            f"codes or amounts? Columns of few whole numbers, or named like codes ({examples}{more}), are taken as "
            "amounts. Name codes in ",
            Argument("categorical"),
            ", amounts in ",
            Argument("numeric"),
            ".",
        )


def _is_code(column: pd.Series[Any]) -> bool:
    if not holds_numbers(column):
        return False
    values = np.unique(finite(column))
    if len(values) < 3 or not (values == np.floor(values)).all():
        return False
    return len(values) <= _MOST_CODES or _CODE_NAME.search(str(column.name)) is not None


def _levels(column: pd.Series[Any]) -> str:
    levels = [label(value) for value in np.sort(column.dropna().unique())]
    return ", ".join(levels[:4]) + (", ..." if len(levels) > 4 else "")


def _sentinels(column: pd.Series[Any]) -> Iterator[ArgumentWarning]:
    if not holds_numbers(column) or len(column) < _FEWEST_ROWS:
        return
    values = finite(column)
    found = [value for value in np.unique(values) if value in _SENTINELS and _far_outside(value, values)]
    for value in found:
        rows = int((values == value).sum())
        rest = values[~np.isin(values, found)]
        yield ArgumentWarning(
            f"column {column.name!r} holds {value:g} in {counted(rows, 'row')}, far outside the rest "
            f"({rest.min():g} to {rest.max():g}). If it means a missing value, pass ",
            Argument("missing", f"{column.name}={value:g}"),
            ".",
        )


def _far_outside(value: float, values: FloatArray) -> bool:
    """Whether nothing else lies on its side of the rest: further away than the rest is wide, or alone below 0."""
    rest = values[~np.isin(values, list(_SENTINELS))]
    if len(rest) < len(values) / 2 or np.ptp(rest) == 0:
        return False
    if value < 0:
        return bool(rest.min() >= 0)
    return bool(value - rest.max() > np.ptp(rest))


def _spellings(column: pd.Series[Any]) -> Iterator[ArgumentWarning]:
    if holds_numbers(column) or column.dtype.kind in "bmM":
        return
    levels = [str(level) for level in labels(column).dropna().unique()]
    same = spellings(levels) if len(levels) <= MOST_LEVELS else []
    if same:
        shown = "; ".join(", ".join(map(repr, family)) for family in same[:4])
        yield ArgumentWarning(
            f"column {column.name!r} holds labels that may mean the same: {shown}. They are different levels here; "
            "correct the table if they are not."
        )
