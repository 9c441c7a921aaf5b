"""Charts of the report as data: axes with ticks at round numbers, line charts, forest plots and the picture of groups.

A line chart holds lines, bands of uncertainty, and points with texts. A forest plot holds one row per group; each
column has one axis for all rows and all models.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, zip_longest
from typing import Any, Literal, NamedTuple

from drosurv.judging.group_picture import GroupPicture
from drosurv.presentation import Column, Kind, Table, first_upper, group_name, plain, written
from drosurv.presentation.wording import HUGE

# Class of a line or point in the style sheet: model, observed, control, path, or group-1 to group-6.
Role = str
Points = Sequence[tuple[float, float | None]]
# Values that differ by less than this share of their size count as equal, and smaller ones than the second number as 0:
# ticks between them would not differ in floating point.
_RELATIVE, _SMALLEST = 1e-9, 1e-100
# Letters of tick labels that fit below a forest plot's column where it is narrowest.
_LETTERS_ACROSS = 9


class Tick(NamedTuple):
    """A labelled value on an axis."""

    value: float
    label: str


@dataclass(frozen=True)
class Axis:
    """A range of values, low < high, with ticks inside it; the title says what the values are, with their unit."""

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
        """Return an axis that covers the known values, with a margin (a share of their range) on both sides.

        It has about `count` ticks, written as the `kind` says. It also covers the values to `include`, such as 0, and
        ends there without a margin if they are the outermost.
        """
        known = [value for value in values if value is not None and math.isfinite(value)]
        bounds = list(include)
        if not known and not bounds:
            known = [0.0, 1.0]
        low, high = min([*known, *bounds]), max([*known, *bounds])
        size = max(abs(low), abs(high))
        size = size if size > _SMALLEST else 1.0
        least = _RELATIVE * size
        spread = high - low if high - low > least else size
        if low not in bounds:
            low -= margin * spread
        if high not in bounds:
            high += margin * spread
        if high - low <= least:
            high = low + spread
        return cls(title, low, high, _ticks(low, high, kind, count))

    def share(self, value: float) -> float:
        """Return the position of a value: 0 at the low end, 1 at the high end; values outside are moved to the end."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def percent(self, value: float | None) -> float | None:
        """Return the position in percent, for style sheets; None for None."""
        return None if value is None else round(100 * self.share(value), 2)


@dataclass(frozen=True)
class RatioAxis(Axis):
    """A log axis of ratios, with 1 in its middle."""

    def share(self, value: float) -> float:
        """Return the position of a ratio: 0 at the low end, 1 at the high end, where those outside are moved to."""
        inside = min(max(value, self.low), self.high)
        return math.log(inside / self.low) / math.log(self.high / self.low)


def _ticks(low: float, high: float, kind: Kind, count: int) -> tuple[Tick, ...]:
    """Return multiples of the smallest round step that gives at most `count` + 1 ticks."""
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
    """A point with a text for the pointer, and a `label`; if `drawn`, a dot with lines to the ends of intervals."""

    x: float
    y: float
    text: str
    role: Role = "model"
    label: str = ""
    drawn: bool = False
    reach: Sequence[Points] = ()


class Line(NamedTuple):
    """A line through points, broken where a value is not known; lines with a name are in the legend."""

    points: Points
    role: Role
    name: str = ""


