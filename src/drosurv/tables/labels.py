"""Values as labels: the text by which a category, an event code or a group is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def label(value: Any) -> str:
    """The text of one value; whole numbers have no decimals, so that 1, 1.0 and "1" are the same category."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def labels(column: pd.Series[Any]) -> pd.Series[Any]:
    """The labels of a column, missing where the column is missing."""
    known = {value: label(value) for value in column.dropna().unique()}
    return column.astype(object).map(known)


def shown(values: Any, limit: int = 6) -> str:
    """A few values for a message, with a note if there are more."""
    listed = [repr(value) for value in values]
    return ", ".join(listed[:limit]) + (f" and {len(listed) - limit:,} more" if len(listed) > limit else "")
