"""A chart as data: lines, bands and points in pixels, and what each point says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from drosurv.audit.charts.axis import Axis

Role = Literal["model", "observed", "control", "path"]


@dataclass(frozen=True)
class Mark:
    """A place on a chart, in pixels, that a reader can point at, and the text that is told there.

    Beside it stands its label, if any. It stands for the model of number `stop`. It is a dot only if it is drawn;
    `reach` is the SVG path of its intervals.
    """

    x: float
    y: float
    text: str
    role: Role = "model"
    label: str = ""
    stop: int | None = None
    drawn: bool = False
    reach: str = ""


@dataclass(frozen=True)
class Line:
    """A line through points: an SVG path."""

    path: str
    role: Role


@dataclass(frozen=True)
class Frame:
    """The rectangle of a chart: two axes on a drawing of fixed size, with room for the axes' labels.

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

    def line(self, points: Iterable[tuple[float, float | None]]) -> str:
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


@dataclass(frozen=True)
class Chart:
    """What a chart shows; the description says what can be seen, for those who do not see it.

    Bands are SVG paths of areas of uncertainty. The arrow keys visit the marks in their order. Pointing chooses the
    mark at the nearest horizontal place, or the nearest mark.
    """

    title: str
    description: str
    frame: Frame
    lines: tuple[Line, ...] = ()
    bands: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    nearest: Literal["x", "point"] = "x"
