"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np


def number(value: float) -> str:
    """Three decimals, or three digits where those say nothing; a dash where undefined."""
    if np.isnan(value):
        return "–"
    return f"{value:.3f}" if 0.01 <= abs(value) < 1000 or value == 0 else f"{value:.3g}"


def with_interval(value: float, low: float, high: float) -> str:
    """The number and, where there is one, its interval, all to the same decimal: ``0.712 [0.690, 0.733]``."""
    if np.isnan(low) or np.isnan(high):
        return number(value)
    largest = max(abs(value), abs(low), abs(high))
    # Adding zero takes the sign from a zero that was rounded down to.
    shown = [f"{round(x, 3) + 0.0:.3f}" if 0.01 <= largest < 1000 else number(x) for x in (value, low, high)]
    return "{} [{}, {}]".format(*shown)


def percent(share: float) -> str:
    """A share in percent."""
    return "–" if np.isnan(share) else f"{100 * share:.0f} %"


def p_text(p_value: float) -> str:
    """A p-value: ``p = 0.031``, or ``p < 0.01`` for very small ones."""
    return "p < 0.01" if p_value < 0.01 else f"p = {p_value:.2f}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table of cells that are Markdown already."""

    def line(cells: Iterable[object]) -> str:
        return "| " + " | ".join(map(str, cells)) + " |"

    return "\n".join([line(header), line("---" for _ in header), *map(line, rows)])
