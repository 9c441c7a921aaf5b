"""Who is trained on and who is scored: folds or one validation part, with the same share of events in each."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from drosurv.errors import ArgumentError
from drosurv.target import BoolArray, IntArray

Fold = tuple[IntArray, IntArray]


def parse_folds(cv: Any, event: BoolArray, random_state: Any = None, groups: Any = None) -> list[Fold]:
    """Rows of training and validation patients, fold by fold.

    `cv` is a whole number: so many folds, each patient validated once. Or a fraction: one validation part of that
    share of the patients. Or a scikit-learn splitter, which is given the event flags to stratify by. Or the rows
    themselves, such as ``[(train, validation)]`` for a given validation set. `groups` (n,) say whose row it
    is: rows of one patient are never both trained on and scored.

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
    owners = None if groups is None else np.asarray(groups)
    if owners is not None and owners.shape != (n,):
        raise ArgumentError(
            "groups", f"groups must hold one label for each of the {n} rows, got shape {owners.shape}."
        )
    if isinstance(cv, (bool, np.bool_, str)) or cv is None:
        raise ArgumentError.must("cv", "be a number of folds, a share of the patients or folds", cv)
    if isinstance(cv, (int, np.integer)):
        fewest = int(min(event.sum(), (~event).sum() or n))
        if not 2 <= cv <= fewest:
            raise ArgumentError(
                "cv",
                f"cv={cv!r} folds need at least that many patients with and without an event, of which the "
                f"rarer are {fewest}, and at least 2 folds: choose cv from 2 to that.",
            )
        folded = StratifiedKFold if owners is None else StratifiedGroupKFold
        cv = folded(int(cv), shuffle=True, random_state=random_state)
    elif isinstance(cv, (float, np.floating)):
        if not 0 < cv < 1:
            raise ArgumentError("cv", f"cv={cv!r} as a share of the patients must lie in (0, 1).")
        shuffled = StratifiedShuffleSplit if owners is None else GroupShuffleSplit
        cv = shuffled(1, test_size=float(cv), random_state=random_state)
    pairs = cv.split(rows, event, owners) if hasattr(cv, "split") else cv
    folds = [_checked(pair, event, k) for k, pair in enumerate(pairs)]
    for k, (train, validation) in enumerate(folds):
        if owners is not None and (both := np.intersect1d(owners[train], owners[validation])).size:
            raise ArgumentError(
                "cv",
                f"fold {k} of cv trains on rows of {both[0]!r} and scores others of the same: keep the "
                "rows of one patient together, or use a splitter that reads groups.",
            )
    if not folds:
        raise ArgumentError(
            "cv", "cv holds no fold; an iterator of folds can be used only once, a list always."
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
            raise ArgumentError(
                "cv", f"the {name} part of fold {number} has no event; use fewer folds in cv."
            )
    return train, validation
