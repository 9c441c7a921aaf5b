"""Columns of a table as the encoder uses them: numbers, categories, and columns that are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from drosurv.errors import ArgumentError, InputError, arg, may_be_given, warn_caller
from drosurv.patients.target import FloatArray
from drosurv.presentation import counted, first_upper
from drosurv.tables.dates import holds_dates
from drosurv.tables.ids import counts_rows, names_people
from drosurv.tables.number_texts import like_number, number
from drosurv.tables.spellings import alike
from drosurv.tables.values import (
    FEWEST_QUOTED,
    coded,
    factorized,
    has_decimal_comma,
    holds_numbers,
    label,
    label_counts,
    labels,
    means_absent,
    no_numbers,
    quoted,
    shown,
    to_floats,
)

# More levels than this are names or free text rather than categories, unless the user says otherwise.
MOST_LEVELS = 50
# Up to so many different texts like 2005-09 may be periods, which are categories; more are dates.
_MOST_PERIODS = 12
# With fewer rows, numbers could all be different by chance.
_FEWEST_DIFFERENT = 100
# Up to so many different numbers beside texts may be codes of a category, and fewer than so many beside "unknown".
_MOST_NUMBERS_AS_CODES, _FEWEST_AMOUNTS = 10, 3
# A column of more texts, most of them rare, is free text; so is one of so many texts, each in one row.
_MOST_RARE = 12
_FEWEST_ONCE = 8


class UnseenLevelWarning(UserWarning):
    """A category holds a level that training never saw."""


class HoldsDates(InputError):
    """A column holds dates, which cannot be used as a feature."""


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers: missing values are filled with the training median, then numbers are centred and scaled.

    With `mean` 0 and `deviation` 1 the numbers are not changed. `n_missing` counts values missing in training.
    """

    name: str
    median: float
    mean: float
    deviation: float
    n_missing: int

    kind: ClassVar[str] = "number"

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features made of the column."""
        return (self.name,)

    @property
    def fill(self) -> str:
        """What missing values are filled with, in words."""
        return f"the median {self.median:.6g}"

    @property
    def done(self) -> str:
        """What is done to the column, in words."""
        scaled = f"standardised (mean {self.mean:.4g}, sd {self.deviation:.4g})"
        return scaled if self.is_scaled else "kept as it is"

    @property
    def is_scaled(self) -> bool:
        """Whether the numbers are centred and scaled."""
        return (self.mean, self.deviation) != (0.0, 1.0)

    def encode(self, column: pd.Series[Any], unseen: str) -> FloatArray:
        """Return the features (n, 1) of a column."""
        values = to_floats(column)
        filled = np.where(np.isnan(values), self.median, values)
        return ((filled - self.mean) / self.deviation)[:, None]

    def as_encoded(self, column: pd.Series[Any]) -> pd.Series[Any]:
        """Return the column with the median in place of missing values, if training had none."""
        return column if self.n_missing else column.where(column.notna(), self.median)


@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories: an indicator for each level but the reference.

    Levels that were not seen in training count as the reference, missing values as the most frequent level
    (`most_frequent`, empty if that is the reference). Indicators are centred by `means` and divided by `deviations`.
    """

    name: str
    levels: tuple[str, ...]
    reference: str
    means: tuple[float, ...]
    deviations: tuple[float, ...]
    n_missing: int
    most_frequent: str = ""

    kind: ClassVar[str] = "category"

    @property
    def others(self) -> tuple[str, ...]:
        """The levels that have an indicator."""
        return tuple(level for level in self.levels if level != self.reference)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features made of the column."""
        return tuple(f"{self.name}={level}" for level in self.others)

    @property
    def fill(self) -> str:
        """What missing values are filled with, in words."""
        return f"the most frequent level {self.most_frequent or self.reference!r}"

    @property
    def done(self) -> str:
        """What is done to the column, in words."""
        return f"indicators of {shown(self.others)} against {self.reference!r}"

    @property
    def spellings(self) -> dict[str, str]:
        """The levels by the labels that they may have: of booleans, 1 and 0 too."""
        also = {"1": "True", "0": "False"} if set(self.levels) == {"True", "False"} else {}
        return {**{level: level for level in self.levels}, **also}

    def unseen(self, column: pd.Series[Any]) -> pd.Series[int]:
        """Levels that training never saw, and the number of rows of each."""
        found = labels(column).value_counts()
        return found[~found.index.isin(list(self.spellings))]

    def encode(self, column: pd.Series[Any], unseen: str) -> FloatArray:
        """Return the features (n, levels - 1) of a column; `unseen` is "reference" or "error"."""
        codes, names = coded(column)
        known = self.spellings
        if not set(names) <= set(known):
            new = self.unseen(column)
            if len(new) == len(names) > 1:
                self._refuse_other_coding(new)
            where = counted(int(new.sum()), "row")
            held = quoted(new)
            problem = f"column {self.name!r} holds {held} in {where}, not seen in training"
            if unseen == "error":
                raise InputError(f"{problem}; known are {shown(self.levels)}.")
            warn_caller(f"{problem}; taken as {self.reference!r}.", category=UnseenLevelWarning)
        places = {name: place for place, name in enumerate(self.others)}
        # Missing values have the code -1, which takes the last element.
        filled = places.get(self.most_frequent, -1) if self.most_frequent else -1
        place = np.array([*(places.get(known.get(name, ""), -1) for name in names), filled])[codes]
        indicators = (place[:, None] == np.arange(len(places))).astype(np.float64)
        standard: FloatArray = (indicators - np.array(self.means)) / np.array(self.deviations)
        return standard

    def _refuse_other_coding(self, new: pd.Series[int]) -> None:
        """Raise if levels of which training saw none seem to be its own, as M and F, or 1 and 2, for m and f."""
        numbers = [all(map(like_number, some)) for some in (new.index, self.levels)]
        if numbers[0] != numbers[1] or any(alike(one, level) for one in new.index for level in self.levels):
            raise InputError(
                f"column {self.name!r} holds {quoted(new)}, and none of the levels of training, {shown(self.levels)}: "
                "write them as in training, or leave them empty if they are not known."
            )

    def as_encoded(self, column: pd.Series[Any]) -> pd.Series[Any]:
        """Return the column with the levels that unseen ones, and missing values if training had none, are taken as."""
        known, number = labels(column), pd.api.types.is_numeric_dtype(column)
        unseen = known.notna() & ~known.isin(list(self.spellings))
        missing = known.isna() & (self.n_missing == 0)
        if not (unseen | missing).any():
            return column
        taken = {
            name: float({"True": "1", "False": "0"}.get(name, name)) if number else name
            for name in (self.reference, self.most_frequent)
            if name
        }
        most_frequent = taken.get(self.most_frequent, taken[self.reference])
        return column.astype(object).mask(unseen, taken[self.reference]).mask(missing, most_frequent)


@dataclass(frozen=True)
class LeftOutColumn:
    """A column that is not used, and the reason in words."""

    name: str
    reason: str
    n_missing: int

    kind: ClassVar[str] = "left out"
    features: ClassVar[tuple[str, ...]] = ()
    fill: ClassVar[str] = "nothing"

    @property
    def done(self) -> str:
        """What is done to the column, in words."""
        return f"not used: {self.reason}"


Column = NumberColumn | CategoryColumn | LeftOutColumn


def learn_column(
    column: pd.Series[Any], *, categorical: bool, standardize: bool, reference: str | None = None
) -> Column:
    """Decide from its training values (n,) how a column is encoded.

    `categorical` says whether the user declared it a category; `reference` is the reference level that the user chose.
    """
    name = str(column.name)
    if column.dtype.kind in "mM":
        raise HoldsDates(name)
    if column.dtype.kind == "c":
        raise InputError(f"column {name!r} holds complex numbers: drop it, or take their real part.")
    codes, distinct = factorized(column)
    n_missing = int((codes < 0).sum())
    if len(distinct) == 0:
        return LeftOutColumn(name, "it is empty", n_missing)
    if len(distinct) == 1:
        return LeftOutColumn(name, f"its only value is {label(distinct[0])!r}", n_missing)
    if holds_numbers(column) and not categorical:
        return _learn_number(column, n_missing, standardize)
    if names_people(name, column) and not categorical:
        warn_caller(f"column {name!r} holds names and is no feature.", argument="drop")
        return LeftOutColumn(name, "it holds names", n_missing)
    if not (categorical or _is_declared(column)):
        if error := _texts_among_numbers(column):
            raise error
        _check_texts(label_counts(column), name)
    return _learn_category(column, n_missing, standardize, reference)


def _learn_number(column: pd.Series[Any], n_missing: int, standardize: bool) -> Column:
    """Return how a column of numbers is encoded; columns that number the rows are left out."""
    name, values = str(column.name), to_floats(column)
    with np.errstate(over="ignore", invalid="ignore"):
        if counts_rows(column):
            warn_caller(
                f"column {name!r} numbers the rows and is no feature: rename it if its numbers have a meaning."
            )
            return LeftOutColumn(name, "it numbers the rows", n_missing)
        whole = (values == np.floor(values)).all()
        if whole and len(values) >= _FEWEST_DIFFERENT and len(np.unique(values)) == len(values):
            warn_caller(
                f"column {name!r} is a different whole number in every row; name it in {arg('drop')} if it "
                "identifies patients.",
                argument="drop",
            )
        median = float(np.nanmedian(values))
        filled = np.where(np.isnan(values), median, values)
        mean, deviation = (float(filled.mean()), float(filled.std())) if standardize else (0.0, 1.0)
    if not 0 < deviation < np.inf:
        return LeftOutColumn(name, "its values are too small or too large to be distinguished", n_missing)
    return NumberColumn(name, median, mean, deviation, n_missing)


def _learn_category(
    column: pd.Series[Any], n_missing: int, standardize: bool, reference: str | None
) -> CategoryColumn:
    """Return how a column of categories is encoded: one feature for each level but the reference."""
    name, counts = str(column.name), label_counts(column)
    if isinstance(column.dtype, pd.CategoricalDtype):
        order = [level for level in dict.fromkeys(map(label, column.dtype.categories)) if level in counts]
    else:
        order = sorted(counts)
    most_frequent = max(order, key=lambda level: counts[level])
    if reference is None:
        reference = "False" if set(order) == {"False", "True"} else most_frequent
    elif reference not in order:
        raise ArgumentError(
            "reference",
            f"{arg('reference')} {reference!r} is not a level of column {name!r}, which has {shown(order)}.",
        )
    # Missing values are filled with the most frequent level.
    filled = [counts[level] + n_missing * (level == most_frequent) for level in order if level != reference]
    shares = np.array(filled) / len(column)
    means = shares if standardize else np.zeros(len(shares))
    deviations = np.sqrt(shares * (1 - shares)) if standardize else np.ones(len(shares))
    return CategoryColumn(
        name,
        tuple(order),
        reference,
        tuple(means.tolist()),
        tuple(deviations.tolist()),
        n_missing,
        "" if most_frequent == reference else most_frequent,
    )


def refuse_texts(frame: pd.DataFrame) -> None:
    """Raise if columns hold mostly numbers, and other texts."""
    if told := [str(error) for name in frame.columns if (error := _texts_among_numbers(frame[name]))]:
        if len(told) > 4:
            told[4:] = [f"There are such texts in {counted(len(told) - 4, 'more column')}."]
        raise ArgumentError("missing", " ".join([told[0], *map(first_upper, told[1:])]))


def _texts_among_numbers(column: pd.Series[Any]) -> ArgumentError | None:
    """Return the error of a column of numbers with other texts, or with numbers such as 1,5 beside 1.5; else None."""
    if holds_numbers(column) or column.dtype.kind in "bcmM" or _is_declared(column):
        return None
    codes, texts = coded(column)
    others = {text for text in texts if not like_number(text)}
    numbers = len(texts) - len(others)
    # A text such as unknown is no level of an amount, as a grade from 1 to 3 is.
    absent = numbers >= _FEWEST_AMOUNTS and all(map(means_absent, others))
    many = numbers > max(_MOST_NUMBERS_AS_CODES, len(others))
    if not (others and (absent or many)):
        unlike = {text for text in texts if like_number(text) and number(text) is None}
        if not unlike or not ((many and not others) or len(unlike) > len(texts) / 2):
            return None
        others = set(filter(has_decimal_comma, unlike)) or unlike
    wrong = np.array([*(text in others for text in texts), False])[codes]
    other = {"categorical": "; if the column is a category, name it in", "drop": "; if it is no feature, in"}
    also = "".join(f"{what} {arg(name)}" for name, what in other.items() if may_be_given(name))
    return no_numbers(column, wrong, also=also)


def _is_declared(column: pd.Series[Any]) -> bool:
    """Whether a column has the type of categories, as its user says; a name for most rows is none."""
    return isinstance(column.dtype, pd.CategoricalDtype) and column.nunique() <= column.count() / 2


def _check_texts(counts: Mapping[str, int], name: str) -> None:
    """Raise if the texts of a column are dates, or too many for categories."""
    if len(counts) > _MOST_PERIODS and holds_dates(pd.Series([*counts])):
        raise HoldsDates(name)
    rare = sum(rows < FEWEST_QUOTED for rows in counts.values())
    once = len(counts) >= _FEWEST_ONCE and max(counts.values()) == 1
    many = len(counts) > MOST_LEVELS
    if many or once or (len(counts) > _MOST_RARE and rare > len(counts) / 2):
        free = "" if many else f", most in fewer than {FEWEST_QUOTED} rows, as free text does"
        alone = many and len(counts) > sum(counts.values()) / 2
        patient = f"; if it names the patient, in {arg('id')}" if alone else ""
        raise ArgumentError(
            "drop",
            f"column {name!r} holds {len(counts):,} different texts{free}: name it in {arg('drop')}{patient}; or, if "
            f"they are categories, in {arg('categorical')}.",
        )
