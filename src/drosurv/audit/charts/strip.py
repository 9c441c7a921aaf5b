"""Strips: one value with its interval on a line across a table's cell, as forest plots draw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from drosurv.audit.charts.axis import Axis


@dataclass(frozen=True)
class Strip:
    """Places on a strip, in percent of its width.

    Attributes
    ----------
    dot : float, optional
        Place of the value; None if it is not known or beyond the axis.
    start, length : float, optional
        Interval.
    guide : float, optional
        Place of the line that all strips of a column share.
    """

    dot: float | None
    start: float | None = None
    length: float | None = None
    guide: float | None = None

    @classmethod
    def on(
        cls,
        axis: Axis,
        value: Any,
        low: Any = None,
        high: Any = None,
        *,
        guide: float | None = None,
    ) -> Strip:
        """The strip of a value with the interval low to high; None where not known."""

        def place(given: Any) -> float | None:
            return None if given is None else round(100 * axis.share(float(given)), 2)

        start, end = place(low), place(high)
        length = round(end - start, 2) if start is not None and end is not None else None
        # A dot at the end of the axis would say a value that is not the group's.
        inside = value is not None and axis.low <= value <= axis.high
        return cls(place(value) if inside else None, start, length, place(guide))
