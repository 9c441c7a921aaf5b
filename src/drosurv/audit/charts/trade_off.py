"""Models as points of accuracy against fairness, and the line that shrinking alone would draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drosurv.audit.charts.axis import Axis
from drosurv.audit.charts.chart import Chart, Frame, Line, Mark
from drosurv.presentation import Column, Table, attribute_name


def ends_of(key: str) -> tuple[str, str]:
    """Names of the ends of a value's interval."""
    return (f"{key}_low", f"{key}_high")


def imparity_of(attribute: str) -> str:
    """Name of an attribute's concordance imparity in the rows."""
    return f"imparity {attribute}"


def disparity_of(attribute: str) -> str:
    """Name of an attribute's group disparity in the rows."""
    return f"group_disparity {attribute}"


C_INDEX = Column("concordance_index", "c-index", "value", ends_of("concordance_index"))
KEPT = Column("share_of_gain", "information kept", "share", ends_of("share_of_gain"))
# Points closer than this share of the drawing, about a dot, look like one.
_APART = 0.03


def trade_off_charts(trade_off: Table, control: Table | None, attributes: Sequence[str]) -> tuple[Chart, ...]:
    """For every attribute, ranking against the concordance gap, and information against the disparity of risk.

    Parameters
    ----------
    trade_off : Table
        One row per model with ``concordance_index``, ``share_of_gain`` and, by attribute, ``imparity NAME`` and
        ``group_disparity NAME``; a pair that no model has is left out.
    control : Table or None
        ``share_of_gain`` and ``group_disparity NAME`` of the reference's scores times factors below one.
    attributes : sequence of str
        Names of the attributes.
    """
    charts = []
    for name in attributes:
        gap = Column(imparity_of(name), "concordance imparity", "value", ends_of(imparity_of(name)))
        disparity = Column(
            disparity_of(name), "group disparity of risk", "value", ends_of(disparity_of(name))
        )
        charts.append(_chart(trade_off, gap, C_INDEX, f"{attribute_name(name)}: ranking, and its gap", None))
        charts.append(
            _chart(
                trade_off,
                disparity,
                KEPT,
                f"{attribute_name(name)}: information kept, and disparity of risk",
                control,
            )
        )
    return tuple(chart for chart in charts if chart.marks and _spread(chart))


def _chart(trade_off: Table, across: Column, up: Column, title: str, control: Table | None) -> Chart:
    known = [
        (stop, row)
        for stop, row in enumerate(trade_off.rows)
        if row.get(across.key) is not None and row.get(up.key) is not None
    ]
    rows = [row for _, row in known]
    line: list[dict[str, Any]] = (
        []
        if control is None
        else [row for row in control.rows if row.get(across.key) is not None and row.get(up.key) is not None]
    )
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
        for stop, row in known
    )
    best = max(rows, key=lambda row: row[up.key], default=None)
    fairest = min(rows, key=lambda row: row[across.key], default=None)
    told = (
        ""
        if best is None or fairest is None
        else f"Highest {up.label}: {best['model']}. Lowest {across.label}: {fairest['model']}."
    )
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
