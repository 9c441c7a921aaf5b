"""The columns whose effects a repair may change: centred, scaled and free of outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from drosurv.target import FloatArray

RISK = "predicted risk"
# Categories held by fewer patients have no effect of their own.
LEAST_PATIENTS = 20
MOST_LEVELS = 12


@dataclass(frozen=True)
class EffectColumn:
    """One column of a table: z = (x, held between low and high, minus the centre) / scale.

    The level is the category that is 1 where the others are 0; None for a number.
    """

    name: str
    level: Any
    low: float
    high: float
    centre: float
    scale: float

    @staticmethod
    def learn(name: str, level: Any, values: FloatArray) -> EffectColumn | None:
        """Held at the 1 and 99 % quantiles and divided by its spread; None for a constant column.

        Two values are a flag and lie 2 apart. The range over 5 keeps a column with a few large values from being
        stretched.
        """
        known = values[np.isfinite(values)]
        if len(known) == 0 or np.ptp(known) == 0:
            return None
        low, high = np.quantile(known, [0.01, 0.99])
        if low == high:
            low, high = known.min(), known.max()
        held = np.clip(known, low, high)
        spread = float(np.ptp(held))
        two = len(np.unique(known[:1000])) <= 2 and len(np.unique(known)) <= 2
        scale = spread / 2 if two else max(float(held.std()), spread / 5)
        return EffectColumn(name, level, float(low), float(high), float(held.mean()), scale)

    @property
    def label(self) -> str:
        """The column as a reader knows it."""
        return self.name if self.level is None else f"{self.name} is {self.level}"

    def scaled(self, values: FloatArray) -> FloatArray:
        """Scaled values; a missing one counts as average."""
        scaled = (np.clip(values, self.low, self.high) - self.centre) / self.scale
        return np.where(np.isnan(scaled), 0.0, np.clip(scaled, -4.0, 4.0))


@dataclass(frozen=True)
class EffectColumns:
    """The level, the model's log risk and the features, as effects see them: p - 1 columns, the log risk first."""

    columns: tuple[EffectColumn, ...]

    @staticmethod
    def learn(table: pd.DataFrame, log_risk: FloatArray) -> EffectColumns:
        """From the patients at hand: numbers as they are, each frequent category as a flag, constants left out."""
        found = [EffectColumn.learn(RISK, None, log_risk) or EffectColumn(RISK, None, 0.0, 0.0, 0.0, 1.0)]
        for name in table.columns:
            column, levels = table[name], [None]
            if not pd.api.types.is_numeric_dtype(column):
                # The most frequent category, of equals the first by name, is what the others are compared with.
                by_name = column.value_counts().sort_index(key=lambda levels: levels.astype(str))
                counts = by_name.sort_values(ascending=False, kind="stable")[1:]
                levels = list(counts.index[counts >= LEAST_PATIENTS][:MOST_LEVELS])
            learnt = (EffectColumn.learn(str(name), level, _values(column, level)) for level in levels)
            found += [one for one in learnt if one is not None]
        return EffectColumns(tuple(found))

    def of(self, table: pd.DataFrame, log_risk: FloatArray) -> FloatArray:
        """The columns (n, p) of patients: ones, then scaled values."""
        out = np.ones((len(table), 1 + len(self.columns)))
        for j, column in enumerate(self.columns, start=1):
            values = log_risk if j == 1 else _values(table[column.name], column.level)
            out[:, j] = column.scaled(values)
        return out


def _values(column: pd.Series, level: Any) -> FloatArray:
    """Numbers; or 1 for the category, 0 for others, also ones never seen before, and NaN where missing."""
    if level is None:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    equal = np.array([value == level for value in column.astype(object).where(column.notna(), None)])
    return np.where(column.isna().to_numpy(), np.nan, equal.astype(np.float64))
