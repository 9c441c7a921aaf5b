"""Strips: one value with its interval on a line across a table's cell, as forest plots draw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from drosurv.audit.axis import Axis


@dataclass(frozen=True)
class Strip:
    """Places on a strip, in percent of its width.

    Attributes
    ----------
    dot : float, optional
        Place of the value; None if it is not known.
    start, length : float, optional
        Interval.
    second : float, optional
        Place of a second value to compare with.
    guide : float, optional
        Place of the line that all strips of a column share.
    """

    dot: float | None
    start: float | None = None
    length: float | None = None
    second: float | None = None
    guide: float | None = None

    @classmethod
    def on(
        cls,
        axis: Axis,
        value: Any,
        low: Any = None,
        high: Any = None,
        *,
        second: Any = None,
        guide: float | None = None,
    ) -> Strip:
        """The strip of a value with the interval low to high; None where not known."""

        def place(given: Any) -> float | None:
            return None if given is None else round(100 * axis.share(float(given)), 2)

        start, end = place(low), place(high)
        length = round(end - start, 2) if start is not None and end is not None else None
        return cls(place(value), start, length, place(second), place(guide))
