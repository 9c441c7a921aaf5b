"""What the paper's three datasets share: files, labels, and preparation as for the published tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from drosurv.datasets.dataset import Dataset
from drosurv.errors import InputError

# Label of code 0, then of code 1. The published splits need intersections in binary order of the codes, which is also
# the alphabetical order of the labels.
LABELS = {"age": ("<=65", ">65"), "gender": ("female", "male"), "race": ("non-white", "white")}


def label(**codes: pd.Series[float]) -> pd.DataFrame:
    """Return the labels of attributes that are given as columns of 0 and 1, by the names in `LABELS`."""
    return pd.DataFrame({name: np.array(LABELS[name])[column.astype(int)] for name, column in codes.items()})


def prepare_as_published(dataset: Dataset, attributes: Sequence[str]) -> Dataset:
    """Impute and reorder as was done for the published tables; only for comparison with them.

    Missing values become the median of their intersection of attributes over all rows, test rows included. Rows are
    sorted by intersection, in binary order of the attributes, on which the published splits depend.
    """
    # Intersections are numbered in the order of their labels, which is the binary order.
    cell = dataset.sensitive_features.groupby(list(attributes)).ngroup()
    medians = dataset.X.groupby(cell).transform("median")
    imputed = replace(dataset, X=dataset.X.fillna(medians))
    return imputed.take(np.argsort(cell.to_numpy(), kind="stable"))


class SourceTable:
    """Columns of a CSV file, read as text without spaces around names and values.

    They are read as text so that levels do not depend on other values of the column: "2" stays "2" beside "IV".
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"path {str(self.path)!r} is not a file.")
        self._frame = pd.read_csv(self.path, dtype=str).rename(columns=str.strip)

    def text(self, column: str) -> pd.Series[str]:
        """Return a column as text, without spaces around its values."""
        if column not in self._frame:
            raise InputError(f"{self.path} has no column {column!r}; it has {list(self._frame)}.")
        return self._frame[column].str.strip()

    def numbers(self, column: str, *, complete: bool = False) -> pd.Series[float]:
        """Return a column as floats, NaN where it is empty; with `complete`, raise if a field is empty."""
        text = self.text(column)
        values = pd.to_numeric(text, errors="coerce").astype(float)
        self._refuse(column, text, values.isna() & text.notna(), "is not a number")
        if complete:
            self._refuse(column, text, values.isna(), "is missing: fill or drop the line")
        return values

    def codes(
        self,
        column: str,
        codes: Mapping[str, float],
        *,
        word: int | None = None,
        missing: float | None = None,
    ) -> pd.Series[float]:
        """Return a column's levels as numbers; raise for a level without a code.

        `word` is the position of the word that is the level, if a file adds explanations; `missing` is the code of an
        empty field, which is an error by default.
        """
        text = self.text(column)
        levels = text if word is None else text.str.split().str[word]
        values = levels.map(codes).astype(float)
        if missing is not None:
            values = values.mask(text.isna(), missing)
        self._refuse(column, text, values.isna(), f"is not one of {', '.join(codes)}")
        return values

    def _refuse(self, column: str, text: pd.Series[str], bad: pd.Series[bool], reason: str) -> None:
        if bad.any():
            row = int(bad.to_numpy().argmax())
            raise InputError(
                f"{self.path}: {text.iloc[row]!r} in column {column!r}, line {row + 2}, {reason} "
                f"({int(bad.sum())} such lines)."
            )
