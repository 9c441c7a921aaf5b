"""Scaled columns of a table whose effects a repair may change: numbers, and indicators of categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike

from drosurv.judging.rules import Condition
from drosurv.patients.target import FloatArray

RISK = "predicted risk"
# Categories of fewer patients have no column.
LEAST_PATIENTS = 20
MOST_LEVELS = 12


@dataclass(frozen=True)
class EffectColumn:
    """A scaled column of a table: z = (clip(x, low, high) - centre) / scale.

    For a category, x is 1 at the `level` and 0 at others; for a number the level is None.
    """

    name: str
    level: Any
    low: float
    high: float
    centre: float
    scale: float

    @staticmethod
    def learn(name: str, level: Any, values: FloatArray) -> EffectColumn | None:
        """Learn the scaling of a column; None for a constant column.

        It is clipped at the 1 and 99 % quantiles and divided by its standard deviation, or by a fifth of its range if
        that is larger, as for a column with a few large values. Two values are scaled to lie 2 apart.
        """
        known = values[np.isfinite(values)]
        if len(known) == 0 or np.ptp(known) == 0:
            return None
        low, high = np.quantile(known, [0.01, 0.99])
        if low == high:
            low, high = known.min(), known.max()
        clipped = np.clip(known, low, high)
        spread = float(np.ptp(clipped))
        two = len(np.unique(known[:1000])) <= 2 and len(np.unique(known)) <= 2
        scale = spread / 2 if two else max(float(clipped.std()), spread / 5)
        return EffectColumn(name, level, float(low), float(high), float(clipped.mean()), scale)

    @property
    def label(self) -> str:
        """Name of the column, with its level."""
        return self.name if self.level is None else str(Condition(self.name, "is", self.level))

    @property
    def is_flag(self) -> bool:
        """Whether the column has two values."""
        return self.scale == (self.high - self.low) / 2

    @property
    def contrast(self) -> str:
        """The difference of the column that hazard ratios are for; empty for two values."""
        return "" if self.is_flag else f"per {self.scale:.3g}"

    def two_values(self, column: pd.Series) -> tuple[Any, Any]:
        """Return two values to compare: those of a flag, the level and the most frequent other, or one scale apart."""
        if self.level is not None:
            others = column[column.notna() & (column != self.level)]
            return others.mode().iloc[0] if len(others) else self.level, self.level
        return (self.low, self.high) if self.is_flag else (self.centre, self.centre + self.scale)

    def scaled(self, values: FloatArray) -> FloatArray:
        """Return scaled values; missing values are set to the mean."""
        scaled = (np.clip(values, self.low, self.high) - self.centre) / self.scale
        return np.where(np.isnan(scaled), 0.0, np.clip(scaled, -4.0, 4.0))


@dataclass(frozen=True)
class EffectColumns:
    """Columns whose effects may differ: p - 1 scaled columns, the model's log risk first; the level is column 0."""

    columns: tuple[EffectColumn, ...]

    @staticmethod
    def learn(table: pd.DataFrame, log_risk: FloatArray) -> EffectColumns:
        """Learn the scaling of all columns; frequent categories become indicators, constant columns are left out."""
        found = [EffectColumn.learn(RISK, None, log_risk) or EffectColumn(RISK, None, 0.0, 0.0, 0.0, 1.0)]
        for name in table.columns:
            column, levels = table[name], [None]
            if not pd.api.types.is_numeric_dtype(column):
                # The reference is the most frequent category, or of equally frequent ones the first by name.
                by_name = column.value_counts().sort_index(key=lambda levels: levels.astype(str))
                counts = by_name.sort_values(ascending=False, kind="stable")[1:]
                levels = list(counts.index[counts >= LEAST_PATIENTS][:MOST_LEVELS])
            learnt = (EffectColumn.learn(str(name), level, _values(column, level)) for level in levels)
            found += [one for one in learnt if one is not None]
        return EffectColumns(tuple(found))

    def of(self, table: pd.DataFrame, log_risk: FloatArray, dtype: DTypeLike = np.float64) -> FloatArray:
        """Return the columns (n, p) of patients: ones, then scaled values."""
        out = np.ones((len(table), 1 + len(self.columns)), dtype=dtype)
        for j, column in enumerate(self.columns, start=1):
            values = log_risk if j == 1 else _values(table[column.name], column.level)
            out[:, j] = column.scaled(values)
        return out


def _values(column: pd.Series, level: Any) -> FloatArray:
    """Return numbers; or for a category 1 at the level, 0 at all others, and NaN where missing."""
    if level is None:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    equal = np.array([value == level for value in column.astype(object).where(column.notna(), None)])
    return np.where(column.isna().to_numpy(), np.nan, equal.astype(np.float64))
