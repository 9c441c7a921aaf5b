"""Numbers of one column in different units, which no column of one unit would hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentWarning, row_number
from drosurv.patients.outcome_names import UNITS, plain, words
from drosurv.patients.target import FloatArray
from drosurv.presentation import counted, listing
from drosurv.tables.values import floats, holds_numbers, label_counts, labels

_UNITS = UNITS | {"d", "m", "y"}
# Two sets of numbers are in different units if the gap between them is at least this factor, and larger than the factor
# between the numbers of each set, of which each has at least so many different ones, and the larger so many.
_GAP, _FEWEST, _MORE = 5.0, 2, 10
# No age in years is above.
OLDEST = 120


def units_of_time(frame: pd.DataFrame, columns: Iterable[str], time: str | None) -> Iterator[ArgumentWarning]:
    """Yield a warning of each column that says in which unit the time of a row is, if there are several units."""
    for column in (frame[name] for name in columns if time is not None):
        called = words(str(column.name))
        # As time_unit, in which units may be codes.
        named = not UNITS.isdisjoint(called) and any(word.startswith(("unit", "einheit")) for word in called)
        may_tell = (named or not holds_numbers(column)) and column.nunique() <= len(_UNITS)
        counts = label_counts(column) if may_tell else {}
        if len(counts) < 2 or not (named or {plain(unit) for unit in counts} <= _UNITS):
            continue
        rare = min(counts, key=lambda unit: counts[unit])
        held = listing([f"{unit!r} in {counted(rows, 'row')}" for unit, rows in counts.items()], 6)
        yield ArgumentWarning(
            None,
            f"column {column.name!r} holds {held} (first of the fewer: row "
            f"{row_number(int(labels(column).eq(rare).argmax()), frame)}): if these are units of {time!r}, its times "
            "cannot be compared. Convert them to one unit.",
        )


def mixed_units(column: pd.Series[Any], also: Sequence[float] = ()) -> Iterator[ArgumentWarning]:
    """Warn of a column whose numbers fall into two sets far apart, or of ages that are not all in years.

    Numbers in `also` mean missing values, of which other warnings tell.
    """
    if not holds_numbers(column):
        return
    values, name = floats(column), str(column.name)
    values = np.where(np.isin(values, list(also)), np.nan, values)
    known = np.unique(values[np.isfinite(values)])
    above = values > OLDEST
    called = set(words(name))
    units = [unit for unit in called & UNITS if not unit.startswith(("y", "jahr", "an"))]
    in_years = {"age", "alter"} & called and not units
    if in_years and 0 < above.sum() < np.isfinite(values).sum() / 2:
        yield ArgumentWarning(
            None,
            f"column {name!r} holds {counted(int(above.sum()), 'number')} above {OLDEST}, up to {known[-1]:g} (first: "
            f"row {row_number(int(above.argmax()), column)}), which are no ages in years. Are all in months? If not, "
            "correct them.",
        )
        return
    cut = _cut(known)
    if cut is None:
        return
    low, high = known[known <= cut], known[known > cut]
    above, below = values > cut, values <= cut
    fewer = above if above.sum() <= below.sum() else below
    yield ArgumentWarning(
        None,
        f"column {name!r} holds {counted(int(below.sum()), 'number')} from {low[0]:g} to {low[-1]:g} and "
        f"{int(above.sum()):,} from {high[0]:g} to {high[-1]:g} (first of the fewer: row "
        f"{row_number(int(fewer.argmax()), column)}): they seem to be in different units. Convert them to one.",
    )


def _cut(known: FloatArray) -> float | None:
    """Return a number between two sets of positive numbers in different units, (k,) in order; None if there is one."""
    if len(known) < _FEWEST + _MORE or known[0] <= 0:
        return None
    at = int(np.argmax(known[1:] / known[:-1]))
    gap, sizes = known[at + 1] / known[at], (at + 1, len(known) - at - 1)
    spread = max(known[at] / known[0], known[-1] / known[at + 1])
    if gap < _GAP or gap <= spread or min(sizes) < _FEWEST or max(sizes) < _MORE:
        return None
    return float(known[at])
