"""Which columns of a table hold the target, and what they say: asked for, never guessed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from drosurv.tables.labels import label, labels, shown
from drosurv.tables.number_values import has_decimal_comma
from drosurv.tables.reading import require_columns
from drosurv.target import BoolArray, FloatArray, Surv

_TRUTH = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}


@dataclass(frozen=True)
class TargetColumns:
    """The columns of time and event.

    Parameters
    ----------
    time : str
        Column of times: numbers, not dates.
    event : str
        Column of event flags.
    event_value : str, optional
        The value of `event` that means the event happened; every other value means censored. Needed unless the
        column holds 0 and 1, or True and False.

    Examples
    --------
    >>> import pandas as pd
    >>> from drosurv.tables import TargetColumns
    >>> frame = pd.DataFrame({"days": [3.0, 8.0], "status": [2, 1]})
    >>> TargetColumns("days", "status", event_value="2").parse(frame)
    array([( True, 3.), (False, 8.)], dtype=[('status', '?'), ('days', '<f8')])
    """

    time: str
    event: str
    event_value: str | None = None

    def parse(self, frame: pd.DataFrame) -> NDArray[Any]:
        """The target of every row, a structured array (n,)."""
        require_columns(frame, [self.time], "time")
        require_columns(frame, [self.event], "event")
        if self.time == self.event:
            raise ValueError(f"time and event are both column {self.time!r}: name the column of each.")
        return Surv.from_arrays(
            self._events(frame[self.event]),
            self._times(frame[self.time]),
            event_name=self.event,
            time_name=self.time,
        )

    def _times(self, column: pd.Series[Any]) -> FloatArray:
        _refuse_missing(column, f"time column {self.time!r}")
        if column.dtype.kind in "mM":
            raise ValueError(
                f"time column {self.time!r} holds dates: a time is a number, such as the days from the start of "
                "follow-up to the event or the last visit."
            )
        if column.dtype.kind == "b":
            raise ValueError(f"time column {self.time!r} holds only true and false: is it the event column?")
        numbers = pd.to_numeric(column, errors="coerce")
        wrong = numbers.isna().to_numpy()
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(
                f"time column {self.time!r} holds {column.iloc[row]!r} (row {row + 1}), which is not a number "
                f"({int(wrong.sum()):,} such rows): {_remedy(column.iloc[row])}."
            )
        times: FloatArray = numbers.to_numpy(dtype=np.float64)
        outside = ~((times >= 0) & (times < np.inf))
        if outside.any():
            row = int(outside.argmax())
            raise ValueError(
                f"time column {self.time!r} holds {times[row]:g} (row {row + 1}), which is negative or infinite "
                f"({int(outside.sum()):,} such rows): correct or remove them."
            )
        return times

    def _events(self, column: pd.Series[Any]) -> BoolArray:
        _refuse_missing(column, f"event column {self.event!r}")
        found = labels(column)
        counts = found.value_counts()
        if self.event_value is not None:
            wanted = label(self.event_value)
            if wanted not in counts.index:
                raise ValueError(
                    f"event_value {self.event_value!r} does not occur in event column {self.event!r}, which holds "
                    f"{shown(counts.index)}."
                )
            return np.asarray(found == wanted, dtype=np.bool_)
        if set(counts.index) <= {"0", "1"}:
            return np.asarray(found == "1", dtype=np.bool_)
        if set(counts.index) <= set(_TRUTH):
            return found.map(_TRUTH).to_numpy(dtype=np.bool_)
        held = ", ".join(f"{value!r} in {count:,} rows" for value, count in counts.head(6).items())
        more = f" and {len(counts) - 6} more" if len(counts) > 6 else ""
        remedy = (
            "pass " + " or ".join(f"event_value={value!r}" for value in counts.index)
            if len(counts) <= 2
            else "pass the one that does as event_value; every other then means censored"
        )
        raise ValueError(
            f"which value of event column {self.event!r} means the event? It holds {held}{more}: {remedy}."
        )


def _remedy(value: Any) -> str:
    if has_decimal_comma(value):
        return "if the comma is a decimal mark, read the table with decimal=','; otherwise correct them"
    return "correct or remove them"


def _refuse_missing(column: pd.Series[Any], name: str) -> None:
    missing = column.isna().to_numpy()
    if missing.any():
        raise ValueError(
            f"{name} is empty in {int(missing.sum()):,} rows (first in row {int(missing.argmax()) + 1}): fill or "
            "remove those rows."
        )
