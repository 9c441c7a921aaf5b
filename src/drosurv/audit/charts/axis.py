"""Axes: from values to places on the page, with round numbers as marks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from drosurv.presentation.numbers import HUGE, Kind, written

# Values no further apart than this share of their size are one value, and smaller ones than this are zero:
# steps between them could not be told apart in floating point.
ROUNDING = 1e-9
NOTHING = 1e-100


@dataclass(frozen=True)
class Tick:
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
    scale, unit = (100.0, " %") if kind == "share" else (1.0, "")
    digits = max(0, -math.floor(math.log10(step * scale) + 1e-9))
    text = f"{value * scale:,.{digits}f}"
    text = text.lstrip("-") if float(text.replace(",", "")) == 0 else text
    return text.replace("-", "−") + unit
