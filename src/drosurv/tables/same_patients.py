"""Rows of the same patient: by the column that names patients, or copies of each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError
from drosurv.tables.values import counts_rows, floats, holds_numbers, labels
from drosurv.target import BoolArray, IntArray


def patient_numbers(frame: pd.DataFrame, id: pd.Series[Any] | None, kept: Sequence[str] = ()) -> IntArray:
    """A number per patient, (n,): equal for rows with the same `id`, or without ids for rows that are copies.

    A row without an id is a patient of its own, and so are copies with an id of their own: where little is recorded,
    two patients may agree in all of it. Columns in `kept`, those of the target, tell rows apart even if they look like
    a count of them.
    """
    if id is None:
        return row_numbers(frame, kept)
    named, _ = pd.factorize(id)
    missing = named < 0
    named[missing] = named.max(initial=-1) + 1 + np.arange(missing.sum())
    return np.asarray(named, dtype=np.intp)


def row_numbers(frame: pd.DataFrame, kept: Sequence[str | None] = ()) -> IntArray:
    """A number per row, (n,), equal for rows that hold the same values; a column that counts the rows is ignored."""
    told = [name for name in frame.columns if name in kept or not counts_rows(frame[name])]
    return np.asarray(pd.factorize(row_marks(frame[told]))[0], dtype=np.intp)


def row_marks(frame: pd.DataFrame) -> pd.Series[Any]:
    """A hash of each row, (n,), equal for equal values whatever type holds them."""
    # A column may hold whole numbers in one file and, with gaps, decimals in the other; a gap may be None or NaN.
    values = {
        name: floats(frame[name])
        if holds_numbers(frame[name])
        else labels(frame[name]).astype(str).to_numpy()
        for name in frame.columns
    }
    return pd.util.hash_pandas_object(pd.DataFrame(values, index=frame.index), index=False)


def patients_not_in(frame: pd.DataFrame, others: pd.DataFrame, id: str | None = None) -> BoolArray:
    """Which rows of a table are of patients who are not in another, by their `id` or else by the columns they share."""
    shared = [name for name in frame.columns if name in others.columns]
    if id is not None and id in shared:
        away = ~labels(frame[id]).isin(set(labels(others[id]).dropna()))
    elif shared:
        away = ~row_marks(frame[shared]).isin(set(row_marks(others[shared])))
    else:
        return np.ones(len(frame), dtype=np.bool_)
    if not away.any():
        raise ArgumentError(
            "train", "train holds no patient who is not also in the other table: pass another table."
        )
    return away.to_numpy(dtype=np.bool_)
