"""Forest plots: groups below each other, their measures as strips on common axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from drosurv.audit.charts.axis import Axis
from drosurv.audit.charts.strip import Strip
from drosurv.presentation import NOTHING, Column, Table, moment, written

Row = dict[str, Any]


@dataclass(frozen=True)
class StripColumn:
    """A column of strips.

    Attributes
    ----------
    label : str
        Heading.
    axis : Axis
        Common to all rows, and to all models.
    guide : float or None
        Value at which a thin line runs through all rows.
    """

    label: str
    axis: Axis
    guide: float | None


@dataclass(frozen=True)
class StripCell:
    """One strip and how it is read."""

    strip: Strip
    text: str
    detail: str


@dataclass(frozen=True)
class ForestRow:
    """One group."""

    group: str
    patients: str
    events: str
    note: str
    worst: bool
    cells: tuple[StripCell, ...]


@dataclass(frozen=True)
class Block:
    """The groups of one attribute; no name for the row of all patients."""

    name: str
    rows: tuple[ForestRow, ...]


@dataclass(frozen=True)
class Forest:
    """Everything a forest plot shows.

    Attributes
    ----------
    caption : str
    sizes : bool
        Whether numbers of patients and events stand beside the groups.
    measures : tuple of StripColumn
    blocks : tuple of Block
    """

    caption: str
    sizes: bool
    measures: tuple[StripColumn, ...]
    blocks: tuple[Block, ...]


# Measures whose zero means: as good as no model.
AGAINST_NOTHING = ("brier_skill", "likelihood_gain")


def group_forests(tables: Sequence[Table]) -> list[Forest]:
    """One forest per model from the tables of groups: a strip for every column with an interval.

    The axes are common to all models, so that on the page nothing moves but the values.
    """
    # A model without survival curves has fewer measures than the others.
    fullest = max(tables, key=lambda table: len(table.columns))
    strips = [column for column in fullest.columns if column.interval is not None]
    forests = []
    axes = [
        Axis.over(
            "",
            [
                *(row.get(key) for table in tables for row in table.rows for key in _seen(column, row)),
                *((0.0,) if column.key in AGAINST_NOTHING else ()),
            ],
            kind=column.kind,
            count=3,
        )
        for column in strips
    ]
    for table in tables:
        everyone = next((row for row in table.rows if not row["attribute"]), {})
        measures = tuple(
            StripColumn(
                str(column.label), axis, 0.0 if column.key in AGAINST_NOTHING else everyone.get(column.key)
            )
            for column, axis in zip(strips, axes, strict=True)
        )

        def cells(row: Row, measures: Sequence[StripColumn] = measures) -> tuple[StripCell, ...]:
            return tuple(
                StripCell(
                    Strip.on(measure.axis, *(row.get(key) for key in column.keys), guide=measure.guide),
                    written(row.get(column.key), column.kind),
                    column.interval_of(row),
                )
                for column, measure in zip(strips, measures, strict=True)
            )

        forests.append(Forest(table.caption, True, measures, _blocks(table.rows, cells)))
    return forests


def _seen(column: Column, row: Row) -> tuple[str, ...]:
    """What the axis must hold of a row: a group too small to say anything must not squeeze the others."""
    return (column.key,) if row.get("note") else column.keys


def calibration_forests(tables: Sequence[Table], time_unit: str) -> list[Forest]:
    """One forest per model: predicted less observed survival, a column per horizon.

    Parameters
    ----------
    tables : sequence of Table
        Per model, rows ``attribute``, ``group``, ``horizon``, ``predicted``, ``observed``, ``low``, ``high``, and
        ``note`` where a group is too small to say anything.
    time_unit : str
        What horizons count.
    """
    differences = [
        _difference(row, end)
        for table in tables
        for row in table.rows
        for end in ("low", "high")
        if not row.get("note")
    ]
    axis = Axis.over("", [0.0, *differences], count=2)
    horizons = list(dict.fromkeys(row["horizon"] for table in tables for row in table.rows))
    measures = tuple(StripColumn(f"at {moment(horizon, time_unit)}", axis, 0.0) for horizon in horizons)
    forests = []
    for table in tables:
        found = {(row["attribute"], row["group"], row["horizon"]): row for row in table.rows}
        groups = {(row["attribute"], row["group"]): row for row in table.rows}

        def cells(row: Row, found: dict[Any, Row] = found) -> tuple[StripCell, ...]:
            there = [found.get((row["attribute"], row["group"], horizon), {}) for horizon in horizons]
            return tuple(_calibration_cell(axis, at) for at in there)

        forests.append(Forest(table.caption, False, measures, _blocks(list(groups.values()), cells)))
    return forests


def _calibration_cell(axis: Axis, row: Row) -> StripCell:
    value, low, high = (_difference(row, end) for end in ("observed", "high", "low"))
    shown = written(row.get("observed"), "share")
    return StripCell(
        Strip.on(axis, value, low, high, guide=0.0),
        NOTHING if value is None else _signed(value),
        "" if value is None else f"observed {shown}",
    )


def _signed(points: float) -> str:
    text = written(points, "points")
    return f"+{text}" if points > 0 and text != "0.0" else text


def _difference(row: Row, end: str) -> float | None:
    """Predicted survival less that end of the observed, in percentage points."""
    predicted, other = row.get("predicted"), row.get(end)
    return None if predicted is None or other is None else 100 * (predicted - other)


def _blocks(rows: Sequence[Row], cells: Callable[[Row], tuple[StripCell, ...]]) -> tuple[Block, ...]:
    def row_of(row: Row) -> ForestRow:
        return ForestRow(
            group=str(row["group"]),
            patients=written(row.get("patients"), "count"),
            events=written(row.get("events"), "count"),
            note=str(row.get("note") or ""),
            worst=bool(row.get("worst")),
            cells=cells(row),
        )

    return tuple(
        Block(str(attribute or ""), tuple(map(row_of, members)))
        for attribute, members in groupby(rows, key=lambda row: row["attribute"])
    )
