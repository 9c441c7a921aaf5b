"""Find the row that names the columns: titles may stand above it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

# The header is looked for in so many rows.
_MOST_TITLES = 20
# Shares of the columns for which a header has a name; a smaller one is tried if no row has the larger.
_SHARES = 0.75, 0.5
_NUMBER = re.compile(r"[+-]?[\d.,]*\d[\d.,]*\s?%?")


def header_place(rows: Sequence[Sequence[Any]]) -> int:
    """Return the place of the row that names the columns: the first one unless it has too few cells for a header.

    A row is a header if it has a cell for most of the columns, and most of its cells are different texts.

    Examples
    --------
    >>> header_place([["Study of 2020", "", ""], ["", "", ""], ["time", "died", "age"], ["5", "1", "61"]])
    2
    """
    filled = [[str(cell).strip() for cell in row if cell is not None and str(cell).strip()] for row in rows]
    if len(filled) < 2:
        return 0
    usual = float(np.median([len(row) for row in filled[len(filled) // 2 :]]))
    if len(filled[0]) > usual / 2:
        return 0
    for share in _SHARES:
        for place, cells in enumerate(filled[:_MOST_TITLES]):
            texts = [cell for cell in cells if not _NUMBER.fullmatch(cell)]
            named = len(cells) > max(1.0, share * usual) and len(set(cells)) == len(cells)
            if named and len(texts) > len(cells) / 2:
                return place
    return 0
