"""Forest plots: groups below each other, each number a strip on an axis that all rows and all models share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from drosurv.audit.charts.chart import Axis
from drosurv.presentation import Column, Kind, Table

# Differences from something: zero is marked. Their signs take room, so there are fewer marks on the axis.
DIFFERENCES: dict[Kind, int] = {"share": 1, "signed_points": 2}
# Letters that find room below a strip.
ROOM = 14


class Strip(NamedTuple):
    """A column as a plot: its values lie on the axis, and a thin line, the guide, runs through all rows."""

    column: Column
    axis: Axis
    guide: float | None


class Forest(NamedTuple):
    """One model's table as a plot; a block holds the rows of one attribute, that of all patients has no name."""

    caption: str
    counts: list[Column]
    strips: list[Strip]
    blocks: list[tuple[str, list[dict[str, Any]]]]


def forests(tables: Sequence[Table]) -> list[Forest]:
    """One forest per model from tables of groups: a strip for every column with an interval.

    Columns of one kind have one axis for all models, so that on the page nothing moves but the values. The guide is at
    zero for a difference, else at the value of all patients.
    """
    # A model without survival curves has fewer measures than the others.
    columns = max((table.columns for table in tables), key=len)
    counts = [column for column in columns if column.kind == "count"]
    plotted = [column for column in columns if column.interval is not None]
    axes = {kind: _common_axis(kind, plotted, tables) for kind in {column.kind for column in plotted}}
    found = []
    for table in tables:
        everyone = next((row for row in table.rows if not row["attribute"]), {})
        strips = [
            Strip(column, axes[column.kind], 0.0 if column.kind in DIFFERENCES else everyone.get(column.key))
            for column in plotted
        ]
        blocks = groupby(table.rows, key=lambda row: str(row["attribute"] or ""))
        found.append(Forest(table.caption, counts, strips, [(name, list(rows)) for name, rows in blocks]))
    return found


def _common_axis(kind: Kind, columns: Sequence[Column], tables: Sequence[Table]) -> Axis:
    values = [
        row.get(key)
        for column in columns
        if column.kind == kind
        for table in tables
        for row in table.rows
        # The interval of a group too small to say anything must not squeeze the others.
        for key in (column.keys[:1] if row.get("note") else column.keys)
    ]
    zero = [0.0] if kind in DIFFERENCES else []
    for count in range(DIFFERENCES.get(kind, 3), -1, -1):
        axis = Axis.over("", [*values, *zero], kind=kind, count=count)
        if len(" ".join(tick.label for tick in axis.ticks)) <= ROOM:
            break
    return axis
