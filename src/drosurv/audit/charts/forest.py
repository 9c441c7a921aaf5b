"""Forest plots: groups below each other, each number a strip on an axis that all rows and all models share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from drosurv.audit.charts.axis import Axis
from drosurv.presentation import NOTHING, Column, Table, moment, written

Row = dict[str, Any]
# Measures whose zero means: as good as no model.
AGAINST_NOTHING = ("brier_skill", "likelihood_gain")


class StripColumn(NamedTuple):
    """A column of strips: its heading, its axis, and where a thin line runs through all rows."""

    label: str
    axis: Axis
    guide: float | None


@dataclass(frozen=True)
class Strip:
    """A value and its interval on a line across a table's cell; the text, and small below it the detail, are read.

    Places are in percent of the width; there is no dot where the value is not known or beyond the axis. All strips of
    a column share the guide.
    """

    text: str = ""
    detail: str = ""
    dot: float | None = None
    start: float | None = None
    length: float | None = None
    guide: float | None = None

    @classmethod
    def on(
        cls,
        column: StripColumn,
        value: float | None,
        low: float | None = None,
        high: float | None = None,
        text: str = "",
        detail: str = "",
    ) -> Strip:
        """The strip of a value with the interval low to high; None where not known."""
        axis = column.axis

        def place(given: float | None) -> float | None:
            return None if given is None else round(100 * axis.share(given), 2)

        start, end = place(low), place(high)
        length = round(end - start, 2) if start is not None and end is not None else None
        # A dot at the end of the axis would say a value that is not the group's.
        inside = value is not None and axis.low <= value <= axis.high
        return cls(text, detail, place(value) if inside else None, start, length, place(column.guide))


class Block(NamedTuple):
    """The rows of one attribute, each with its strips; no name for the row of all patients."""

    name: str
    rows: list[tuple[Row, tuple[Strip, ...]]]


class Forest(NamedTuple):
    """One model's plot; `sizes` says whether patients and events are shown."""

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

    def forest(table: Table) -> Forest:
        everyone = next((row for row in table.rows if not row["attribute"]), {})
        measures = tuple(
            StripColumn(str(c.label), axis, 0.0 if c.key in AGAINST_NOTHING else everyone.get(c.key))
            for c, axis in zip(columns, axes, strict=True)
        )

        def strip(row: Row, measure: StripColumn, c: Column) -> Strip:
            value, low, high = (row.get(key) for key in c.keys)
            return Strip.on(measure, value, low, high, c.value(row), c.interval_of(row))

        def strips(row: Row) -> tuple[Strip, ...]:
            return tuple(strip(row, measure, c) for measure, c in zip(measures, columns, strict=True))

        return Forest(table.caption, True, measures, _blocks(table.rows, strips))

    return [forest(table) for table in tables]


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
    horizons = list(dict.fromkeys(row["horizon"] for row in every))
    measures = tuple(StripColumn(f"at {moment(horizon, time_unit)}", axis, 0.0) for horizon in horizons)

    def forest(table: Table) -> Forest:
        found = {(row["attribute"], row["group"], row["horizon"]): row for row in table.rows}
        groups = {(row["attribute"], row["group"]): row for row in table.rows}

        def strips(row: Row) -> tuple[Strip, ...]:
            there = (found.get((row["attribute"], row["group"], horizon), {}) for horizon in horizons)
            return tuple(_calibration(measures[0], at) for at in there)

        return Forest(table.caption, False, measures, _blocks(groups.values(), strips))

    return [forest(table) for table in tables]


def _calibration(column: StripColumn, row: Row) -> Strip:
    value, low, high = (_difference(row, end) for end in ("observed", "high", "low"))
    if value is None:
        return Strip.on(column, None, text=NOTHING)
    text = written(value, "points")
    signed = f"+{text}" if value > 0 and text != "0.0" else text
    return Strip.on(column, value, low, high, signed, f"observed {written(row['observed'], 'share')}")


def _difference(row: Row, end: str) -> float | None:
    """Predicted survival less that end of the observed, in percentage points."""
    predicted, other = row.get("predicted"), row.get(end)
    return None if predicted is None or other is None else 100 * (predicted - other)


def _blocks(rows: Iterable[Row], strips: Callable[[Row], tuple[Strip, ...]]) -> list[Block]:
    grouped = groupby(rows, key=lambda row: str(row["attribute"] or ""))
    return [Block(attribute, [(row, strips(row)) for row in members]) for attribute, members in grouped]
