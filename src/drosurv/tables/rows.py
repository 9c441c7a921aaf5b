"""Recognise rows: of the same patient, or of another table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, arg
from drosurv.patients.target import BoolArray, FloatArray, IntArray
from drosurv.tables.ids import counts_rows, names_patients
from drosurv.tables.values import floats, holds_numbers, label, labels

# Odd, so that no bit of a column's hash is lost; the order of columns matters.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def patient_numbers(frame: pd.DataFrame, id: pd.Series[Any] | None, kept: Sequence[str] = ()) -> IntArray:
    """Return a number for each row, (n,), equal for rows of one patient.

    Rows with the same `id` are one patient, and a row without an id is one too. Without ids, equal rows are one
    patient; columns that number the rows are not compared, unless they are in `kept`, such as those of the target.
    """
    if id is None:
        return row_numbers(frame, kept)
    named, _ = pd.factorize(id)
    missing = named < 0
    named[missing] = named.max(initial=-1) + 1 + np.arange(missing.sum())
    return np.asarray(named, dtype=np.intp)


def row_numbers(frame: pd.DataFrame, kept: Sequence[str | None] = ()) -> IntArray:
    """Return a number for each row, (n,), equal for rows with equal values.

    Columns that number the rows are ignored, unless they are in `kept` or named as ids of patients.
    """
    used = [
        name
        for name in frame.columns
        if name in kept or names_patients(name, frame[name]) or not counts_rows(frame[name])
    ]
    return np.asarray(pd.factorize(hash_rows(frame[used]))[0], dtype=np.intp)


def hash_rows(frame: pd.DataFrame) -> pd.Series[Any]:
    """Return a hash of each row, (n,), equal for equal values of different types; numbers count with ten digits."""
    total = np.zeros(len(frame), dtype=np.uint64)
    for name in frame.columns:
        column = frame[name]
        # Missing values turn a column of integers into floats, and are None or NaN.
        if holds_numbers(column):
            hashed = pd.util.hash_array(_ten_digits(floats(column)))
        else:
            codes, values = pd.factorize(column)
            # Missing values have the code -1, which takes the last element.
            texts = np.array([*map(label, values), "\0"], dtype=object)
            hashed = pd.util.hash_array(texts, categorize=False)[codes]
        total = total * _FACTOR + hashed
    return pd.Series(total, index=frame.index)


def _ten_digits(values: FloatArray) -> FloatArray:
    """Round to ten digits, which survive in files of every program; R writes 15 digits, a float may need 17."""
    with np.errstate(all="ignore"):
        unit = 10.0 ** (np.floor(np.log10(np.abs(values))) - 9)
        rounded = np.round(values / unit) * unit
    return np.where(np.isfinite(rounded), rounded, values)


def patients_not_in(frame: pd.DataFrame, others: pd.DataFrame, id: str | None = None) -> BoolArray:
    """Return which rows, (n,), are of patients who are not in another table, by `id` or else by all shared columns."""
    shared = [name for name in frame.columns if name in others.columns]
    if id is not None and id in shared:
        new = ~labels(frame[id]).isin(set(labels(others[id]).dropna()))
    elif shared:
        new = ~hash_rows(frame[shared]).isin(set(hash_rows(others[shared])))
    else:
        return np.ones(len(frame), dtype=np.bool_)
    if not new.any():
        raise ArgumentError(
            "train",
            f"{arg('train')} holds no patient who is not also in the other table: pass another table.",
        )
    return new.to_numpy(dtype=np.bool_)
