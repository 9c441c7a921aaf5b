"""Columns that identify patients or number the rows, and rows of the same patient or of another table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from drosurv.patients.outcome_names import plain
from drosurv.patients.target import FloatArray, IntArray
from drosurv.tables.values import coded, factorized, finite, floats, holds_numbers, label

# With fewer rows, numbers could be in unit steps, or sorted, by chance.
_FEWEST_COUNTED = 20
_ID_NAME = re.compile(
    r"(^|[._ -])(id|mrn|pid|patient(en)?|pat|u?subj(ect)?|case|fall|person|participant|record|study|sample|barcode|"
    r"identifiant|dossier)([._ -]*(id|no|nr|num|number|nummer|numero|key|code|barcode|patient))?\.?$",
    re.IGNORECASE,
)
_ROW_NAME = re.compile(
    r"(^|[._ -])(row(names?|nr|no)?|index|unnamed: 0|column 1|obs|seq|lfd|nr|no|num(ber)?|nummer|numero)$"
    r"|(seq|lfd)[._ -]?(no|nr)$",
    re.IGNORECASE,
)
# What several patients share who may be alike.
_CLUSTER_NAME = re.compile(
    r"((study|trial|birth|matched|twin)[._ -]?)?(litter|family|sibship|pair|couple|twins?|household|hospital|clinic|"
    r"cent(er|re)|site|inst(itution)?|wurf|familie|paar|zwilling|haushalt|klinik|krankenhaus|zentrum|famille|paire|"
    r"menage|hopital)([._ -]*(no|nr|num|number|code))?",
    re.IGNORECASE,
)
_PEOPLE = re.compile(
    r"((first|last|family|given|full|middle|maiden|patient|pat|person|sur|nach|vor|familien)[._ -]*)?names?"
    r"|((pre)?nom)([._ -]*(de[._ -]*famille|patient))?",
    re.IGNORECASE,
)
# With fewer different values, the column is a feature rather than a name of clusters.
_FEWEST_CLUSTERS = 20
# A column has at least so many columns that are constant for each of its values if it numbers patients.
_FEWEST_CONSTANT = 2
# One is enough if the name is that of row numbers, with at most so many different values per row, as of clusters.
_MOST_NUMBERS = 0.75
# Two rows agree in such a column by chance with at most this probability, and all rows of all values with at most that.
_MOST_BY_CHANCE, _CHANCE = 0.6, 1e-6
# Odd, so that no bit of a column's hash is lost; the order of columns matters.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def is_id_name(name: Any) -> bool:
    """Whether a name is that of a column which names patients."""
    return _ID_NAME.search(str(name)) is not None


def names_patients(name: Any, column: pd.Series[Any]) -> bool:
    """Whether a column identifies patients, by its name and by its number of different values."""
    if not is_id_name(name) or len(factorized(column)[1]) <= len(column) / 10:
        return False
    return _is_whole(column)


def names_people(name: Any, column: pd.Series[Any]) -> bool:
    """Whether a column holds names, as of people: texts that no feature, group or message may show.

    Its name says so; a name that only ends in "name", as Patientenname does, if most values differ.
    """
    called = plain(str(name))
    if holds_numbers(column) or column.dtype.kind == "b":
        return False
    differ = called.endswith(("name", "names")) and column.nunique() > len(column) / 2
    return differ or _PEOPLE.fullmatch(called) is not None


def patient_columns(frame: pd.DataFrame, others: Sequence[str | None] = ()) -> list[str]:
    """Return the columns, not among the `others`, that identify patients."""
    return [str(name) for name in frame.columns if name not in others and names_patients(name, frame[name])]


def repeated_id(frame: pd.DataFrame, others: Sequence[str | None] = ()) -> str | None:
    """Return the column, not among the `others`, that names patients of whom some have several rows; None if none does.

    Of several, such as numbers of patients and of their families, it is that with the most values.
    """
    found = [name for name in patient_columns(frame, others) if frame[name].duplicated().any()]
    finest = max(found, key=lambda name: frame[name].nunique(), default=None)
    return finest if finest is not None and frame[finest].notna().all() else None


def names_clusters(name: Any, column: pd.Series[Any]) -> bool:
    """Whether a column names clusters of patients, as litters or hospitals, by its name and its repeated values."""
    if _CLUSTER_NAME.fullmatch(str(name).strip()) is None:
        return False
    return _FEWEST_CLUSTERS <= column.nunique() <= _MOST_NUMBERS * column.count() and _is_whole(column)


def _is_whole(column: pd.Series[Any]) -> bool:
    """Whether a column holds no numbers with decimals."""
    return bool((finite(column) % 1 == 0).all())


def counts_rows(column: pd.Series[Any]) -> bool:
    """Whether a column numbers the rows: in steps of 1, or in any order without repeats if its name says so."""
    if not holds_numbers(column) or len(column) < _FEWEST_COUNTED:
        return False
    values = floats(column)
    if not (values == np.floor(values)).all():
        return False
    steps = np.diff(values)
    # The index keeps the numbers of the rows in their file when rows are left out.
    index_steps = np.diff(column.index) if column.index.dtype.kind in "iu" else 1
    if _ROW_NAME.search(str(column.name)) is not None and len(np.unique(values)) == len(values):
        return True
    rising = is_id_name(column.name) and (steps > 0).all()
    return bool((steps == 1).all() or (steps == index_steps).all() or rising)


def names_of_rows(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return the columns that identify or name patients, or number the rows."""
    signs = names_patients, names_people, lambda _, column: counts_rows(column)
    return tuple(str(name) for name, column in frame.items() if any(sign(name, column) for sign in signs))


