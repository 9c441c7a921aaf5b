"""Folds for cross-validation, or one validation set, stratified by event."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from drosurv.errors import ArgumentError
from drosurv.target import BoolArray, IntArray

Fold = tuple[IntArray, IntArray]


def parse_folds(cv: Any, event: BoolArray, random_state: Any = None, groups: Any = None) -> list[Fold]:
    """Return the rows of the training and the validation patients of each fold.

    `cv` is an integer, the number of folds; or a fraction, the share of patients in a single validation set; or a
    scikit-learn splitter, which gets the event flags as its `y`; or the folds themselves, such as
    ``[(train, validation)]`` for a given validation set. `groups` (n,) identifies the patient of each row: the rows of
    one patient are never both in the training and in the validation set.

    Examples
    --------
    >>> event = np.array([True, False] * 10)
    >>> [len(validation) for _, validation in parse_folds(5, event, random_state=0)]
    [4, 4, 4, 4, 4]
    """
    from sklearn.model_selection import (
        GroupShuffleSplit,
        StratifiedGroupKFold,
        StratifiedKFold,
        StratifiedShuffleSplit,
    )

    try:
        check_random_state(random_state)
    except ValueError:
        wanted = "be a whole number that is not negative, a RandomState or None"
        raise ArgumentError.must("random_state", wanted, random_state) from None
    n, rows = len(event), np.zeros(len(event))
    patients = None if groups is None else np.asarray(groups)
    if patients is not None and patients.shape != (n,):
        raise ArgumentError(
            "groups", f"groups must hold one label for each of the {n} rows, got shape {patients.shape}."
        )
    if isinstance(cv, (bool, np.bool_, str)) or cv is None:
        raise ArgumentError.must("cv", "be a number of folds, a share of the patients or folds", cv)
    if isinstance(cv, (int, np.integer)):
        most = int(min(event.sum(), (~event).sum() or n))
        if not 2 <= cv <= most:
            raise ArgumentError(
                "cv",
                f"cv must be between 2 and {most}, got {cv!r}: each fold needs a patient with an event and a "
                "censored patient.",
            )
        folded = StratifiedKFold if patients is None else StratifiedGroupKFold
        cv = folded(int(cv), shuffle=True, random_state=random_state)
    elif isinstance(cv, (float, np.floating)):
        if not 0 < cv < 1:
            raise ArgumentError("cv", f"cv={cv!r} as a share of the patients must lie in (0, 1).")
        shuffled = StratifiedShuffleSplit if patients is None else GroupShuffleSplit
        cv = shuffled(1, test_size=float(cv), random_state=random_state)
    pairs = cv.split(rows, event, patients) if hasattr(cv, "split") else cv
    folds = [_checked(pair, event, k) for k, pair in enumerate(pairs)]
    for k, (train, validation) in enumerate(folds):
        if patients is not None and (both := np.intersect1d(patients[train], patients[validation])).size:
            raise ArgumentError(
                "cv",
                f"fold {k} of cv has rows of patient {both.tolist()[0]!r} in both the training and the validation "
                "set: keep the rows of one patient together, or use a splitter that supports groups.",
            )
    if not folds:
        raise ArgumentError(
            "cv", "cv contains no fold: an iterator of folds can be used only once; pass a list instead."
        )
    return folds


def _checked(pair: Any, event: BoolArray, number: int) -> Fold:
    try:
        train, validation = (np.arange(len(event))[np.asarray(part)] for part in pair)
    except (TypeError, ValueError, IndexError):
        raise ArgumentError(
            "cv",
            f"fold {number} of cv must be a pair (training rows, validation rows) of positions below "
            f"{len(event)}, got {pair!r}.",
        ) from None
    for name, part in (("training", train), ("validation", validation)):
        if not event[part].any():
            raise ArgumentError("cv", f"the {name} set of fold {number} has no event; use fewer folds in cv.")
    return train, validation
