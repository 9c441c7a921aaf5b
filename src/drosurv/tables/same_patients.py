"""Rows of the same patient: told by a column, or copies of each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import Argument, ArgumentError
from drosurv.tables.values import counts_rows, floats, holds_numbers
from drosurv.target import BoolArray, IntArray


def patient_numbers(frame: pd.DataFrame, id: pd.Series[Any] | None, kept: Sequence[str] = ()) -> IntArray:
    """A number per patient, (n,): equal for rows with the same `id`, and for rows that are copies of each other.

    A row without an id is a patient of its own. Columns in `kept`, those of the target, tell rows apart even if they
    look like a count of them.
    """
    copies = row_numbers(frame, kept)
    if id is None:
        return copies
    named, _ = pd.factorize(id)
    missing = named < 0
    named[missing] = named.max(initial=-1) + 1 + np.arange(missing.sum())
    return _joined(named, copies)


def row_numbers(frame: pd.DataFrame, kept: Sequence[str] = ()) -> IntArray:
    """A number per row, (n,), equal for rows that hold the same values; a column that counts the rows is ignored."""
    told = [name for name in frame.columns if name in kept or not _counts(frame[name])]
    return np.asarray(pd.factorize(row_marks(frame[told]))[0], dtype=np.intp)


def row_marks(frame: pd.DataFrame) -> pd.Series[Any]:
    """A hash of each row, (n,), equal for equal values whatever type holds them."""
    # Numbers as floats: a column may be whole numbers in one file and, with gaps, decimals in the other.
    values = {
        name: floats(frame[name]) if holds_numbers(frame[name]) else frame[name].astype(str).to_numpy()
        for name in frame.columns
    }
    return pd.util.hash_pandas_object(pd.DataFrame(values, index=frame.index), index=False)


def patients_not_in(frame: pd.DataFrame, others: pd.DataFrame, id: str | None = None) -> BoolArray:
    """Which rows of a table are of patients who are not in another, by their `id` or else by the columns they share."""
    shared = [name for name in frame.columns if name in others.columns]
    if id is not None and id in shared:
        away = ~frame[id].astype(str).isin(set(others[id].astype(str)))
    elif shared:
        away = ~row_marks(frame[shared]).isin(set(row_marks(others[shared])))
    else:
        return np.ones(len(frame), dtype=np.bool_)
    if not away.any():
        raise ArgumentError(
            f"{Argument('train')} holds no patient who is not also in the other table: pass other patients."
        )
    return away.to_numpy(dtype=np.bool_)


def _counts(column: pd.Series[Any]) -> bool:
    return holds_numbers(column) and not column.isna().any() and counts_rows(floats(column))


def _joined(first: Any, second: Any) -> IntArray:
    """Numbers of the groups of rows that either numbering joins: a row ties its first number to its second."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    m = int(first.max()) + 1
    size = m + int(second.max()) + 1
    graph = coo_matrix((np.ones(len(first)), (first, second + m)), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1][first], dtype=np.intp)
