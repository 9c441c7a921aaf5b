"""Drawings of the report as data: axes with round marks, curves on them, and forest plots.

A chart holds lines, bands and points, what each point says, and their places in pixels. A forest plot holds groups
below each other, each number a strip on an axis that all rows and all models share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, zip_longest
from typing import Any, Literal, NamedTuple

from drosurv.presentation import Column, Kind, Table, written
from drosurv.presentation.wording import HUGE

# What a line or a point is, as the style sheet calls it: model, observed, control, path, or group-1 to group-6.
Role = str
Points = Sequence[tuple[float, float | None]]
# Values no further apart than this share of their size are one value, and smaller ones than this are zero:
# steps between them could not be told apart in floating point.
ROUNDING = 1e-9
NOTHING = 1e-100
# Letters that fit below a strip.
ROOM = 14


class Tick(NamedTuple):
    """A mark on an axis."""

    value: float
    label: str


@dataclass(frozen=True)
class Axis:
    """A range of values, low < high, of what the title says, with its unit; the ticks are marks inside it."""

    title: str
    low: float
    high: float
    ticks: tuple[Tick, ...]

    @classmethod
    def over(
        cls,
        title: str,
        values: Iterable[float | None],
        *,
        kind: Kind = "value",
        count: int = 4,
        include: Iterable[float] = (),
        margin: float = 0.06,
    ) -> Axis:
        """An axis that holds all the values that are known, widened on either side by a margin, a share of the range.

        There are about `count` marks, written as the `kind` says. Around the values to `include`, such as a bound,
        there is no margin.
        """
        known = [value for value in values if value is not None and math.isfinite(value)]
        bounds = list(include)
        if not known and not bounds:
            known = [0.0, 1.0]
        low, high = min([*known, *bounds]), max([*known, *bounds])
        size = max(abs(low), abs(high))
        size = size if size > NOTHING else 1.0
        least = ROUNDING * size
        spread = high - low if high - low > least else size
        if low not in bounds:
            low -= margin * spread
        if high not in bounds:
            high += margin * spread
        if high - low <= least:
            high = low + spread
        return cls(title, low, high, _ticks(low, high, kind, count))

    def share(self, value: float) -> float:
        """Where a value lies, 0 at the low end, 1 at the high end; values outside are put at the end."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def percent(self, value: float | None) -> float | None:
        """The same in percent, for style sheets; None stays None."""
        return None if value is None else round(100 * self.share(value), 2)


