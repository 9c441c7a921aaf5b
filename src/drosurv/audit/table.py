"""A table of the report: rows as data, with what each column means to a reader."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["text", "count", "share", "points", "value", "p_value", "time"]
NOTHING = "–"
_DIGITS = 6
# From here on a power of ten reads better than digits.
HUGE = 1e9
# A spreadsheet would compute a text that begins with one of these.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Column:
    """One column as a reader sees it.

    Attributes
    ----------
    key : str
        Name of the value in the rows.
    label : str
        Heading.
    kind : {"text", "count", "share", "points", "value", "p_value", "time"}
        How the value is written; points are percentage points.
    interval : pair of str, optional
        Names of the ends of the value's interval in the rows, written behind it.
    """

    key: str
    label: str
    kind: Kind = "text"
    interval: tuple[str, str] | None = None

    @property
    def numeric(self) -> bool:
        """Whether the cells hold numbers."""
        return self.kind != "text"

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of every value that the column shows."""
        return (self.key, *(self.interval or ()))

    def cell(self, row: Mapping[str, Any]) -> str:
        """What the column shows of a row."""
        shown, interval = self.value(row), self.interval_of(row)
        return f"{shown} ({interval})" if interval else shown

    def value(self, row: Mapping[str, Any]) -> str:
        """The row's value without its interval."""
        return written(row.get(self.key), self.kind)

    def interval_of(self, row: Mapping[str, Any]) -> str:
        """The interval of the row's value in words; empty without one."""
        ends = [row.get(key) for key in self.interval or ()]
        if not ends or any(_missing(end) for end in ends):
            return ""
        low, high = (written(end, self.kind) for end in ends)
        return f"{low.removesuffix(' %')} to {high}"


@dataclass(frozen=True)
class Table:
    """Rows with a caption; every view of the report is made from these.

    Attributes
    ----------
    key : str
        Name of the table in files and in JSON.
    caption : str
        What the rows are, in a sentence.
    columns : tuple of Column
        What a reader sees, in order; the first names the row.
    rows : tuple of dict
        Plain Python values: texts, numbers, None for what is not known. A row may hold more than is shown.

    Examples
    --------
    >>> from drosurv.audit import Column, Table
    >>> columns = (Column("group", "group"), Column("c", "c-index", "value", ("low", "high")))
    >>> table = Table("by_group", "Groups.", columns, ({"group": "a", "c": 0.7, "low": 0.6, "high": 0.8},))
    >>> table.cells()
    [['a', '0.700 (0.600 to 0.800)']]
    """

    key: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, key: str, caption: str, columns: Sequence[Column], frame: pd.DataFrame) -> Table:
        """From a DataFrame that has at least the columns' values; others are left out."""
        wanted = list(dict.fromkeys(name for column in columns for name in column.keys))
        return cls(key, caption, tuple(columns), tuple(plain_rows(frame[wanted])))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of all values of the rows, in the order of the columns."""
        shown = [name for column in self.columns for name in column.keys]
        return tuple(dict.fromkeys([*shown, *(name for row in self.rows for name in row)]))

    def cells(self) -> list[list[str]]:
        """What a reader sees, row by row."""
        return [[column.cell(row) for column in self.columns] for row in self.rows]

    def to_frame(self) -> pd.DataFrame:
        """All values as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=list(self.keys))

    def to_dict(self) -> dict[str, Any]:
        """Caption, names of the values, and the values row by row, for JSON."""
        keys = self.keys
        return {
            "caption": self.caption,
            "columns": list(keys),
            "rows": [[row.get(key) for key in keys] for row in self.rows],
        }

    def to_csv(self) -> str:
        """All values as CSV; texts that a spreadsheet would compute are prefixed with an apostrophe."""
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow([_inert(key) for key in self.keys])
        writer.writerows([[_inert(row.get(key)) for key in self.keys] for row in self.rows])
        return out.getvalue()


def plain_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a DataFrame as dicts of plain values."""
    names = [str(name) for name in frame.columns]
    values = frame.astype(object).to_numpy().tolist()
    return [{name: plain(value) for name, value in zip(names, row, strict=True)} for row in values]


def plain(value: Any) -> Any:
    """A value as JSON knows it: a Python number of six digits, text, or None for what is missing or not finite."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if _missing(value):
        return None
    if isinstance(value, float):
        # More digits than the data can carry would only make files large.
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    return str(value)


def written(value: Any, kind: Kind = "value") -> str:
    """A value as a reader sees it; a dash if it is not known.

    Examples
    --------
    >>> [written(0.1234), written(0.1234, "share"), written(1234, "count"), written(0.0004, "p_value")]
    ['0.123', '12.3 %', '1,234', 'below 0.001']
    """
    if _missing(value):
        return NOTHING
    if kind == "text" or isinstance(value, str):
        return str(value)
    return _number(value, kind).replace("-", "−")


def _number(value: float, kind: Kind) -> str:
    if kind == "count":
        return f"{value:,.0f}"
    if kind == "share":
        return f"{_number(100 * value, 'points')} %"
    if kind == "points":
        return f"{_zero(value, 1):.1f}"
    if kind == "p_value":
        return "below 0.001" if value < 0.001 else f"{value:.3f}"
    if kind == "time":
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    if abs(value) >= HUGE:
        return f"{value:.3g}"
    return f"{_zero(value, 3):,.3f}" if abs(value) < 1000 else f"{value:,.0f}"


def _zero(value: float, digits: int) -> float:
    """The value, without the sign of a zero that rounding makes."""
    return 0.0 if round(value, digits) == 0 else value


def _missing(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, float):
        return not math.isfinite(value)
    return type(value).__name__ in ("NAType", "NaTType")


def _inert(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