def by_group(rows: Iterable[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the name of each group, of everybody without an attribute, and its rows, which follow each other."""
    for (attribute, group), own in groupby(rows, key=lambda row: (row["attribute"], row["group"])):
        yield group_name(attribute, group) if attribute else group, list(own)


def steps(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the corners of the step function that keeps each point's value until the next time."""
    corners = [(time, before) for (_, before), (time, _) in pairwise(points)]
    return [point for pair in zip_longest(points, corners) for point in pair if point is not None]


@dataclass(frozen=True)
class Frame:
    """Two axes on a drawing of fixed size in pixels, by default for a phone, with margins for their labels."""

    x: Axis
    y: Axis
    width: int = 340
    height: int = 244
    left: int = 48
    right: int = 14
    top: int = 26
    bottom: int = 42

    def across(self, value: float) -> float:
        """Return the horizontal position of a value, in pixels."""
        return round(self.left + self.x.share(value) * (self.width - self.left - self.right), 1)

    def down(self, value: float) -> float:
        """Return the vertical position of a value, in pixels."""
        inside = self.height - self.top - self.bottom
        return round(self.height - self.bottom - self.y.share(value) * inside, 1)

    def line(self, points: Points) -> str:
        """Return an SVG path through the points, broken where a value is not known."""
        parts, pen = [], "M"
        for x, y in points:
            if y is None:
                pen = "M"
                continue
            parts.append(f"{pen}{self.across(x):g} {self.down(y):g}")
            pen = "L"
        return "".join(parts)

    def bar(self, start: float, end: float, top: float) -> str:
        """Return the closed SVG path of a bar that stands on the horizontal axis."""
        left, right, bottom = self.across(start), self.across(end), self.height - self.bottom
        return f"M{left:g} {bottom:g}V{self.down(top):g}H{right:g}V{bottom:g}Z"

    def band(self, points: Sequence[tuple[float, float | None, float | None]]) -> str:
        """Return a closed SVG path between lower and upper values; points without both are left out."""
        known = [(x, low, high) for x, low, high in points if low is not None and high is not None]
        if len(known) < 2:
            return ""
        upper = self.line([(x, high) for x, _, high in known])
        lower = self.line([(x, low) for x, low, _ in reversed(known)])
        return f"{upper}{lower.replace('M', 'L', 1)}Z"


class Chart(NamedTuple):
    """A line chart; the description is for readers who cannot see it.

    `bands` of uncertainty hold x, lower and upper values. The arrow keys go through the marks in their order. The
    pointer chooses the mark that is `nearest` horizontally ("x"), or in both directions ("point"). `bars` stand on the
    horizontal axis, each from one x to another, with its upper end. `corner` are lines of text in the upper left.
    """

    title: str
    description: str
    frame: Frame
    lines: tuple[Line, ...] = ()
    bands: Sequence[Sequence[tuple[float, float | None, float | None]]] = ()
    marks: tuple[Mark, ...] = ()
    nearest: Literal["x", "point"] = "x"
    bars: Sequence[tuple[float, float, float]] = ()
    corner: tuple[str, ...] = ()


class Strip(NamedTuple):
    """A column of a forest plot, with its axis; a thin line runs through all rows at the value `guide`."""

    column: Column
    axis: Axis
    guide: float | None


class Forest(NamedTuple):
    """A forest plot: columns of counts, plotted columns, and blocks of rows by attribute, "" for all patients."""

    caption: str
    counts: list[Column]
    strips: list[Strip]
    blocks: list[tuple[str, list[dict[str, Any]]]]


class Picture(NamedTuple):
    """The picture of the groups: rows with who, state, patients, ratio, low, high, numbers, words; what it shows."""

    strip: Strip
    rows: list[dict[str, Any]]
    compares: str


def picture(found: GroupPicture) -> Picture:
    """Return the picture of the groups for the page."""
    column = Column("ratio", first_upper(found.axis_label), "value", ("low", "high"))
    rows = [
        row._asdict()
        | {"numbers": row.numbers, "words": row.words}
        | {name: plain(getattr(row, name)) for name in ("ratio", "low", "high")}
        for row in found.rows
    ]
    ticks = tuple(Tick(tick, f"{tick:g}") for tick in found.ticks)
    axis = RatioAxis("", 1 / found.reach, found.reach, ticks)
    return Picture(Strip(column, axis, 1.0), rows, found.axis_label)


def forest(table: Table, guides: Mapping[str, float]) -> Forest:
    """Return a forest plot of columns with an interval; thin lines are at `guides`, or at the value of all."""
    counts = [column for column in table.columns if column.kind == "count"]
    everyone = next((row for row in table.rows if not row["attribute"]), {})
    strips = []
    for column in (column for column in table.columns if column.interval is not None):
        axis = _axis(column, table.rows, guides.get(column.key))
        strips.append(Strip(column, axis, guides.get(column.key, everyone.get(column.key))))
    blocks = groupby(table.rows, key=lambda row: str(row["attribute"] or ""))
    return Forest(table.caption, counts, strips, [(name, list(rows)) for name, rows in blocks])


def _axis(column: Column, rows: Sequence[dict[str, Any]], guide: float | None) -> Axis:
    # Wide intervals of groups too small to be judged would make the others hard to see.
    judged = [row for row in rows if not row.get("note")]
    values = [row.get(key) for row in judged or rows for key in column.keys]
    for count in range(3, -1, -1):
        axis = Axis.over("", [*values, guide], kind=column.kind, count=count)
        if _labels_fit(axis):
            break
    return axis


def _labels_fit(axis: Axis) -> bool:
    """Whether the tick labels leave at least half a letter between each other below a narrow column."""
    return all(
        _LETTERS_ACROSS * (axis.share(right.value) - axis.share(left.value))
        >= (len(left.label) + len(right.label) + 1) / 2
        for left, right in pairwise(axis.ticks)
    )
