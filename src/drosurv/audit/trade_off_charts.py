"""Models as points of accuracy against fairness, and the line that shrinking alone would draw."""

from __future__ import annotations

from typing import Any

from drosurv.audit.axis import Axis
from drosurv.audit.chart import Chart, Frame, Line, Mark
from drosurv.audit.table import Column, Table


def trade_off_charts(trade_off: Table, control: Table | None) -> tuple[Chart, ...]:
    """Ranking against the concordance gap, and likelihood against the disparity of risks.

    Parameters
    ----------
    trade_off : Table
        One row per model with ``c_index``, ``imparity``, ``share_of_gain`` and ``group_disparity``; a pair that
        no model has is left out.
    control : Table or None
        ``share_of_gain`` and ``group_disparity`` of the reference's scores times factors below one.
    """
    pairs = (
        ("imparity", "c_index", "Ranking against the gap in ranking", None),
        ("group_disparity", "share_of_gain", "Information kept against the disparity of risks", control),
    )
    columns = {column.key: column for column in trade_off.columns}
    charts = [
        _chart(trade_off, columns[across], columns[up], title, line)
        for across, up, title, line in pairs
        if across in columns and up in columns
    ]
    return tuple(chart for chart in charts if chart.marks)


def _chart(trade_off: Table, across: Column, up: Column, title: str, control: Table | None) -> Chart:
    known = [
        (stop, row)
        for stop, row in enumerate(trade_off.rows)
        if row.get(across.key) is not None and row.get(up.key) is not None
    ]
    rows = [row for _, row in known]
    line: list[dict[str, Any]] = (
        [] if control is None else [row for row in control.rows if row[across.key] is not None]
    )
    together = [*rows, *line]
    x = Axis.over(f"{across.label} →", [row[across.key] for row in together], kind=across.kind, count=4)
    y = Axis.over(up.label, [row[up.key] for row in together], kind=up.kind, count=4)
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
            label=row["stop"],
            stop=stop,
            drawn=True,
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
