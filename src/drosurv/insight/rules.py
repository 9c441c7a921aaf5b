"""Rules a clinician can read: a few conditions on the columns of a table, in its own units and names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from drosurv.target import BoolArray

Comparison = Literal["<=", ">", "is", "is not", "is missing"]


@dataclass(frozen=True)
class Condition:
    """One comparison of one column with a value.

    Parameters
    ----------
    column : str
        Column of the table.
    comparison : {"<=", ">", "is", "is not", "is missing"}
        The first two for numbers, the next two for categories. A missing value meets only "is missing".
    value : float or category, optional
        What the column is compared with.

    Examples
    --------
    >>> from drosurv.insight import Condition
    >>> str(Condition("age", ">", 65.0))
    'age > 65'
    """

    column: str
    comparison: Comparison
    value: Any = None

    def __str__(self) -> str:
        if self.comparison == "is missing":
            return f"{self.column} is missing"
        # Digits enough for every threshold to be the one compared with, too few for noise of binary fractions.
        value = f"{self.value:.15g}" if isinstance(self.value, float) else self.value
        return f"{self.column} {self.comparison} {value}"

    def holds(self, table: pd.DataFrame) -> BoolArray:
        """Which rows (n,) of a table meet the condition; a category never seen before meets no "is"."""
        column = table[self.column]
        missing: BoolArray = column.isna().to_numpy(dtype=np.bool_)
        if self.comparison == "is missing":
            return missing
        met: BoolArray
        if self.comparison in ("is", "is not"):
            equal = np.array([value == self.value for value in column.astype(object).where(~missing, None)])
            met = equal if self.comparison == "is" else ~equal
        else:
            numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
            met = numbers <= self.value if self.comparison == "<=" else numbers > self.value
        return met & ~missing


@dataclass(frozen=True, repr=False)
class Rule:
    """Conditions that all hold.

    Parameters
    ----------
    conditions : tuple of Condition
        At least one.

    Examples
    --------
    >>> from drosurv.insight import Condition, Rule
    >>> str(Rule((Condition("age", ">", 65.0), Condition("sex", "is", "female"))))
    'age > 65 and sex is female'
    """

    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions))

    def __repr__(self) -> str:
        return f"<Rule: {self}>"

    def holds(self, table: pd.DataFrame) -> BoolArray:
        """Which rows (n,) of a table meet every condition."""
        met: BoolArray = np.logical_and.reduce([condition.holds(table) for condition in self.conditions])
        return met