def unnamed_ids(
    frame: pd.DataFrame, columns: Sequence[str], features: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield those of some columns that number patients with several rows although their names do not say so.

    Each comes with `features` that are constant for each of its values, as sex and year of birth are for each patient.
    Rows of different people, by a column of their names, have different numbers.
    """
    people = [coded(frame[name])[0] for name in features if names_people(name, frame[name])]
    for name in columns:
        # Quick checks first: columns of measurements have nearly as many labels as rows, which take long to code.
        if len(frame) < 2 * _FEWEST_COUNTED or not _is_whole(frame[name]):
            continue
        codes, levels = coded(frame[name])
        if not len(frame) / 10 < len(levels) < 0.95 * len(frame) or (codes < 0).any():
            continue
        if any(pd.Series(one).groupby(codes).nunique().max() > 1 for one in people):
            continue
        constant = [
            str(other)
            for other in features
            if other != name and not names_patients(other, frame[other]) and constant_in(frame[other], codes)
        ]
        # A number of rows, such as Nr, that comes several times is likely to be that of a patient.
        numbered = _ROW_NAME.search(str(name)) is not None and len(levels) <= _MOST_NUMBERS * len(frame)
        if len(constant) >= (1 if numbered else _FEWEST_CONSTANT):
            yield str(name), constant


def constant_in(column: pd.Series[Any], codes: Any) -> bool:
    """Whether a column has one value for each code, and would not by chance."""
    values = coded(column)[0]
    shares = np.bincount(values[values >= 0]) / max(len(values), 1)
    agree, repeats = float((shares**2).sum()), len(codes) - len(np.unique(codes))
    if len(shares) < 2 or agree > _MOST_BY_CHANCE or agree**repeats > _CHANCE:
        return False
    return bool(pd.Series(values).groupby(codes).nunique().max() == 1)


def patient_numbers(frame: pd.DataFrame, id: pd.Series[Any] | None, kept: Sequence[str] = ()) -> IntArray:
    """Return a number for each row, (n,), equal for rows of one patient.

    Rows with the same `id` are one patient, and a row without an id is one too. Without ids, equal rows are one
    patient; columns that number the rows are not compared, unless they are in `kept`, such as those of the target.
    """
    if id is None:
        return row_numbers(frame, kept)
    named, _ = factorized(id)
    missing = named < 0
    named[missing] = named.max(initial=-1) + 1 + np.arange(missing.sum())
    return np.asarray(named, dtype=np.intp)


def row_numbers(frame: pd.DataFrame, kept: Sequence[str | None] = ()) -> IntArray:
    """Return a number for each row, (n,), equal for rows with equal values.

    Columns that number the rows are ignored, unless they are in `kept` or named as ids of patients.
    """
    numbers = [one for one in frame if counts_rows(frame[one]) and not names_patients(one, frame[one])]
    used = frame.drop(columns=[one for one in numbers if one not in kept])
    return np.asarray(pd.factorize(hash_rows(used))[0], dtype=np.intp)


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
            texts = np.array([*map(label, np.asarray(values, dtype=object)), "\0"], dtype=object)
            hashed = pd.util.hash_array(texts, categorize=False)[codes]
        total = total * _FACTOR + hashed
    return pd.Series(total, index=frame.index)


def _ten_digits(values: FloatArray) -> FloatArray:
    """Round to ten digits, which survive in files of every program; R writes 15 digits, a float may need 17."""
    with np.errstate(all="ignore"):
        unit = 10.0 ** (np.floor(np.log10(np.abs(values))) - 9)
        rounded = np.round(values / unit) * unit
    return np.where(np.isfinite(rounded), rounded, values)