def _ticks(low: float, high: float, kind: Kind, count: int) -> tuple[Tick, ...]:
    """Multiples of the smallest round step that gives at most one more than `count`."""
    power = 10.0 ** math.floor(math.log10((high - low) / max(count, 1)))
    for step in (factor * power for factor in (1, 2, 5, 10, 20)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first <= count:
            break
    return tuple(Tick(k * step, _label(k * step, step, kind)) for k in range(first, last + 1))


def _label(value: float, step: float, kind: Kind) -> str:
    if kind in ("count", "time"):
        return written(value, "time") if step < 1 else written(value, "count")
    if abs(value) >= HUGE:
        return written(value)
    scale, unit = {"share": (100.0, " %"), "signed_points": (100.0, "")}.get(kind, (1.0, ""))
    digits = max(0, -math.floor(math.log10(step * scale) + 1e-9))
    text = f"{value * scale:,.{digits}f}"
    text = text.lstrip("-") if float(text.replace(",", "")) == 0 else text
    return text.replace("-", "−") + unit


class Mark(NamedTuple):
    """A point of a chart that a reader can point at, and the text shown there.

    Beside it stands its label, if any. It stands for the model of number `stop`. It is a dot only if it is drawn, with
    lines that `reach` to the ends of its intervals.
    """

    x: float
    y: float
    text: str
    role: Role = "model"
    label: str = ""
    stop: int | None = None
    drawn: bool = False
    reach: Sequence[Points] = ()


class Line(NamedTuple):
    """A line through points, broken where a value is not known; with a name it stands in the legend."""

    points: Points
    role: Role
    name: str = ""


def steps(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """A step function through points, which keeps each value until the next time."""
    corners = [(time, before) for (_, before), (time, _) in pairwise(points)]
    return [point for pair in zip_longest(points, corners) for point in pair if point is not None]


@dataclass(frozen=True)
class Frame:
    """The rectangle of a chart: two axes on a drawing of fixed size, with space for the axes' labels.

    Small enough to be read on a phone without scaling.
    """

    x: Axis
    y: Axis
    width: int = 340
    height: int = 244
    left: int = 48
    right: int = 14
    top: int = 26
    bottom: int = 42

    def across(self, value: float) -> float:
        """Horizontal place of a value, in pixels."""
        return round(self.left + self.x.share(value) * (self.width - self.left - self.right), 1)

    def down(self, value: float) -> float:
        """Vertical place of a value, in pixels."""
        return round(
            self.height - self.bottom - self.y.share(value) * (self.height - self.top - self.bottom), 1
        )

    def line(self, points: Points) -> str:
        """An SVG path through the points; broken where a value is not known."""
        parts, pen = [], "M"
        for x, y in points:
            if y is None:
                pen = "M"
                continue
            parts.append(f"{pen}{self.across(x):g} {self.down(y):g}")
            pen = "L"
        return "".join(parts)

    def band(self, points: Sequence[tuple[float, float | None, float | None]]) -> str:
        """A closed SVG path between lower and upper values; points without both are left out."""
        known = [(x, low, high) for x, low, high in points if low is not None and high is not None]
        if len(known) < 2:
            return ""
        upper = self.line([(x, high) for x, _, high in known])
        lower = self.line([(x, low) for x, low, _ in reversed(known)])
        return f"{upper}{lower.replace('M', 'L', 1)}Z"


class Chart(NamedTuple):
    """What a chart shows; the description says what can be seen, for those who do not see it.

    Bands of uncertainty have a lower and an upper value at every place. The arrow keys visit the marks in their order.
    Pointing chooses the mark at the nearest horizontal place, or the nearest mark.
    """

    title: str
    description: str
    frame: Frame
    lines: tuple[Line, ...] = ()
    bands: Sequence[Sequence[tuple[float, float | None, float | None]]] = ()
    marks: tuple[Mark, ...] = ()
    nearest: Literal["x", "point"] = "x"


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


def forests(tables: Sequence[Table], guides: Mapping[str, float] | None = None) -> list[Forest]:
    """One forest per model from tables of groups: a strip for every column with an interval.

    A column has one axis for all models, so that on the page nothing moves but the values. The thin line is at the
    column's value in `guides`, or else at that of all patients.
    """
    guides = guides or {}
    # A model without survival curves has fewer measures than the others.
    columns = max((table.columns for table in tables), key=len)
    counts = [column for column in columns if column.kind == "count"]
    plotted = [column for column in columns if column.interval is not None]
    axes = {column.key: _common_axis(column, tables, guides.get(column.key)) for column in plotted}
    found = []
    for table in tables:
        everyone = next((row for row in table.rows if not row["attribute"]), {})
        strips = [
            Strip(column, axes[column.key], guides.get(column.key, everyone.get(column.key)))
            for column in plotted
        ]
        blocks = groupby(table.rows, key=lambda row: str(row["attribute"] or ""))
        found.append(Forest(table.caption, counts, strips, [(name, list(rows)) for name, rows in blocks]))
    return found


def _common_axis(column: Column, tables: Sequence[Table], guide: float | None) -> Axis:
    values = [
        row.get(key)
        for table in tables
        for row in table.rows
        # The interval of a group too small to be judged must not squeeze the others.
        if not row.get("note")
        for key in column.keys
    ]
    for count in range(3, -1, -1):
        axis = Axis.over("", [*values, guide], kind=column.kind, count=count)
        if len(" ".join(tick.label for tick in axis.ticks)) <= ROOM:
            break
    return axis
