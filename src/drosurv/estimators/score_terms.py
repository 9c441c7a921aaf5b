"""Terms of a published score: a column, ``column=level``, ``log(column)``, ``column^2``, and their products with ``*``.

Terms are read by a fixed grammar; nothing in them is evaluated as code. Names with signs of the grammar are written
between backticks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, did_you_mean
from drosurv.patients.target import FloatArray
from drosurv.presentation import counted

_NAME = r"\s*(?:`[^`]+`|[^`*=^()]+?)\s*"
_POWER = r"(?:\^\s*(?P<power>[1-9])\s*)?"
_FACTOR = re.compile(
    rf"(?:\s*log\((?P<logged>{_NAME})\)\s*{_POWER})"
    rf"|(?:(?P<leveled>{_NAME})=(?P<level>[^*=]+))|(?:(?P<column>{_NAME}){_POWER.replace('power', 'raised')})"
)
# Fewer patients do not show that a level is misspelt, or a column in another unit.
FEW_PATIENTS = 10
# Levels are listed in messages only if they are few, and each has so many patients.
_MOST_LEVELS, _LEAST_PATIENTS = 10, 5


@dataclass(frozen=True)
class Factor:
    """A factor of a term: a column, its logarithm or a power, or whether it has a level."""

    column: str
    level: str | None = None
    log: bool = False
    power: int = 1

    @property
    def is_plain(self) -> bool:
        """Whether it is an amount, whose mean can be compared with a published one."""
        return self.level is None

    def values(self, X: pd.DataFrame, term: str) -> FloatArray:
        """Return the values (n,) of a table; raise if a column, level or number is missing."""
        if self.column not in X.columns:
            raise ArgumentError(
                "coefficients",
                f"term {term!r} needs column {self.column!r}, which the table does not have."
                f"{did_you_mean(self.column, X.columns)}",
            )
        column = X[self.column]
        if missing := int(column.isna().sum()):
            raise ArgumentError(
                "coefficients",
                f"term {term!r} needs column {self.column!r}, which is empty for {counted(missing, 'patient')}: "
                "fill it in, or leave these patients out.",
            )
        return (
            self._numbers(column, term) if self.level is None else self._has_level(column, self.level, term)
        )

    def _numbers(self, column: pd.Series[float], term: str) -> FloatArray:
        """Return the values (n,) of a term of numbers: the column, its power or its logarithm."""
        values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        if not np.isfinite(values).all():
            raise ArgumentError(
                "coefficients",
                f"term {term!r} needs numbers, which column {self.column!r} does not hold: write a category as "
                f"'{self.column}=LEVEL'.{_levels(column)}",
            )
        if self.log and (values <= 0).any():
            raise ArgumentError(
                "coefficients",
                f"term {term!r} is a logarithm, but {counted(int((values <= 0).sum()), 'value')} of column "
                f"{self.column!r} are 0 or negative: correct them, or check the unit.",
            )
        return (np.log(values) if self.log else values) ** self.power

    def _has_level(self, column: pd.Series[float], level: str, term: str) -> FloatArray:
        """Return 1 for the patients (n,) whose category is the level, 0 for others; raise if nobody has it."""
        if column.dtype.kind in "biuf":
            try:
                wanted = {"true": 1.0, "false": 0.0}.get(level.lower()) if column.dtype.kind == "b" else None
                inside = column.to_numpy(dtype=np.float64) == (float(level) if wanted is None else wanted)
            except ValueError:
                inside = np.zeros(len(column), dtype=np.bool_)
            # A flag that nobody has is no mistake.
            known = inside.any() or (level in ("0", "1") and column.isin([0, 1]).all())
        else:
            texts = column.astype(str).str.strip()
            inside = (texts == level).to_numpy()
            categories = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else ()
            known = inside.any() or level in map(str, categories)
        if not known and len(column) >= FEW_PATIENTS:
            raise ArgumentError(
                "coefficients",
                f"term {term!r}: no patient has the level {level!r} in column {self.column!r}.{_levels(column, level)} "
                "Correct the level, or leave the term out if it applies to nobody here.",
            )
        return np.asarray(inside, dtype=np.float64)


@dataclass(frozen=True)
class Term:
    """A term of a score: the product of its factors."""

    text: str
    factors: tuple[Factor, ...]

    @staticmethod
    def parse(text: str) -> Term:
        """Read a term; raise if it is not of the grammar."""
        parts = re.findall(r"(?:`[^`]*`|[^*`])+", text) if "**" not in text else []
        factors = [_factor(part) for part in parts]
        # Stars between backticks are part of a name.
        stars = text.count("*") - sum(name.count("*") for name in re.findall(r"`[^`]*`", text))
        if not factors or len(parts) != stars + 1 or None in factors:
            raise ArgumentError(
                "coefficients",
                f"term {text!r} cannot be read: write a column, column=level, log(column), column^2, or products of "
                "them with *; put names with such signs between backticks.",
            )
        return Term(text, tuple(factor for factor in factors if factor is not None))

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the term needs."""
        return tuple(factor.column for factor in self.factors)

    def values(self, X: pd.DataFrame) -> FloatArray:
        """Return the values (n,) of a table."""
        found: FloatArray = np.prod([factor.values(X, self.text) for factor in self.factors], axis=0)
        return found


def _factor(text: str) -> Factor | None:
    """Read a factor; None if it cannot be read."""
    found = _FACTOR.fullmatch(text)
    if found is None:
        return None
    name = found["logged"] or found["leveled"] or found["column"]
    column = name.strip().strip("`").strip()
    if not column:
        return None
    if found["level"] is not None:
        return Factor(column, level=found["level"].strip())
    power = int(found["power"] or found["raised"] or 1)
    return Factor(column, log=found["logged"] is not None, power=power)


def _levels(column: pd.Series[float], level: str = "") -> str:
    """Name the levels of a column, or the nearest to a given one, if each has enough patients to be named."""
    counts = column.astype(str).str.strip().value_counts()
    if len(counts) > _MOST_LEVELS or counts.min() < _LEAST_PATIENTS:
        return ""
    return did_you_mean(level, counts.index) or f" It holds {', '.join(sorted(map(repr, counts.index)))}."
