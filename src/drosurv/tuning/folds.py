"""Who is trained on and who is scored: folds or one validation part, with the same share of events in each."""

from __future__ import annotations

from typing import Any

import numpy as np

from drosurv.target import BoolArray, IntArray

Fold = tuple[IntArray, IntArray]


def parse_folds(cv: Any, event: BoolArray, random_state: Any = None) -> list[Fold]:
    """Rows of training and validation patients, fold by fold.

    Parameters
    ----------
    cv : int, float, splitter or iterable of (train, validation)
        A whole number: so many folds, each patient validated once. A fraction: one validation part of that
        share of the patients. A scikit-learn splitter, which is given the event flags to stratify by. Or the
        rows themselves, such as ``[(train, validation)]`` for a validation set of one's own.
    event : (n,) bool
        Event flags.
    random_state : int, RandomState or None
        Draws the folds.

    Returns
    -------
    list of (train, validation) row numbers

    Examples
    --------
    >>> event = np.array([True, False] * 10)
    >>> [len(validation) for _, validation in parse_folds(5, event, random_state=0)]
    [4, 4, 4, 4, 4]
    """
    from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

    n, rows = len(event), np.zeros(len(event))
    if isinstance(cv, (bool, np.bool_)):
        raise ValueError(f"cv must be a number of folds, a share of the patients or folds, got {cv!r}.")
    if isinstance(cv, (int, np.integer)):
        fewest = int(min(event.sum(), (~event).sum() or n))
        if not 2 <= cv <= fewest:
            raise ValueError(
                f"cv={cv} folds need at least that many patients with and without an event (the rarer has "
                f"{fewest}), and at least 2 folds; choose cv between 2 and {fewest}, or a fraction."
            )
        cv = StratifiedKFold(int(cv), shuffle=True, random_state=random_state)
    elif isinstance(cv, (float, np.floating)):
        if not 0 < cv < 1:
            raise ValueError(f"cv={cv} as a share of the patients must lie in (0, 1).")
        cv = StratifiedShuffleSplit(1, test_size=float(cv), random_state=random_state)
    pairs = cv.split(rows, event) if hasattr(cv, "split") else cv
    folds = [_checked(pair, event, k) for k, pair in enumerate(pairs)]
    if not folds:
        raise ValueError("cv holds no fold; an iterator of folds can be used only once, a list always.")
    return folds


def _checked(pair: Any, event: BoolArray, number: int) -> Fold:
    try:
        train, validation = (np.arange(len(event))[np.asarray(part)] for part in pair)
    except (TypeError, ValueError, IndexError):
        raise ValueError(
            f"fold {number} of cv must be a pair (training rows, validation rows) of positions below "
            f"{len(event)}, got {pair!r}."
        ) from None
    for name, part in (("training", train), ("validation", validation)):
        if not event[part].any():
            raise ValueError(f"the {name} part of fold {number} has no event; use fewer folds.")
    return train, validation
