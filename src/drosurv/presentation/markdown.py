"""Markdown: texts that are shown as they are, and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# A closing angle bracket means nothing without an opening one, and rules are full of them.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<#|~$&])")


def literal(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def markdown_table(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[bool] = ()
) -> str:
    """A table of cells that are Markdown already.

    Parameters
    ----------
    header : sequence of str
        Headings.
    rows : iterable of sequences
        One cell per heading.
    right : sequence of bool, optional
        Which columns are set to the right.
    """

    def line(cells: Iterable[object]) -> str:
        return f"| {' | '.join(map(str, cells))} |"

    rule = ["---:" if number else "---" for number in right] or ["---"] * len(header)
    return "\n".join([line(header), line(rule), *map(line, rows)])
