"""Numbers of one column in different units, which no column of one unit would hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentWarning, row_number
from drosurv.patients.outcome_names import words
from drosurv.patients.target import FloatArray
from drosurv.presentation import counted, listing
from drosurv.tables.values import floats, holds_numbers, label_counts

_UNITS = {"day", "days", "d", "week", "weeks", "month", "months", "mo", "year", "years", "y"}
# Two sets of numbers are in different units if the gap between them is at least this factor, and larger than the factor
# between the numbers of each set, of which the larger has at least so many different ones.
_GAP, _FEWEST = 5.0, 10
# No age in years is above.
_OLDEST = 120


def mixed_units(
    frame: pd.DataFrame, features: Sequence[str], time: str | None, also: Sequence[float] = ()
) -> Iterator[ArgumentWarning]:
    """Yield warnings of columns that seem to hold numbers in different units, with their rows.

    Numbers in `also` mean missing values, of which other warnings tell.
    """
    for name in features:
        column = frame[name]
        if holds_numbers(column):
            yield from _two_sets(column, also)
        elif time is not None and _are_units(column):
            counts = listing(
                [f"{unit!r} in {counted(rows, 'row')}" for unit, rows in label_counts(column).items()], 6
            )
            rare = min(label_counts(column).items(), key=lambda item: item[1])[0]
            first = row_number(int(column.eq(rare).argmax()), frame)
            yield ArgumentWarning(
                None,
                f"column {name!r} holds {counts} (first of the fewer: row {first}): if these are "
                f"units of {time!r}, its times cannot be compared. Convert them to one unit.",
            )


def _are_units(column: pd.Series[Any]) -> bool:
    found = {str(value).strip().casefold() for value in column.dropna().unique()[: len(_UNITS) + 1]}
    return len(found) > 1 and found <= _UNITS


def _two_sets(column: pd.Series[Any], also: Sequence[float]) -> Iterator[ArgumentWarning]:
    """Warn of a column whose numbers fall into two sets far apart, or of ages that nobody has."""
    values = floats(column)
    known = np.unique(values[np.isfinite(values) & ~np.isin(values, list(also))])
    cut = _cut(known)
    if {"age", "alter"} & set(words(str(column.name))) and 0 < (values > _OLDEST).sum() < np.isfinite(
        values
    ).sum() / 2:
        cut = float(_OLDEST)
    if cut is None:
        return
    low, high = known[known <= cut], known[known > cut]
    if not len(high):
        return
    above, below = np.isin(values, high), np.isin(values, low)
    fewer = above if above.sum() <= below.sum() else below
    yield ArgumentWarning(
        None,
        f"column {str(column.name)!r} holds {counted(int(below.sum()), 'number')} from {low[0]:g} to {low[-1]:g} and "
        f"{int(above.sum()):,} from {high[0]:g} to {high[-1]:g} (first of the fewer: row "
        f"{row_number(int(fewer.argmax()), column)}): they seem to be in different units, or mistyped. Correct them.",
    )


def _cut(known: FloatArray) -> float | None:
    """Return a number between two sets of positive numbers in different units, (k,) in order; None if there is one."""
    if len(known) <= _FEWEST or known[0] <= 0:
        return None
    at = int(np.argmax(known[1:] / known[:-1]))
    gap = known[at + 1] / known[at]
    spread = max(known[at] / known[0], known[-1] / known[at + 1])
    if gap < _GAP or gap <= spread or max(at + 1, len(known) - at - 1) < _FEWEST:
        return None
    return float(known[at])
