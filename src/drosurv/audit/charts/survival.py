"""Mean predicted survival beside Kaplan-Meier, one small chart per group."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from drosurv.audit.charts.axis import Axis
from drosurv.audit.charts.chart import Chart, Frame, Line, Mark
from drosurv.presentation import Column, Table, group_name, moment, written

# So many places of each chart can be pointed at; the curves themselves are finer.
_READINGS = 24
_OBSERVED = Column("observed", "observed", "share", ("low", "high"))


def survival_charts(survival: Table, unit: str) -> tuple[Chart, ...]:
    """One chart per group, all on the same axes.

    Rows hold ``attribute``, ``group``, ``time``, ``predicted``, ``observed``, ``low``, ``high``.
    """
    x = Axis.over(
        unit or "time",
        [row["time"] for row in survival.rows],
        kind="time",
        count=4,
        include=(0.0,),
        margin=0.0,
    )
    shown = [
        row[key] for row in survival.rows for key in ("predicted", "observed", "low") if row[key] is not None
    ]
    lowest = min(shown, default=0.0)
    y = Axis.over(
        "alive and free of the event",
        shown,
        kind="share",
        count=4,
        include=(1.0,) if lowest > 0.1 else (0.0, 1.0),
    )
    frame = Frame(x, y)
    groups = groupby(survival.rows, key=lambda row: (row["attribute"], row["group"]))
    return tuple(_chart(frame, unit, attribute, group, list(rows)) for (attribute, group), rows in groups)


def _chart(frame: Frame, unit: str, attribute: str, group: str, rows: Sequence[dict[str, Any]]) -> Chart:
    # Both curves are drawn from point to point: steps beside a line would look like a difference.
    observed = [(row["time"], row["observed"]) for row in rows]
    every = max(1, len(rows) // _READINGS)
    read = [row for row in rows[::every] if row["predicted"] is not None]
    largest = max(
        rows, key=lambda row: abs((row["predicted"] or 0) - (row["observed"] or row["predicted"] or 0))
    )
    return Chart(
        title=group_name(attribute, group) if attribute else group,
        description=f"Predicted and observed survival differ most at {_reading(largest, unit)}.",
        frame=frame,
        lines=(
            Line(frame.line(observed), "observed"),
            Line(frame.line([(row["time"], row["predicted"]) for row in rows]), "model"),
        ),
        bands=(frame.band([(row["time"], row["low"], row["high"]) for row in rows]),),
        marks=tuple(
            Mark(frame.across(row["time"]), frame.down(row["predicted"]), _reading(row, unit)) for row in read
        ),
    )


def _reading(row: dict[str, Any], unit: str) -> str:
    predicted = written(row["predicted"], "share")
    return f"{moment(row['time'], unit)}: predicted {predicted}, observed {_OBSERVED.cell(row)}"
