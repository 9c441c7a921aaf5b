"""Models as points of accuracy against fairness, and the line that shrinking alone would draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drosurv.audit.charts.axis import Axis
from drosurv.audit.charts.chart import Chart, Frame, Line, Mark
from drosurv.presentation import Column, Table, attribute_name


def gap_of(attribute: str) -> Column:
    """Concordance imparity of an attribute's groups."""
    return Column.measured(f"imparity {attribute}", "concordance imparity")


def disparity_of(attribute: str) -> Column:
    """Group disparity of risk."""
    return Column.measured(f"group_disparity {attribute}", "group disparity of risk")


C_INDEX = Column.measured("concordance_index", "c-index")
KEPT = Column.measured("share_of_gain", "information kept", "share")
# Points closer than this share of the drawing, about a dot, look like one.
_APART = 0.03


def trade_off_charts(trade_off: Table, control: Table | None, attributes: Sequence[str]) -> tuple[Chart, ...]:
    """For every attribute, ranking against the concordance gap, and information against the disparity of risk.

    The trade-off has one row per model with ``concordance_index``, ``share_of_gain`` and, by attribute, ``imparity
    NAME`` and ``group_disparity NAME``; a pair that no model has is left out. The control has the same of the
    reference's scores times factors below one.
    """
    charts = []
    for name in attributes:
        called = attribute_name(name)
        told = f"{called}: information kept, and disparity of risk"
        charts.append(_chart(trade_off, gap_of(name), C_INDEX, f"{called}: ranking, and its gap", None))
        charts.append(_chart(trade_off, disparity_of(name), KEPT, told, control))
    return tuple(chart for chart in charts if chart.marks and _spread(chart))


def _chart(trade_off: Table, across: Column, up: Column, title: str, control: Table | None) -> Chart:
    def known(rows: Sequence[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
        return [(k, row) for k, row in enumerate(rows) if None not in (row.get(across.key), row.get(up.key))]

    points = known(trade_off.rows)
    rows = [row for _, row in points]
    line = [] if control is None else [row for _, row in known(control.rows)]
    # Intervals belong on the axes: differences far below them would otherwise look large.
    together = [*rows, *line]
    x = Axis.over(
        f"{across.label} →", [row.get(key) for row in together for key in across.keys], kind=across.kind
    )
    y = Axis.over(str(up.label), [row.get(key) for row in together for key in up.keys], kind=up.kind)
    frame = Frame(x, y, width=360, height=290, left=56, top=34, bottom=46)
    lines = []
    if line:
        lines.append(Line(frame.line([(row[across.key], row[up.key]) for row in line]), "control"))
    path = [row for row in rows if row["alpha"] is not None]
    lines.append(Line(frame.line([(row[across.key], row[up.key]) for row in path]), "path"))
    marks = tuple(
        Mark(
            frame.across(row[across.key]),
            frame.down(row[up.key]),
            f"{row['model']}: {up.label} {up.cell(row)}; {across.label} {across.cell(row)}",
            role="path",
            label="audited" if row["alpha"] is None else f"{row['alpha']:g}",
            stop=stop,
            drawn=True,
            reach=_reach(frame, row, across, up),
        )
        for stop, row in points
    )
    told = ""
    if rows:
        best, fairest = max(rows, key=lambda row: row[up.key]), min(rows, key=lambda row: row[across.key])
        told = f"Highest {up.label}: {best['model']}. Lowest {across.label}: {fairest['model']}."
    return Chart(title, told, frame, lines=tuple(lines), marks=marks, nearest="point")


def _spread(chart: Chart) -> bool:
    """Whether anything but one dot can be seen: points apart from each other, or the line of shrinking."""
    if any(line.role == "control" for line in chart.lines):
        return True
    xs, ys = [mark.x for mark in chart.marks], [mark.y for mark in chart.marks]
    return max(xs) - min(xs) > _APART * chart.frame.width or max(ys) - min(ys) > _APART * chart.frame.height


def _reach(frame: Frame, row: dict[str, Any], across: Column, up: Column) -> str:
    """A cross through a point: its intervals in both directions."""
    x, y = row[across.key], row[up.key]
    sides = [row.get(key) for key in across.interval or ()]
    ends = [row.get(key) for key in up.interval or ()]
    level = frame.line([(side, y) for side in sides if side is not None])
    upright = frame.line([(x, end) for end in ends if end is not None])
    return level + upright
