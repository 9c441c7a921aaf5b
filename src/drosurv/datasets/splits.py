"""Split a dataset into training, validation and test parts, also as published."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from drosurv.datasets.dataset import Dataset
from drosurv.errors import InputError, as_number, require
from drosurv.patients.target import IntArray


class Split(NamedTuple):
    """Training, validation and test part of one dataset."""

    train: Dataset
    validation: Dataset
    test: Dataset


def split(
    dataset: Dataset,
    seed: int,
    *,
    impute: bool = True,
    test_size: float = 0.2,
    validation_size: float = 0.2,
    test_seed: int = 7,
) -> Split:
    """Split a dataset into training, validation and test parts with equal shares of events.

    The test part depends on `test_seed` alone, so it is the same for every `seed`; the validation part is
    drawn from the rest. On data loaded with ``as_published=True`` the defaults give the published splits.

    Parameters
    ----------
    dataset : Dataset
        Dataset to split.
    seed : int
        Seed of the validation part.
    impute : bool
        Fill missing values with the training part's medians, and most frequent levels; False leaves them.
    test_size : float
        Fraction of all rows in the test part.
    validation_size : float
        Fraction of the remaining rows in the validation part.
    test_seed : int
        Seed of the test part; 7 gives the published one.

    Examples
    --------
    >>> from drosurv.datasets import load_flc, split
    >>> train, validation, test = split(load_flc(), seed=1)
    >>> len(train), len(validation), len(test)
    (5039, 1260, 1575)
    """
    for name, size in (("test_size", test_size), ("validation_size", validation_size)):
        require(0 < as_number(size) < 1, name, "be a share in (0, 1)", size)
    rest, test = drawn_rows(dataset, test_size, test_seed)
    train, validation = drawn_rows(dataset.take(rest), validation_size, seed)
    parts = Split(dataset.take(rest[train]), dataset.take(rest[validation]), dataset.take(test))
    return _imputed(parts) if impute else parts


def drawn_rows(dataset: Dataset, size: float, seed: int) -> tuple[IntArray, IntArray]:
    """Draw a random share of the rows; return the other rows and these, with equal shares of events."""
    from sklearn.model_selection import train_test_split

    kept, drawn = train_test_split(
        np.arange(len(dataset)), test_size=size, stratify=dataset.target.event, random_state=seed
    )
    return kept, drawn


def _imputed(parts: Split) -> Split:
    X = parts.train.X
    if empty := [str(name) for name in X.columns if X[name].isna().all()]:
        raise InputError(
            f"the training part has no value of {', '.join(empty)}: drop it, or split with impute=False."
        )
    numbers = X.select_dtypes("float")
    texts = X.drop(columns=numbers.columns)
    typical = {**numbers.median(), **{name: texts[name].mode().iloc[0] for name in texts.columns}}
    return Split(*(replace(part, X=part.X.fillna(typical)) for part in parts))
