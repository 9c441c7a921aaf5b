"""Forest plots: groups below each other, each number a strip on an axis that all rows and all models share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from drosurv.audit.charts.chart import Axis
from drosurv.presentation import NOTHING, Column, Table, moment, written

Row = dict[str, Any]
# Measures whose zero means: as good as no model.
AGAINST_NOTHING = ("brier_skill", "likelihood_gain")


class Strip(NamedTuple):
    """A value and its interval on a line across a table's cell; the text, and small below it the detail, are read."""

    text: str
    detail: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None


class StripColumn(NamedTuple):
    """A column of strips: its heading, its axis, and where a thin line runs through all rows."""

    label: str
    axis: Axis
    guide: float | None


Block = tuple[str, list[tuple[Row, list[Strip]]]]


class Forest(NamedTuple):
    """One model's plot; `sizes` says whether patients and events are shown.

    A block holds the rows of one attribute, each with its strips; that of all patients has no name.
    """

    caption: str
    sizes: bool
    measures: tuple[StripColumn, ...]
    blocks: list[Block]


def group_forests(tables: Sequence[Table]) -> list[Forest]:
    """One forest per model from the tables of groups: a strip for every column with an interval.

    The axes are common to all models, so that on the page nothing moves but the values.
    """
    # A model without survival curves has fewer measures than the others.
    fullest = max(tables, key=lambda table: len(table.columns))
    columns = [column for column in fullest.columns if column.interval is not None]
    axes = [_common_axis(column, tables) for column in columns]
    forests = []
    for table in tables:
        everyone = next((row for row in table.rows if not row["attribute"]), {})
        measures = tuple(
            StripColumn(str(c.label), axis, 0.0 if c.key in AGAINST_NOTHING else everyone.get(c.key))
            for c, axis in zip(columns, axes, strict=True)
        )
        rows = [
            (row, [Strip(c.value(row), c.interval_of(row), *map(row.get, c.keys)) for c in columns])
            for row in table.rows
        ]
        forests.append(Forest(table.caption, True, measures, _blocks(rows)))
    return forests


def _common_axis(column: Column, tables: Sequence[Table]) -> Axis:
    """Of a column in all tables; the interval of a group too small to say anything must not squeeze the others."""
    values = [
        row.get(key)
        for table in tables
        for row in table.rows
        for key in (column.keys[:1] if row.get("note") else column.keys)
    ]
    zero = [0.0] if column.key in AGAINST_NOTHING else []
    # Percent signs take room.
    count = 1 if column.kind == "share" else 3
    return Axis.over("", [*values, *zero], kind=column.kind, count=count)


def calibration_forests(tables: Sequence[Table], time_unit: str) -> list[Forest]:
    """One forest per model: predicted less observed survival, a column per horizon.

    Rows hold ``attribute``, ``group``, ``horizon``, ``predicted``, ``observed``, ``low``, ``high``, and a ``note``
    where a group is too small to say anything.
    """
    every = [row for table in tables for row in table.rows]
    ends = [_difference(row, end) for row in every for end in ("low", "high") if not row.get("note")]
    axis = Axis.over("", [0.0, *ends], count=2)
    measures = {
        row["horizon"]: StripColumn(f"at {moment(row['horizon'], time_unit)}", axis, 0.0) for row in every
    }
    forests = []
    for table in tables:
        groups: dict[tuple[str, str], dict[float, Row]] = {}
        for row in table.rows:
            groups.setdefault((row["attribute"], row["group"]), {})[row["horizon"]] = row
        rows = [
            (next(iter(at.values())), [_calibration(at.get(horizon, {})) for horizon in measures])
            for at in groups.values()
        ]
        forests.append(Forest(table.caption, False, tuple(measures.values()), _blocks(rows)))
    return forests


def _calibration(row: Row) -> Strip:
    value, low, high = (_difference(row, end) for end in ("observed", "high", "low"))
    if value is None:
        return Strip(NOTHING)
    text = written(value, "points")
    signed = f"+{text}" if value > 0 and text != "0.0" else text
    return Strip(signed, f"observed {written(row['observed'], 'share')}", value, low, high)


def _difference(row: Row, end: str) -> float | None:
    """Predicted survival less that end of the observed, in percentage points."""
    predicted, other = row.get("predicted"), row.get(end)
    return None if predicted is None or other is None else 100 * (predicted - other)


def _blocks(rows: Iterable[tuple[Row, list[Strip]]]) -> list[Block]:
    grouped = groupby(rows, key=lambda shown: str(shown[0]["attribute"] or ""))
    return [(attribute, list(members)) for attribute, members in grouped]
